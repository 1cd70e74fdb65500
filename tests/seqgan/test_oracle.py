"""The oracle: normal weights, and nothing beats its own entropy."""

import numpy as np
import pytest

from tfpriv.seqgan import Generator, entropy, make_oracle, share_of_gap_closed


def test_every_weight_is_standard_normal():
    weights = np.concatenate([w.ravel() for w in make_oracle(seed=1).get_weights()])
    assert weights.mean() == pytest.approx(0, abs=0.01)
    assert weights.std() == pytest.approx(1, abs=0.01)
    for weight in make_oracle(200, 5, seed=1).get_weights():
        assert weight.std() == pytest.approx(1, abs=0.3)


def test_no_model_codes_the_oracles_samples_in_fewer_nats_than_the_oracle():
    oracle = make_oracle(30, 5, 4, 4, seed=0)
    samples = oracle.sample(2_000, seed=1)
    other = Generator(30, 5, 4, 4, start_id=0, end_id=None, seed=2)
    assert oracle.nll(samples) < other.nll(samples)
    assert entropy(oracle, 2_000, seed=3) == pytest.approx(oracle.nll(samples), abs=0.1)


def test_the_share_runs_from_mle_to_the_entropy():
    assert share_of_gap_closed(9.0, mle=9.0, oracle_entropy=5.0) == 0
    assert share_of_gap_closed(5.0, mle=9.0, oracle_entropy=5.0) == 1
    assert share_of_gap_closed(10.0, mle=9.0, oracle_entropy=5.0) == -0.25
