"""What is compared: add here what is to be timed next. A contestant is one call."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

BATCH, VOCABULARY, LENGTH = 64, 5000, 20
ROLLOUTS = 16
# MiniLM's size, and a batch of short comments.
TEXTS, PIECES, WORDPIECES = 32, 21, 30522
CLIP, SIGMA, LEARNING_RATE = 1.0, 1.0, 1e-3
ACCOUNT = "account --examples 1956 --batch 64 --steps 306 --noise-multiplier 1"
PLAIN, PLAIN_XLA = "plain Keras", "plain Keras, XLA"
PRIVATE = 'tfpriv, "bookkeeping"'
EQUAL_REWARDS = "SeqGAN rewards of equal variance"
Runs = dict[str, Callable[[], None]]


def text_cnn(seed: int) -> Runs:
    """A discriminator on token ids (64, 20)."""
    from tfpriv.seqgan.discriminator import Discriminator

    ids = np.random.default_rng(seed).integers(0, VOCABULARY, (BATCH, LENGTH), np.int32)
    options = {"widths": (1, 2, 3, 4, 5), "seed": seed}
    return _steps(lambda: Discriminator(VOCABULARY, LENGTH, **options), ids, seed)


def full_discriminator(seed: int) -> Runs:
    """SeqGAN's own discriminator, 12 widths and a highway layer, on ids (64, 20)."""
    from tfpriv.seqgan.discriminator import Discriminator

    ids = np.random.default_rng(seed).integers(0, VOCABULARY, (BATCH, LENGTH), np.int32)
    return _steps(
        lambda: Discriminator.seqgan(VOCABULARY, LENGTH, seed=seed), ids, seed
    )


def logistic(seed: int) -> Runs:
    """Two logits from word counts (64, 5000)."""
    from keras import Input, Sequential, layers

    rate, shape = LENGTH / VOCABULARY, (BATCH, VOCABULARY)
    counts = np.random.default_rng(seed).poisson(rate, shape).astype(np.float32)
    start = {"kernel_initializer": "zeros"}
    return _steps(
        lambda: Sequential([Input((VOCABULARY,)), layers.Dense(2, **start)]),
        counts,
        seed,
    )


def small_generator(seed: int) -> Runs:
    """SeqGAN's LSTM generator, 32 units, likelihood of its ids (64, 20)."""
    return _generator(32, seed, slow=True)


def large_generator(seed: int) -> Runs:
    """The same with 256 units."""
    return _generator(256, seed, slow=False)


def _generator(units: int, seed: int, slow: bool) -> Runs:
    from tfpriv.seqgan.generator import Generator

    ids = np.random.default_rng(seed).integers(2, VOCABULARY, (BATCH, LENGTH), np.int32)
    make = lambda: Generator(VOCABULARY, LENGTH, units=units, seed=seed)  # noqa: E731
    return _steps(make, ids, seed, labels=ids, slow=slow)


def encoder(seed: int) -> Runs:
    """A BERT of MiniLM's size on ids (32, 21): last two layers, bottleneck, heads."""
    shape = (TEXTS, PIECES)
    ids = np.random.default_rng(seed).integers(1, WORDPIECES, shape, np.int32)
    labels = np.random.default_rng(seed).integers(0, 3, (TEXTS, 2), np.int32)
    runs = _steps(lambda: _two_heads(seed), ids, seed, labels=labels, slow=False)
    # Compiling it takes minutes.
    del runs[PLAIN_XLA]
    return runs


def _two_heads(seed: int):
    """Random weights: what a step costs does not hang on them."""
    import keras
    import keras_nlp
    from keras import layers, ops

    keras.utils.set_random_seed(seed)
    backbone = keras_nlp.models.BertBackbone(
        vocabulary_size=WORDPIECES,
        num_layers=6,
        num_heads=12,
        hidden_dim=384,
        intermediate_dim=1536,
    )
    for layer in backbone.layers:
        layer.trainable = layer.name in ("transformer_layer_4", "transformer_layer_5")
    ids = keras.Input((PIECES,), dtype="int32")
    inputs = {
        "token_ids": ids,
        "segment_ids": ops.zeros_like(ids),
        "padding_mask": ops.ones_like(ids),
    }
    x = ops.mean(backbone(inputs)["sequence_output"], axis=1)
    x = layers.Dense(64)(layers.Dense(384, activation="relu")(x))
    heads = [layers.Dense(3)(layers.Dropout(0.1)(x)) for _ in range(2)]
    return keras.Model(ids, ops.stack(heads, axis=1))


def rewards(seed: int) -> Runs:
    """Rewards of 64 sequences of 20 tokens, by SeqGAN's full discriminator."""
    from experiments.benchmarks.rollouts import make_rewards

    return make_rewards(BATCH, LENGTH, VOCABULARY, ROLLOUTS, seed)


