"""Private text in TensorFlow: what may be shared, what it cost, and does it hold.

`import tfpriv` is quick and brings no TensorFlow: each name below is imported when it
is first used.

- `tfpriv.DPSeqGAN` rewrites a private labelled text data set into a synthetic one.
- `tfpriv.datasets` and `tfpriv.text`: where text comes from, and text to ids.
- `tfpriv.accounting` and `tfpriv.mechanisms`: what a release costs, and what is said
  about private records without training.
- `tfpriv.dp_training` and `tfpriv.seqgan`: DP-SGD for Keras models, and the networks.
- `tfpriv.evaluation`: how good the synthetic text is.

>>> import tfpriv
>>> plan = tfpriv.accounting.DPSGDPlan(
...     num_examples=1956, batch_size=64, steps=306, noise_multiplier=1.0
... )
>>> round(plan.epsilon(delta=1e-5), 2)
4.2
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tfpriv._backend import prefer_tensorflow, require_tensorflow
from tfpriv._version import __version__

if TYPE_CHECKING:
    from tfpriv import (
        accounting,
        datasets,
        dp_training,
        evaluation,
        mechanisms,
        seqgan,
        text,
    )
    from tfpriv.seqgan.dp_seqgan import DPSeqGAN

__all__ = [
    "DPSeqGAN",
    "__version__",
    "accounting",
    "datasets",
    "dp_training",
    "evaluation",
    "mechanisms",
    "seqgan",
    "text",
]

_SUBPACKAGES = frozenset(
    {
        "accounting",
        "datasets",
        "dp_training",
        "evaluation",
        "mechanisms",
        "seqgan",
        "text",
    }
)
_CLASSES = {"DPSeqGAN": "tfpriv.seqgan.dp_seqgan"}
# What makes Keras models; the rest works beside a Keras on any backend.
_NEEDS_TENSORFLOW = frozenset({"DPSeqGAN", "dp_training", "evaluation", "seqgan"})

prefer_tensorflow()


def __getattr__(name: str) -> Any:
    if name in _NEEDS_TENSORFLOW:
        require_tensorflow()
    if name in _SUBPACKAGES:
        return importlib.import_module(f"tfpriv.{name}")
    if name in _CLASSES:
        value = getattr(importlib.import_module(_CLASSES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tfpriv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
