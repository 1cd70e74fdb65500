"""The linear baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfpriv._errors import InputError
from tfpriv._validation import positive
from tfpriv.datasets import TextDataset
from tfpriv.evaluation._labels import accuracy, require_labelled
from tfpriv.text import Tokenizer


class LogisticRegressionClassifier:
    """Logistic regression on tf-idf weights of the library's tokens.

    The term frequency is 1 + ln(tf), the rows have Euclidean norm 1 (scikit-learn's
    `TfidfVectorizer(sublinear_tf=True)`); every token of the training texts counts.

    Args:
        c: float. The inverse weight of the L2 penalty.
        seed: int. There for likeness with the networks: the fit is deterministic.
    """

    def __init__(self, *, c: float = 10.0, seed: int = 0) -> None:
        positive(c=c)
        self.c = c
        self.seed = seed

    def fit(self, train: TextDataset) -> LogisticRegressionClassifier:
        """Trains on labelled texts.

        Raises:
            InputError: there are no texts or no labels, or no text has a token.
        """
        from sklearn.dummy import DummyClassifier
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        require_labelled(train, "train")
        model: Any = LogisticRegression(C=self.c, max_iter=1000)
        if len(train.label_names) == 1:
            model = DummyClassifier(strategy="most_frequent")
        vectors = TfidfVectorizer(analyzer=Tokenizer().tokenize, sublinear_tf=True)
        self.pipeline_ = make_pipeline(vectors, model)
        try:
            self.pipeline_.fit(train.texts, train.labels)
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            raise InputError(
                "Expected at least one token in train, received texts without any."
            ) from None
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Returns a label for each text."""
        return [str(label) for label in self.pipeline_.predict(list(texts))]

    def score(self, test: TextDataset) -> float:
        """Returns the share of texts whose label is predicted."""
        require_labelled(test, "test")
        return accuracy(self.predict(test.texts), test.labels)
