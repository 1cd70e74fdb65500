from __future__ import annotations

import pytest

from tests.attacks import small_networks as small
from tfpriv._errors import InputError
from tfpriv.attacks import PublishedAttack, generator_likelihood, logan
from tfpriv.seqgan import SeqGAN


@pytest.fixture(scope="module")
def members():
    return small.rows(60, 1)


@pytest.fixture(scope="module")
def memorising(members):
    """A class whose discriminator and generator know their records by heart."""
    target = small.target(members, steps=60)
    gan = SeqGAN(target.generator, target.discriminator, batch_size=30, seed=0)
    gan.use_corpus(members)
    gan.pretrain_generator(100)
    return target


@pytest.fixture(scope="module")
def untrained(members):
    return small.target(members, steps=0)


ATTACKS = [logan, generator_likelihood]


@pytest.mark.parametrize("attack", ATTACKS)
def test_members_of_networks_that_memorised_are_found(attack, memorising, members):
    others = small.texts(small.rows(60, 2))
    score = attack(memorising, small.texts(members), others, attacks_tried=5)
    assert score.auc.low > 0.5
    assert score.auc.value > 0.75
    assert score.attacks_tried == 5


@pytest.mark.parametrize("attack", ATTACKS)
def test_untrained_networks_tell_nothing(attack, untrained, members):
    others = small.texts(small.rows(60, 2))
    score = attack(untrained, small.texts(members), others)
    assert score.auc.low <= 0.5 <= score.auc.high


def test_no_texts_have_no_scores(untrained):
    assert untrained.logits([]).shape == (0,)
    assert untrained.log_likelihoods([]).shape == (0,)


def run_published(target, members, **settings):
    # Text that is generated like the records: the shadows can learn nothing else.
    generated = small.texts(small.rows(120, 7))
    attack = PublishedAttack(**{"shadows": 2, "epochs": 1, "steps": 8, **settings})
    return attack.run(
        target,
        generated,
        small.texts(small.rows(40, 3)),
        small.texts(members),
        small.texts(small.rows(50, 2)),
        attacks_tried=4,
    )


def test_the_published_attack_tests_half_on_members_and_half_on_others(
    untrained, members
):
    result = run_published(untrained, members)
    assert (result.tested, result.shadows) == (100, 2)
    assert 0 <= result.called_in <= 1
    if result.called_in in (0, 1):
        assert result.accuracy.value == 0.5
    assert (result.score.members, result.score.non_members) == (60, 50)
    assert result.accuracy.low <= 0.5 <= result.accuracy.high
    assert result.score.auc.low <= 0.5 <= result.score.auc.high
    assert result.score.attacks_tried == 4


def test_the_published_attack_finds_members_where_shadows_overfit_alike(
    memorising, members
):
    result = run_published(memorising, members, steps=60, learning_rate=0.02)
    assert result.accuracy.low > 0.5


def test_too_few_texts_are_refused_before_a_shadow_is_trained(untrained):
    texts = small.texts(small.rows(9, 3))
    with pytest.raises(InputError, match="at least 10 texts for generated, received 9"):
        PublishedAttack().run(untrained, texts, texts, texts, texts)
    with pytest.raises(InputError, match="shadows >= 1"):
        PublishedAttack(shadows=0)
