"""From records to synthetic records and a statement, as a user has it."""

import dataclasses
import errno
import itertools
import json
import os
import pathlib
import re
import stat

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from tests.seqgan.small_release import (
    EPSILON,
    HAM,
    LABELS,
    SECRET,
    SETTINGS,
    SPAM,
    TEXTS,
    Killed,
    small_world,
)
from tfpriv._errors import InputError
from tfpriv.cli.run_folder import RunFolder
from tfpriv.datasets import TextDataset
from tfpriv.seqgan import dp_seqgan, seed_model
from tfpriv.seqgan.dp_seqgan import DPSeqGAN
from tfpriv.seqgan.published import PublishedSettings
from tfpriv.seqgan.run_store import RunStore
from tfpriv.text.prior import LanguagePrior

ENGLISH = LanguagePrior.load


@pytest.fixture(scope="module")
def world():
    with small_world():
        yield


def dataset(texts=TEXTS, labels=LABELS, **columns):
    labels = None if labels is None else tuple(labels)
    return TextDataset(tuple(texts), labels, None, **columns)


def fit(data=None, *, run_dir=None, steps=0, **settings):
    settings = {"epsilon": EPSILON, "settings": SETTINGS, **settings}
    model = DPSeqGAN(discriminator_steps=steps, **settings)
    return model.fit(
        data or dataset(), run_dir=run_dir, report=lambda stage, done: None
    )


@pytest.fixture(scope="module")
def model(world):
    return fit(dataset(text_column="CONTENT", label_column="CLASS"))


@pytest.fixture(scope="module")
def stages():
    return []


@pytest.fixture(scope="module")
def with_networks(world, stages):
    model = DPSeqGAN(EPSILON, discriminator_steps=1, settings=SETTINGS, labels=["ham"])
    return model.fit(dataset(), report=lambda *stage: stages.append(stage))


class Stub:
    """A fitted method of given class sizes."""

    labels = ("ham", "spam", "rare")

    def __init__(self, sizes):
        self.class_sizes = np.array(sizes, float)

    def sample(self, number, count, seed):
        return [f"{number} {i}" for i in range(count)]


def written(sizes, rows):
    model = DPSeqGAN()
    model.method = Stub(sizes)
    data = model.generate(rows)
    return [data.labels.count(name) for name in Stub.labels]


# --- Synthetic records -------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "rows", "expected"),
    [
        ([30, 10, 0], 8, [6, 2, 0]),
        ([30, 10, 0], 1, [1, 0, 0]),
        ([1, 1, 1], 100, [34, 33, 33]),
        ([0, 0, 0], 9, [3, 3, 3]),
        ([30.4, 9.9, 0.0], None, [30, 10, 0]),
        ([0, 0, 0], None, [1, 0, 0]),
    ],
)
def test_labels_come_in_the_proportion_of_the_noisy_counts(sizes, rows, expected):
    assert written(sizes, rows) == expected


@hypothesis.given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=8).filter(sum),
    st.integers(1, 10**6),
)
def test_rows_are_shared_out_to_the_last_and_to_the_nearest(sizes, rows):
    share = np.array(sizes) / sum(sizes)
    counts = dp_seqgan._apportion(share, rows)
    assert counts.sum() == rows
    assert np.all(np.abs(counts - share * rows) < 1 + 1e-6)


def test_classes_are_mixed():
    model = DPSeqGAN()
    model.method = Stub([50, 50, 0])
    labels = model.generate(100).labels
    changes = sum(a != b for a, b in itertools.pairwise(labels))
    assert changes > 20


def test_the_columns_have_their_own_names_and_there_is_no_other(model):
    data = model.generate(10)
    assert (data.text_column, data.label_column) == ("CONTENT", "CLASS")
    assert data.groups is None
    assert set(data.labels) <= {"ham", "spam"}


def test_without_a_number_of_rows_it_is_the_noisy_one(model):
    assert len(model.generate()) == round(model.method.class_sizes.sum())


@pytest.mark.parametrize("rows", [0, -1, 2.5])
def test_a_number_of_rows_that_is_none_is_refused(model, rows):
    with pytest.raises(InputError, match="rows"):
        model.generate(rows)


def test_the_same_seed_writes_the_same_texts_and_noise_has_none(model):
    assert model.generate(30, seed=4).texts == model.generate(30, seed=4).texts
    assert model.generate(30, seed=4).texts != model.generate(30, seed=5).texts
    again = fit()
    tokens = model.method.seed_model.counts.tokens
    assert not np.any(again.method.seed_model.counts.tokens == tokens)


def test_a_word_that_is_not_public_never_comes(world, monkeypatch):
    # With the English that is shipped, not that of the small world.
    monkeypatch.setattr(LanguagePrior, "load", ENGLISH)
    monkeypatch.setattr(seed_model, "NUM_PAIR_TOKENS", 10)
    texts = [*TEXTS, f"my password is {SECRET}"]
    model = fit(dataset(texts, [*LABELS, "ham"]), epsilon=100.0)
    english = model.method.prior.vocabulary
    assert len(english) > 5000
    assert SECRET not in english.index
    found = {w for t in model.generate(300).texts for w in t.lower().split()}
    assert "channel" in found
    assert not any(SECRET in word for word in found)


