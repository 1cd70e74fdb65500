"""One class's networks: killed in the middle, resumed, out of budget, done."""

import contextlib
import dataclasses

import numpy as np
import pytest

from tests.seqgan.small_release import SETTINGS, Killed, small_world
from tfpriv._errors import InputError
from tfpriv.accounting import DPSGDPlan, Gaussian
from tfpriv.dp_training import DPTrainer
from tfpriv.seqgan.class_gan import ClassGAN, GANSettings
from tfpriv.seqgan.run_store import RunStore

SEEDS = [[9, 8, 7], [9, 8], [6, 9, 8, 7, 6]] * 10
RECORDS = [[9, 8, 7], [6], [], [100, 101]]
STEPS = 2
PLAN = DPSGDPlan(4, 4, STEPS, noise_multiplier=2.0, sampling="full_batch")
LIMIT = PLAN.epsilon(1e-5) * 1.0001


@pytest.fixture(autouse=True, scope="module")
def world():
    with small_world():
        yield


@contextlib.contextmanager
def killed_in_step(number):
    """The process ends in a private step, after the charge for it."""
    read = DPTrainer._private_sums
    steps = []

    def reading(trainer, *args):
        steps.append(1)
        if len(steps) == number:
            raise Killed
        return read(trainer, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DPTrainer, "_private_sums", reading)
        with pytest.raises(Killed):
            yield


def train(folder, plan=PLAN, *, limit=LIMIT, records=RECORDS):
    store = RunStore(folder)
    ledger = store.ledger(limit_epsilon=limit, delta=1e-5)
    gan = ClassGAN(SEEDS, SETTINGS, seed=3)
    rounds = []
    before = gan.train(
        records,
        plan,
        ledger=ledger,
        part="ham",
        store=store,
        key="class-0",
        progress=lambda p: rounds.append(p.step) if p.stage == "adversarial" else None,
    )
    return gan, ledger, rounds, before


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    return folder, *train(folder)


def test_every_private_step_is_charged_to_the_class(finished):
    ledger = finished[2]
    assert [(c.name, c.event, c.part) for c in ledger.events()] == [
        ("discriminator", Gaussian(2.0), "ham")
    ] * STEPS


def test_texts_are_of_the_seeds_words_and_short_enough(finished):
    texts = finished[1].texts.sample(50, seed=0)
    assert {token for text in texts for token in text} <= {6, 7, 8, 9}
    assert max(map(len, texts)) <= SETTINGS.max_length


def test_a_finished_class_is_not_trained_or_charged_again(finished):
    folder, gan, ledger, rounds, before = finished
    again, ledger, more, before_again = train(folder)
    assert (rounds, more) == ([1, 2], [])
    assert len(ledger.events()) == STEPS
    assert before_again == before
    assert again.texts.sample(9, seed=1) == gan.texts.sample(9, seed=1)


def test_a_generator_that_collapsed_goes_no_further(finished, tmp_path, monkeypatch):
    assert finished[1].collapsed_in == 0
    monkeypatch.setattr("tfpriv.seqgan.seqgan.has_collapsed", lambda *_, **__: True)
    gan, ledger, rounds, _ = train(tmp_path)
    assert (gan.collapsed_in, rounds) == (1, [1])
    assert len(ledger.events()) < STEPS


def test_the_adversarial_part_moves_both_networks(finished):
    folder, gan, *_ = finished
    start = RunStore(folder).arrays("class-0-pretrained")
    for name, model in (
        ("generator", gan.generator),
        ("discriminator", gan.discriminator),
    ):
        weights = enumerate(model.get_weights())
        assert any(not np.array_equal(w, start[f"{name}/{i}"]) for i, w in weights)


def test_words_have_no_noise_of_their_own(finished):
    folder, gan, *_ = finished
    frozen = gan.discriminator.embedding.get_weights()[0]
    start = RunStore(folder).arrays("class-0-pretrained").values()
    assert any(np.array_equal(frozen, weight) for weight in start)


def test_a_killed_round_is_played_and_charged_again(tmp_path):
    # The second step is that of round 2: round 1 is safe.
    with killed_in_step(2):
        train(tmp_path)
    _, ledger, rounds, _ = train(tmp_path)
    # The step of round 1 and the lost one: the budget is used up.
    assert len(ledger.events()) == STEPS
    assert rounds == []
    gan, ledger, rounds, _ = train(tmp_path)
    assert (len(ledger.events()), rounds) == (STEPS, [])
    assert len(gan.texts.sample(9, seed=0)) == 9


def test_with_room_for_it_a_killed_run_does_all_its_rounds(tmp_path):
    with killed_in_step(2):
        train(tmp_path, limit=100.0)
    _, ledger, rounds, _ = train(tmp_path, limit=100.0)
    assert len(ledger.events()) == STEPS + 1
    assert rounds == [2]


def test_pretraining_reads_no_record_and_costs_nothing(tmp_path):
    gan, ledger, _, before = train(tmp_path, plan=None, records=None)
    assert ledger.events() == ()
    assert gan.texts.sample(20, seed=3) == before[:20]


@pytest.mark.parametrize(
    "changed",
    [
        {"max_length": 0},
        {"units": -1},
        {"embedding_dim": 1},
        {"batch_size": 2.5},
        {"rounds": -1},
        {"discriminator_widths": ()},
        {"discriminator_widths": (0, 1)},
        {"max_length": 2, "discriminator_widths": (3,)},
        {"mle_weight": float("nan")},
    ],
    ids=str,
)
def test_settings_that_cannot_be_used_are_refused_before_anything_is_paid(changed):
    with pytest.raises(InputError):
        dataclasses.replace(GANSettings(), **changed)
