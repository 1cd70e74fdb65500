"""How good synthetic text is: start with `downstream.py`.

`downstream.py` trains the same classifiers on every version of a data set and tests
them on real text: `logistic_regression.py`, `text_cnn.py` and `rnn.py`, the last two
on the training loop of `network.py`. `text_quality.py` says how much a text looks
like language.

The names below are loaded on first use, so that importing the package does not
import TensorFlow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfpriv.evaluation.downstream import Classifier, evaluate, measure, summarise
    from tfpriv.evaluation.logistic_regression import LogisticRegressionClassifier
    from tfpriv.evaluation.network import NetworkClassifier
    from tfpriv.evaluation.rnn import RNNClassifier
    from tfpriv.evaluation.text_cnn import TextCNNClassifier
    from tfpriv.evaluation.text_quality import PublicPerplexity, shuffled

__all__ = [
    "Classifier",
    "LogisticRegressionClassifier",
    "NetworkClassifier",
    "PublicPerplexity",
    "RNNClassifier",
    "TextCNNClassifier",
    "evaluate",
    "measure",
    "shuffled",
    "summarise",
]

_HOMES = {
    "Classifier": "downstream",
    "LogisticRegressionClassifier": "logistic_regression",
    "NetworkClassifier": "network",
    "PublicPerplexity": "text_quality",
    "RNNClassifier": "rnn",
    "TextCNNClassifier": "text_cnn",
    "evaluate": "downstream",
    "measure": "downstream",
    "shuffled": "text_quality",
    "summarise": "downstream",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        module = importlib.import_module(f"tfpriv.evaluation.{_HOMES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
