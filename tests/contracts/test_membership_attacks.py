"""What a membership attack, an audit and a canary must satisfy, and broken twins.

Records here are made so that the truth is known: a mechanism that tells each record's
coin with a given epsilon, a model that answers differently to what it saw, texts that
were copied or were not. Seeds are fixed, so that a check has one outcome.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tfpriv.accounting import Gaussian
from tfpriv.accounting.composition import epsilon
from tfpriv.attacks import (
    CanaryExposure,
    LiRA,
    ReleasedTextModel,
    audit_one_run,
    insert_canaries,
    make_canaries,
    measure_exposure,
    score_membership,
)
from tfpriv.attacks.canaries import exposure_p_value
from tfpriv.datasets import TextDataset

# --- The one-run bound -------------------------------------------------------

RECORDS, RUNS = 400, 200


def randomised_response(truth, seed):
    """Coins, and scores of a mechanism that is exactly epsilon-private in each."""
    draw = np.random.default_rng(seed)
    coins = draw.random(RECORDS) < 0.5
    told = draw.random(RECORDS) < 1 / (1 + math.exp(-truth))
    # Ties are broken by chance, not by a record's place.
    return coins, np.where(told, coins, ~coins) + 0.5 * draw.random(RECORDS)


def gaussian(sigma, seed):
    draw = np.random.default_rng(seed)
    coins = draw.random(RECORDS) < 0.5
    return coins, coins + sigma * draw.normal(size=RECORDS)


def honest_bound(coins, scores):
    return audit_one_run(coins, scores, delta=0.0).epsilon_lower


def bound_without_confidence(coins, scores):
    """The epsilon at which so many right guesses are just what is expected."""
    audit = audit_one_run(coins, scores, delta=0.0)
    rate = min(max(audit.correct / audit.guesses, 0.5), 1 - 1e-9)
    return math.log(rate / (1 - rate))


def bound_of_the_best_guess_count(coins, scores):
    """Tries many numbers of guesses and pays for one."""
    tried = range(10, RECORDS + 1, 10)
    return max(
        audit_one_run(coins, scores, guesses=k, delta=0.0).epsilon_lower for k in tried
    )


def exceeds(bound, truth):
    """Share of runs whose bound lies above the truth."""
    found = [bound(*randomised_response(truth, seed)) > truth for seed in range(RUNS)]
    return float(np.mean(found))


def check_bound_holds(bound):
    # 5 % are allowed; 9.6 % of 200 runs is three standard deviations above.
    assert exceeds(bound, 1.0) <= 0.096


def test_the_one_run_bound_holds_in_95_per_cent_of_runs():
    check_bound_holds(honest_bound)


@pytest.mark.parametrize("twin", [bound_without_confidence])
def test_a_bound_without_confidence_is_rejected(twin):
    with pytest.raises(AssertionError):
        check_bound_holds(twin)


def test_a_bound_that_tries_many_guess_counts_unpaid_is_rejected():
    """On a mechanism that tells nothing, so that every bound above 0 is wrong."""

    def wrong(bound):
        found = [bound(*randomised_response(0.0, seed)) > 0 for seed in range(60)]
        return float(np.mean(found))

    assert wrong(honest_bound) <= 0.134  # three standard deviations above 5 %
    assert wrong(bound_of_the_best_guess_count) > 0.134


def test_a_mechanism_that_claims_half_of_its_epsilon_is_refuted():
    refuted = [
        audit_one_run(*randomised_response(2.0, seed), delta=0.0) for seed in range(40)
    ]
    assert np.mean([audit.refutes(1.0) for audit in refuted]) > 0.9
    assert np.mean([audit.refutes(2.0) for audit in refuted]) <= 0.1


def test_the_bound_stays_below_what_an_accountant_says_of_gaussian_noise():
    """Approximate privacy: sensitivity 1 and deviation 1, delta 1e-5."""
    claimed = epsilon(Gaussian(1.0), 1e-5)
    bounds = [
        audit_one_run(*gaussian(1.0, seed), guesses=k, delta=1e-5).epsilon_lower
        for seed in range(20)
        for k in (20, 100, RECORDS)
    ]
    assert 0 < max(bounds) < claimed


# --- Likelihood ratios -------------------------------------------------------

POPULATION = np.arange(300)[:, None]
MEMBER = np.arange(300) < 150


def shadow(gap):
    difficulty = np.random.default_rng(1).normal(size=len(POPULATION)) * 4

    def train(real_ids, scored_ids, *, seed):
        inside = np.isin(scored_ids[:, 0], real_ids[:, 0])
        noise = np.random.default_rng(seed).normal(size=len(scored_ids))
        return difficulty[scored_ids[:, 0]] + gap * inside + noise

    return train


def lira(train):
    return LiRA(train).fit(POPULATION)


def lira_that_takes_out_for_in(train):
    attack = lira(train)
    attack.included = ~attack.included
    return attack


def lira_that_forgets_who_was_in(train):
    attack = lira(train)
    draw = np.random.default_rng(0)
    attack.included = draw.permuted(attack.included, axis=0)
    return attack


def lira_whose_shadows_are_the_attacked_model(train):
    """Trained on the members themselves: it is told what it should find out."""
    attack = lira(train)
    attack.included = np.tile(MEMBER, (attack.shadows, 1))
    attack.included[::2] = ~attack.included[::2]
    attack.confidences = np.where(attack.included, 50.0, 0.0) + attack.confidences
    attack.scores = lambda phi, offline=False: MEMBER.astype(float)
    return attack


def found(make, *, gap, offline=False):
    """The score of an attack on a model that answers `gap` higher to its records."""
    train = shadow(gap)
    phi = train(POPULATION[MEMBER], POPULATION, seed=10**6)
    scores = make(train).scores(phi, offline=offline)
    return score_membership("attack", scores[MEMBER], scores[~MEMBER])


def check_what_a_model_remembers_is_found(make):
    assert found(make, gap=2.0).auc.low > 0.8
    assert found(make, gap=2.0, offline=True).auc.low > 0.8


def check_what_it_does_not_remember_is_not(make):
    assert found(make, gap=0.0).auc.low <= 0.5 <= found(make, gap=0.0).auc.high


@pytest.mark.parametrize(
    "check",
    [check_what_a_model_remembers_is_found, check_what_it_does_not_remember_is_not],
)
def test_likelihood_ratio_attack(check):
    check(lira)


@pytest.mark.parametrize(
    ("twin", "check"),
    [
        (lira_that_takes_out_for_in, check_what_a_model_remembers_is_found),
        (lira_that_forgets_who_was_in, check_what_a_model_remembers_is_found),
        (
            lira_whose_shadows_are_the_attacked_model,
            check_what_it_does_not_remember_is_not,
        ),
    ],
)
def test_a_broken_likelihood_ratio_attack_is_rejected(twin, check):
    with pytest.raises(AssertionError):
        check(twin)


# --- Canaries ----------------------------------------------------------------

TEXTS = [
    f"{who} {does} the {what} number {i}"
    for i in range(20)
    for who, does, what in [
        ("she", "likes", "first song"),
        ("he", "hears", "other video"),
        ("nobody", "shares", "old channel"),
    ]
]


def exposures(release, *, canaries=None, score=None):
    """Of twelve canaries under a model of a release that is made with them in it."""
    canaries = canaries or make_canaries(TEXTS, 12, alternatives=127, seed=3)
    texts = release(TextDataset(tuple(TEXTS)), canaries)
    model = ReleasedTextModel(texts, more=[t for c in canaries for t in c.candidates])
    return [measure_exposure(c, score or model.log_likelihoods) for c in canaries]


def copying_release(data, canaries):
    return insert_canaries(data, canaries).texts


def independent_release(data, canaries):
    return data.texts


def check_a_copied_canary_is_exposed(measure):
    found = measure(copying_release)
    assert all(e.exposure == e.ceiling for e in found)
    assert exposure_p_value(found) < 1e-6


def check_a_canary_that_was_left_out_is_not(measure):
    assert exposure_p_value(measure(independent_release)) > 0.01


def from_rarer_words(release):
    """Alternatives that are less likely anyway: the rank tells nothing of copying."""
    unheard = [f"qx{i}" for i in range(500)]
    canaries = [
        type(c)(c.prefix, ("the", "first", "song"), c.alternatives)
        for c in make_canaries(TEXTS, 12, alternatives=127, words=unheard, seed=3)
    ]
    return exposures(release, canaries=canaries)


def deaf(release):
    """A score that hears only the prefix."""
    return exposures(release, score=lambda texts: np.zeros(len(texts)))


def test_canaries():
    check_a_copied_canary_is_exposed(exposures)
    check_a_canary_that_was_left_out_is_not(exposures)


@pytest.mark.parametrize(
    ("twin", "check"),
    [
        (from_rarer_words, check_a_canary_that_was_left_out_is_not),
        (deaf, check_a_copied_canary_is_exposed),
    ],
)
def test_broken_canaries_are_rejected(twin, check):
    with pytest.raises(AssertionError):
        check(twin)


@pytest.mark.parametrize("levels", [2, 10, 32])
def test_the_p_value_is_no_smaller_where_many_candidates_score_the_same(levels):
    """A score with few values: half of those that are equal rank below a canary."""
    draw = np.random.default_rng(0)
    (canary,) = make_canaries(TEXTS, 1, alternatives=63)
    for limit in (0.05, 0.3):
        values = [
            exposure_p_value(
                [measure_exposure(canary, lambda t: draw.integers(0, levels, len(t)))]
            )
            for _ in range(400)
        ]
        share = np.mean(np.array(values) <= limit)
        assert share <= limit + 3 * math.sqrt(limit * (1 - limit) / 400)


def test_the_p_value_of_canaries_without_a_trace_is_uniform_or_larger():
    draw = np.random.default_rng(0)
    values = [
        exposure_p_value(
            [CanaryExposure(float(r), 64) for r in draw.integers(1, 65, size=8)]
        )
        for _ in range(400)
    ]
    assert np.mean(np.array(values) <= 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)
