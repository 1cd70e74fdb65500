"""The same release over a corpus of any size, on Apache Beam.

`Privatize` is the transform: texts in, private representations out, one for each
record. `privatize_corpus` is the whole pipeline from files to files, and
`python -m tfpriv.beam` its command. What a model promises is read beside it, by
`tfpriv.serving.ExportedModel`. Apache Beam is imported when one of them is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tfpriv.beam._require import require_beam

if TYPE_CHECKING:
    from tfpriv.beam.corpus import privatize_corpus
    from tfpriv.beam.privatize import Privatize

__all__ = ["Privatize", "privatize_corpus"]

_HOMES = {
    "Privatize": "tfpriv.beam.privatize",
    "privatize_corpus": "tfpriv.beam.corpus",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        require_beam()
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tfpriv.beam' has no attribute {name!r}")