def equal_rewards(seed: int) -> Runs:
    """The same by networks that have learnt, with as many rollouts as vary alike."""
    from experiments.benchmarks.equal_variance import make_equal_rewards

    return make_equal_rewards(seed)


def rmat_training(seed: int) -> Runs:
    """Eight steps of RMAT on texts of the bundled sample."""
    from experiments.benchmarks.representation import training

    return training(seed)


def rmat_encoding(seed: int) -> Runs:
    """The same texts to representations."""
    from experiments.benchmarks.representation import encoding

    return encoding(seed)


def _steps(
    make: Callable,
    inputs: np.ndarray,
    seed: int,
    labels: np.ndarray | None = None,
    slow: bool = True,
) -> Runs:
    """One Adam step on the same rows, each contestant with a model of its own.

    Without `slow` those are left out that take tens of times as long.
    """
    import keras
    import tensorflow as tf

    from tfpriv.accounting import DPSGDPlan
    from tfpriv.dp_training import DPTrainer, make_stock_step, stock_dp_adam

    size = len(inputs)
    if labels is None:
        labels = np.random.default_rng(seed).integers(0, 2, size, np.int32)
    # Rate 1 puts every row into every private step, as the others have it.
    plan = DPSGDPlan(size, size, 10**9, SIGMA, CLIP, sampling="full_batch")

    def loss(model, x, y):
        losses = keras.losses.sparse_categorical_crossentropy(
            y, model(x, training=True), from_logits=True
        )
        return tf.reduce_mean(tf.reshape(losses, [tf.shape(x)[0], -1]), axis=1)

    def plain(jit_compile):
        model = make()
        cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        adam = keras.optimizers.Adam(LEARNING_RATE)
        model.compile(adam, cross_entropy, jit_compile=jit_compile)
        return _finished(model, lambda: model.train_on_batch(inputs, labels))

    def private(engine):
        model = make()
        trainer = DPTrainer(model, loss, plan, LEARNING_RATE, engine=engine)
        return _finished(model, lambda: trainer.step((inputs, labels)))

    def stock():
        model = make()
        step = make_stock_step(stock_dp_adam(CLIP, SIGMA, LEARNING_RATE), model, loss)
        return _finished(model, lambda: step(inputs, labels))

    makers = {
        PLAIN: functools.partial(plain, jit_compile=False),
        PLAIN_XLA: functools.partial(plain, jit_compile=True),
        PRIVATE: functools.partial(private, "bookkeeping"),
    }
    if slow:
        makers['tfpriv, "loop"'] = functools.partial(private, "loop")
        makers["TF-Privacy, stock"] = stock
    return {name: _made_when_called(maker) for name, maker in makers.items()}


def _made_when_called(make: Callable[[], Callable]) -> Callable[[], None]:
    """So that the first turn pays for all, and what is never called costs nothing."""
    made = functools.cache(make)
    return lambda: made()()


def _finished(model, step: Callable) -> Callable[[], None]:
    # A step is over when its weights can be read, also where a GPU makes it.
    return lambda: (step(), np.asarray(model.trainable_variables[-1]))


def _process(*command: str) -> Callable[[], None]:
    if command[0] != "tfpriv":
        command = (sys.executable, "-c", *command)
    else:
        command = (str(Path(sys.executable).with_name("tfpriv")), *command[1:])
    # Bytecode is kept, as it is where tfpriv is installed.
    environment = {
        k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
    }
    return lambda: subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, env=environment
    )


# name -> (seed -> contestants, the first being what the others are divided by).
# Processes come first, before this one fills the memory with TensorFlow.
CONTESTS: dict[str, Callable[[int], Runs]] = {
    "Start-up": lambda seed: {
        "python -c pass": _process("pass"),
        "import tfpriv": _process("import tfpriv"),
        "tfpriv --help": _process("tfpriv", "--help"),
    },
    "Accounting": lambda seed: {
        "import dp_accounting": _process("import dp_accounting"),
        "tfpriv account": _process("tfpriv", *ACCOUNT.split()),
    },
    "TextCNN step": text_cnn,
    "SeqGAN discriminator step": full_discriminator,
    "LSTM generator step, 32 units": small_generator,
    "LSTM generator step, 256 units": large_generator,
    "BERT step, two of six layers": encoder,
    "Logistic step": logistic,
    "SeqGAN rewards, 16 rollouts": rewards,
    EQUAL_REWARDS: equal_rewards,
    "RMAT training, 256 texts": rmat_training,
    "RMAT encoding, 256 texts": rmat_encoding,
}
