"""The guaranteed method without its networks: names, counts, budget, kills."""

import contextlib
import re

import numpy as np
import pytest

from tests.seqgan.small_release import (
    EPSILON,
    HAM,
    LABELS,
    SECRET,
    SPAM,
    TEXTS,
    Killed,
    fitted,
    small_world,
)
from tfpriv._errors import BudgetExceeded
from tfpriv.accounting import Gaussian, GaussianThreshold, PrivacyStatement
from tfpriv.seqgan import guaranteed
from tfpriv.seqgan.run_store import RunStore

PARTS = ("label names", "tokens", "lengths", "pairs")
# Names under which a part's result is saved.
SAVED = {"label names": "labels"}


@pytest.fixture(autouse=True, scope="module")
def world():
    with small_world() as prior:
        yield prior


@contextlib.contextmanager
def killed_before_saving(part):
    """The process ends when a part was charged and measured, not yet saved."""

    def saving(save):
        def wrapper(store, key, value):
            if key == SAVED.get(part, part):
                raise Killed
            save(store, key, value)

        return wrapper

    with pytest.MonkeyPatch.context() as patch:
        for name in ("save_arrays", "save_json"):
            patch.setattr(RunStore, name, saving(getattr(RunStore, name)))
        with pytest.raises(Killed):
            yield


def statement(method, ledger):
    return PrivacyStatement(method.reads(ledger), delta=1e-5)


@pytest.mark.parametrize("part", ["label names", "tokens", "lengths"])
def test_what_was_paid_for_and_lost_is_paid_for_again(part, tmp_path):
    with killed_before_saving(part):
        fitted(tmp_path, declared=None)
    method, ledger = fitted(tmp_path, declared=None)
    charges = [charge.name for charge in ledger.events()]
    assert charges.count(part) == 2
    assert statement(method, ledger).epsilon == pytest.approx(ledger.epsilon())
    assert ledger.epsilon() <= EPSILON
    assert len(method.sample(0, 10, seed=0)) == 10


def test_neighbours_are_done_without_where_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(guaranteed, "_GIVE_UP", 1.0)
    with killed_before_saving("pairs"):
        fitted(tmp_path)
    method, ledger = fitted(tmp_path)
    assert [charge.name for charge in ledger.events()] == list(PARTS[1:])
    assert not len(method.seed_model.counts.pairs)
    assert len(method.sample(0, 10, seed=0)) == 10


def test_what_no_longer_fits_the_budget_is_measured_with_more_noise(tmp_path):
    for _ in range(2):
        with killed_before_saving("tokens"):
            fitted(tmp_path)
    method, ledger = fitted(tmp_path)
    noise = [c.event.noise_multiplier for c in ledger.events() if c.name == "tokens"]
    assert noise[0] == method.budget.noise_multiplier("tokens")
    assert noise[2] > noise[0]
    assert method.seed_model.counts.token_noise == noise[2]
    assert ledger.epsilon() <= EPSILON


def test_a_run_that_is_killed_for_ever_stops_within_its_budget(tmp_path):
    def for_ever():
        for _ in range(40):
            with killed_before_saving("tokens"):
                fitted(tmp_path)

    with pytest.raises(BudgetExceeded, match="tokens"):
        for_ever()
    ledger = RunStore(tmp_path).ledger(limit_epsilon=EPSILON, delta=1e-5)
    assert 0.9 * EPSILON < ledger.epsilon() <= EPSILON


def test_a_finished_fit_that_is_asked_for_again_pays_nothing(tmp_path):
    first, ledger = fitted(tmp_path, declared=None)
    charges = len(ledger.events())
    again, ledger = fitted(tmp_path, declared=None)
    assert len(ledger.events()) == charges == len(PARTS)
    assert again.sample(0, 20, seed=3) == first.sample(0, 20, seed=3)
    np.testing.assert_array_equal(again.class_sizes, first.class_sizes)


