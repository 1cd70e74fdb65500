from __future__ import annotations

import numpy as np
import pytest

from tfpriv._errors import InputError
from tfpriv.dp_training import gaussian_noise


def test_shapes_and_types_are_kept():
    scalar, matrix, empty = gaussian_noise([(), (2, 3), (0, 4)], 1.0)
    assert (scalar.shape, matrix.shape, empty.shape) == ((), (2, 3), (0, 4))
    assert matrix.dtype == np.float32
    assert gaussian_noise([(2,)], 1.0, dtype="float64")[0].dtype == np.float64


def test_no_standard_deviation_is_no_noise():
    assert not np.any(gaussian_noise([(5,)], 0.0)[0])


@pytest.mark.parametrize("stddev", [-1.0, float("nan"), float("inf")])
def test_a_bad_standard_deviation_is_refused(stddev):
    with pytest.raises(InputError, match="stddev"):
        gaussian_noise([(5,)], stddev)


def test_half_precision_noise_is_refused():
    with pytest.raises(InputError, match="dtype"):
        gaussian_noise([(5,)], 1.0, dtype="float16")
