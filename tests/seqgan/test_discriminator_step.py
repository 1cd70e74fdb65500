"""The plain discriminator step: which rows it takes, what it minimises."""

import numpy as np
import pytest
import tensorflow as tf

from tfpriv.seqgan import Discriminator, PlainDiscriminatorStep, discriminator_losses


def test_losses_are_cross_entropies_of_real_against_generated():
    logits = tf.constant([[0.0, 2.0], [1.0, -1.0]])
    got = discriminator_losses(logits, tf.constant([True, False]))
    np.testing.assert_allclose(got, np.log1p(np.exp([-2.0, -2.0])), rtol=1e-5)


@pytest.mark.parametrize(
    "jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_one_step_lowers_the_loss_on_its_own_rows(jit_compile):
    model = Discriminator(6, 4, 3, (1, 2), 8, highway=True, output_l2=0.1, seed=0)
    real, fake = np.full((8, 4), 3), tf.fill([8, 4], 4)
    step = PlainDiscriminatorStep(
        model, real, learning_rate=0.01, jit_compile=jit_compile
    )
    losses = [step(fake)["loss"] for _ in range(20)]
    assert losses[-1] < 0.5 * losses[0]
    assert step(fake)["accuracy"] == 1.0


def test_real_sequences_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"shape \(n, 4\), received \(8, 5\)"):
        PlainDiscriminatorStep(Discriminator(6, 4, 3, (1,)), np.zeros((8, 5), int))
