import math

import numpy as np
import pytest

from tfpriv.accounting._gaussian_losses import gaussian_losses


@pytest.mark.parametrize("rate", [1.0, 0.999, 0.5, 64 / 1956, 1e-3, 1e-9])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0, 100.0])
def test_distributions_are_those_of_dp_accounting(sigma, rate):
    from dp_accounting.pld import privacy_loss_distribution

    expected = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, value_discretization_interval=5e-3, sampling_prob=rate
    )
    # Of theirs the larger of both directions is shown.
    found = [gaussian_losses(sigma, rate, 5e-3, added=way) for way in (False, True)]
    for epsilon in (-0.5, 0.0, 0.01, 0.3, 1.0, 4.0):
        np.testing.assert_allclose(
            max(way.get_delta_for_epsilon(epsilon) for way in found),
            expected.get_delta_for_epsilon(epsilon),
            rtol=1e-9,
            atol=1e-14,
        )
    for delta in (1e-3, 1e-6):
        prices = [way.self_compose(7).get_epsilon_for_delta(delta) for way in found]
        assert max(prices) == pytest.approx(
            expected.self_compose(7).get_epsilon_for_delta(delta), rel=1e-6, abs=1e-9
        )


@pytest.mark.filterwarnings("error")
def test_wide_losses_neither_overflow_nor_warn():
    found = gaussian_losses(0.02, 0.3, 0.5)
    assert math.isfinite(found.get_epsilon_for_delta(1e-5))
