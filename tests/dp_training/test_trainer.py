from __future__ import annotations

import logging
import stat

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tests.dp_training import models
from tfpriv._errors import BudgetExceeded, InputError
from tfpriv.accounting import DPSGDPlan, Gaussian, PoissonGaussian, PrivacyLedger
from tfpriv.dp_training import DPTrainer, make_stock_step, stock_dp_adam
from tfpriv.dp_training import optimizer as optimizer_module

RECORDS = 12


def plan(**changes) -> DPSGDPlan:
    """Every record in every step, next to no noise, a clip that clips nothing."""
    settings = {
        "num_examples": RECORDS,
        "batch_size": RECORDS,
        "steps": 50,
        "noise_multiplier": 1e-9,
        "l2_norm_clip": 1e3,
        "sampling": "full_batch",
    }
    return DPSGDPlan(**settings | changes)


def data(size: int = RECORDS, seed: int = 0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(size, 3)).astype("float32")
    return x, (x[:, 0] > 0).astype("int64")


class Ledger:
    def __init__(self, limit: int = 10**9) -> None:
        self.limit = limit
        self.charges = []

    def charge(self, name, event, part=None):
        if len(self.charges) >= self.limit:
            raise BudgetExceeded("Expected no more charges.")
        self.charges.append((name, event, part))


def twins(kind: str = "logistic"):
    one, other = getattr(models, kind)(), getattr(models, kind)()
    other.set_weights(one.get_weights())
    return one, other


def assert_same_weights(one, other) -> None:
    for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_without_noise_and_clipping_it_is_adam_on_the_mean_loss():
    private, plain = twins()
    inputs, public = data(), data(4, seed=1)
    trainer = DPTrainer(
        private, models.cross_entropy, plan(), 0.1, physical_batch_size=5
    )
    adam = tf_keras.optimizers.legacy.Adam(0.1)
    variables = [v.value for v in plain.trainable_variables]
    both = [np.concatenate(pair) for pair in zip(inputs, public, strict=True)]
    for _ in range(3):
        trainer.step(inputs, public)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(models.cross_entropy(plain, *both))
        adam.apply_gradients(
            zip(tape.gradient(loss, variables), variables, strict=True)
        )
    assert_same_weights(private, plain)


def test_a_clipped_step_equals_tf_privacys_stock_step():
    ours, theirs = twins()
    inputs = data()
    DPTrainer(
        ours, models.cross_entropy, plan(l2_norm_clip=0.05), learning_rate=0.01
    ).step(inputs)
    stock = stock_dp_adam(0.05, 0.0, learning_rate=0.01)
    step = make_stock_step(stock, theirs, models.cross_entropy)
    step(*map(tf.constant, inputs))
    assert_same_weights(ours, theirs)


def test_a_text_discriminator_tells_real_from_fake():
    model = models.text_cnn()
    generator = np.random.default_rng(0)
    real = generator.integers(0, 6, (200, 6)).astype("int32")
    fake = generator.integers(6, 12, (50, 6)).astype("int32")
    noisy = plan(
        num_examples=200,
        batch_size=50,
        noise_multiplier=0.5,
        l2_norm_clip=1.0,
        sampling="poisson",
        steps=15,
    )
    trainer = DPTrainer(model, models.cross_entropy, noisy, learning_rate=0.05)
    for _ in range(noisy.steps):
        trainer.step((real, np.ones(200, int)), (fake, np.zeros(50, int)))
    logits = model(np.concatenate([real, fake])).numpy()
    told = np.argmax(logits, axis=1) == np.repeat([1, 0], [200, 50])
    assert told.mean() > 0.9


def test_it_learns_under_noise():
    x, y = data(400)
    model = models.logistic()
    noisy = plan(
        num_examples=400,
        batch_size=100,
        noise_multiplier=1.0,
        l2_norm_clip=1.0,
        sampling="poisson",
    )
    trainer = DPTrainer(model, models.cross_entropy, noisy, learning_rate=0.2)
    for _ in range(noisy.steps):
        metrics = trainer.step((x, y))
    assert metrics["step"] == noisy.steps
    assert (np.argmax(model(x), axis=1) == y).mean() > 0.85


