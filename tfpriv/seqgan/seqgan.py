"""SeqGAN: a generator of sequences trained by policy gradient on a discriminator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv._validation import fraction, integer, non_negative, positive
from tfpriv.dp_training.one_device import require_one_device
from tfpriv.seqgan import sampling
from tfpriv.seqgan.batches import batch_indices
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.discriminator_step import (
    DiscriminatorStep,
    PlainDiscriminatorStep,
    variables_from_dict,
    variables_to_dict,
)
from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.rewards import Reward, advantages, make_reward
from tfpriv.text.collapse import has_collapsed

# Uses of random numbers that must not share them.
_FAKES, _POLICY, _ROLLOUTS, _WATCH = range(4)
# Texts whose diversity is watched.
_WATCHED = 512

_NO_CORPUS = "Expected sequences, received none. Call use_corpus first."


class Progress(NamedTuple):
    """Where a stage stands: what callbacks are given after each unit of work."""

    stage: str  # "pretraining", "discriminator" or "adversarial"
    step: int  # epochs, discriminator steps or rounds that are done
    total: int
    metrics: dict[str, float]


Callback = Callable[[Progress], None]


class SeqGAN:
    """Trains a generator against a discriminator; alone, it is not private.

    Three stages: maximum likelihood pre-training of the generator, pre-training of
    the discriminator, then rounds of `g_steps` policy-gradient steps and `d_steps`
    discriminator steps. Each stage has a target, not a length: called again on a
    trainer that was restored from `state_dict`, it does what is missing.

    Args:
        generator: Generator.
        discriminator: Discriminator over the same ids and length.
        reward: "rollout", "per_step", "constant" or a callable as in `rewards`.
        rollouts: int. Rollouts a prefix, for the rollout reward.
        baseline: bool or None. Subtracts a per-step baseline from rewards. None
            means yes, but not for the constant reward, where nothing would be left.
        batch_size: int. Sequences a step of either network.
        pretraining_learning_rate: float. Adam's, of maximum likelihood.
        learning_rate: float. Adam's, of policy gradient.
        clip_norm: float. Bound of the global norm of the generator's gradients.
        mle_weight: float. Adds this much of the likelihood loss to each
            policy-gradient step, which holds the generator near its corpus.
        discriminator_step: the update of the discriminator, or None for the plain
            one on the sequences given to `fit`. See `discriminator_step.py`.
        discriminator_learning_rate: float. Of the plain step.
        seed: int, or None for the system's entropy. Never of a private step's noise.
        jit_compile: bool. Compiles the generator's updates with XLA.
        least_diversity: float in [0, 1). Share of the former diversity of generated
            text (distinct token pairs) below which it has collapsed: adversarial
            training then ends with the weights of the round before. 0: never.

    Attributes:
        collapsed: bool. Whether that happened.

    Raises:
        InputError: models that do not fit each other, sizes that are not positive, or
            a baseline under the constant reward.

    Examples:
        >>> generator = Generator(20, 6, 4, 8, seed=0)
        >>> discriminator = Discriminator(20, 6, 4, (2, 3), 5, seed=0)
        >>> gan = SeqGAN(generator, discriminator, rollouts=2, batch_size=4, seed=0)
        >>> real = generator.sample(16, seed=1)
        >>> _ = gan.fit(real, mle_epochs=1, discriminator_pretraining_steps=1, rounds=1)
        >>> gan.counters["rounds"]
        1

    References:
        Yu et al. 2017, arXiv:1609.05473, algorithm 1.
    """

    def __init__(
        self,
        generator: Generator,
        discriminator: Discriminator,
        *,
        reward: str | Reward = "rollout",
        rollouts: int = 16,
        baseline: bool | None = None,
        batch_size: int = 64,
        pretraining_learning_rate: float = 0.01,
        learning_rate: float = 0.01,
        clip_norm: float = 5.0,
        mle_weight: float = 0.0,
        discriminator_step: DiscriminatorStep | None = None,
        discriminator_learning_rate: float = 1e-4,
        seed: int | None = None,
        jit_compile: bool = False,
        least_diversity: float = 0.5,
    ) -> None:
        require_one_device(what="SeqGAN's training")
        fraction(least_diversity=least_diversity)
        integer(batch_size=batch_size, rollouts=rollouts)
        positive(
            pretraining_learning_rate=pretraining_learning_rate,
            learning_rate=learning_rate,
            clip_norm=clip_norm,
            discriminator_learning_rate=discriminator_learning_rate,
        )
        non_negative(mle_weight=mle_weight)
        for name in ("vocabulary_size", "max_length"):
            ours, theirs = getattr(generator, name), getattr(discriminator, name)
            if ours != theirs:
                raise InputError(
                    f"Expected one {name}, received {ours} in the generator and "
                    f"{theirs} in the discriminator."
                )
        if baseline is None:
            baseline = reward != "constant"
        if baseline and reward == "constant":
            raise InputError(
                "Expected baseline=False with reward='constant', received "
                "baseline=True: it would leave no gradient at all."
            )
        self.generator = generator
        self.discriminator = discriminator
        self.reward_name = reward if isinstance(reward, str) else "custom"
        self.reward: Reward = (
            make_reward(reward, generator, discriminator, rollouts=rollouts)
            if isinstance(reward, str)
            else reward
        )
        self.baseline = baseline
        self.batch_size = batch_size
        self.mle_weight = mle_weight
        self.discriminator_step = discriminator_step
        self.discriminator_learning_rate = discriminator_learning_rate
        if seed is None:
            seed = int(np.random.SeedSequence().entropy)
        integer(0, seed=seed)
        self.seed = seed
        self.jit_compile = jit_compile
        self.counters = {"mle_steps": 0, "d_steps": 0, "g_steps": 0, "rounds": 0}
        self.least_diversity = float(least_diversity)
        self.collapsed = False
        self._before: np.ndarray | None = None
        self._best: tuple[float, int, list[np.ndarray]] | None = None
        self._pending: dict[str, np.ndarray] | None = None
        self._corpus: np.ndarray | None = None
        variables = generator.trainable_variables
        adam = keras.optimizers.Adam
        self.pretraining_optimizer = adam(
            pretraining_learning_rate, global_clipnorm=clip_norm
        )
        self.policy_optimizer = adam(learning_rate, global_clipnorm=clip_norm)
        self.pretraining_optimizer.build(variables)
        self.policy_optimizer.build(variables)
        jit = jit_compile or None
        self._mle_graph = tf.function(
            self._mle_update, autograph=False, jit_compile=jit
        )
        self._policy_graph = tf.function(
            self._policy_update, autograph=False, jit_compile=jit
        )

    # --- Stages --------------------------------------------------------------

    def fit(
        self,
        ids: Any,
        *,
        validation_ids: Any = None,
        mle_epochs: int = 20,
        patience: int | None = None,
        discriminator_pretraining_steps: int = 200,
        rounds: int = 20,
        g_steps: int = 1,
        d_steps: int = 5,
        callbacks: Sequence[Callback] = (),
    ) -> SeqGAN:
        """All three stages, as far as they are not done yet.

        Args:
            ids: int (n, T). What the generator is pre-trained on and, unless a
                `discriminator_step` was given, what the discriminator takes as real.
            validation_ids: int (m, T) or None. Scored after each epoch.
            mle_epochs: int. Epochs of pre-training.
            patience: int or None. Epochs without a better validation NLL after
                which pre-training ends; the best weights are then taken.
            discriminator_pretraining_steps: int.
            rounds: int. Adversarial rounds.
            g_steps: int. Policy-gradient steps a round.
            d_steps: int. Discriminator steps a round.
            callbacks: called with a Progress after each epoch, round and every 10th
                step of discriminator pre-training; may save, may raise to stop.

        Returns:
            This trainer.
        """
        self.use_corpus(ids)
        self.pretrain_generator(
            mle_epochs,
            validation_ids=validation_ids,
            patience=patience,
            callbacks=callbacks,
        )
        self.pretrain_discriminator(
            discriminator_pretraining_steps, callbacks=callbacks
        )
        self.train_adversarially(
            rounds, g_steps=g_steps, d_steps=d_steps, callbacks=callbacks
        )
        return self

    def use_corpus(self, ids: Any) -> None:
        """Sets the sequences of pre-training, and of the plain discriminator step."""
        ids = self.generator.checked_ids(ids)
        if ids.shape[1] != self.generator.max_length:
            raise InputError(
                f"Expected sequences of {self.generator.max_length} ids, received "
                f"{ids.shape[1]}."
            )
        self._corpus = ids
        if self.discriminator_step is None:
            self.discriminator_step = PlainDiscriminatorStep(
                self.discriminator,
                ids,
                learning_rate=self.discriminator_learning_rate,
                cut_pad_id=(
                    self.generator.pad_id if self.reward_name == "per_step" else None
                ),
                seed=self.seed,
                jit_compile=self.jit_compile,
            )
        if self._pending is not None:
            self.discriminator_step.load_state_dict(self._pending)
            self._pending = None

    def pretrain_generator(
        self,
        epochs: int,
        *,
        validation_ids: Any = None,
        patience: int | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        """Maximum likelihood on the corpus, up to `epochs` epochs in all."""
        integer(0, epochs=epochs)
        if epochs and self._corpus is None:
            raise InputError(_NO_CORPUS)
        if patience is not None and validation_ids is None:
            raise InputError("Expected validation_ids with patience, received none.")
        if not epochs or self.counters["g_steps"] or self.counters["d_steps"]:
            return
        per_epoch = max(1, len(self._corpus) // self.batch_size)
        while self.counters["mle_steps"] < epochs * per_epoch:
            if patience is not None and self._best and self._best[1] >= patience:
                break
            losses = []
            for _ in range(per_epoch):
                losses.append(self._mle_graph(self._corpus_batch("mle_steps")))
                self.counters["mle_steps"] += 1
            metrics = {"nll": float(tf.reduce_mean(losses))}
            if validation_ids is not None:
                metrics["validation_nll"] = self.generator.nll(validation_ids)
                if patience is not None:
                    self._remember(metrics["validation_nll"])
            epoch = self.counters["mle_steps"] // per_epoch
            _call(callbacks, Progress("pretraining", epoch, epochs, metrics))
        if self._best is not None:
            self.generator.set_weights(self._best[2])
            self._best = None

    def pretrain_discriminator(
        self, steps: int, *, callbacks: Sequence[Callback] = ()
    ) -> None:
        """Discriminator steps, up to `steps` in all, before any adversarial round."""
        integer(0, steps=steps)
        if self.counters["g_steps"]:
            return
        while self.counters["d_steps"] < steps:
            metrics = self.train_discriminator(
                min(10, steps - self.counters["d_steps"])
            )
            done = self.counters["d_steps"]
            _call(callbacks, Progress("discriminator", done, steps, metrics))

    def train_adversarially(
        self,
        rounds: int,
        *,
        g_steps: int = 1,
        d_steps: int = 5,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        """Rounds of both, up to `rounds` in all, or until the generator collapses."""
        integer(0, rounds=rounds, g_steps=g_steps, d_steps=d_steps)
        if self._before is None and self.counters["rounds"] < rounds:
            self._before = self._written()
        while self.counters["rounds"] < rounds and not self.collapsed:
            metrics = {}
            good = self.generator.get_weights()
            for _ in range(g_steps):
                metrics.update(self.generator_step())
            if d_steps:
                for key, value in self.train_discriminator(d_steps).items():
                    metrics[f"discriminator_{key}"] = value
            self.counters["rounds"] += 1
            done = self.counters["rounds"]
            if self.least_diversity and has_collapsed(
                self._written(), self._before, least=self.least_diversity
            ):
                self.generator.set_weights(good)
                self.collapsed = True
            _call(callbacks, Progress("adversarial", done, rounds, metrics))

    # --- Steps ---------------------------------------------------------------

    def train_discriminator(self, steps: int) -> dict[str, float]:
        """`steps` updates of the discriminator against fresh samples.

        Returns:
            Means of the step's metrics.
        """
        integer(steps=steps)
        if self.discriminator_step is None:
            raise InputError(
                "Expected a discriminator_step or a corpus, received neither. "
                "Call use_corpus first."
            )
        fakes = self.generator.sample(
            steps * self.batch_size, seed=self._seed(_FAKES, "d_steps")
        )
        history = []
        for batch in np.split(fakes, steps):
            history.append(self.discriminator_step(tf.constant(batch)))
            self.counters["d_steps"] += 1
        return {
            key: float(np.mean([metrics[key] for metrics in history]))
            for key in history[0]
        }

    def generator_step(self) -> dict[str, float]:
        """One policy-gradient step on fresh samples.

        The gradient is that of -1/B sum_b sum_t log G(y_t | y_<t) A(b, t), A being
        reward minus baseline (Yu et al. 2017, equation 7; Williams 1992).

        Returns:
            "reward": its mean over the tokens drawn.
        """
        ids = tf.constant(
            self.generator.sample(self.batch_size, seed=self._seed(_POLICY, "g_steps"))
        )
        seed = sampling.fresh_seed(self._seed(_ROLLOUTS, "g_steps"))
        rewards = self.reward(ids, seed)
        corpus = ids[:0] if not self.mle_weight else self._corpus_batch("g_steps")
        mean_reward = self._policy_graph(ids, rewards, corpus)
        self.counters["g_steps"] += 1
        return {"reward": float(mean_reward)}

    def _mle_loss(self, ids: tf.Tensor) -> tf.Tensor:
        log_probs = self.generator.token_log_probs(ids, training=True)
        return -tf.reduce_sum(log_probs) / tf.reduce_sum(self.generator.token_mask(ids))

    def _mle_update(self, ids: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = self._mle_loss(ids)
        self._apply(self.pretraining_optimizer, tape, loss)
        return loss

    def _policy_update(
        self, ids: tf.Tensor, rewards: tf.Tensor, corpus: tf.Tensor
    ) -> tf.Tensor:
        mask = self.generator.token_mask(ids)
        values = advantages(rewards, mask) if self.baseline else rewards * mask
        with tf.GradientTape() as tape:
            loss = self.policy_loss(ids, values)
            if self.mle_weight:
                loss += self.mle_weight * self._mle_loss(corpus)
        self._apply(self.policy_optimizer, tape, loss)
        return tf.reduce_sum(rewards * mask) / tf.reduce_sum(mask)

    def policy_loss(self, ids: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
        """Its gradient is REINFORCE's: int (B, T), float (B, T) -> scalar."""
        log_probs = self.generator.token_log_probs(ids)
        batch = tf.cast(tf.shape(ids)[0], tf.float32)
        return -tf.reduce_sum(log_probs * tf.stop_gradient(values)) / batch

    def _apply(
        self, optimizer: keras.optimizers.Optimizer, tape: Any, loss: tf.Tensor
    ) -> None:
        variables = self.generator.trainable_variables
        gradients = tape.gradient(loss, variables)
        # Adam reads sparse gradients row by row; whole tables are the same sum.
        optimizer.apply([tf.convert_to_tensor(g) for g in gradients], variables)

    # --- State ---------------------------------------------------------------

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything that training goes on from, as arrays under flat names.

        Returns:
            dict for `numpy.savez`; it holds no object that would need unpickling.
        """
        state = {f"counters/{k}": np.array(v) for k, v in self.counters.items()}
        state["seed"] = np.array(str(self.seed))
        for name, owner in self._owners().items():
            state.update(variables_to_dict(owner, f"{name}/"))
        state["collapsed"] = np.array(self.collapsed)
        if self._before is not None:
            state["written_before"] = self._before
        if self._best is not None:
            state["best/nll"] = np.array(self._best[0])
            state["best/age"] = np.array(self._best[1])
            for i, weight in enumerate(self._best[2]):
                state[f"best/weight_{i:03d}"] = weight
        step_state = self._pending
        if step_state is None and self.discriminator_step is not None:
            step_state = self.discriminator_step.state_dict()
        for key, value in (step_state or {}).items():
            state[f"discriminator_step/{key}"] = np.asarray(value)
        return state

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Goes back to a state of `state_dict`, of a trainer with these settings."""
        state = dict(state)
        for name, owner in self._owners().items():
            variables_from_dict(owner, state, f"{name}/")
        self.counters = {k: int(state[f"counters/{k}"]) for k in self.counters}
        self.seed = int(str(state["seed"]))
        self.collapsed = bool(state.get("collapsed", False))
        self._before = state.get("written_before")
        self._best = None
        if "best/nll" in state:
            weights = sorted(k for k in state if k.startswith("best/weight_"))
            self._best = (
                float(state["best/nll"]),
                int(state["best/age"]),
                [state[k] for k in weights],
            )
        prefix = "discriminator_step/"
        step_state = {
            k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)
        }
        if self.discriminator_step is None:
            # The plain step is made once its real sequences are known.
            self._pending = step_state or None
        elif step_state:
            self.discriminator_step.load_state_dict(step_state)

    def _written(self) -> np.ndarray:
        return self.generator.sample(_WATCHED, seed=self._seed(_WATCH, "rounds"))

    def _owners(self) -> dict[str, Any]:
        return {
            "generator": self.generator,
            "discriminator": self.discriminator,
            "pretraining_optimizer": self.pretraining_optimizer,
            "policy_optimizer": self.policy_optimizer,
        }

    def _remember(self, nll: float) -> None:
        if self._best is None or nll < self._best[0]:
            self._best = (nll, 0, self.generator.get_weights())
        else:
            self._best = (self._best[0], self._best[1] + 1, self._best[2])

    def _seed(self, use: int, counter: str) -> int:
        words = [self.seed, use, self.counters[counter]]
        return int(np.random.SeedSequence(words).generate_state(1)[0])

    def _corpus_batch(self, counter: str) -> tf.Tensor:
        if self._corpus is None:
            raise InputError(_NO_CORPUS)
        rows = batch_indices(
            len(self._corpus), self.batch_size, self.counters[counter], self.seed
        )
        return tf.constant(self._corpus[rows])


def _call(callbacks: Sequence[Callback], progress: Progress) -> None:
    for callback in callbacks:
        callback(progress)
