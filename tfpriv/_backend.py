"""Keras on TensorFlow: asked for early, checked before a model is made.

Imports nothing but the standard library, so that `import tfpriv` stays fast.
"""

from __future__ import annotations

import os
import sys

BACKEND = "tensorflow"
_VARIABLE = "KERAS_BACKEND"


def prefer_tensorflow() -> None:
    """Lets a Keras that is imported later start on TensorFlow, unless told otherwise.

    Keras reads its backend once, on import, from the environment variable
    KERAS_BACKEND. A value that is already there stays: `require_tensorflow` then
    says what is wrong, where a silent change would surprise the rest of a program.
    """
    os.environ.setdefault(_VARIABLE, BACKEND)


def require_tensorflow() -> None:
    """Checks that Keras runs on TensorFlow, without importing either.

    Raises:
        ImportError: Keras was imported on another backend, or KERAS_BACKEND names
            another one.
    """
    keras = sys.modules.get("keras")
    # A Keras that is being imported right now has no `config` yet: the environment
    # variable tells what it will run on.
    config = getattr(keras, "config", None)
    if config is not None:
        backend = config.backend()
        mend = (
            f"Import tfpriv before keras, or start Python with {_VARIABLE}={BACKEND}."
        )
    else:
        backend = os.environ.get(_VARIABLE, BACKEND)
        mend = f"Unset the environment variable {_VARIABLE}, or set it to {BACKEND}."
    if backend != BACKEND:
        raise ImportError(
            f"Expected Keras on the {BACKEND} backend, received {backend!r}. {mend}"
        )
