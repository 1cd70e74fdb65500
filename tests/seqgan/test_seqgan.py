"""SeqGAN: REINFORCE's gradient, stages that can be taken up again, the seam."""

import io

import numpy as np
import pytest
import tensorflow as tf

from tfpriv.seqgan import (
    Discriminator,
    DiscriminatorStep,
    Generator,
    SeqGAN,
    advantages,
)
from tfpriv.text.collapse import has_collapsed


def make(**arguments):
    """A trainer over four words, three a sequence."""
    generator = Generator(
        4, 3, 3, 4, start_id=0, end_id=None, initializer_stddev=1, seed=3
    )
    discriminator = Discriminator(4, 3, 3, widths=(1, 2), filters=4, seed=5)
    settings = {"rollouts": 2, "batch_size": 8, "seed": 1, **arguments}
    return SeqGAN(generator, discriminator, **settings)


@pytest.fixture(scope="module")
def shared():
    """A trainer and its first state: graphs are built once for several tests."""
    gan = make(pretraining_learning_rate=0.1, discriminator_learning_rate=0.02)
    return gan, gan.state_dict()


@pytest.fixture
def gan(shared, corpus):
    """The shared trainer as on its first day, with the corpus."""
    trainer, first = shared
    trainer.use_corpus(corpus)
    step = {k: v for k, v in first.items() if not k.startswith("discriminator_step")}
    trainer.load_state_dict(step)
    return trainer


@pytest.fixture(scope="module")
def corpus():
    """Two kinds of row, so that there is something to learn."""
    return np.array([[1, 2, 3], [3, 3, 1]] * 16, np.int32)


def share_of_threes(ids, seed):
    """A toy reward of each action alone."""
    del seed
    return tf.cast(ids == 3, tf.float32)


def test_the_policy_gradient_is_reinforce_worked_out_by_hand():
    gan = make()
    ids = np.array([[1, 2, 0], [3, 3, 1]], np.int32)
    values = np.array([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5]], np.float32)
    with tf.GradientTape() as tape:
        loss = gan.policy_loss(tf.constant(ids), tf.constant(values))
    gradient = tape.gradient(loss, gan.generator.head.bias.value)
    # d log softmax(z)_y / dz = onehot(y) - softmax(z)
    logits = np.asarray(gan.generator(ids), np.float64)
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    by_hand = -((np.eye(4)[ids] - softmax) * values[..., None]).sum((0, 1)) / 2
    np.testing.assert_allclose(gradient, by_hand, atol=1e-5)


@pytest.mark.parametrize("baseline", [True, False])
def test_policy_gradient_raises_the_expected_reward(baseline):
    gan = make(reward=share_of_threes, baseline=baseline, learning_rate=0.1)
    words = np.indices((4, 4, 4)).reshape(3, -1).T.astype(np.int32)

    def expected_reward():
        probability = np.exp(gan.generator.log_probs(words).sum(1))
        return (probability * (words == 3).sum(1)).sum()

    before = expected_reward()
    for _ in range(20):
        gan.generator_step()
    assert expected_reward() > before + 0.5


def test_the_baseline_leaves_the_mean_gradient_and_lowers_its_variance():
    gan = make(reward=share_of_threes)
    tape_gradient = tf.function(
        lambda ids, values: tf.gradients(
            gan.policy_loss(ids, values), gan.generator.head.bias.value
        )[0]
    )
    gradients = {True: [], False: []}
    for step in range(200):
        ids = tf.constant(gan.generator.sample(8, seed=step))
        rewards = share_of_threes(ids, None) + 1.0
        for baseline in gradients:
            values = advantages(rewards, tf.ones_like(rewards)) if baseline else rewards
            gradients[baseline].append(tape_gradient(ids, values).numpy())
    with_it, without = np.array(gradients[True]), np.array(gradients[False])
    error = np.sqrt((with_it.var(0) + without.var(0)) / 200)
    assert (np.abs(with_it.mean(0) - without.mean(0)) < 4 * error).all()
    assert with_it.var(0).sum() < 0.5 * without.var(0).sum()


def test_pretraining_learns_the_corpus(gan, corpus):
    before = gan.generator.nll(corpus)
    gan.pretrain_generator(15)
    # Two rows of equal share: log(2) nats for three tokens at the best.
    assert before > 1.0
    assert np.log(2) / 3 <= gan.generator.nll(corpus) < 0.35


def test_patience_ends_pretraining_at_the_best_weights(gan):
    seen = []
    other = np.array([[1, 2, 2], [3, 3, 2]], np.int32)
    gan.pretrain_generator(
        40, validation_ids=other, patience=2, callbacks=[seen.append]
    )
    nlls = [progress.metrics["validation_nll"] for progress in seen]
    assert len(nlls) < 40
    assert gan.generator.nll(other) == pytest.approx(min(nlls), rel=1e-5)
    assert len(nlls) - 1 - int(np.argmin(nlls)) == 2


def test_the_discriminator_learns_to_tell_real_from_generated(gan, corpus):
    first = gan.train_discriminator(1)
    gan.pretrain_discriminator(40)
    last = gan.train_discriminator(1)
    assert last["loss"] < 0.6 * first["loss"]
    fakes = gan.generator.sample(200, seed=0)
    probability = gan.discriminator.real_probability
    assert np.mean(probability(corpus)) > np.mean(probability(fakes)) + 0.2


