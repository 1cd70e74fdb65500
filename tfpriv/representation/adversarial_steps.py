"""One training step of a task and its adversary on released representations."""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf

from tfpriv.layers import GradientReversal
from tfpriv.representation.replicas import (
    BatchWeights,
    number_of_replicas,
    over_replicas,
)

OBJECTIVES = ("maximise", "entropy", "reversal", None)


class AdversarialSteps:
    """The steps of `PrivateTextModel`: what a batch does to whom.

    The adversary steps on the representations that were released, one forward pass of
    the backbone for both; then encoder and task head step with the adversary as it is
    now. Objectives, as a penalty that is added to the task's cross-entropy:

    - "maximise": minus the adversary's cross-entropy (Wu and Luo 2023).
    - "entropy": minus the entropy of its prediction (Basu Roy Chowdhury et al. 2021).
    - "reversal": its cross-entropy through a reversed gradient (Ganin et al. 2016; so
      in CAPE, Plant et al. 2021).

    With scale="code" there are only K things that can be released, so a head's loss is
    the expectation over all of them, exactly, instead of that of one draw. Codes stand
    for classes in turn, and the encoder learns these as a classifier does: the expected
    loss alone is linear in the probabilities, and an encoder that once gives all texts
    one code would find no way back.
    """

    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        """One batch; returns the running metrics."""
        ids, targets, weight = _unpack(data)
        adversary = self.adversary_head is not None
        with tf.GradientTape() as tape:
            released = self._trained_on(ids)
            logits, task_loss = self._loss(
                "label", self.task_head, released, targets, weight, training=True
            )
            loss = task_loss
            if adversary:
                with tape.stop_recording():
                    fixed = tf.stop_gradient(released)
                    for _ in range(self.adversary_steps):
                        self._train_adversary(fixed, targets, weight)
                strength = self._strength()
                penalty, seen = self._penalty(released, targets, weight, strength)
                loss = task_loss + penalty
            scaled = self.optimizer.scale_loss(loss)
        self._update(tape.gradient(scaled, self._task_variables()))
        self.trained_steps.assign_add(1)
        self._loss_tracker.update_state(over_replicas(loss))
        self._track("label", logits, task_loss, targets, weight)
        if adversary:
            self._track("private", *seen, targets, weight)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data: Any) -> dict[str, tf.Tensor]:
        """Metrics of a batch; "loss" is the task's."""
        ids, targets, weight = _unpack(data)
        released = self.release(ids, training=False)
        logits, loss = self._loss(
            "label", self.task_head, released, targets, weight, training=False
        )
        self._loss_tracker.update_state(over_replicas(loss))
        self._track("label", logits, loss, targets, weight)
        if self.adversary_head is not None and "private" in targets:
            seen = self._loss(
                "private",
                self.adversary_head,
                released,
                targets,
                weight,
                training=False,
            )
            self._track("private", *seen, targets, weight)
        return {m.name: m.result() for m in self.metrics}

    def predict_step(self, data: Any) -> tf.Tensor:
        """Task probabilities of a batch."""
        return self(data[0] if isinstance(data, tuple) else data, training=False)

    def _train_adversary(
        self, released: tf.Tensor, targets: dict, weight: BatchWeights
    ) -> None:
        variables = self.adversary_head.trainable_variables
        with tf.GradientTape() as tape:
            _, loss = self._loss(
                "private",
                self.adversary_head,
                released,
                targets,
                weight,
                training=True,
            )
            scaled = self.adversary_optimizer.scale_loss(loss)
        self.adversary_optimizer.apply(tape.gradient(scaled, variables), variables)

    def _penalty(
        self,
        released: tf.Tensor,
        targets: dict,
        weight: BatchWeights,
        strength: tf.Tensor,
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
        """Returns what is added to the loss, and the adversary's (logits, loss)."""
        if self.objective == "reversal":
            released = GradientReversal(1.0)(released)
        logits, loss = self._loss(
            "private", self.adversary_head, released, targets, weight, training=True
        )
        if self.objective == "reversal":
            return strength * loss, (logits, loss)
        if self.objective == "entropy":
            log_p = tf.nn.log_softmax(logits)
            entropy = -tf.reduce_sum(tf.exp(log_p) * log_p, axis=-1)
            return -strength * weight.mean(entropy), (logits, loss)
        gain = loss
        if self.cap_adversary:
            gain = _capped(gain, math.log(self.num_private_classes))
        return -strength * gain, (logits, loss)

    def _loss(
        self,
        name: str,
        head: keras.Model,
        released: tf.Tensor,
        targets: dict,
        weight: BatchWeights,
        *,
        training: bool,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns logits (B, C) and the replica's part of the mean cross-entropy."""
        labels = tf.cast(targets[name], tf.int32)
        if training and self.design.scale == "code":
            codes = tf.eye(self.design.dimension)
            log_p = tf.nn.log_softmax(head(codes, training=True))
            likely = self.encoder.responded(released)
            logits = tf.math.log(likely @ tf.exp(log_p))
            if name == "label":
                likely = tf.stop_gradient(likely)
            losses = -tf.gather(likely @ log_p, labels, batch_dims=1)
            if name == "label":
                losses += self._assigned(released, labels)
        else:
            logits = tf.cast(head(released, training=training), tf.float32)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        of_class = self.class_weights.get(name)
        if of_class is not None:
            losses *= tf.gather(tf.constant(of_class, tf.float32), labels)
        return logits, weight.mean(losses)

    def _trained_on(self, ids: tf.Tensor) -> tf.Tensor:
        """A release (B, d), or with codes the softmax of their logits (B, K)."""
        if self.design.scale == "code":
            return self.encoder.code_probabilities(ids, training=True)
        return self.release(ids, training=True)

    def _assigned(self, codes: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """Cross-entropy (B,) of codes (B, K) with those that stand for the class."""
        turn = min(self.design.dimension, self.num_classes)
        stands = tf.range(self.design.dimension)[None] % turn == labels[:, None] % turn
        share = tf.reduce_sum(tf.where(stands, codes, 0.0), axis=1)
        return -tf.math.log(tf.maximum(share, 1e-7))

    def _strength(self) -> tf.Tensor:
        weight = self.adversary_weight
        if callable(weight):
            weight = weight(self.optimizer.iterations)
        return tf.cast(weight, tf.float32)

    def _task_variables(self) -> list[keras.Variable]:
        return [
            *self.encoder.trainable_variables,
            *self.task_head.trainable_variables,
        ]

    def _maybe_symbolic_build(self, *_: Any, **__: Any) -> None:
        """Nothing is left to build; Keras would add up a batch's unequal parts."""

    def _make_step_counter(self) -> keras.Variable:
        return self.add_weight(
            name="trained_steps",
            shape=(),
            dtype="int64",
            trainable=False,
            aggregation="only_first_replica",
        )

    def _make_metrics(self) -> None:
        self.task_metrics = _head_metrics("task", self.num_classes)
        self.private_metrics = []
        if self.objective is not None:
            # Of the adversary in training, which a fresh attacker may well beat.
            self.private_metrics = _head_metrics("private", self.num_private_classes)

    def _track(
        self,
        name: str,
        logits: tf.Tensor,
        loss: tf.Tensor,
        targets: dict,
        weight: BatchWeights,
    ) -> None:
        metrics = self.task_metrics if name == "label" else self.private_metrics
        labels = tf.cast(targets[name], tf.int32)
        mean, accuracy, f1 = metrics
        mean.update_state(over_replicas(loss))
        accuracy.update_state(labels, logits, sample_weight=weight.each)
        f1.update_state(
            tf.one_hot(labels, logits.shape[-1]), logits, sample_weight=weight.each
        )


def _head_metrics(name: str, classes: int) -> list[keras.metrics.Metric]:
    f1 = keras.metrics.F1Score(average="macro", name=f"{name}_f1")
    # It makes its variables on first use; in a graph that would trace the step twice.
    f1.update_state(tf.zeros([1, classes]), tf.zeros([1, classes]))
    f1.reset_state()
    return [
        keras.metrics.Mean(name=f"{name}_loss"),
        keras.metrics.SparseCategoricalAccuracy(name=f"{name}_accuracy"),
        f1,
    ]


def _unpack(data: Any) -> tuple[tf.Tensor, dict[str, tf.Tensor], BatchWeights]:
    ids, targets, *rest = data
    if not isinstance(targets, dict):
        names = ("label", "private")
        targets = targets if isinstance(targets, tuple | list) else (targets,)
        targets = dict(zip(names, targets, strict=False))
    each = rest[0] if rest else targets.get("sample_weight")
    return ids, targets, BatchWeights(ids, each)


def _capped(part: tf.Tensor, most: float) -> tf.Tensor:
    """This replica's part of min(whole loss, most): no gradient above the cap."""
    below = tf.stop_gradient(over_replicas(part)) < most
    return tf.where(below, part, most / number_of_replicas())
