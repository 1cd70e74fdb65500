"""Steps differ by what is added alone, and nothing but rows of the two is in a set."""

from collections import Counter

import pytest

from tfpriv._errors import InputError
from tfpriv.datasets import TextDataset
from tfpriv.evaluation import mix

REAL = TextDataset(
    texts=tuple(f"real {i}" for i in range(40)),
    labels=("ham",) * 30 + ("spam",) * 10,
    private=("f", "m") * 20,
)
FAKE = TextDataset(
    texts=tuple(f"fake {i}" for i in range(100)), labels=("spam", "ham") * 50
)


def rows(data):
    return Counter(zip(data.texts, data.labels, strict=True))


def test_sizes_are_the_shares_of_the_real_rows():
    sets = mix(REAL, FAKE, real_shares=(0, 0.1, 1), synthetic_shares=(0, 0.5, 2.5))
    assert {shares: len(data) for shares, data in sets.items()} == {
        (0.0, 0.5): 20,
        (0.0, 2.5): 100,
        (0.1, 0.0): 4,
        (0.1, 0.5): 24,
        (0.1, 2.5): 104,
        (1.0, 0.0): 40,
        (1.0, 0.5): 60,
        (1.0, 2.5): 140,
    }
    assert rows(sets[1.0, 2.5]) == rows(REAL) + rows(FAKE)


def test_a_larger_share_holds_the_smaller_ones():
    sets = mix(REAL, FAKE, real_shares=(0.1, 0.5), synthetic_shares=(0, 1), seed=3)
    assert rows(sets[0.1, 0.0]) <= rows(sets[0.5, 0.0]) <= rows(REAL)
    assert rows(sets[0.5, 1.0]) - rows(sets[0.5, 0.0]) <= rows(FAKE)


def test_every_class_keeps_its_part_and_at_least_a_row():
    (few,) = mix(REAL, FAKE, real_shares=[0.01], synthetic_shares=[0]).values()
    assert Counter(few.labels) == {"ham": 1, "spam": 1}
    (half,) = mix(REAL, FAKE, real_shares=[0.5], synthetic_shares=[0]).values()
    assert Counter(half.labels) == {"ham": 15, "spam": 5}


def test_another_seed_draws_other_rows():
    sets = [
        mix(REAL, FAKE, real_shares=[0.5], synthetic_shares=[0], seed=seed)
        for seed in (0, 0, 1)
    ]
    one, same, other = (rows(*made.values()) for made in sets)
    assert one == same != other


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"real_shares": [1.1]}, "1.1"),
        ({"real_shares": [float("nan")]}, "nan"),
        ({"synthetic_shares": [-0.5]}, "-0.5"),
        ({"synthetic_shares": [2.6]}, "104 synthetic rows"),
    ],
)
def test_shares_out_of_range_are_refused(options, named):
    with pytest.raises(InputError, match=named):
        mix(REAL, FAKE, **options)
