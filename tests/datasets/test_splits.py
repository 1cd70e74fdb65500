from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfpriv._errors import InputError
from tfpriv.datasets import TextDataset, split
from tfpriv.text import canonical

TEXTS = st.lists(st.text("ab 😀!", max_size=6), max_size=30)
NAMES = ("train", "validation", "test")


def where(dataset: TextDataset, **arguments) -> dict[str, str]:
    """The part of each text; fails if a text is in two."""
    found: dict[str, str] = {}
    splits = split(dataset, **arguments)
    for name in NAMES:
        for text in getattr(splits, name).texts:
            assert found.setdefault(text, name) == name
    return found


@given(TEXTS, st.text(max_size=6), st.integers(0, 5))
def test_one_record_moves_no_other(texts, extra, seed):
    before = where(TextDataset(texts), seed=seed)
    after = where(TextDataset([extra, *texts]), seed=seed)
    assert before.items() <= after.items()
    backwards = where(TextDataset(texts[::-1]), seed=seed)
    assert backwards == before


@given(TEXTS, st.integers(0, 5))
def test_no_canonical_text_is_in_two_parts_and_none_is_lost(texts, seed):
    parts = list(split(TextDataset(texts), seed=seed))
    keys = [{canonical(text) for text in part.texts} for part in parts]
    assert sum(map(len, keys)) == len(set().union(*keys))
    assert sorted(t for part in parts for t in part.texts) == sorted(texts)


def test_a_declared_group_stays_together_whatever_its_texts():
    texts = [f"text {i}" for i in range(300)]
    groups = [f"author {i % 30}" for i in range(300)]
    parts = list(split(TextDataset(texts, groups=groups)))
    authors = [set(part.groups) for part in parts]
    assert all(authors)
    assert sum(map(len, authors)) == 30


def test_order_labels_and_column_names_are_kept_within_a_part():
    data = TextDataset(
        [str(i) for i in range(100)],
        [f"l{i}" for i in range(100)],
        text_column="CONTENT",
    )
    for part in split(data):
        assert list(part.texts) == sorted(part.texts, key=int)
        assert part.labels == tuple(f"l{text}" for text in part.texts)
        assert part.text_column == "CONTENT"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fractions_are_right(seed):
    n = 20_000
    parts = split(TextDataset([f"text {i}" for i in range(n)]), seed=seed)
    for part, fraction in zip(parts, (0.6, 0.2, 0.2), strict=True):
        deviation = math.sqrt(n * fraction * (1 - fraction))
        assert abs(len(part) - n * fraction) < 4.5 * deviation


def test_seeds_give_independent_splits():
    data = TextDataset([f"text {i}" for i in range(5000)])
    first, second = (set(split(data, seed=seed).train.texts) for seed in (0, 1))
    assert abs(len(first & second) / 5000 - 0.36) < 0.03


def test_the_split_of_a_text_is_the_same_in_every_release():
    parts = where(TextDataset([f"text {i}" for i in range(10)]))
    assert [NAMES.index(parts[f"text {i}"]) for i in range(10)] == [
        0,
        0,
        1,
        0,
        2,
        1,
        1,
        0,
        2,
        2,
    ]


def test_a_part_can_be_empty_by_fraction():
    data = TextDataset([f"text {i}" for i in range(200)])
    assert len(split(data, fractions=(1, 0, 0)).train) == 200
    assert len(split(data, fractions=(0, 0, 1)).test) == 200
    parts = split(data, fractions=(0.5, 0.5, 0.0))
    assert len(parts.test) == 0
    assert len(parts.train) > 0 < len(parts.validation)


@pytest.mark.parametrize(
    "fractions",
    [
        (0.6, 0.2),
        (0.6, 0.2, 0.3),
        (1.2, -0.1, -0.1),
        (math.nan, 0.5, 0.5),
        (math.inf, 0, 0),
    ],
)
def test_fractions_that_are_none_are_refused(fractions):
    with pytest.raises(InputError):
        split(TextDataset(["a"]), fractions=fractions)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(InputError):
        split(TextDataset(["a"]), seed=seed)
