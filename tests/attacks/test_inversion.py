from __future__ import annotations

import numpy as np
import pytest

from tfpriv._errors import InputError
from tfpriv.attacks import InversionAttack

WORDS = [f"zz{chr(97 + i)}" for i in range(26)]
FAST = {"words": 26, "resamples": 200}


def texts(count, seed):
    """Each of a few frequent words and of many rare ones, at random."""
    draw = np.random.default_rng(seed)
    share = np.r_[np.full(4, 0.5), np.full(22, 0.12)]
    has = draw.random((count, 26)) < share
    has[:, 0] |= ~has.any(axis=1)
    return [" ".join(w for w, h in zip(WORDS, row, strict=True) if h) for row in has]


def telling(lines, noise=0.3, seed=0):
    """A fixed projection of a text's bag of words, with a little noise."""
    projection = np.random.default_rng(5).normal(size=(26, 24))
    bags = np.array([[w in line.split() for w in WORDS] for line in lines], float)
    return bags @ projection + noise * np.random.default_rng(seed).normal(
        size=(len(lines), 24)
    )


def silent(lines, seed=0):
    return np.random.default_rng(seed).normal(size=(len(lines), 24))


REFERENCE, TEST = texts(400, 1), texts(150, 2)


@pytest.fixture(scope="module")
def leaking():
    attack = InversionAttack(**FAST)
    return attack.fit_score(telling(REFERENCE), REFERENCE, telling(TEST, seed=1), TEST)


def test_every_attacker_recovers_words_from_representations_that_tell(leaking):
    assert leaking.leaks
    for score in leaking.attackers:
        assert score.succeeds, score.name
        assert score.f1.low > leaking.blind.f1.high
    assert leaking.worst.f1.value > 0.8
    assert "GIVE WORDS AWAY" in str(leaking)


def test_representations_that_tell_nothing_are_at_the_blind_floor():
    attack = InversionAttack(**FAST)
    result = attack.fit_score(silent(REFERENCE), REFERENCE, silent(TEST, 1), TEST)
    assert not result.leaks
    for score in result.attackers:
        assert score.f1_gain.low <= 0
    assert "no proof" in str(result)
    assert "safe" not in str(result)


def test_frequent_words_alone_are_no_leak(leaking):
    """The blind guess has a high score without looking: the gain is what counts."""
    assert leaking.blind.f1.value > 0.3
    assert leaking.blind.f1_gain.value == 0
    assert not leaking.blind.succeeds


@pytest.mark.parametrize("twin", ["tested on the reference", "sees the words"])
def test_a_broken_twin_finds_words_where_nothing_is_told(twin):
    attack = InversionAttack(["nearest_neighbour"], neighbours=1, **FAST)
    x, x_test = silent(REFERENCE), silent(TEST, 1)
    if twin == "tested on the reference":
        result = attack.fit_score(x, REFERENCE, x, REFERENCE)
    else:
        result = attack.fit_score(
            np.hstack([x, 5 * telling(REFERENCE)]),
            REFERENCE,
            np.hstack([x_test, 5 * telling(TEST)]),
            TEST,
        )
    assert result.leaks


def test_scores_are_those_worked_out_by_hand():
    reference = ["worda wordb", "wordc wordd", "worda wordb"]
    x = np.array([[0.0], [10.0], [0.1]])
    attack = InversionAttack(["nearest_neighbour"], words=4, k=1, neighbours=1)
    result = attack.fit_score(
        x, reference, np.array([[0.0], [9.0]]), ["worda wordd", "wordc wordd"]
    )
    # Named: a and b, then c and d. One of two right, then both.
    (score,) = result.attackers
    assert (result.named, result.k) == (2, 1)
    assert score.f1.value == pytest.approx((0.5 + 1) / 2)
    assert score.precision.value == 1
    # Blind: a and b for both.
    assert result.blind.f1.value == pytest.approx((0.5 + 0) / 2)


def test_the_result_names_no_word(leaking):
    shown = f"{leaking} {leaking.to_json()}"
    assert not any(word in shown for word in WORDS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"test": np.zeros((2, 3))}, "same width"),
        ({"test": np.full((2, 2), np.nan)}, "row 0, feature 0"),
        ({"test": np.zeros((3, 2))}, "one text a row"),
        ({"test": np.array([["a", "b"]] * 2)}, "Expected numbers"),
        ({"lines": ["", "!"]}, "texts with words"),
    ],
)
def test_bad_input_is_refused_without_a_word_of_the_texts(change, words):
    lines = change.get("lines", ["private one", "private two"])
    with pytest.raises(InputError, match=words) as caught:
        InversionAttack().fit_score(
            np.zeros((2, 2)), lines, change.get("test", np.zeros((2, 2))), lines
        )
    assert "private" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_attackers_are_refused():
    with pytest.raises(InputError, match="nearest_neighbour"):
        InversionAttack(["magic"])
    with pytest.raises(InputError, match="list of attackers"):
        InversionAttack("mlp")
    with pytest.raises(InputError, match="k >= 1"):
        InversionAttack(k=0)
