from __future__ import annotations

import json
import shutil
import stat

import pytest

from tests.cli.conftest import SECRET, gendered, rows, write, write_gendered
from tests.cli.test_synthesize import COLUMNS, NO_GAN, files
from tests.evaluation import run_folders
from tests.evaluation.test_report import everything

REPORT, RELEASE = "internal/report.html", "release/report.html"
QUICK = ["--no-embeddings"]


@pytest.fixture
def synthesized(private, tmp_path, tiny, run):
    """A real run of `tfpriv synthesize` on the private file, without networks."""
    output = tmp_path / "run"
    code, _, err = run(
        "synthesize", private, *COLUMNS, "--output", output, "--rows", "60", *NO_GAN
    )
    assert code == 0, err
    return output


@pytest.fixture
def folder(tmp_path):
    """A run folder that was written and not trained, and the file of its records."""
    records = run_folders.private_records()
    path = run_folders.synthetic_run(tmp_path / "run", records=records)
    file = write(
        tmp_path / "members.csv",
        zip(records.texts, records.labels, strict=True),
        ("text", "label"),
    )
    return path, file


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_real_run_gets_one_page_for_inside_and_one_for_outside(
    synthesized, private, tmp_path, run
):
    before = files(synthesized / "release")
    others = write(tmp_path / "others.csv", rows(ham=30, spam=30)[:50])
    code, out, err = run(
        "report", synthesized, "--members", private, "--non-members", private, *QUICK
    )
    assert code == 2, err  # they are the run's own
    code, out, err = run("report", synthesized, "--members", private, *QUICK)
    assert code == 0, err
    assert "stays inside" in out
    assert files(synthesized / "release") == before
    page = (synthesized / REPORT).read_text(encoding="utf-8")
    assert mode(synthesized / REPORT) == 0o600
    code, out, err = run("report", synthesized, "--release")
    assert code == 0, err
    assert "may leave" in out
    assert mode(synthesized / RELEASE) == 0o644
    outside = (synthesized / RELEASE).read_text(encoding="utf-8")
    for html in (page, outside):
        assert SECRET not in everything(html)
        assert str(tmp_path) not in html
    # Run and statement are none the worse for it.
    code, _, err = run("statement", synthesized, "--verify")
    assert code == 0, err
    code, _, err = run(
        "synthesize", private, *COLUMNS, "--output", synthesized, "--rows", 60, *NO_GAN
    )
    assert code == 0, err
    assert others.exists()


def test_the_page_of_a_release_does_not_need_the_rest(synthesized, run):
    assert run("report", synthesized, "--release")[0] == 0
    page = (synthesized / RELEASE).read_bytes()
    shutil.rmtree(synthesized / "internal")
    assert run("report", synthesized, "--release")[0] == 0
    assert (synthesized / RELEASE).read_bytes() == page


