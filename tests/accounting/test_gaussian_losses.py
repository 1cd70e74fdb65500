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
    found = gaussian_losses(sigma, rate, 5e-3)
    for epsilon in (-0.5, 0.0, 0.01, 0.3, 1.0, 4.0):
        np.testing.assert_allclose(
            found.get_delta_for_epsilon(epsilon),
            expected.get_delta_for_epsilon(epsilon),
            rtol=1e-9,
            atol=1e-14,
        )
    for delta in (1e-3, 1e-6):
        assert found.self_compose(7).get_epsilon_for_delta(delta) == pytest.approx(
            expected.self_compose(7).get_epsilon_for_delta(delta), rel=1e-6, abs=1e-9
        )


@pytest.mark.filterwarnings("error")
def test_wide_losses_neither_overflow_nor_warn():
    found = gaussian_losses(0.02, 0.3, 0.5)
    assert math.isfinite(found.get_epsilon_for_delta(1e-5))
