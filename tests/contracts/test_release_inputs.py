"""Nothing but the mechanisms tells of the records.

With what every mechanism releases held fixed, two data sets that have nothing in
common must give the same release, to the letter: names, sizes, statement, training
plans and texts. Twins that let something else through must be refused.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.seqgan.small_release import (
    LABELS,
    OTHER_LABELS,
    OTHER_TEXTS,
    TEXTS,
    fitted,
    pinned,
    small_world,
)
from tfpriv.seqgan.guaranteed import GuaranteedMethod


@pytest.fixture(autouse=True, scope="module")
def world():
    with small_world():
        yield


def released(folder, texts, labels, **settings):
    """All that may leave: names, sizes, statement, and texts of every kind."""
    with pinned() as plans:
        method, ledger = fitted(folder, texts, labels, **settings)
    stated = [read.to_json() for read in method.reads(ledger)]
    written = [
        (fitted_class.chosen, fitted_class.divergence, method.sample(n, 30, seed=1))
        for n, fitted_class in enumerate(method.classes)
    ]
    generated = [c.gan.sample(30, seed=1) for c in method.classes if c.gan]
    sizes = method.class_sizes.tolist()
    return method.labels, sizes, stated, written, generated, plans


def check_nothing_but_mechanisms_tells_of_the_records(folder, **settings):
    one = released(folder / "one", TEXTS, LABELS, **settings)
    other = released(folder / "other", OTHER_TEXTS, OTHER_LABELS, **settings)
    assert one == other


@pytest.mark.parametrize(
    "settings",
    [{"declared": None}, {"declared": ("ham",), "steps": 1, "rounds": 1}],
    ids=["counts", "networks"],
)
def test_nothing_but_mechanisms_tells_of_the_records(tmp_path, settings):
    check_nothing_but_mechanisms_tells_of_the_records(tmp_path, **settings)


class ExactSizes(GuaranteedMethod):
    def fit(self, texts, labels, **named):
        ledger = super().fit(texts, labels, **named)
        self.seed_model.class_sizes = np.array([float(len(texts)), 1.0])
        return ledger


class LabelsAsTheyAre(GuaranteedMethod):
    def _label_names(self, labels, ledger, store):
        super()._label_names(labels, ledger, store)
        return tuple(sorted(set(labels)))


class SeedsFromRecords(GuaranteedMethod):
    def _fit_class(self, number, name, records, ledger, store, report):
        self.seed_model.tokens[number, max(max(records, default=[4]), default=4)] *= 99
        return super()._fit_class(number, name, records, ledger, store, report)


@pytest.mark.parametrize("twin", [ExactSizes, LabelsAsTheyAre, SeedsFromRecords])
def test_a_twin_that_leaks_is_refused(twin, tmp_path):
    with pytest.raises(AssertionError):
        check_nothing_but_mechanisms_tells_of_the_records(
            tmp_path, method=twin, declared=None
        )
