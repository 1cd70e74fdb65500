"""The plan costs what was asked for, and is divided as it says."""

import math

import numpy as np
import pytest

from tfpriv._errors import InputError
from tfpriv.accounting import Compose, Gaussian, GaussianThreshold, epsilon
from tfpriv.seqgan.budget import SHARES, ReleaseBudget


@pytest.mark.parametrize("target", [0.1, 1.0, 8.0, 50.0])
@pytest.mark.parametrize("select_labels", [True, False])
def test_everything_together_costs_what_was_asked_for_and_no_more(
    target, select_labels
):
    budget = ReleaseBudget(target, 1e-6, select_labels=select_labels)
    price = epsilon(Compose(tuple(budget.events().values())), 1e-6)
    assert 0.99 * target < price <= target


def test_parts_have_their_shares_of_one_over_the_variance():
    budget = ReleaseBudget(4.0, discriminator_steps=7)
    total = budget.scale**-2
    for part, event in budget.events().items():
        spent = getattr(event, "count", 1) / event.noise_multiplier**2
        assert spent / total == pytest.approx(SHARES[part])
        assert event.noise_multiplier == budget.noise_multiplier(part)
    assert sum(SHARES.values()) == pytest.approx(1)


def test_what_is_not_used_leaves_its_share_to_the_rest():
    budget = ReleaseBudget(4.0, discriminator_steps=0, select_labels=False)
    assert set(budget.events()) == {"tokens", "lengths", "pairs"}
    assert sum(budget.shares.values()) == pytest.approx(1)
    assert budget.shares["tokens"] / budget.shares["pairs"] == pytest.approx(
        SHARES["tokens"] / SHARES["pairs"]
    )
    full = ReleaseBudget(4.0)
    assert budget.noise_multiplier("tokens") < full.noise_multiplier("tokens")


def test_more_steps_have_more_noise_each_and_cost_the_same():
    few, many = (ReleaseBudget(2.0, discriminator_steps=n) for n in (3, 300))
    assert few.events()["discriminator"] == Gaussian(
        few.noise_multiplier("discriminator"), 3
    )
    assert many.noise_multiplier("discriminator") == pytest.approx(
        10 * few.noise_multiplier("discriminator"), rel=1e-3
    )
    assert many.noise_multiplier("tokens") == pytest.approx(
        few.noise_multiplier("tokens"), rel=1e-3
    )


def test_finding_label_names_takes_its_part_of_delta():
    budget = ReleaseBudget(2.0, 1e-4)
    event = budget.events()["label names"]
    assert isinstance(event, GaussianThreshold)
    assert event.delta == budget.selection_delta == pytest.approx(1e-5)


@pytest.mark.parametrize(
    "bad",
    [
        *({"epsilon": x} for x in (0, -1.0, math.nan, math.inf, "8", True)),
        *({"delta": x} for x in (0.0, 1.0, 2.0, -1e-5, math.nan)),
        *({"discriminator_steps": x} for x in (-1, 1.5, np.nan)),
    ],
    ids=str,
)
def test_numbers_that_plan_nothing_are_refused(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        ReleaseBudget(**{"epsilon": 8.0, **bad})


def test_a_delta_too_small_to_find_labels_is_refused_before_anything_is_paid():
    with pytest.raises(InputError, match=r"1e-12.*--labels A,B"):
        ReleaseBudget(8.0, 1e-12)
    assert ReleaseBudget(8.0, 1e-12, select_labels=False).scale > 0