# --- What it costs -----------------------------------------------------------


def test_the_statement_covers_everything_within_the_epsilon_asked_for(with_networks):
    statement = with_networks.privacy_statement()
    assert 0.95 * EPSILON < statement.epsilon <= EPSILON
    value = statement.to_json()
    assert len(value["covers"]) == len(value["events"]) == 4
    persons, releases = value["not_covered"]
    assert "group privacy" in persons
    assert "epsilons add up" in releases
    assert any("noise is drawn as float64" in a for a in value["assumptions"])


def test_the_statement_holds_no_number_of_records(world):
    data = dataset([*SPAM * 23, *HAM * 14], ["spam"] * 69 + ["ham"] * 42)
    statement = fit(data).privacy_statement()
    text = json.dumps(statement.to_json()) + str(statement)
    assert not set(re.findall(r"(?<![\w.])\d+(?![\w.])", text)) & {"69", "42", "111"}


def test_the_plan_adds_up_before_any_training():
    rows = DPSeqGAN(8.0, discriminator_steps=5).plan()
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    steps = {row["part"]: row["times"] for row in rows}
    assert steps == {
        "label names": 1,
        "tokens": 1,
        "lengths": 1,
        "pairs": 1,
        "discriminator": 5,
    }


def test_the_published_method_runs_here_and_has_no_guarantee(world):
    tiny = PublishedSettings(
        4, 50, 4, 4, 1, 4, discriminator_widths=(1,), discriminator_filters=2,
        discriminator_steps=1, rounds=0,
    )  # fmt: skip
    data = dataset(TEXTS[:6] + TEXTS[-6:], LABELS[:6] + LABELS[-6:])
    model = DPSeqGAN.paper(published=tiny).fit(data, report=lambda *_: None)
    assert "NO privacy guarantee" in str(model.privacy_statement())
    assert len(model.generate()) == 12


# --- Runs and files ----------------------------------------------------------


def test_the_report_goes_from_nothing_to_everything(with_networks, stages):
    shares = [done for _, done in stages]
    assert shares[0] == 0
    assert shares[-1] == 1
    assert shares == sorted(shares)
    assert "ham: adversarial" in dict(stages)


@pytest.mark.parametrize("chosen", ["seed", "adversarial"])
def test_a_loaded_model_is_the_one_that_was_saved(with_networks, chosen, tmp_path):
    with_networks.method.classes[0].chosen = chosen
    with_networks.save(tmp_path / "model")
    loaded = DPSeqGAN.load(tmp_path / "model")
    for seed in (None, 7):
        one, other = (m.generate(40, seed=seed) for m in (with_networks, loaded))
        assert one == other
    assert (
        loaded.privacy_statement().to_json()
        == with_networks.privacy_statement().to_json()
    )


@pytest.mark.parametrize("part", ["generator-0.keras", "counts.npz", "model.json"])
def test_a_save_that_fails_midway_leaves_the_model_that_was_there(
    with_networks, part, tmp_path, monkeypatch
):
    folder = tmp_path / "model"

    def fail(path, *_, **__):
        assert path.name == part
        path.write_bytes(b"PK")
        raise OSError(errno.ENOSPC, "No space left on device")

    def save_on_a_full_disk():
        with monkeypatch.context() as patch:
            if part == "model.json":
                patch.setattr(dp_seqgan, "write_json", fail)
            elif part == "counts.npz":
                patch.setattr(pathlib.Path, "write_bytes", _failing_for(part))
            else:
                generator = with_networks.method.classes[0].gan.generator
                patch.setattr(type(generator), "save", lambda _, path: fail(path))
            with pytest.raises(OSError, match="No space"):
                with_networks.save(folder)

    save_on_a_full_disk()
    assert list(tmp_path.iterdir()) == []
    with_networks.save(folder)
    save_on_a_full_disk()
    assert list(tmp_path.iterdir()) == [folder]
    assert DPSeqGAN.load(folder).generate(9) == with_networks.generate(9)


def _failing_for(name):
    write_bytes = pathlib.Path.write_bytes

    def failing(path, data):
        if path.name == name:
            write_bytes(path, b"PK")
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_bytes(path, data)

    return failing


def test_a_model_of_what_was_released_has_the_modes_of_the_umask(model, tmp_path):
    before = os.umask(0o022)
    try:
        model.save(tmp_path / "model")
        other = DPSeqGAN.seqgan()
        other.method = model.method
        other.save(tmp_path / "private")
    finally:
        os.umask(before)
    for name, mode in (("model", 0o644), ("private", 0o600)):
        modes = {stat.S_IMODE(f.stat().st_mode) for f in (tmp_path / name).iterdir()}
        assert modes == {mode}


def test_a_folder_without_a_whole_model_is_refused(model, tmp_path):
    with pytest.raises(InputError, match=r"DPSeqGAN\.save"):
        DPSeqGAN.load(tmp_path)
    model.save(tmp_path)
    for name, content in (("counts.npz", b"PK broken"), ("model.json", b"{}")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=r"DPSeqGAN\.save"):
            DPSeqGAN.load(tmp_path)


