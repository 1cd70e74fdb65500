"""What a design states is no less than what its layers do."""

from __future__ import annotations

import pytest

from tfpriv.accounting import LaplaceCertificate
from tfpriv.accounting.masking import masked_words
from tfpriv.layers import LaplaceNoise, RandomMask


def assert_covers(certificate, layer):
    """Of the certificate's epsilon, beside a delta that nobody will live to see."""
    assert layer.epsilon(certificate.dimension) <= certificate.record_epsilon
    assert layer.tail_delta(certificate.dimension) < 1e-30


@pytest.mark.parametrize("dimension", [1, 16, 384])
@pytest.mark.parametrize("domain", ["l1_ball", "unit_box"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_noise_costs_no_more_than_is_certified(dimension, domain, epsilon):
    radius = 1.0 if domain == "l1_ball" else None
    certificate = LaplaceCertificate.from_epsilon(
        epsilon, dimension, domain, radius=radius
    )
    assert_covers(certificate, LaplaceNoise(certificate.scale, domain=domain))
    # A layer with a hair less noise is found out.
    with pytest.raises(AssertionError):
        assert_covers(
            certificate, LaplaceNoise(0.999 * certificate.scale, domain=domain)
        )


@pytest.mark.parametrize("rate", [0.1, 0.29, 1 / 3, 0.5, 0.7])
def test_as_many_words_are_masked_as_is_certified(rate):
    layer = RandomMask(rate, 4, continuation=[])
    assert [layer.num_masked(n) for n in range(200)] == [
        masked_words(rate, n) for n in range(200)
    ]
