from __future__ import annotations

import json
import os
import shutil
import stat

import numpy as np
import pytest

from tests.cli.conftest import SECRET
from tests.cli.test_rmat_train import files
from tests.serving.models import encode, load
from tests.serving.servers import Model, serve_grpc, serve_rest
from tfpriv._errors import InputError

TEXTS = ["she is good", "", f"{SECRET} he was bad", "love"]


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    """The folder of a model, exported by the command."""
    from tfpriv.cli import main

    folder = tmp_path_factory.mktemp("saved_models") / "moods"
    before = files(trained[0])
    assert main.run(["export", str(trained[0]), str(folder)]) == 0
    assert files(trained[0]) == before
    return folder


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def quick_export(trained_model, monkeypatch):
    """Spares the command the loading of the run's model, which takes seconds."""
    monkeypatch.setattr("tfpriv.cli.export.load_model", lambda folder: trained_model)


# --- tfpriv export -------------------------------------------------------------


def test_a_run_becomes_a_model_that_answers(exported):
    signatures = load(exported / "1")
    assert encode(signatures, TEXTS).shape == (4, 2)
    labels = json.loads((exported / "1/assets.extra/labels.json").read_text())
    assert labels == ["bad", "good"]
    for path in (exported / "1").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_what_it_says(quick_export, trained, run, tmp_path):
    folder = tmp_path / "part"
    line = ["export", trained[0], folder, "--part", "server", "--version", "5"]
    code, out, err = run(*line)
    assert code == 0, err
    assert f"Wrote {folder / '5'}" in out
    assert "signatures: classify, serving_default" in out
    assert "epsilon 4" in out
    assert "without a guarantee" in err
    assert SECRET not in out + err
    code, out, err = run(*line[:3], "--part", "server", "--json")
    told = json.loads(out)
    assert told["folder"] == str(folder / "6")
    assert told["part"] == "server"
    assert told["statement"]["epsilon"] == pytest.approx(4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--part", "both"], "part"),
        (["--version", "0"], "version=0"),
    ],
)
def test_a_wrong_option_is_refused(trained, refused, tmp_path, options, words):
    assert words in refused("export", trained[0], tmp_path / "m", *options)
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_cannot_be_used_is_refused(trained, refused, exported, tmp_path):
    (tmp_path / "notes.txt").write_text("")
    assert "notes.txt" in refused("export", trained[0], tmp_path)
    inside = trained[0] / "release" / "model"
    assert "outside the run" in refused("export", trained[0], inside)
    again = refused("export", trained[0], exported, "--version", "1")
    assert "version=1" in again
    if os.getuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        assert "written" in refused("export", trained[0], tmp_path / "closed" / "m")


def test_a_folder_without_a_finished_run_is_refused(refused, tmp_path):
    assert "finished run" in refused("export", tmp_path / "none", tmp_path / "m")
    run = tmp_path / "run" / "internal"
    run.mkdir(parents=True)
    (run / "config.json").write_text('{"command": "rmat train"}')
    assert "has ended" in refused("export", run.parent, tmp_path / "m")


def test_an_encoder_of_a_data_set_with_a_budget_needs_leave(
    quick_export, trained, run, refused, tmp_path, monkeypatch
):
    class Ledger:
        id = "9f"

    class Budget:
        id = "d1"
        ledger = Ledger
        noted: tuple = ()

        def note_unprotected(self, what):
            self.noted += (what,)

    budget = Budget()
    monkeypatch.setattr("tfpriv.cli._data_budget._trained_on", lambda *_: budget)
    line = ["export", trained[0], tmp_path / "m", "--part", "server"]
    assert "--unprotected-training" in refused(*line)
    assert budget.noted == ()
    code, _, err = run(*line, "--unprotected-training")
    assert code == 0, err
    assert budget.noted == ("an exported encoder trained on it",)
    extra = tmp_path / "m" / "1" / "assets.extra"
    told = json.loads((extra / "serving.json").read_text())["trained_on"]
    assert told == {"data_set": "d1", "ledger": "9f"}
    assert "data set d1" in (extra / "model_card.md").read_text()


