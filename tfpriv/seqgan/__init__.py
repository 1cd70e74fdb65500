"""SeqGAN: sequence generation by policy gradient on a discriminator.

`generator.py` is the file to read first, then `seqgan.py`. `Generator` (LSTM) and
`Discriminator` (TextCNN) are Keras models; `SeqGAN` trains them; `rewards`, `rollout`
and `scores` say what a token was worth; `DiscriminatorStep` is the seam through which
a differentially private update enters; `make_oracle` is the judge of SeqGAN's
synthetic-data experiment.

The names below are loaded on first use, so that importing the package does not
import TensorFlow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfpriv.seqgan.discriminator import Discriminator
    from tfpriv.seqgan.discriminator_step import (
        DiscriminatorStep,
        PlainDiscriminatorStep,
        discriminator_losses,
    )
    from tfpriv.seqgan.generator import Generator
    from tfpriv.seqgan.highway import Highway
    from tfpriv.seqgan.oracle import entropy, make_oracle, share_of_gap_closed
    from tfpriv.seqgan.rewards import (
        advantages,
        constant_reward,
        make_reward,
        per_step_reward,
        rollout_reward,
    )
    from tfpriv.seqgan.rollout import complete_prefixes
    from tfpriv.seqgan.seqgan import Progress, SeqGAN

__all__ = [
    "Discriminator",
    "DiscriminatorStep",
    "Generator",
    "Highway",
    "PlainDiscriminatorStep",
    "Progress",
    "SeqGAN",
    "advantages",
    "complete_prefixes",
    "constant_reward",
    "discriminator_losses",
    "entropy",
    "make_oracle",
    "make_reward",
    "per_step_reward",
    "rollout_reward",
    "share_of_gap_closed",
]

_HOMES = {
    "Discriminator": "discriminator",
    "DiscriminatorStep": "discriminator_step",
    "Generator": "generator",
    "Highway": "highway",
    "PlainDiscriminatorStep": "discriminator_step",
    "Progress": "seqgan",
    "SeqGAN": "seqgan",
    "advantages": "rewards",
    "complete_prefixes": "rollout",
    "constant_reward": "rewards",
    "discriminator_losses": "discriminator_step",
    "entropy": "oracle",
    "make_oracle": "oracle",
    "make_reward": "rewards",
    "per_step_reward": "rewards",
    "rollout_reward": "rewards",
    "share_of_gap_closed": "oracle",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
