import math

import pytest

from experiments._synthesis.figures import Interval, difference, mean, routes, targets
from experiments._synthesis.study import Arm


def test_an_interval_is_students():
    interval = Interval.of([1.0, 2.0, 3.0])
    assert interval.mean == 2.0
    # t(.975, 2 degrees of freedom) = 4.30265, standard deviation 1.
    assert interval.half == pytest.approx(4.30265 / math.sqrt(3), rel=1e-5)
    assert interval.show(2) == "2.00 +- 2.48"


def test_one_value_has_no_interval_and_none_has_no_mean():
    assert Interval.of([0.5]).show() == "0.500"
    assert Interval.of([]).show() == "-"


def test_differences_are_taken_seed_by_seed(cells):
    gap = difference(cells, "original", "default@8", "accuracy/LR")
    assert gap.mean == pytest.approx(0.03)
    # .02 and .04: the spread of the differences, not of the accuracies.
    assert gap.half == pytest.approx(12.7062 * 0.01 * math.sqrt(2) / math.sqrt(2), 1e-4)
    assert difference(cells, "paper", "original", "accuracy/LR").n == 1


def test_a_candidate_of_an_arm_has_figures_of_its_own(cells):
    assert mean(cells, "default@8/seed", "accuracy/LR").mean == pytest.approx(0.91)
    gain = difference(cells, "default@8/adversarial", "default@8/seed", "accuracy/LR")
    assert gain.mean == pytest.approx(0.02)


def test_how_often_the_adversarial_part_won_is_counted_by_class(cells):
    won = {row["label"]: (row["won"], row["of"]) for row in routes(cells)}
    assert won == {"ham": (0, 2), "spam": (1, 2)}
    assert routes(cells)[0]["pretrained"] == pytest.approx(0.3)


def test_targets_are_judged_by_the_means(study, cells):
    met = {row["what"]: row["met"] for row in targets(study, cells)}
    assert list(met.values()) == [True, True, False, False, True]
    missed = [what for what, good in met.items() if not good]
    assert "CNN at epsilon 8: accuracy below original data" in missed
    far = [cell for cell in cells if cell["arm"] != "default@8"]
    assert len(targets(study, far)) == 1


def test_text_nearer_to_shuffled_text_misses_its_target(study, cells):
    for cell in cells:
        if cell["arm"] == "default@8":
            cell["metrics"]["perplexity"] = 201.0
    assert not targets(study, cells)[-1]["met"]


@pytest.mark.parametrize("key", ["original", "default@8", "counts@0.5", "paper"])
def test_an_arm_is_named_as_it_is_read(key):
    assert Arm.parse(key).key == key


@pytest.mark.parametrize("key", ["default", "paper@8", "other", "default@x"])
def test_other_arms_are_refused(key):
    with pytest.raises(ValueError):
        Arm.parse(key)
