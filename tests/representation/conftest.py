"""A BERT of a few thousand weights, with a vocabulary of its own."""

from __future__ import annotations

import pytest

VOCABULARY = """
[PAD] [UNK] [CLS] [SEP] [MASK]
the a i it you we he she they good great love fine bad awful hate sad door table car
walks runs sees is was man woman his her . , ! ?
un ##believ ##able play ##ing ##ed ##s w ##o ##r ##d [ ] mask sep
""".strip().split()


@pytest.fixture(scope="session")
def tokenizer():
    import keras_nlp

    return keras_nlp.models.BertTokenizer(vocabulary=VOCABULARY, lowercase=True)


@pytest.fixture
def backbone():
    return make_backbone()


def make_backbone(**changes):
    import keras_nlp

    settings = {
        "vocabulary_size": len(VOCABULARY),
        "num_layers": 1,
        "num_heads": 2,
        "hidden_dim": 16,
        "intermediate_dim": 32,
        "max_sequence_length": 32,
    }
    return keras_nlp.models.BertBackbone(**{**settings, **changes})
