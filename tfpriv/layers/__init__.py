"""Keras layers between a private text and what is released of it.

`laplace_noise.py` is the file to read first, then `random_mask.py`. `RandomMask`,
`LaplaceNoise` and `RandomizedResponseCode` draw: fresh noise on each call, in training
and inference, after every reload, under the assumption `RANDOMNESS_ASSUMPTION`.
`MinMaxScale` and `L1Clip` bring a vector into a domain; `GradientReversal` and
`SequencePooling` are what the methods are built from.
"""

from tfpriv.layers._randomness import RANDOMNESS_ASSUMPTION
from tfpriv.layers.gradient_reversal import GradientReversal
from tfpriv.layers.l1_clip import L1Clip
from tfpriv.layers.laplace_noise import LaplaceNoise
from tfpriv.layers.min_max_scale import MinMaxScale
from tfpriv.layers.pooling import SequencePooling
from tfpriv.layers.random_mask import RandomMask
from tfpriv.layers.randomized_response_code import RandomizedResponseCode

__all__ = [
    "RANDOMNESS_ASSUMPTION",
    "GradientReversal",
    "L1Clip",
    "LaplaceNoise",
    "MinMaxScale",
    "RandomMask",
    "RandomizedResponseCode",
    "SequencePooling",
]
