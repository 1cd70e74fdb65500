"""DP-SGD on Keras 3 models: clip every example, add noise once, step Adam.

Start with `sampler.py` (which records a step reads) and `noise.py` (the one
noise draw of a step); `clipping.py` says what a clipping engine must do,
`loop_engine.py` is the one that the others are checked against and
`bookkeeping_engine.py` the fast one, with `closed_forms/`. `optimizer.py` is the
only module that knows TF-Privacy. `trainer.py` puts them together from one
`tfpriv.accounting.DPSGDPlan` and from nothing else; `dp_model.py` is that as `fit`.

The names below are loaded on first use, so that importing the package does not
import TensorFlow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfpriv.dp_training.clipping import (
        ClippingEngine,
        engine_names,
        make_engine,
        register_engine,
    )
    from tfpriv.dp_training.cyclic_sampler import CyclicSampler
    from tfpriv.dp_training.dp_model import DPModel
    from tfpriv.dp_training.noise import gaussian_noise
    from tfpriv.dp_training.optimizer import (
        DPKerasAdamOptimizer,
        make_stock_step,
        stock_dp_adam,
    )
    from tfpriv.dp_training.sampler import PhysicalBatch, PoissonSampler
    from tfpriv.dp_training.trainer import DPTrainer

__all__ = [
    "ClippingEngine",
    "CyclicSampler",
    "DPKerasAdamOptimizer",
    "DPModel",
    "DPTrainer",
    "PhysicalBatch",
    "PoissonSampler",
    "engine_names",
    "gaussian_noise",
    "make_engine",
    "make_stock_step",
    "register_engine",
    "stock_dp_adam",
]

_HOMES = {
    "ClippingEngine": "clipping",
    "CyclicSampler": "cyclic_sampler",
    "DPKerasAdamOptimizer": "optimizer",
    "DPModel": "dp_model",
    "DPTrainer": "trainer",
    "PhysicalBatch": "sampler",
    "PoissonSampler": "sampler",
    "engine_names": "clipping",
    "gaussian_noise": "noise",
    "make_engine": "clipping",
    "make_stock_step": "optimizer",
    "register_engine": "clipping",
    "stock_dp_adam": "optimizer",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