def test_label_names_that_are_found_are_paid_for_and_declared_ones_are_not(tmp_path):
    for declared, expected in ((None, [GaussianThreshold]), (("ham", "spam"), [])):
        method, ledger = fitted(tmp_path / str(declared), declared=declared)
        reads = {read.name: read.event for read in method.reads(ledger)}
        kinds = [type(e) for name, e in reads.items() if name == "label names"]
        assert kinds == expected
        assert method.labels == ("ham", "spam")


def test_a_label_that_one_record_has_is_not_found(tmp_path):
    method, _ = fitted(tmp_path, [*TEXTS, SPAM[0]], [*LABELS, SECRET], declared=None)
    assert method.labels == ("ham", "spam")


def test_no_label_frequent_enough_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(RuntimeError, match=r"Declare .* --labels A,B"):
        fitted(tmp_path, HAM, ["a", "b", "c"], declared=None)


def test_records_of_labels_that_were_not_declared_are_left_out(tmp_path):
    texts, labels = [*TEXTS, *HAM * 200], [*LABELS, *["other"] * 600]
    method, _ = fitted(tmp_path, texts, labels, epsilon=200.0)
    assert method.class_sizes.sum() == pytest.approx(42, abs=10)


def test_every_part_reads_with_the_noise_of_the_plan(tmp_path):
    method, ledger = fitted(tmp_path, declared=None)
    events = {charge.name: charge.event for charge in ledger.events()}
    assert events == method.budget.events()


def test_noise_has_no_seed(tmp_path):
    first, second = (fitted(tmp_path / n)[0].seed_model.counts for n in "ab")
    for name in ("tokens", "lengths", "pairs"):
        assert not np.any(getattr(first, name) == getattr(second, name)), name


def test_the_noise_is_as_large_as_it_was_charged(tmp_path):
    # The end is no word: nothing is counted there, and only noise can be seen.
    method, ledger = fitted(tmp_path)
    counts = method.seed_model.counts
    charged = {c.name: c.event for c in ledger.events()}
    assert charged["pairs"] == Gaussian(counts.pair_noise)
    nothing_before_start = counts.pairs[:, :, 0].ravel()
    assert nothing_before_start.std() == pytest.approx(counts.pair_noise, rel=0.5)


def test_texts_that_say_nothing_known_are_counted_and_harm_nothing(tmp_path):
    odd = ["", "   ", SECRET, f"{SECRET} {SECRET}", "song", "!!!", SECRET * 2000]
    texts, labels = [*TEXTS, *odd], [*LABELS, *["ham"] * len(odd)]
    method, _ = fitted(tmp_path, texts, labels, epsilon=500.0)
    assert method.class_sizes[0] == pytest.approx(28, abs=5)
    written = [t for n in (0, 1) for t in method.sample(n, 200, seed=0)]
    assert all(written)
    assert not any(re.search(SECRET, text, re.IGNORECASE) for text in written)


def test_a_data_set_without_any_known_word_is_written_as_public_text(tmp_path):
    method, _ = fitted(tmp_path, [SECRET] * len(LABELS), LABELS)
    assert all(method.sample(0, 20, seed=0) + method.sample(1, 20, seed=0))


def test_a_class_of_three_is_written_too(tmp_path):
    method, _ = fitted(tmp_path, [*SPAM, *HAM * 20], ["spam"] * 3 + ["ham"] * 60)
    assert len(method.sample(1, 9, seed=0)) == 9


def test_a_class_writes_its_own_words(tmp_path):
    method, _ = fitted(tmp_path, epsilon=500.0)
    own = {word for text in HAM for word in text.split()}
    words = [w for t in method.sample(0, 200, seed=0) for w in t.lower().split()]
    assert np.mean([word in own for word in words]) > 0.8


def test_what_is_written_follows_the_seed_alone(tmp_path):
    method, _ = fitted(tmp_path)
    assert method.sample(0, 20, seed=5) == method.sample(0, 20, seed=5)
    assert method.sample(0, 20, seed=5) != method.sample(0, 20, seed=6)
