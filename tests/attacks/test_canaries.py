from __future__ import annotations

import numpy as np
import pytest

from tfpriv._errors import InputError
from tfpriv.attacks import (
    CanaryExposure,
    ReleasedTextModel,
    insert_canaries,
    make_canaries,
    measure_exposure,
)
from tfpriv.attacks.canaries import exposure_p_value, public_words
from tfpriv.datasets import TextDataset

TEXTS = ["check out my new song please", "this video is really nice I think", "short"]


def test_a_canary_has_a_prefix_of_the_population_and_public_words_behind_it():
    canaries = make_canaries(TEXTS, 20, label="spam", alternatives=7, seed=1)
    words = set(public_words())
    assert {c.label for c in canaries} == {"spam"}
    for canary in canaries:
        assert canary.prefix.lower() in ("check out my new", "this video is really")
        assert len(canary.suffix) == 3
        assert set(canary.suffix) <= words
        assert len(canary.candidates) == 8
        assert canary.text == canary.candidates[0]
    assert make_canaries(TEXTS, 20, label="spam", alternatives=7, seed=1) == canaries
    assert make_canaries(TEXTS, 20, label="spam", alternatives=7, seed=2) != canaries


def test_canaries_go_behind_the_records_each_a_group_of_its_own():
    data = TextDataset(tuple(TEXTS), ("a", "b", "a"), ("x", "x", "y"))
    canaries = make_canaries(TEXTS, 2, label="b", alternatives=1)
    whole = insert_canaries(data, canaries, repeats=2)
    assert whole.texts[:3] == data.texts
    assert whole.texts[3:] == tuple(c.text for c in canaries for _ in range(2))
    assert whole.labels[3:] == ("b",) * 4
    assert len(set(whole.groups[3:])) == 2
    assert set(whole.groups[3:]).isdisjoint(data.groups)
    assert insert_canaries(data, []) is data


def test_exposure_is_that_of_the_rank():
    (canary,) = make_canaries(TEXTS, 1, alternatives=15)
    scores = np.zeros(16)
    scores[0], scores[1:4] = 1.0, 2.0
    found = measure_exposure(canary, lambda texts: scores)
    # Fourth of sixteen: 4 bits less 2.
    assert (found.rank, found.exposure, found.ceiling) == (4, 2.0, 4.0)
    assert found.to_json()["exposure"] == 2.0
    tied = measure_exposure(canary, lambda texts: np.zeros(16))
    assert tied.rank == 8.5
    assert tied.equal == 15
    with pytest.raises(InputError, match="NaN"):
        measure_exposure(canary, lambda texts: np.full(16, np.nan))


def test_a_canary_in_the_released_text_is_ranked_first():
    (canary,) = make_canaries(TEXTS, 1, alternatives=63)
    copied = ReleasedTextModel([*TEXTS, canary.text], more=canary.candidates)
    assert measure_exposure(canary, copied.log_likelihoods).exposure == 6
    with pytest.raises(InputError, match="tokens"):
        ReleasedTextModel(["", " "])


def test_the_p_value_of_one_canary_is_its_share():
    assert exposure_p_value([CanaryExposure(3.0, 64)]) == pytest.approx(3 / 64)
    with pytest.raises(InputError, match="at least one exposure"):
        exposure_p_value([])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"texts": ["one two"]}, "more than 4 tokens"),
        ({"words": ["same", "same"]}, "at least two words"),
        ({"count": 0}, "count >= 1"),
        ({"alternatives": 0}, "alternatives >= 1"),
        ({"seed": -1}, "seed >= 0"),
    ],
)
def test_bad_input_is_named(settings, words):
    with pytest.raises(InputError, match=words) as caught:
        make_canaries(**{"texts": TEXTS, "count": 1, **settings})
    assert "one two" not in str(caught.value)


def test_a_labelled_data_set_takes_labelled_canaries_alone():
    data = TextDataset(("a",), ("spam",))
    with pytest.raises(InputError, match="with a label"):
        insert_canaries(data, make_canaries(TEXTS, 1, alternatives=1))
