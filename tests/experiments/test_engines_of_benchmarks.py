"""That the private steps which are timed are those of the engine they are named for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
from experiments.benchmarks import contests
contests.full_discriminator(0)[contests.PRIVATE]()
"""
# A table that is a matrix as well: no closed form.
TWIN = """
from tests.dp_training.test_bookkeeping_engine import tied
from tests.dp_training import models
import tensorflow as tf
from tfpriv.dp_training import make_engine
engine = make_engine("bookkeeping", tied(), models.cross_entropy, 1.0)
ids = tf.zeros([2, 5], tf.int32)
engine.clipped_sum((ids, tf.zeros([2], tf.int32)), tf.ones([2], bool))
"""


def falls_back(code: str, threads: int) -> bool:
    made = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TF_NUM_INTRAOP_THREADS": str(threads)},
        capture_output=True,
        text=True,
        check=True,
    )
    return "falls back to the loop" in made.stderr


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_the_full_discriminator_stays_off_the_loop_whatever_threads_there_are(threads):
    # A BERT of 21 pieces may not: there it hangs on the processor's matrix products.
    assert not falls_back(CODE, threads)


def test_a_model_without_a_closed_form_is_noticed():
    assert falls_back(TWIN, 1)