def test_a_run_folder_of_other_settings_is_refused(world, tmp_path):
    fit(run_dir=tmp_path)
    with pytest.raises(InputError, match="another epsilon"):
        fit(run_dir=tmp_path, epsilon=4.0)
    assert len(fit(run_dir=tmp_path).generate(3)) == 3


def ledger_of(run_dir):
    return RunStore(run_dir).ledger(limit_epsilon=EPSILON, delta=1e-5).events()


@pytest.mark.parametrize(
    "others",
    [
        dataset([*TEXTS[:-1], SECRET]),
        dataset(TEXTS[::-1], LABELS[::-1]),
        dataset(TEXTS[1:], LABELS[1:]),
        dataset(TEXTS, ["ham", *LABELS[1:]]),
    ],
    ids=["text", "order", "one less", "label"],
)
def test_a_run_goes_on_with_its_own_records_and_no_others(world, tmp_path, others):
    class HalfWay(Exception):
        pass

    def stop(stage, done):
        if stage == "seed corpus":
            raise HalfWay

    model = DPSeqGAN(EPSILON, discriminator_steps=0, settings=SETTINGS)
    with pytest.raises(HalfWay):
        model.fit(dataset(), run_dir=tmp_path, report=stop)
    charged = ledger_of(tmp_path)
    assert len(charged) == 4
    with pytest.raises(InputError, match="received others") as caught:
        fit(others, run_dir=tmp_path)
    assert SECRET not in str(caught.value)
    assert ledger_of(tmp_path) == charged
    assert len(fit(run_dir=tmp_path).generate(3)) == 3
    assert ledger_of(tmp_path) == charged


def test_the_command_and_the_api_seal_a_run_alike(world, tmp_path):
    with RunFolder(tmp_path / "run", zip(TEXTS, LABELS, strict=True)) as folder:
        fit(run_dir=folder.internal)
        with pytest.raises(InputError, match="received others"):
            fit(dataset(TEXTS[:-1], LABELS[:-1]), run_dir=folder.internal)
    RunFolder(tmp_path / "run", zip(TEXTS, LABELS, strict=True)).close()


def test_a_fit_that_is_broken_off_leaves_the_model_as_it_was(world):
    def broken_off(model):
        def report(stage, done):
            if stage == "seed corpus":
                raise Killed

        with pytest.raises(Killed):
            model.fit(dataset(), report=report)

    fresh = DPSeqGAN(discriminator_steps=0, settings=SETTINGS)
    broken_off(fresh)
    with pytest.raises(InputError, match="fitted"):
        fresh.generate(3)
    model = fit()
    before = model.generate(20).texts
    broken_off(model)
    assert model.generate(20).texts == before


# --- What cannot be used -----------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "columns", "message"),
    [
        ({}, {"labels": None}, "with labels"),
        ({}, {"labels": ["ham"] * len(TEXTS)}, "at least two labels"),
    ],
)
def test_data_that_cannot_be_used_is_refused_before_anything_is_paid(
    settings, columns, message, tmp_path
):
    with pytest.raises(InputError, match=message):
        fit(dataset(**columns), run_dir=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": float("nan")},
        {"epsilon": 0},
        {"delta": 1.0},
        {"delta": 1e-13},
        {"labels": []},
        {"labels": "ham"},
        {"mode": "fast"},
        {"seed": -1},
        {"discriminator_steps": -1},
    ],
    ids=str,
)
def test_settings_that_cannot_be_used_are_refused_at_once(settings):
    with pytest.raises(InputError):
        DPSeqGAN(**settings)


def test_settings_go_through_a_file_unchanged(model, tmp_path):
    changed = dataclasses.replace(SETTINGS, rounds=7, discriminator_widths=(1, 3))
    other = DPSeqGAN(3.0, settings=changed, labels=["ham", "spam"], seed=5)
    other.method = model.method
    other.save(tmp_path)
    loaded = DPSeqGAN.load(tmp_path)
    for name in ("epsilon", "delta", "labels", "seed", "settings", "mode", "published"):
        assert getattr(loaded, name) == getattr(other, name), name


def test_whether_a_declared_label_has_records_decides_nothing(world):
    data = dataset(["subscribe now"] * 9, ["spam"] * 9)
    model = fit(data, labels=["spam", "eggs"])
    assert model.method.labels == ("spam", "eggs")
    assert "declared public" in str(model.privacy_statement())


def test_a_model_says_what_it_is():
    assert repr(DPSeqGAN.paper()) == (
        "DPSeqGAN.paper(delta=1e-05, seed=0): no guarantee, not fitted"
    )
    assert repr(DPSeqGAN(2.5, labels=[SECRET, "b"])) == (
        "DPSeqGAN(epsilon=2.5, delta=1e-05, discriminator_steps=12, seed=0), "
        "2 declared labels, not fitted"
    )


def test_a_full_disk_is_no_damaged_model(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.read_text", full)
    with pytest.raises(OSError, match="full disk"):
        DPSeqGAN.load(tmp_path)