@pytest.fixture
def of_a_data_set(exported, tmp_path, monkeypatch):
    """The exported model of an encoder that learnt from a data set with a budget."""
    from tfpriv.accounting import DataBudget

    monkeypatch.setenv("TFPRIV_STATE_DIR", str(tmp_path / "state"))
    records = tmp_path / "records.csv"
    records.write_text("text\nshe is good\n")
    budget = DataBudget.create(records, epsilon=8.0, delta=1e-5)
    folder = shutil.copytree(exported, tmp_path / "of")
    path = folder / "1" / "assets.extra" / "serving.json"
    described = json.loads(path.read_text())
    assert described["trained_on"] is None
    lineage = {"data_set": budget.id, "ledger": budget.ledger.id}
    path.write_text(json.dumps({**described, "trained_on": lineage}))
    return folder, budget


def unprotected(budget):
    from tfpriv.accounting import DataBudget

    notes = DataBudget.load(budget.id).ledger.lines()
    return [
        line.name
        for line in notes
        if getattr(line, "details", {}) and line.details.get("unprotected")
    ]


def test_an_exported_encoder_is_asked_for_its_data_set(
    of_a_data_set, texts, run, refused
):
    folder, budget = of_a_data_set
    message = refused("encode", folder, texts)
    assert "--unprotected-training" in message
    assert budget.id in message
    assert unprotected(budget) == []
    code, out, err = run("encode", folder, texts, "--unprotected-training", "--json")
    assert code == 0, err
    assert np.shape(json.loads(out)["representations"]) == (4, 2)
    assert len(unprotected(budget)) == 1


def test_so_is_one_on_a_server(of_a_data_set, server, texts, run, refused):
    folder, budget = of_a_data_set
    line = ["encode", folder, texts, "--server", server, "--model", "moods"]
    assert "--unprotected-training" in refused(*line)
    assert unprotected(budget) == []
    assert run(*line, "--unprotected-training")[0] == 0
    assert len(unprotected(budget)) == 1


def test_another_data_set_of_that_name_is_told_nothing(of_a_data_set):
    from tfpriv.serving import ExportedModel

    folder, budget = of_a_data_set
    model = ExportedModel.find(folder)
    assert model.training_budget(allowed=True).id == budget.id
    path = folder / "1" / "assets.extra" / "serving.json"
    path.write_text(path.read_text().replace(budget.ledger.id, "other"))
    assert ExportedModel.find(folder).training_budget(allowed=True) is None
    path.write_text(path.read_text().replace(budget.id, "elsewhere"))
    model = ExportedModel.find(folder)
    assert model.training_budget(allowed=True) is None
    with pytest.raises(InputError, match="elsewhere"):
        model.training_budget(allowed=False)


def test_an_exported_model_encodes_without_a_server(exported, texts, run, tmp_path):
    output = tmp_path / "out.npy"
    code, out, err = run("encode", exported, texts, "--output", output)
    assert code == 0, err
    vectors = np.load(output, allow_pickle=False)
    assert vectors.shape == (4, 2)
    assert set(vectors.ravel()) == {0, 1}
    assert "epsilon 4" in err
    assert SECRET not in out + err


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_a_synthesis_becomes_a_generator(private, run, refused, tmp_path):
    output = tmp_path / "out"
    line = ["synthesize", private, "--text", "CONTENT", "--label", "CLASS"]
    line += ["--labels", "ham,spam", "--discriminator-steps", "0", "--output", output]
    assert run(*line)[0] == 0
    assert "no parts" in refused("export", output, tmp_path / "m", "--part", "client")
    code, out, err = run("export", output, tmp_path / "m")
    assert code == 0, err
    assert "signatures: generate, serving_default" in out
    assert "drawing texts costs nothing more" in out
    import tensorflow as tf

    texts = load(tmp_path / "m" / "1")["generate"](
        count=tf.constant(7), label=tf.constant("spam"), temperature=tf.constant(1.0)
    )["text"]
    assert texts.shape == (7,)
    assert not any(SECRET.encode() in text for text in texts.numpy())


# --- tfpriv encode --server ------------------------------------------------------