def test_sums_are_divided_by_the_expected_size_behind_the_noise(monkeypatch):
    trainer = DPTrainer(models.logistic(), models.cross_entropy, plan(), 0.1)
    seen, noised_mean = [], optimizer_module.noised_mean

    def spy(*arguments):
        seen.append((arguments, noised_mean(*arguments)))
        return seen[-1][1]

    monkeypatch.setattr(optimizer_module, "noised_mean", spy)
    trainer.step(data())
    (((sums, stddev, public, size), means),) = seen
    assert public is None
    assert stddev == trainer.engine.sensitivity * plan().noise_multiplier
    assert float(size) == plan().batch_size
    assert [x.dtype for x in means] == [x.dtype for x in sums]


def test_public_records_are_clipped_too():
    wild = (np.full((1, 2), 1e6, np.float32),)
    model = models.linear()
    trainer = DPTrainer(model, models.linear_loss, plan(l2_norm_clip=1.0), 0.1)
    calm = (np.zeros((RECORDS, 2), np.float32),)
    metrics = trainer.step(calm, wild)
    # Twelve gradients of length 1 on the bias, one of length 1 on the kernel.
    expected = np.hypot(12, 1) / 13
    assert metrics["noised_gradient_norm"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("records", [0, 1])
def test_few_or_no_records_are_a_step_like_any_other(records):
    model = models.logistic()
    trainer = DPTrainer(
        model, models.cross_entropy, plan(noise_multiplier=1.0), learning_rate=0.1
    )
    metrics = trainer.step(data(records))
    assert metrics["noised_gradient_norm"] > 0


def test_empty_draws_add_noise_and_count():
    rare = plan(batch_size=1, num_examples=10**6, sampling="poisson")
    ledger = Ledger()
    model = models.logistic()
    trainer = DPTrainer(model, models.cross_entropy, rare, 0.1, ledger)
    for _ in range(3):
        assert trainer.step(data())["noised_gradient_norm"] > 0
    assert len(ledger.charges) == 3


def test_the_ledger_is_charged_before_a_record_is_read():
    model = models.logistic()
    before = model.get_weights()

    def loss(model, *inputs):
        raise AssertionError("a record was read")

    trainer = DPTrainer(model, loss, plan(), 0.1, Ledger(limit=0))
    with pytest.raises(BudgetExceeded):
        trainer.step(data())
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert trainer.steps_taken == 0


def test_every_step_charges_the_event_of_the_plan():
    ledger = Ledger()
    poisson = plan(batch_size=3, noise_multiplier=2.0, sampling="poisson")
    model = models.logistic()
    trainer = DPTrainer(
        model, models.cross_entropy, poisson, 0.1, ledger, name="gan", part="spam"
    )
    trainer.step(data())
    trainer.step(data())
    assert ledger.charges == [("gan", PoissonGaussian(0.25, 2.0), "spam")] * 2


def test_sums_whose_rounding_is_unknown_charge_no_ledger():
    model, _ = twins()
    with pytest.raises(InputError, match="rounding"):
        DPTrainer(model, models.cross_entropy, plan(), 0.1, Ledger(), engine="jacobian")
    DPTrainer(model, models.cross_entropy, plan(), 0.1, engine="jacobian")


def test_a_real_ledger_stops_the_run_at_its_limit(tmp_path):
    full = plan(noise_multiplier=2.0)
    path = tmp_path / "ledger.jsonl"
    ledger = PrivacyLedger(path, limit_epsilon=5.0, delta=1e-5)
    model = models.logistic()
    trainer = DPTrainer(model, models.cross_entropy, full, 0.1, ledger, part="spam")

    def run_on() -> None:
        while True:
            trainer.step(data())

    with pytest.raises(BudgetExceeded):
        run_on()
    assert 0 < trainer.steps_taken < full.steps
    assert ledger.epsilon() <= 5.0


def test_no_more_steps_than_planned():
    trainer = DPTrainer(models.logistic(), models.cross_entropy, plan(steps=1), 0.1)
    trainer.step(data())
    with pytest.raises(BudgetExceeded, match="steps=1"):
        trainer.step(data())


def test_once_per_epoch_pays_for_a_pass_and_again_for_one_that_was_cut_off(tmp_path):
    ledger = Ledger()
    passes = plan(batch_size=5, sampling="once_per_epoch")

    def make():
        return DPTrainer(models.logistic(), models.cross_entropy, passes, 0.1, ledger)

    trainer = make()
    for _ in range(4):  # 20 of 12 records: two passes are begun
        trainer.step(data())
    assert [event for _, event, _ in ledger.charges] == [Gaussian(1e-9)] * 2
    trainer.save(tmp_path / "state.npz")
    trainer.step(data())  # 25: a third
    resumed = make()
    resumed.restore(tmp_path / "state.npz")
    resumed.step(data())  # the third again, and the second that was cut off
    assert len(ledger.charges) == 5


def test_a_resumed_run_goes_on_as_if_it_had_not_stopped(tmp_path):
    whole, parts = twins()
    inputs = data()
    trainer = DPTrainer(whole, models.cross_entropy, plan(), 0.1)
    for _ in range(4):
        trainer.step(inputs)
    first = DPTrainer(parts, models.cross_entropy, plan(), 0.1)
    first.step(inputs)
    first.step(inputs)
    path = tmp_path / "state.npz"
    first.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    model = models.logistic()
    second = DPTrainer(model, models.cross_entropy, plan(), 0.1)
    second.restore(path)
    assert second.steps_taken == 2
    second.step(inputs)
    second.step(inputs)
    assert_same_weights(whole, model)


def test_a_state_holds_weights_slots_and_counters_only():
    trainer = DPTrainer(models.logistic(), models.cross_entropy, plan(), 0.1)
    trainer.step(data())
    kinds = {key.split("/")[0] for key in trainer.state()}
    assert kinds == {"version", "steps_taken", "model", "optimizer"}


def test_a_state_of_another_model_or_a_damaged_file_is_refused(tmp_path):
    trainer = DPTrainer(models.logistic(), models.cross_entropy, plan(), 0.1)
    other = DPTrainer(models.linear(), models.linear_loss, plan(), 0.1)
    before = trainer.model.get_weights()
    with pytest.raises(InputError, match="shapes"):
        trainer.load_state(other.state())
    path = tmp_path / "state.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(InputError, match="damaged"):
        trainer.restore(path)
    for a, b in zip(before, trainer.model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_regulariser_pulls_even_where_the_clip_is_tiny():
    model = models.linear()
    model.layers[0].kernel.assign([[1.0], [1.0]])
    trainer = DPTrainer(
        model,
        lambda model, x: 0.0 * model(x)[:, 0],
        plan(l2_norm_clip=1e-6),
        learning_rate=0.25,
        regulariser=lambda model: tf.reduce_sum(model.layers[0].kernel.value ** 2),
    )
    trainer.step((np.ones((RECORDS, 2), np.float32),))
    np.testing.assert_allclose(model.layers[0].kernel, [[0.75], [0.75]], rtol=1e-4)


@pytest.mark.parametrize(
    ("private", "public", "words"),
    [
        (np.zeros((3, 3)), None, "tuple of arrays"),
        ((np.zeros((3, 3)), np.zeros(2)), None, "different lengths"),
        (data(), (data()[0],), "shapes and types"),
        (data(), (data()[0].astype("float64"), data()[1]), "shapes and types"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_and_cost_nothing(private, public, words):
    ledger = Ledger()
    trainer = DPTrainer(models.logistic(), models.cross_entropy, plan(), 0.1, ledger)
    with pytest.raises(InputError, match=words):
        trainer.step(private, public)
    assert not ledger.charges


def test_another_number_of_records_in_a_later_step_is_refused():
    trainer = DPTrainer(models.logistic(), models.cross_entropy, plan(), 0.1)
    trainer.step(data())
    with pytest.raises(InputError, match="same private records"):
        trainer.step(data(RECORDS + 1))


def test_more_examples_a_step_than_an_engine_adds_near_enough_go_to_the_loop(caplog):
    large = plan(num_examples=7000, batch_size=7000)
    with caplog.at_level(logging.WARNING):
        trainer = DPTrainer(models.logistic(), models.cross_entropy, large, 0.1)
    assert trainer.engine.name == "loop"
    assert "8192 examples a step" in caplog.text


def test_more_records_than_the_plan_has_are_no_error():
    """Its number may be noisy, and a refusal would tell about the records."""
    trainer = DPTrainer(models.logistic(), models.cross_entropy, plan(), 0.1)
    scaled_for, before = trainer.optimizer.sensitivity, trainer.engine
    many = tuple(np.repeat(x, 20, axis=0) for x in data())
    trainer.step(many)
    trainer.step(many)
    assert trainer.engine is not before
    assert trainer.engine.largest_step >= 20 * RECORDS
    assert trainer.engine.sensitivity <= scaled_for
    far_more = tuple(np.repeat(x, 2000, axis=0) for x in data())
    trainer = DPTrainer(models.logistic(), models.cross_entropy, plan(), 0.1)
    trainer.step(far_more)
    assert trainer.engine.name == "loop"
    assert trainer.engine.sensitivity <= trainer.optimizer.sensitivity
