from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tfpriv._errors import InputError
from tfpriv.datasets import TextDataset, concatenate, split, write_table


@pytest.fixture
def data() -> TextDataset:
    return TextDataset(
        ["Buy now!!", "hello", "buy  NOW", "bye"],
        ["spam", "ham", "spam", "ham"],
        ["ann", "bob", "ann", "cid"],
        text_column="CONTENT",
        label_column="CLASS",
        private=["f", "m", "f", "n"],
        private_column="SEX",
        provenance={"source": "mine.csv"},
    )


def test_sequences_become_tuples_and_nothing_can_be_assigned(data):
    assert isinstance(data.texts, tuple)
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.texts = ()


def test_repr_shows_no_text_no_label_and_no_group(data):
    whole = dataclasses.replace(data, private=["female", "male", "female", "neither"])
    for value in (*whole.texts, *whole.labels, *whole.groups, *whole.private):
        assert value not in repr(whole)
    assert "private 'SEX'" in repr(whole)
    assert "private" not in repr(dataclasses.replace(whole, private=None))


def test_select_keeps_texts_labels_and_groups_together_in_the_given_order(data):
    part = data.select(np.array([3, 0]))
    assert part.texts == ("bye", "Buy now!!")
    assert part.labels == ("ham", "spam")
    assert part.groups == ("cid", "ann")
    assert part.private == ("n", "f")
    assert (part.text_column, part.label_column) == ("CONTENT", "CLASS")
    assert part.private_column == "SEX"


@pytest.mark.parametrize("mask", [[True, False], np.array([True, False])])
def test_select_refuses_a_mask_that_would_pick_positions_0_and_1(data, mask):
    with pytest.raises(InputError, match="mask"):
        data.select(mask)


def test_by_label_is_a_partition(data):
    parts = data.by_label()
    assert list(parts) == ["ham", "spam"]
    assert parts["spam"].texts == ("Buy now!!", "buy  NOW")
    assert sum(map(len, parts.values())) == len(data)


def test_by_label_without_labels_says_what_to_do():
    with pytest.raises(InputError, match="label=COLUMN"):
        TextDataset(["a"]).by_label()


def test_deduplicate_keeps_the_first_of_equal_canonical_texts(data):
    assert data.deduplicate().texts == ("Buy now!!", "hello", "bye")
    assert data.deduplicate().private == ("f", "m", "n")


def test_group_keys_are_the_declared_groups_or_else_canonical_texts(data):
    assert data.group_keys() == data.groups
    keys = dataclasses.replace(data, groups=None).group_keys()
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": ["secret"], "labels": ["a", "b"]}, "2 labels and 1 texts"),
        ({"texts": ["secret"], "groups": []}, "0 groups and 1 texts"),
        ({"texts": ["secret", 3]}, "int at position 1"),
        ({"texts": ["secret", None]}, "NoneType at position 1"),
        ({"texts": "secret"}, "one str"),
        ({"texts": ["secret"], "label_column": "text"}, "different names"),
        ({"texts": ["secret"], "private": ["a", "b"]}, "2 private and 1 texts"),
        ({"texts": ["secret"], "private": [1]}, "int at position 0"),
        (
            {"texts": ["secret"], "private": ["a"], "private_column": "text"},
            "name of its own",
        ),
        (
            {
                "texts": ["secret"],
                "labels": ["a"],
                "private": ["a"],
                "private_column": "label",
            },
            "name of its own",
        ),
    ],
)
def test_what_is_not_a_data_set_is_refused_without_showing_a_text(arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        TextDataset(**arguments)
    assert "secret" not in str(caught.value)


def test_concatenate_keeps_order_and_refuses_half_labelled_parts(data):
    both = concatenate([data, data], provenance={"parts": 2})
    assert both.texts == data.texts * 2
    assert both.groups == data.groups * 2
    assert both.private == data.private * 2
    assert both.provenance == {"parts": 2}
    with pytest.raises(InputError, match="1 of 2"):
        concatenate([data, dataclasses.replace(data, labels=None)])
    with pytest.raises(InputError, match="1 of 2"):
        concatenate([data, dataclasses.replace(data, private=None)])


def test_to_tf_data_gives_text_and_label_in_order(data):
    pairs = [
        (text.decode(), label.decode())
        for text, label in data.to_tf_data().as_numpy_iterator()
    ]
    assert pairs == list(zip(data.texts, data.labels, strict=True))
    alone = dataclasses.replace(data, labels=None).to_tf_data()
    assert [text.decode() for text in alone.as_numpy_iterator()] == list(data.texts)


def test_splits_keep_private_labels_with_their_texts():
    texts = [f"text {i}" for i in range(200)]
    data = TextDataset(texts, private=[text[-1] for text in texts])
    for part in split(data):
        assert part.private == tuple(text[-1] for text in part.texts)
    assert data.private_names == tuple("0123456789")
    assert TextDataset(["a"]).private_names == ()


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_no_file_gets_the_private_label(data, tmp_path, suffix):
    whole = dataclasses.replace(data, private=["hunter2"] * 4, private_column="SEX")
    path = tmp_path / f"out.{suffix}"
    write_table(whole, path)
    assert "hunter2" not in path.read_text()
    assert "SEX" not in path.read_text()
    with_private = len(next(iter(whole.to_tf_data())))
    assert with_private == 2


def test_targets_number_the_names_of_the_training_part():
    data = TextDataset(("a", "b"), labels=("y", "y"), private=("m", "f"))
    targets = data.targets(("x", "y"))
    assert targets["label"].tolist() == [1, 1]
    assert targets["private"].tolist() == [1, 0]
    with pytest.raises(InputError, match="row 0") as refused:
        data.targets(("x", "z"))
    assert "'y'" not in str(refused.value)
