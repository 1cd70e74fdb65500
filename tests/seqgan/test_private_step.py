"""All records go in, as real; nothing but noisy figures comes out."""

import numpy as np
import pytest
import tensorflow as tf

from tfpriv._errors import BudgetExceeded
from tfpriv.accounting import DPSGDPlan, Gaussian, PrivacyLedger
from tfpriv.dp_training import DPTrainer
from tfpriv.seqgan.private_step import PrivateDiscriminatorStep, discriminator_loss

REAL = np.array([[3, 4, 2, 0], [5, 2, 0, 0], [3, 3, 3, 3]])
FAKE = np.array([[4, 4, 4, 2], [5, 5, 2, 0]])


class Spy:
    """A trainer that remembers what it was given."""

    model = "the discriminator"

    def step(self, private, public):
        self.private, self.public = private, public
        return {"step": 1, "noised_gradient_norm": 2.5, "loss": 0.1}

    def state(self):
        return {"steps_taken": np.array(4)}

    def load_state(self, state):
        self.loaded = state


def test_a_step_takes_all_records_as_real_and_every_text_it_is_given_as_fake():
    spy = Spy()
    PrivateDiscriminatorStep(spy, REAL)(tf.constant(FAKE))
    np.testing.assert_array_equal(spy.private[0], REAL)
    np.testing.assert_array_equal(spy.public[0], FAKE)
    assert spy.private[1].tolist() == [1, 1, 1]
    assert spy.public[1].tolist() == [0, 0]


def test_a_step_tells_nothing_but_the_noisy_norm():
    metrics = PrivateDiscriminatorStep(Spy(), REAL)(FAKE)
    assert metrics == {"noised_gradient_norm": 2.5}


def test_state_is_the_trainers():
    spy = Spy()
    step = PrivateDiscriminatorStep(spy, REAL)
    step.load_state_dict(step.state_dict())
    assert spy.loaded == {"steps_taken": 4}
    assert step.discriminator == "the discriminator"


def test_the_loss_is_each_rows_cross_entropy(discriminator):
    loss = discriminator_loss(discriminator, tf.constant(REAL), tf.constant([1, 0, 1]))
    logits = discriminator(REAL).numpy()
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    np.testing.assert_allclose(loss, -logs[range(3), [1, 0, 1]], rtol=1e-5)


def test_without_budget_no_record_is_read(discriminator, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", limit_epsilon=1.0, delta=1e-5)
    ledger.charge("tokens", Gaussian(5.0))
    plan = DPSGDPlan(3, 3, 5, 1.0, sampling="full_batch")
    trainer = DPTrainer(discriminator, discriminator_loss, plan, 0.1, ledger)
    before = discriminator.get_weights()
    with pytest.raises(BudgetExceeded):
        PrivateDiscriminatorStep(trainer, REAL)(FAKE)
    assert trainer.steps_taken == 0
    assert len(ledger.events()) == 1
    for old, new in zip(before, discriminator.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