@pytest.mark.parametrize("reward", ["rollout", "constant"])
def test_every_reward_runs_all_three_stages(corpus, reward):
    seen = []
    gan = make(reward=reward, mle_weight=0.5)
    gan.fit(
        corpus,
        mle_epochs=1,
        discriminator_pretraining_steps=11,
        rounds=2,
        d_steps=2,
        callbacks=[seen.append],
    )
    assert gan.counters == {"mle_steps": 4, "d_steps": 15, "g_steps": 2, "rounds": 2}
    assert [(p.stage, p.step, p.total) for p in seen] == [
        ("pretraining", 1, 1),
        ("discriminator", 10, 11),
        ("discriminator", 11, 11),
        ("adversarial", 1, 2),
        ("adversarial", 2, 2),
    ]
    assert all(np.isfinite(list(p.metrics.values())).all() for p in seen)


@pytest.mark.slow
def test_a_run_taken_up_after_any_stage_ends_where_an_unbroken_one_does(corpus):
    schedule = {
        "validation_ids": corpus[:4],
        "patience": 5,
        "mle_epochs": 2,
        "discriminator_pretraining_steps": 20,
        "rounds": 2,
        "d_steps": 1,
    }
    kept, unbroken = {}, make(reward="per_step")

    def save_once(progress):
        if progress.stage not in kept:
            kept[progress.stage] = io.BytesIO()
            np.savez(kept[progress.stage], **unbroken.state_dict())

    unbroken.fit(corpus, callbacks=[save_once], **schedule)
    assert list(kept) == ["pretraining", "discriminator", "adversarial"]
    # Another seed and spent counters: all of it has to come from the state.
    resumed = make(reward="per_step", seed=99)
    for file in kept.values():
        file.seek(0)
        with np.load(file, allow_pickle=False) as state:
            resumed.load_state_dict(state)
        resumed.fit(corpus, **schedule)
        assert resumed.counters == unbroken.counters
        for name in ("generator", "discriminator"):
            for a, b in zip(
                getattr(resumed, name).get_weights(),
                getattr(unbroken, name).get_weights(),
                strict=True,
            ):
                np.testing.assert_allclose(a, b, atol=1e-6)


def test_a_state_of_other_settings_is_refused():
    other = SeqGAN(Generator(4, 3, 3, 5), Discriminator(4, 3, 3, (1,), 4), seed=0)
    with pytest.raises(ValueError, match="Was it saved with other settings"):
        make().load_state_dict(other.state_dict())


class RecordingStep:
    """A discriminator step that stands where a private one would."""

    def __init__(self):
        self.fakes = []

    def __call__(self, fake_ids):
        self.fakes.append(np.asarray(fake_ids))
        return {"loss": 1.0}

    def state_dict(self):
        return {"calls": np.array(len(self.fakes))}

    def load_state_dict(self, state):
        self.fakes = [None] * int(state["calls"])


def test_a_discriminator_step_of_ones_own_sees_fresh_fakes_and_nothing_else(corpus):
    step = RecordingStep()
    assert isinstance(step, DiscriminatorStep)
    gan = make(discriminator_step=step, reward="constant")
    weights = gan.discriminator.get_weights()
    gan.fit(corpus, mle_epochs=0, discriminator_pretraining_steps=3, rounds=1)
    assert [x.shape for x in step.fakes] == [(8, 3)] * 8
    assert len({x.tobytes() for x in step.fakes}) == 8
    for a, b in zip(weights, gan.discriminator.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    resumed = make(discriminator_step=RecordingStep(), reward="constant")
    resumed.load_state_dict(gan.state_dict())
    assert len(resumed.discriminator_step.fakes) == 8


def test_a_step_without_sequences_says_what_is_missing():
    with pytest.raises(ValueError, match="Call use_corpus first"):
        make().train_discriminator(1)
    with pytest.raises(ValueError, match="Call use_corpus first"):
        make().pretrain_generator(1)


def test_models_that_do_not_fit_each_other_are_refused():
    with pytest.raises(ValueError, match=r"one vocabulary_size, received 5 .* and 6"):
        SeqGAN(Generator(5, 3), Discriminator(6, 3, widths=(1,)))


def test_a_baseline_under_a_constant_reward_is_refused():
    with pytest.raises(ValueError, match="leave no gradient"):
        make(reward="constant", baseline=True)


def test_sequences_of_another_length_are_refused(corpus):
    with pytest.raises(ValueError, match="sequences of 3 ids, received 2"):
        make().use_corpus(corpus[:, :2])


class _LikesOneToken:
    """A reward that drives every text to one token."""

    def __call__(self, ids, seed):
        return tf.cast(ids == 5, tf.float32)


def _driven(**settings):
    gan = SeqGAN(
        Generator(20, 6, 4, 8, seed=0),
        Discriminator(20, 6, 4, (2, 3), 5, seed=0),
        reward=_LikesOneToken(),
        batch_size=64,
        learning_rate=0.2,
        seed=0,
        **settings,
    )
    gan.train_adversarially(25, g_steps=1, d_steps=0)
    return gan


def test_a_collapse_ends_training_with_the_weights_before_it():
    gan = _driven()
    assert gan.collapsed
    assert gan.counters["rounds"] < 25
    fresh = Generator(20, 6, 4, 8, seed=0).sample(512, seed=1)
    assert not has_collapsed(gan.generator.sample(512, seed=2), fresh)
    # What was restored has collapsed as well, and goes no further.
    state, rounds = gan.state_dict(), gan.counters["rounds"]
    again = _driven()
    again.load_state_dict(state)
    again.train_adversarially(30, d_steps=0)
    assert again.collapsed
    assert again.counters["rounds"] == rounds


def test_the_twin_that_does_not_watch_collapses():
    gan = _driven(least_diversity=0)
    assert gan.counters["rounds"] == 25
    fresh = Generator(20, 6, 4, 8, seed=0).sample(512, seed=1)
    assert has_collapsed(gan.generator.sample(512, seed=2), fresh)
