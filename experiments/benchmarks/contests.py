"""What is compared: add here what is to be timed next. A contestant is one call."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

BATCH, VOCABULARY, LENGTH = 64, 5000, 20
CLIP, SIGMA, LEARNING_RATE = 1.0, 1.0, 1e-3
ACCOUNT = "account --examples 1956 --batch 64 --steps 306 --noise-multiplier 1"
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


def _steps(make: Callable, inputs: np.ndarray, seed: int) -> Runs:
    """One Adam step on the same rows, each contestant with a model of its own."""
    import keras

    from tfpriv.accounting import DPSGDPlan
    from tfpriv.dp_training import DPTrainer, make_stock_step, stock_dp_adam

    labels = np.random.default_rng(seed).integers(0, 2, BATCH, np.int32)
    # Rate 1 puts every row into every private step, as the others have it.
    plan = DPSGDPlan(BATCH, BATCH, 10**9, SIGMA, CLIP, sampling="full_batch")

    def loss(model, x, y):
        logits = model(x)
        return keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True)

    def plain(model, jit_compile):
        cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        adam = keras.optimizers.Adam(LEARNING_RATE)
        model.compile(adam, cross_entropy, jit_compile=jit_compile)
        return _finished(model, lambda: model.train_on_batch(inputs, labels))

    def private(model, engine):
        trainer = DPTrainer(model, loss, plan, LEARNING_RATE, engine=engine)
        return _finished(model, lambda: trainer.step((inputs, labels)))

    def stock(model):
        step = make_stock_step(stock_dp_adam(CLIP, SIGMA, LEARNING_RATE), model, loss)
        return _finished(model, lambda: step(inputs, labels))

    return {
        "plain Keras": plain(make(), jit_compile=False),
        "plain Keras, XLA": plain(make(), jit_compile=True),
        'tfpriv, "loop"': private(make(), "loop"),
        'tfpriv, "bookkeeping"': private(make(), "bookkeeping"),
        "TF-Privacy, stock": stock(make()),
    }


def _finished(model, step: Callable) -> Callable[[], None]:
    # A step is over when its weights can be read, also where a GPU makes it.
    return lambda: (step(), np.asarray(model.trainable_variables[-1]))


def _process(*command: str) -> Callable[[], None]:
    if command[0] != "tfpriv":
        command = (sys.executable, "-c", *command)
    else:
        command = (str(Path(sys.executable).with_name("tfpriv")), *command[1:])
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


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
    "Logistic step": logistic,
}
