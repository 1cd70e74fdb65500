"""One release for each record, whatever comes in and however often work is redone."""

from __future__ import annotations

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.transforms.window import FixedWindows, TimestampedValue

import tfpriv.beam.privatize as module
from tests.beam.models import DIMENSION
from tests.beam.pipelines import (
    FailOnce,
    See,
    as_bytes,
    privatized,
    run,
    seen,
)
from tfpriv._errors import InputError
from tfpriv.beam import Privatize
from tfpriv.beam.exported_model import find_model

SECRET = "my secret"


def test_each_key_is_released_once_and_its_copies_are_dead_letters(model):
    elements = [(f"k{n % 50}", f"{SECRET} {n}") for n in range(120)]
    releases, letters, counters = privatized(model, elements)
    assert sorted(key for key, _ in releases) == sorted(f"k{n}" for n in range(50))
    assert all(vector.shape == (DIMENSION,) for _, vector in releases)
    assert all(vector.dtype == np.float32 for _, vector in releases)
    assert len(letters) == 70
    assert {letter.reason for letter in letters} == {
        "the key came before: a record is released once"
    }
    assert SECRET not in repr(letters)
    assert counters == {"released": 50, "dead_letters": 70}


def test_a_key_in_two_windows_is_one_record(model):
    def build(pipeline):
        elements = [TimestampedValue(("k", "text"), second) for second in (0, 1000)]
        windowed = pipeline | beam.Create(elements) | beam.WindowInto(FixedWindows(10))
        made = windowed | Privatize(model)
        _ = made.releases | beam.ParDo(See("release"))
        _ = made.dead_letters | "Letters" >> beam.ParDo(See("letter"))

    run(build)
    assert len(seen("release")) == len(seen("letter")) == 1


BAD = {
    "not UTF-8": (("k", b"\xff" + SECRET.encode()), "k", "not UTF-8"),
    "no text": (("k", 3.5), "k", "no text, but float"),
    "nothing": (("k", None), "k", "no text, but NoneType"),
    "too long": (("k", SECRET * 20), "k", "longer than 100 characters"),
    "a key that is no text": ((7, SECRET), None, "no text as the key, but int"),
    "an empty key": (("", SECRET), None, "the key is empty"),
    "no pair": (SECRET, None, "no (key, text), but str"),
    "three": ((SECRET, SECRET, SECRET), None, "no (key, text), but tuple"),
    "refused": (("k", "refused"), "k", "the model refused"),
    "not finite": (("k", "not finite"), "k", "no finite representation"),
}


def test_bad_records_are_dead_letters_and_the_others_are_released(model):
    good = [(f"good{n}", text) for n, text in enumerate(["hi", "", b"hi", "a\0b"])]
    # Keys of their own, so that none is a copy.
    bad = []
    for name, (element, key, _) in BAD.items():
        bad.append((name, element[1]) if key == "k" else element)
    releases, letters, counters = privatized(model, good + bad, max_chars=100)
    assert sorted(key for key, _ in releases) == sorted(key for key, _ in good)
    assert counters == {"released": 4, "dead_letters": len(BAD)}
    found = {letter.key: letter.reason for letter in letters if letter.key}
    for name, (_, key, reason) in BAD.items():
        if key == "k":
            assert reason in found[name]
        else:
            assert any(reason in letter.reason for letter in letters)
    assert SECRET not in repr(letters)


def test_without_keys_every_element_is_a_record(model):
    releases, letters, _ = privatized(model, ["hi", "hi", 3], keyed=False)
    assert len(releases) == 2
    assert not np.array_equal(*releases)
    assert [letter.key for letter in letters] == [None]


def test_batches_are_not_larger_than_asked(model):
    def build(pipeline):
        texts = pipeline | beam.Create([str(n) for n in range(50)])
        _ = texts | Privatize(model, keyed=False, batch_size=4)

    found = run(build).metrics().query()["distributions"]
    (sizes,) = [d for d in found if d.key.metric.namespace == "tfpriv"]
    assert 1 < sizes.committed.max <= 4
    assert sizes.committed.sum == 50


@pytest.mark.parametrize("mode", ["multi_threading", "multi_processing"])
@pytest.mark.slow
def test_several_workers_release_each_key_once(model, mode, tmp_path):
    elements = [(f"k{n % 300}", f"text {n}") for n in range(400)]

    def build(pipeline):
        made = pipeline | beam.Create(elements) | Privatize(model)
        keys = made.releases | beam.Keys()
        _ = keys | beam.io.WriteToText(f"{tmp_path}/keys")
        _ = (
            made.dead_letters
            | beam.Map(lambda x: x.key)
            | "Letters" >> (beam.io.WriteToText(f"{tmp_path}/letters"))
        )

    run(build, "--direct_num_workers", "3", "--direct_running_mode", mode)

    def lines(name):
        files = tmp_path.glob(f"{name}-*")
        return [line for file in files for line in file.read_text().split()]

    assert sorted(lines("keys")) == sorted({key for key, _ in elements})
    assert len(lines("letters")) == 100


