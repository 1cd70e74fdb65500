"""Pipelines of the tests: what they made is read back from lists."""

from __future__ import annotations

import logging

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from tfpriv.beam import Privatize

# Filled by steps that run in this process, whoever pickled them.
SEEN: list = []


class See(beam.DoFn):
    """Notes what passes; every attempt of it."""

    def __init__(self, name):
        self._name = name

    def process(self, element):
        SEEN.append((self._name, element))
        yield element


class FailOnce(beam.DoFn):
    """Dies in the middle of its work, the first time."""

    def process(self, element):
        SEEN.append(("tried", None))
        if len([name for name, _ in SEEN if name == "tried"]) == 3:
            raise OSError("the worker was killed")
        yield element


def seen(name):
    return [element for kind, element in SEEN if kind == name]


def run(build, *options, runner=None):
    """Runs the pipeline that `build` makes; returns its result."""
    SEEN.clear()
    logging.disable(logging.CRITICAL)
    try:
        pipeline = beam.Pipeline(
            runner=runner or FnApiRunner(), options=PipelineOptions(list(options))
        )
        build(pipeline)
        result = pipeline.run()
        result.wait_until_finish()
    finally:
        logging.disable(logging.NOTSET)
    return result


def privatized(model, elements, *options, runner=None, **settings):
    """Returns (releases, dead letters) of elements, and the counters."""

    def build(pipeline):
        made = pipeline | beam.Create(elements) | Privatize(model, **settings)
        _ = made.releases | "SeeReleases" >> beam.ParDo(See("release"))
        _ = made.dead_letters | "SeeLetters" >> beam.ParDo(See("letter"))

    result = run(build, *options, runner=runner)
    counters = {
        found.key.metric.name: found.committed
        for found in result.metrics().query()["counters"]
        if found.key.metric.namespace == "tfpriv"
    }
    return seen("release"), seen("letter"), counters


def as_bytes(releases):
    """Representations as something to compare, by key."""
    return {key: np.asarray(vector).tobytes() for key, vector in releases}