@pytest.fixture(params=["grpc", "rest"])
def server(request, exported):
    serve = {"grpc": serve_grpc, "rest": serve_rest}[request.param]
    with serve(Model(exported)) as address:
        yield address


def test_a_server_encodes_as_the_command_does(exported, server, run, texts, tmp_path):
    output = tmp_path / "out.npy"
    line = ["encode", exported, texts, "--server", server, "--output", output]
    code, out, err = run(*line)
    assert code == 0, err
    vectors = np.load(output, allow_pickle=False)
    assert vectors.shape == (4, 2)
    assert vectors.dtype == np.float32
    assert set(vectors.ravel()) == {0, 1}
    assert "epsilon 4" in err
    assert "4 texts" in err
    assert "encryption" not in err  # loopback
    assert SECRET not in out + err
    beside = tmp_path / "out.npy.privacy.json"
    assert json.loads(beside.read_text())["epsilon"] == pytest.approx(4)
    assert stat.S_IMODE(output.stat().st_mode) == 0o600


def test_releases_and_a_run_with_the_models_name(trained, server, run, texts, refused):
    line = ["encode", trained[0], texts, "--server", server]
    assert "--model NAME" in refused(*line)
    code, out, err = run(*line, "--model", "moods", "--releases", "3", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert np.shape(told["representations"]) == (4, 3, 2)
    assert told["statement"]["epsilon"] == pytest.approx(12)


def test_a_server_that_cannot_be_used_is_refused_before_work(
    exported, server, refused, texts, tmp_path, trained
):
    line = ["encode", exported, texts, "--server"]
    assert "is it running" in refused(*line, "127.0.0.1:1").casefold()
    assert "host:port" in refused(*line, "nowhere")
    assert "model 'other'" in refused(*line, server, "--model", "other")
    assert "deadline" in refused(*line, server, "--deadline", "0")
    assert "none.pem" in refused(*line, server, "--tls-ca", "none.pem")
    empty = refused("encode", tmp_path, texts, "--server", server)
    assert "numbered version" in empty
    part = tmp_path / "part" / "1" / "assets.extra"
    part.mkdir(parents=True)
    for name in ("privacy.json", "serving.json"):
        text = (exported / "1" / "assets.extra" / name).read_text()
        (part / name).write_text(text.replace("[null, 2]", "[null, 9]"))
    described = json.loads((part / "serving.json").read_text())
    shape = described["signatures"]["encode"]["outputs"]["representation"]
    shape[1] = [None, 9]
    (part / "serving.json").write_text(json.dumps(described))
    wrong = ["encode", tmp_path / "part", texts, "--server", server]
    assert "received another" in refused(*wrong, "--model", "moods")
    del described["signatures"]["encode"]
    (part / "serving.json").write_text(json.dumps(described))
    assert "part of a split model" in refused(*wrong)
    (part / "privacy.json").unlink()
    assert "damaged" in refused(*wrong)


def test_another_version_than_the_one_that_is_charged_is_not_asked(
    exported, texts, run, refused, tmp_path
):
    folder = tmp_path / "moods"
    for version in "12":
        shutil.copytree(exported / "1", folder / version)
    with serve_grpc(Model(folder)) as address:
        line = [texts, "--server", address]
        assert "version 1" in refused("encode", folder / "1", *line)
        code, _, err = run("encode", folder, *line, "--json")
        assert code == 0, err


def test_a_way_that_others_can_read_is_warned_of(exported, texts, monkeypatch, run):
    from tfpriv.serving import ServingClient

    shape = {"inputs": {"text": (-1,)}, "outputs": {"representation": (-1, 2)}}
    monkeypatch.setattr(ServingClient, "signatures", lambda self: {"encode": shape})
    monkeypatch.setattr(
        ServingClient, "encode", lambda self, texts: np.zeros((len(texts), 2))
    )
    line = ["encode", exported, texts, "--server"]
    code, _, err = run(*line, "example.org:8500")
    assert code == 0
    assert "without encryption" in err
    assert "without encryption" not in run(*line, "https://example.org:8501")[2]