def test_a_worker_that_dies_in_the_middle_costs_no_second_release(model):
    """This runner tries a bundle again, as a cluster does."""

    def build(pipeline):
        texts = pipeline | beam.Create([(f"k{n}", "text") for n in range(20)])
        made = texts | "Dies" >> beam.ParDo(FailOnce()) | Privatize(model)
        _ = made.releases | beam.GroupByKey() | beam.ParDo(See("release"))

    run(build, runner=BundleBasedDirectRunner())
    assert len(seen("tried")) > 20  # it did die
    assert sorted(key for key, _ in seen("release")) == sorted(
        f"k{n}" for n in range(20)
    )
    assert all(len(list(vectors)) == 1 for _, vectors in seen("release"))


def attempts(model):
    """What each of two attempts of a step behind the transform reads, by key."""
    releases, _, _ = privatized(
        model,
        [(f"k{n}", "text") for n in range(20)],
        "--direct_runner_bundle_repeat",
        "1",
    )
    assert len(releases) == 40
    drawn = {}
    for key, vector in releases:
        drawn.setdefault(key, []).append(vector.tobytes())
    return drawn


def check_a_retry_behind_the_noise_reads_the_same_draws(model):
    for first, second in attempts(model).values():
        assert first == second


def test_a_retry_behind_the_noise_reads_the_same_draws(model):
    check_a_retry_behind_the_noise_reads_the_same_draws(model)


class NoBarrier(beam.PTransform):
    def expand(self, elements):
        return elements | beam.Map(lambda element: element)


def test_a_twin_without_the_barrier_draws_again(model, monkeypatch):
    monkeypatch.setattr(module.beam, "Reshuffle", NoBarrier)
    with pytest.raises(AssertionError):
        check_a_retry_behind_the_noise_reads_the_same_draws(model)


def check_two_runs_differ_in_every_vector(model):
    elements = [(f"k{n}", f"text {n}") for n in range(100)]
    first, second = (as_bytes(privatized(model, elements)[0]) for _ in range(2))
    assert first.keys() == second.keys() == dict(elements).keys()
    assert all(first[key] != second[key] for key in first)
    # And so do equal texts of one run.
    same = privatized(model, [(key, "text") for key, _ in elements])[0]
    assert len(set(as_bytes(same).values())) == 100


def test_two_runs_differ_in_every_vector(model):
    check_two_runs_differ_in_every_vector(model)


def test_a_twin_whose_noise_replays_is_rejected(twin):
    with pytest.raises(AssertionError):
        check_two_runs_differ_in_every_vector(twin)


def test_a_model_that_draws_from_a_seed_is_refused(tmp_path):
    import tensorflow as tf

    from tests.beam.models import save_model

    def seeded(text):
        return tf.cast(tf.random.uniform([tf.size(text), DIMENSION]) * 2**24, tf.uint32)

    with pytest.raises(InputError, match="draws from a seed"):
        Privatize(save_model(tmp_path / "seeded", seeded))


def test_an_unbounded_collection_is_refused(model):
    from apache_beam.testing.test_stream import TestStream

    pipeline = beam.Pipeline()
    with pytest.raises(InputError, match="unbounded"):
        _ = pipeline | TestStream() | Privatize(model)


@pytest.mark.parametrize(
    ("settings", "word"),
    [({"batch_size": 0}, "batch_size"), ({"max_chars": -1}, "max_chars")],
)
def test_bad_settings_are_refused(model, settings, word):
    with pytest.raises(InputError, match=word):
        Privatize(model, **settings)


def test_no_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="tfpriv export"):
        Privatize(tmp_path)


def test_a_damaged_model_is_refused(model, tmp_path):
    import shutil

    copy = shutil.copytree(model, tmp_path / "copy")
    (copy / "1" / "assets.extra" / "privacy.json").write_text("{")
    with pytest.raises(InputError, match=r"privacy\.json"):
        find_model(copy)


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("index", lambda path: path.unlink()),
        ("index", lambda path: path.write_bytes(b"x")),
        ("data-00000-of-00001", lambda path: path.unlink()),
        ("data-00000-of-00001", lambda path: path.write_bytes(b"x")),
        ("data-00000-of-00001", flip),
    ],
)
def test_damaged_weights_are_refused_before_anything_is_paid(
    model, tmp_path, name, damage
):
    import shutil

    copy = shutil.copytree(model, tmp_path / "copy")
    damage(copy / "1" / "variables" / f"variables.{name}")
    with pytest.raises(InputError, match="variables"):
        find_model(copy)


def test_a_generator_is_refused(model, tmp_path):
    import json
    import shutil

    copy = shutil.copytree(model, tmp_path / "copy")
    path = copy / "1" / "assets.extra" / "privacy.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "kind": "generator"}))
    with pytest.raises(InputError, match="generator"):
        find_model(copy)


def test_the_highest_version_is_taken_and_a_version_can_be_named(model, tmp_path):
    import shutil

    for version in ("2", "10"):
        shutil.copytree(model / "1", tmp_path / version)
    assert find_model(tmp_path).folder == f"{tmp_path}/10"
    assert find_model(tmp_path / "2").folder == f"{tmp_path}/2"
