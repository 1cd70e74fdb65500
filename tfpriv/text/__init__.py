"""Text to ids and back: start with `tokenizer.py`.

`clean` is the one cleaning step, `Tokenizer` splits a text, `Vocabulary` numbers the
tokens, `metrics` says how diverse generated text is, `prior` is the public language
model that private counts tilt.
"""

from tfpriv.text.cleaning import canonical, clean
from tfpriv.text.prior import LanguagePrior
from tfpriv.text.tokenizer import Tokenizer
from tfpriv.text.vocabulary import Vocabulary

__all__ = ["LanguagePrior", "Tokenizer", "Vocabulary", "canonical", "clean"]
