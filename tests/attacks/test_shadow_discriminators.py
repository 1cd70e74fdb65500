from __future__ import annotations

import numpy as np
import pytest

from tests.attacks import small_networks as small
from tfpriv._errors import InputError
from tfpriv.accounting import DPSGDPlan
from tfpriv.attacks import ShadowDiscriminators
from tfpriv.attacks.class_discriminators import real_logits


def plan(size, noise):
    return DPSGDPlan(
        num_examples=size,
        batch_size=size,
        steps=3,
        noise_multiplier=noise,
        sampling="full_batch",
    )


def test_a_shadow_remembers_its_own_rows_and_forgets_the_last_shadow_s():
    first, second = small.rows(40, 1), small.rows(40, 2)
    scored = np.concatenate([first, second])
    train = small.shadows(50)
    before = train(first, scored, seed=3)
    assert before[:40].mean() > before[40:].mean() + 1
    other = train(second, scored, seed=4)
    assert other[40:].mean() > other[:40].mean() + 1
    # Trained again, it is the same to the last digits.
    assert train(first, scored, seed=3) == pytest.approx(before, abs=1e-4)


def test_seeds_start_from_other_weights_unless_weights_are_given():
    rows = small.rows(40, 1)
    train = small.shadows(1, learning_rate=1e-9)
    assert not np.allclose(train(rows, rows, seed=3), train(rows, rows, seed=4))
    start = small.discriminator(7)
    kept = small.shadows(1, learning_rate=1e-9, start=start.get_weights())
    for seed in (3, 4):
        expected = real_logits(start, rows)
        assert kept(rows, rows, seed=seed) == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_private_shadows_take_the_steps_of_their_plan_and_fresh_noise():
    rows = small.rows(21, 1)
    start = small.discriminator(7).get_weights()

    def trained(noise, *counts):
        train = small.shadows(99, start=start, plan=plan(20, noise))
        assert train.steps == 3
        return [train(rows[:count], rows, seed=0) for count in counts]

    quiet = trained(1e-6, 20, 20)
    assert quiet[0] == pytest.approx(quiet[1], abs=1e-2)
    # Halves of an odd population differ by one row.
    noisy = trained(50.0, 20, 21)
    assert not np.allclose(noisy[0], quiet[0], atol=1e-2)
    assert not np.allclose(noisy[1], noisy[0], atol=1e-2)


def test_a_frozen_embedding_stays_frozen():
    like = small.discriminator()
    like.embedding.trainable = False
    train = ShadowDiscriminators(like, small.rows(5, 0), steps=2)
    assert not train.discriminator.embedding.trainable
    assert train.discriminator is not like


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="generated rows of shape"):
        ShadowDiscriminators(small.discriminator(), np.zeros((0, 6)))
    with pytest.raises(InputError, match="steps >= 1"):
        small.shadows(0)
    with pytest.raises(InputError, match="learning_rate > 0"):
        small.shadows(1, learning_rate=0.0)
