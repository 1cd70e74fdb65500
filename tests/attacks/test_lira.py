from __future__ import annotations

import numpy as np
import pytest

from tests.attacks import small_networks as small
from tfpriv._errors import InputError
from tfpriv.attacks import LiRA, score_membership
from tfpriv.attacks.class_discriminators import real_logits


def hard_records(population, *, gap, seed=0):
    """Shadows whose answers depend on the record far more than on membership."""
    difficulty = np.random.default_rng(seed).normal(size=len(population)) * 5
    calls = []

    def train(real_ids, scored_ids, *, seed):
        calls.append(len(real_ids))
        inside = np.isin(scored_ids[:, 0], real_ids[:, 0])
        noise = np.random.default_rng(seed).normal(size=len(scored_ids))
        return difficulty + gap * inside + noise

    return train, calls


def test_records_are_weighed_against_how_hard_they_are():
    population = np.arange(400)[:, None]
    train, calls = hard_records(population, gap=2.0)
    attack = LiRA(train).fit(population)
    member = np.arange(400) < 200
    phi = train(population[member], population, seed=10**6)
    plain = score_membership("plain", phi[member], phi[~member])
    for offline in (False, True):
        scores = attack.scores(phi, offline=offline)
        found = score_membership("LiRA", scores[member], scores[~member])
        assert found.auc.low > 0.85
        assert plain.auc.value < 0.65
    assert calls[:16] == [200] * 16


def test_every_record_is_in_half_of_the_shadows():
    population = np.arange(51)[:, None]
    train, _ = hard_records(population, gap=0.0)
    attack = LiRA(train, shadows=18).fit(population)
    assert (attack.included.sum(axis=0) == 9).all()


def test_the_score_is_the_ratio_of_two_gaussians_worked_out_by_hand():
    def train(real_ids, scored_ids, *, seed):
        # In or out, the two shadows of a pair lie .5 above and below the mean.
        sign = 1 if (seed // 2) % 2 else -1
        inside = np.isin(scored_ids[:, 0], real_ids[:, 0])
        return np.where(inside, 3.0, 1.0) + 0.5 * sign

    population = np.arange(8)[:, None]
    attack = LiRA(train).fit(population)
    # Eight shadows a record and side, deviation^2 = 8 x .25 / 7.
    variance = 8 * 0.25 / 7
    by_hand = (-((2.5 - 3) ** 2) + (2.5 - 1) ** 2) / (2 * variance)
    assert attack.scores(np.full(8, 2.5)) == pytest.approx(np.full(8, by_hand))
    offline = attack.scores(np.full(8, 2.5), offline=True)
    assert offline == pytest.approx(np.full(8, 1.5 / np.sqrt(variance)))


def test_real_shadow_discriminators_find_members_of_one_that_memorised():
    population = small.rows(60, 1)
    member = np.arange(60) < 30
    attack = LiRA(small.shadows(40)).fit(population)
    memorising = small.target(population[member], steps=40)
    untrained = small.target(population[member], steps=0)
    found = {}
    for name, target in (("memorising", memorising), ("untrained", untrained)):
        phi = real_logits(target.discriminator, population)
        scores = attack.scores(phi)
        found[name] = score_membership(name, scores[member], scores[~member])
    assert found["memorising"].auc.low > 0.5
    chance = found["untrained"].auc
    assert chance.low <= 0.5 <= chance.high


def test_bad_input_is_refused():
    with pytest.raises(InputError, match=">= 16"):
        LiRA(None, shadows=8)
    with pytest.raises(InputError, match="even number"):
        LiRA(None, shadows=17)
    with pytest.raises(InputError, match="at least 4 records"):
        LiRA(None).fit(np.zeros((3, 2)))
    with pytest.raises(InputError, match="Call fit"):
        LiRA(None).scores([0.0])
    attack = LiRA(lambda real, scored, *, seed: np.zeros(len(scored)))
    attack.fit(np.arange(6)[:, None])
    with pytest.raises(InputError, match="one confidence a record"):
        attack.scores([0.0])
