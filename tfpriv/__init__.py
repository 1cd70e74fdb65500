"""Private text in TensorFlow: what may be shared, what it cost, and does it hold.

`import tfpriv` is quick and brings no TensorFlow: each name below is imported when it
is first used.

- `tfpriv.DPSeqGAN` rewrites a private labelled text data set into a synthetic one.
- `tfpriv.RMAT` turns a text into a representation that does a task and hides a private
  attribute; `tfpriv.representation` has the methods it is compared with.
- `tfpriv.datasets` and `tfpriv.text`: where text comes from, and text to ids.
- `tfpriv.accounting` and `tfpriv.mechanisms`: what a release costs, and what is said
  about private records without training.
- `tfpriv.layers`: masks, bounds and noise as Keras layers.
- `tfpriv.dp_training` and `tfpriv.seqgan`: DP-SGD for Keras models, and the networks.
- `tfpriv.serving`: finished models for TensorFlow Serving, and a client.
- `tfpriv.beam`: the same release over a corpus of any size, on Apache Beam.
- `tfpriv.attacks` and `tfpriv.evaluation`: does it hold, and how good is the text.

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
        attacks,
        beam,
        datasets,
        dp_training,
        evaluation,
        layers,
        mechanisms,
        representation,
        seqgan,
        serving,
        text,
    )
    from tfpriv.representation.ads import ADS
    from tfpriv.representation.cape import CAPE
    from tfpriv.representation.dpnr import DPNR
    from tfpriv.representation.rmat import RMAT
    from tfpriv.seqgan.dp_seqgan import DPSeqGAN

__all__ = [
    "ADS",
    "CAPE",
    "DPNR",
    "RMAT",
    "DPSeqGAN",
    "__version__",
    "accounting",
    "attacks",
    "beam",
    "datasets",
    "dp_training",
    "evaluation",
    "layers",
    "mechanisms",
    "representation",
    "seqgan",
    "serving",
    "text",
]

_SUBPACKAGES = frozenset(
    {
        "accounting",
        "attacks",
        "beam",
        "datasets",
        "dp_training",
        "evaluation",
        "layers",
        "mechanisms",
        "representation",
        "seqgan",
        "serving",
        "text",
    }
)
_CLASSES = {
    "ADS": "tfpriv.representation.ads",
    "CAPE": "tfpriv.representation.cape",
    "DPNR": "tfpriv.representation.dpnr",
    "DPSeqGAN": "tfpriv.seqgan.dp_seqgan",
    "RMAT": "tfpriv.representation.rmat",
}
# What makes Keras models; the rest works beside a Keras on any backend.
_NEEDS_TENSORFLOW = frozenset(
    {*_CLASSES, "dp_training", "evaluation", "layers", "representation", "seqgan"}
)

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