def test_figures_come_as_json_too(folder, run):
    path, file = folder
    code, out, err = run("report", path, "--members", file, *QUICK, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["report"] == str(path / REPORT)
    assert found["kind"] == "synthetic text"
    score = found["utility"]["scores"][0]
    assert 0 <= score["synthetic"]["low"] <= score["synthetic"]["high"] <= 1
    assert found["quality"]["overlap"]["rows"] == 50
    assert SECRET not in out
    code, out, _ = run("report", path, "--release", "--json")
    found = json.loads(out)
    assert found["quality"]["overlap"] is None
    assert "utility" not in found


def test_records_are_found_where_they_were(folder, run, refused):
    path, file = folder
    source = {"file": str(file), "format": None}
    run_folders.write(path / "internal" / "source.json", source)
    code, out, err = run("report", path, *QUICK, "--json")
    assert code == 0, err
    assert json.loads(out)["quality"]["overlap"]["rows"] == 50
    assert str(file) not in (path / REPORT).read_text()
    with file.open("a") as more:
        more.write(f"{SECRET},ham\n")
    for change in (lambda: None, file.unlink):
        change()
        code, out, err = run("report", path, *QUICK, "--json")
        assert code == 0, err
        assert "left out, or give --members" in err
        assert SECRET not in err
        assert err.count("\n") == 1
        assert json.loads(out)["quality"]["overlap"] is None
        assert "beside --networks" in refused("report", path, "--networks")


def test_held_out_rows_are_tested_on(folder, tmp_path, run):
    path, file = folder
    other = run_folders.texts(40, 9, SECRET)
    held_out = write(
        tmp_path / "held_out.csv",
        zip(other.texts, other.labels, strict=True),
        ("text", "label"),
    )
    line = ["report", path, "--members", file, "--non-members", held_out, *QUICK]
    code, out, err = run(*line, "--json")
    assert code == 0, err
    assert json.loads(out)["utility"]["held_out"] is True
    assert SECRET not in everything((path / REPORT).read_text())


def test_rows_of_labels_that_were_not_declared_are_not_tested_on(tmp_path, run):
    records = run_folders.private_records()
    path = run_folders.synthetic_run(
        tmp_path / "run", records=records, labels=["ham", "spam"]
    )
    other = run_folders.texts(40, 9)
    more = [("no run was told of this", "else"), ("nor of that", "else")]
    members, held_out = (
        write(tmp_path / f"{name}.csv", rows, ("text", "label"))
        for name, rows in (
            ("members", zip(records.texts, records.labels, strict=True)),
            ("held_out", [*zip(other.texts, other.labels, strict=True), *more]),
        )
    )
    line = ["report", path, "--members", members, "--non-members", held_out, *QUICK]
    code, out, err = run(*line, "--json")
    assert code == 0, err
    assert json.loads(out)["utility"]["test_rows"] == 40


def test_perplexity_may_be_that_of_other_public_texts(folder, tmp_path, run):
    path, _ = folder
    public = tmp_path / "public-of-somebody.txt"
    public.write_text("the song is great\nthe song is free\n" * 3, encoding="utf-8")
    code, out, err = run("report", path, "--release", "--public", public, "--json")
    assert code == 0, err
    assert json.loads(out)["quality"]["synthetic"]["coverage"] < 1
    page = (path / RELEASE).read_text()
    assert "a trigram model of public texts" in page
    assert "somebody" not in page


def test_a_representation_is_reported_from_its_folder_alone(
    trained, tmp_path, run, refused
):
    output = shutil.copytree(trained[0], tmp_path / "run")
    code, out, err = run("report", output)
    assert code == 0, err
    assert "Task macro-F1" in out
    page = (output / REPORT).read_text()
    assert "No attack was made yet" in page
    assert "by epoch" in page
    code, _, err = run("report", output, "--release")
    assert code == 0, err
    outside = (output / RELEASE).read_text()
    names = {word for row in gendered() for word in row[1:]}
    for html in (page, outside):
        assert SECRET not in everything(html)
        for word in ("female", str(trained[1]), *names):
            assert f">{word}<" not in html
    assert "macro-F1" not in outside
    file = write_gendered(tmp_path / "private.csv")
    assert "no --members" in refused("report", output, "--members", file)
    assert "no --networks" in refused("report", output, "--networks")


def test_evaluations_are_noted_in_the_budget_of_the_records(
    folder, run, monkeypatch, tmp_path
):
    monkeypatch.setenv("TFPRIV_STATE_DIR", str(tmp_path / "state"))
    path, file = folder
    assert run("budget", "init", file, "--epsilon", 8, "--delta", "1e-5")[0] == 0
    code, _, err = run("report", path, "--members", file, *QUICK)
    assert code == 0, err
    lines = json.loads(run("budget", "show", file, "--json")[1])["lines"]
    assert [line["charged"] for line in lines] == [False]
    assert "an evaluation of a release" in lines[0]["what"]
    assert "The data set" in (path / REPORT).read_text()


# Found before work.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--release", "--members", "{file}"], "no --members beside --release"),
        (["--release", "--non-members", "{file}"], "no --non-members beside --release"),
        (["--release", "--networks"], "no --networks beside --release"),
        (["--non-members", "{file}"], "--members FILE beside --non-members"),
        (["--networks"], "--members FILE beside --networks"),
        (["--members", "none.csv"], "none.csv"),
        (["--public", "none.txt"], "none.txt"),
        (["--seed", "-1"], "seed=-1"),
        (["--seed", "x"], "--seed"),
    ],
)
def test_options_that_cannot_be_used_are_refused(folder, refused, options, words):
    path, file = folder
    line = refused("report", path, *(o.format(file=file) for o in options))
    assert words in line
    assert not (path / REPORT).exists()
    assert not (path / RELEASE).exists()


