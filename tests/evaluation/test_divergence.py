from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfpriv.evaluation.divergence import frontier_area, mauve

SHARES = st.lists(st.integers(1, 20), min_size=3, max_size=3).map(
    lambda counts: np.array(counts) / sum(counts)
)


def vectors(seed: int, shift: float = 0.0, rows: int = 200) -> np.ndarray:
    found = np.random.default_rng(seed).normal(size=(rows, 8))
    found[:, 0] += shift
    return found


@given(SHARES, SHARES)
def test_an_area_is_a_share_and_the_same_from_either_side(p, q):
    area = frontier_area(p, q)
    assert 0 <= area <= 1
    assert area == pytest.approx(frontier_area(q, p), abs=1e-6)


@given(SHARES)
def test_what_is_equal_has_the_whole_area(p):
    assert frontier_area(p, p) == pytest.approx(1)


def test_what_is_disjoint_has_next_to_none():
    # R is half of each: the curve's middle is at exp(-5 ln 2) = 1/32 on both axes.
    area = frontier_area(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    assert 0 < area < 0.02


def test_an_area_falls_as_distributions_move_apart():
    far = [np.array([0.5 + move, 0.5 - move]) for move in (0.0, 0.1, 0.2, 0.4)]
    areas = [frontier_area(far[0], other) for other in far]
    assert areas == sorted(areas, reverse=True)
    assert len(set(areas)) == 4


def test_alike_vectors_are_near_and_others_are_far():
    alike = mauve(vectors(0), vectors(1))
    far = mauve(vectors(0), vectors(1, shift=4.0))
    assert alike.clusters == far.clusters == 20
    assert alike.rows == 200
    assert far.area.high < alike.area.low


@pytest.mark.slow
def test_the_interval_covers_the_area_of_the_sources():
    """Points on four corners: k-means finds them, and the true area is known."""
    corners = np.eye(4)
    p, q = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.2, 0.2, 0.3, 0.3])
    true = frontier_area(p, q)
    inside = []
    for seed in range(25):
        draw = np.random.default_rng(seed)
        sides = [corners[draw.choice(4, 300, p=shares)] for shares in (p, q)]
        area = mauve(*sides, clusters=4, resamples=50, seed=seed).area
        inside.append(area.low <= true <= area.high)
    # Of 25 at 95 %, fewer than 20 have a probability below 2e-3.
    assert sum(inside) >= 20
    assert area.high - area.low < 0.3


def test_the_seed_makes_it_again():
    again = [mauve(vectors(0), vectors(1), seed=3).to_json() for _ in range(2)]
    assert again[0] == again[1]


def test_equal_vectors_need_one_cluster_each():
    same = np.ones((30, 4))
    assert mauve(same, same).area.value == pytest.approx(1)


def test_few_rows_are_refused():
    with pytest.raises(ValueError, match=r"at least 20 texts .* received 3"):
        mauve(vectors(0), vectors(1, rows=3))
