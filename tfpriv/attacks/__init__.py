"""Whether a guarantee holds against those who try: start with `attribute_inference.py`.

Attacks read private records, so that what they find is internal: it has no epsilon, and
it never chooses, filters or tunes what is released. An attack that fails proves
nothing; one that succeeds does.

The names below are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfpriv.attacks.attribute_inference import AttributeInferenceAttack
    from tfpriv.attacks.attribute_inference_result import (
        AttackerScore,
        AttributeInferenceResult,
    )
    from tfpriv.attacks.estimate import Estimate

__all__ = [
    "AttackerScore",
    "AttributeInferenceAttack",
    "AttributeInferenceResult",
    "Estimate",
]

_HOMES = {
    "AttackerScore": "attribute_inference_result",
    "AttributeInferenceAttack": "attribute_inference",
    "AttributeInferenceResult": "attribute_inference_result",
    "Estimate": "estimate",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        module = importlib.import_module(f"tfpriv.attacks.{_HOMES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
