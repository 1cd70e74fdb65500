"""How good synthetic text is: start with `downstream.py`.

`downstream.py` trains the same classifiers on every version of a data set and tests
them on real text: `logistic_regression.py`, `text_cnn.py` and `rnn.py`, the last two
on the training loop of `network.py`. `utility.py` puts real and synthetic rows
beside one another, with intervals; `mixtures.py` adds the ones to the others in steps.

`quality.py` measures a text without a task: `text_statistics.py` (sizes, diversity),
`text_quality.py` (how much it looks like language), `divergence.py` on
`embeddings.py` (how far it is from real text).

`report.py` makes one page of a run: `report_run.py` reads it, `report_guarantee.py`,
`report_text.py` and `report_attacks.py` are its chapters, `report_plots.py` its
pictures, `report_blocks.py` and `templates/` how it looks.

The names below are loaded on first use, so that importing the package does not
import TensorFlow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfpriv.evaluation.divergence import mauve
    from tfpriv.evaluation.downstream import Classifier, evaluate, measure, summarise
    from tfpriv.evaluation.embeddings import minilm_embeddings
    from tfpriv.evaluation.logistic_regression import LogisticRegressionClassifier
    from tfpriv.evaluation.mixtures import mix
    from tfpriv.evaluation.network import NetworkClassifier
    from tfpriv.evaluation.quality import TextQuality, measure_quality
    from tfpriv.evaluation.rnn import RNNClassifier
    from tfpriv.evaluation.text_cnn import TextCNNClassifier
    from tfpriv.evaluation.text_quality import PublicPerplexity, shuffled
    from tfpriv.evaluation.utility import Utility, measure_utility

__all__ = [
    "Classifier",
    "LogisticRegressionClassifier",
    "NetworkClassifier",
    "PublicPerplexity",
    "RNNClassifier",
    "TextCNNClassifier",
    "TextQuality",
    "Utility",
    "evaluate",
    "mauve",
    "measure",
    "measure_quality",
    "measure_utility",
    "minilm_embeddings",
    "mix",
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
    "TextQuality": "quality",
    "Utility": "utility",
    "evaluate": "downstream",
    "mauve": "divergence",
    "measure": "downstream",
    "measure_quality": "quality",
    "measure_utility": "utility",
    "minilm_embeddings": "embeddings",
    "mix": "mixtures",
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