def test_records_of_another_run_are_refused(folder, refused, tmp_path):
    path, _ = folder
    other = run_folders.private_records(30)
    file = write(
        tmp_path / "other.csv",
        zip(other.texts, other.labels, strict=True),
        ("text", "label"),
    )
    assert "received others" in refused("report", path, "--members", file)
    file.write_text(f"text,kind\n{SECRET},ham\n")
    assert "kind" in refused("report", path, "--members", file)


def test_a_release_that_is_no_text_and_settings_that_are_none_are_refused(
    folder, refused
):
    path, _ = folder
    config = path / "internal" / "config.json"
    whole = json.loads(config.read_text())
    config.write_text(json.dumps(whole | {"labels": 5}))
    assert "received a damaged file" in refused("report", path)
    config.write_text(json.dumps(whole))
    (path / "release" / "synthetic.csv").write_bytes(b"\xff\xfe,\x00\n")
    assert "no CSV in UTF-8" in refused("report", path, "--release")


@pytest.mark.parametrize("leave", [[], ["--release"]])
def test_what_is_no_finished_run_is_refused(folder, refused, tmp_path, leave):
    path, _ = folder
    assert "folder of a run" in refused("report", tmp_path / "none", *leave)
    assert "folder of a run" in refused("report", tmp_path / "members.csv", *leave)
    (path / "release" / "synthetic.csv").write_text("text,label\n")
    assert "synthetic.csv" in refused("report", path, *leave)
    (path / "release" / "privacy.json").unlink()
    assert "has ended" in refused("report", path, *leave)


def test_a_statement_that_is_not_true_does_not_leave(folder, refused, run):
    path, _ = folder
    file = path / "release" / "privacy.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"epsilon": 0.5}))
    assert "recorded 0.5" in refused("report", path, "--release")
    assert run("report", path)[0] == 0
    assert "does not state what its own events cost" in (path / REPORT).read_text()


def test_a_damaged_result_is_said_and_left_out(folder, run):
    path, _ = folder
    (path / "internal" / "audit.json").write_text("{")
    code, _, err = run("report", path)
    assert code == 0
    assert err.count("\n") == 1
    assert "audit.json is damaged" in err


def test_no_minilm_is_said_in_the_page(folder, run, monkeypatch):
    path, file = folder
    monkeypatch.setattr("tfpriv.representation.presets._MINILM", "not_there")
    code, _, err = run("report", path, "--members", file)
    assert code == 0, err
    assert "MAUVE was not measured: Expected MiniLM" in (path / REPORT).read_text()


def test_no_backend_of_matplotlib_is_needed(folder, tmp_path):
    import os
    import subprocess
    import sys

    path, _ = folder
    done = subprocess.run(
        [sys.executable, "-m", "tfpriv.cli.main", "report", path, "--release"],
        env=os.environ | {"MPLBACKEND": "nonsense", "DISPLAY": "", "CI": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (path / RELEASE).exists()


def test_a_full_disk_leaves_the_page_that_was_there(folder, run, full_disk):
    path, _ = folder
    assert run("report", path)[0] == 0
    before = (path / REPORT).read_bytes()
    full_disk.append("report.html")
    code, _, err = run("report", path)
    assert code == 1
    assert err.count("\n") == 1
    assert (path / REPORT).read_bytes() == before
    assert not list((path / "internal").glob(".*"))
