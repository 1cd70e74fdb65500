from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest

from tests.cli.conftest import SECRET, TEXTS, write, write_gendered
from tests.cli.test_synthesize import COLUMNS, NO_GAN, files
from tfpriv.accounting import DataBudget
from tfpriv.attacks import TextMembershipAttack
from tfpriv.cli import audit as command

ATTACKS = ["--attacks", "nearest neighbour,rare words"]


def people(first: int, count: int, *, kind: str = "") -> list[list[str]]:
    """Rows of an author, a text and a label; no two texts of two calls are equal."""
    found = []
    for number in range(first, first + count):
        label = ("ham", "spam")[number % 2]
        words = TEXTS[label].split()
        place = number % len(words)
        text = [SECRET, *words[place:], *words[:place], f"{kind}{number}"]
        found.append([f"author{number}", " ".join(text), label])
    return found


@pytest.fixture
def members(tmp_path):
    return write(tmp_path / "members.csv", people(0, 80))


@pytest.fixture
def others(tmp_path):
    return write(tmp_path / "others.csv", people(1000, 120))


@pytest.fixture
def copied(tmp_path):
    """A synthetic file that has every member."""
    rows = [[text, label] for _, text, label in people(0, 80)]
    return write(tmp_path / "synthetic.csv", rows, ("CONTENT", "CLASS"))


@pytest.fixture
def line(members, others, copied):
    """An audit of files."""
    return [
        "audit", "--synthetic", copied, "--members", members,
        "--non-members", others, "--text", "CONTENT", "--label", "CLASS",
    ]  # fmt: skip


@pytest.fixture
def made(tiny, run, members, tmp_path):
    """A finished run of `tfpriv synthesize` on the members."""
    output = tmp_path / "run"
    code, _, err = run("synthesize", members, *COLUMNS, "--output", output, *NO_GAN)
    assert code == 0, err
    return output


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_of_any_origin_are_audited(run, line, tmp_path):
    output = tmp_path / "audit.json"
    code, out, err = run(*line, "--output", output, "--claimed-epsilon", "0.5")
    assert code == 0, err
    assert SECRET not in out + err
    assert "80 members, 80 non-members and 40 reference texts" in err
    assert "those on the texts take about" in err
    assert "ARE told from non-members" in out
    assert "REFUTES the claimed epsilon of 0.5" in out
    assert str(output) in out
    assert mode(output) == 0o600
    text = output.read_text()
    for word in (SECRET, "author", "song"):
        assert word not in text
    found = json.loads(text)
    assert found["kind"] == "membership"
    assert found["attacks_tried"] == len(found["attacks"]) == 8
    assert found["refuted"] is True
    assert found["texts"]["reference"] == 40
    for attack in found["attacks"]:
        assert {"name", "auc", "tpr", "advantage", "epsilon_lower"} <= attack.keys()
    assert sorted(p.name for p in tmp_path.iterdir() if "audit" in p.name) == [
        "audit.json"
    ]


def test_json_alone_is_on_stdout_and_a_file_is_not_needed(run, line):
    code, out, err = run(*line, *ATTACKS, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["file"] is None
    assert [attack["name"] for attack in found["attacks"]] == [
        "nearest neighbour", "rare words",
    ]  # fmt: skip
    assert found["worst"] == "nearest neighbour"
    assert found["claimed"] is None
    assert SECRET not in out + err


def test_without_labels_and_with_reference_texts(run, line, tmp_path):
    more = write(tmp_path / "more.csv", people(5000, 30))
    bare = line[: line.index("--label")]
    code, out, err = run(*bare, "--reference", more, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["attacks_tried"] == 6
    assert found["texts"]["non_members"] == 120
    assert found["texts"]["reference"] == 30


def test_a_run_is_audited_and_its_release_left_alone(
    tiny, run, made, members, others, monkeypatch
):
    before = files(made / "release")
    code, out, err = run(
        "audit", made, "--members", members, "--non-members", others
    )  # fmt: skip
    assert code == 0, err
    assert SECRET not in out + err
    path = made / "internal" / "audit.json"
    assert str(path) in out
    assert mode(path) == 0o600
    assert files(made / "release") == before
    assert not (made / "internal" / "audit").exists()
    found = json.loads(path.read_text())
    assert SECRET not in path.read_text()
    statement = json.loads((made / "release" / "privacy.json").read_text())
    assert found["claimed"] == {
        "epsilon": pytest.approx(statement["epsilon"]),
        "delta": statement["delta"],
    }
    assert found["texts"]["members"] == 80
    assert "This audit could not have refuted the claimed epsilon" in out


def test_records_that_the_run_was_not_made_from_are_refused(
    tiny, refused, made, members, others, tmp_path
):
    changed = write(tmp_path / "changed.csv", people(0, 80)[::-1])
    start = ["audit", made, "--non-members", others, "--members"]
    assert "received others" in refused(*start, changed)
    assert "Expected --non-members FILE" in refused("audit", made, "--members", members)
    for option, value in (("--text", "CONTENT"), ("--output", tmp_path / "a.json")):
        assert f"no {option} beside DIR" in refused(*start, members, option, value)
    assert not (made / "internal" / "audit.json").exists()


def test_records_of_labels_that_were_not_declared_count_on_neither_side(
    tiny, run, refused, members, others, tmp_path
):
    write(members, [*people(0, 80), *([n, t, "else"] for n, t, _ in people(300, 20))])
    output = tmp_path / "declared"
    start = ["synthesize", members, *COLUMNS, "--output", output, *NO_GAN]
    assert run(*start, "--labels", "ham,spam")[0] == 0
    more = [[n, t, "else"] for n, t, _ in people(2000, 30)]
    write(others, [*people(1000, 120), *more])
    reference = write(tmp_path / "reference.csv", [*people(3000, 40), *more[:9]])
    line = ["audit", output, "--members", members, "--non-members", others, *ATTACKS]
    code, out, err = run(*line, "--json")
    assert code == 0, err
    assert json.loads(out)["texts"]["members"] == 80
    # Else the two groups would differ, and every attack would find that.
    assert json.loads(out)["texts"]["non_members"] == 80
    write(others, [*people(1000, 120), *more[9:]])
    code, out, err = run(*line, "--reference", reference, "--json")
    assert code == 0, err
    assert json.loads(out)["texts"]["non_members"] == 120
    assert json.loads(out)["texts"]["reference"] == 40
    write(reference, more)
    assert "labels that the run" in refused(*line, "--reference", reference)


def test_networks_of_a_run_are_attacked_too(
    tiny, run, made, members, others, monkeypatch
):
    """Where there are any; what they say of a text is the other tests' matter."""

    class Target:
        label = "ham"

        def logits(self, texts):
            return np.array([float(len(text.split()[-1])) for text in texts])

        def log_likelihoods(self, texts):
            return np.zeros(len(texts))

    (made / "internal" / "class-0.npz").touch()
    monkeypatch.setattr(
        "tfpriv.attacks.class_discriminators.class_discriminators",
        lambda model, folder: [Target()],
    )
    code, out, err = run(
        "audit", made, "--members", members, "--non-members", others, *ATTACKS,
        "--json",
    )  # fmt: skip
    assert code == 0, err
    found = {attack["name"]: attack for attack in json.loads(out)["attacks"]}
    assert list(found)[2:] == ["LOGAN", "generator likelihood"]
    assert {attack["attacks_tried"] for attack in found.values()} == {4}
    # Members have shorter last words than others; those of no network say nothing.
    assert found["LOGAN"]["auc"]["value"] == pytest.approx(0.5 - 0.25 / 2, abs=0.13)
    assert found["generator likelihood"]["auc"]["value"] == pytest.approx(0.5, abs=0.1)


def test_a_finished_audit_is_done_again_when_asked_for(run, line, tmp_path):
    output = tmp_path / "audit.json"
    for _ in range(2):
        code, _, err = run(*line, *ATTACKS, "--output", output)
        assert code == 0, err
        assert "were done before" not in err


def interrupted_after(monkeypatch, count: int) -> list[str]:
    """Ctrl-C falls on the attack after `count`; gives the names of those done."""
    done = []
    scores = TextMembershipAttack.scores

    def counted(self, texts, name):
        if len(done) == count:
            raise KeyboardInterrupt
        done.append(name)
        return scores(self, texts, name)

    monkeypatch.setattr(TextMembershipAttack, "scores", counted)
    return done


def test_an_audit_goes_on_after_ctrl_c(run, line, tmp_path, monkeypatch):
    output = tmp_path / "audit.json"
    with monkeypatch.context() as patch:
        interrupted_after(patch, 3)
        code, out, err = run(*line, "--output", output)
    assert code == 130
    assert "Run the same command again to go on" in err
    assert SECRET not in out + err
    assert not output.exists()
    kept = tmp_path / "audit.json.progress"
    assert mode(kept) == 0o700
    assert {mode(p) for p in kept.rglob("*") if p.is_file()} == {0o600}
    # What cannot be read is done again.
    (kept / "scores" / "rare_words.npz").write_bytes(b"PK")
    done = interrupted_after(monkeypatch, 99)
    code, _, err = run(*line, "--output", output)
    assert code == 0, err
    assert "going on: 3 attacks were done before" in err
    assert len(done) == 5
    assert not kept.exists()
    gone_on = output.read_text()
    assert run(*line, "--output", output)[0] == 0
    assert output.read_text() == gone_on


def test_scores_of_other_texts_are_not_taken(run, line, copied, tmp_path, monkeypatch):
    output = tmp_path / "audit.json"
    with monkeypatch.context() as patch:
        interrupted_after(patch, 3)
        assert run(*line, "--output", output)[0] == 130
    rows = [[text, label] for _, text, label in people(9000, 80)]
    write(copied, rows, ("CONTENT", "CLASS"))
    done = interrupted_after(monkeypatch, 99)
    code, _, err = run(*line, "--output", output)
    assert code == 0, err
    assert "were done before" not in err
    assert len(done) == 8


KILLED = """
import os, signal, sys
from tfpriv.attacks import TextMembershipAttack
from tfpriv.cli import main

scores, left = TextMembershipAttack.scores, [int(sys.argv[1])]

def counted(self, texts, name):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    return scores(self, texts, name)

TextMembershipAttack.scores = counted
sys.exit(main.run(sys.argv[2:]))
"""


def test_an_audit_goes_on_after_a_kill(line, tmp_path):
    line = [str(part) for part in [*line, "--output", tmp_path / "audit.json"]]

    def start(attacks: int) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-c", KILLED, str(attacks), *line],
            capture_output=True,
            text=True,
        )

    assert start(2).returncode == -signal.SIGKILL
    done = start(6)
    assert done.returncode == 0, done.stderr
    assert "going on: 2 attacks were done before" in done.stderr
    assert SECRET not in done.stdout + done.stderr


def test_ctrl_c_without_an_output_keeps_nothing(run, line, tmp_path, monkeypatch):
    before = sorted(tmp_path.iterdir())
    interrupted_after(monkeypatch, 1)
    code, _, err = run(*line)
    assert code == 130
    assert "interrupted" in err
    assert sorted(tmp_path.iterdir()) == before


def test_a_failure_after_work_began_is_code_1_and_quotes_no_record(
    run, line, monkeypatch
):
    def fail(self, texts, name):
        raise ValueError(texts.members.texts[0])

    monkeypatch.setattr(TextMembershipAttack, "scores", fail)
    code, out, err = run(*line)
    assert code == 1
    assert SECRET not in out + err


def test_an_audit_is_written_down_in_the_budget_of_the_records(
    run, line, members, tmp_path, monkeypatch
):
    monkeypatch.setenv("TFPRIV_STATE_DIR", str(tmp_path / "state"))
    assert run("budget", "init", members, "--epsilon", "8")[0] == 0
    assert run(*line, *ATTACKS)[0] == 0
    budget = DataBudget.find(members)
    assert budget.epsilon() == 0
    notes = [n for n in budget.ledger.lines() if n.name.startswith("an audit")]
    assert len(notes) == 1


# Found before work: code 2, one line, nothing private.


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("WORDS,CLASS\nhunter2,ham\n", "columns WORDS, CLASS"),
        ("", "empty file"),
        ("CONTENT,CLASS\n", "rows below the header"),
        ("CONTENT,CLASS\nhunter2,else\n", "labels that synthetic texts have"),
    ],
)
def test_a_synthetic_file_that_cannot_be_used_is_refused(
    refused, line, copied, content, words
):
    copied.write_text(content)
    assert words in refused(*line)


def test_too_few_records_and_too_many_are_refused(refused, line, members, others):
    write(members, people(0, 49))
    assert "at least 50 distinct members, received 49" in refused(*line)
    write(members, people(0, 80))
    write(others, [*people(1000, 120), *people(0, 3)])
    assert "received 3 of 123" in refused(*line)
    write(others, people(0, 80))
    assert "received 80 of 80" in refused(*line)
    write(others, people(1000, 60))
    assert "received 40 and 20 more set aside as reference texts" in refused(*line)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--attacks", "oracle"], "'oracle'"),
        (["--attacks", ""], "nearest neighbour"),
        (["--delta", "1"], "delta=1.0"),
        (["--delta", "nan"], "delta=nan"),
        (["--claimed-epsilon", "0"], "claimed_epsilon=0.0"),
        (["--seed", "-1"], "seed=-1"),
        (["--output", "no/such/folder.json"], "folder that exists"),
        (["--text", "CLASS"], "'CLASS' for both"),
        (["--members", "none.csv"], "none.csv"),
    ],
)
def test_a_wrong_option_is_refused(refused, line, change, words):
    assert words in refused(*line, *change)


def test_an_output_over_a_file_of_records_is_refused(refused, line, members):
    assert "--members" in refused(*line, "--output", members)


def test_an_output_that_is_no_file_is_refused(refused, line, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "an ordinary file for --output" in refused(*line, "--output", pipe)
    assert pipe.is_fifo()


def test_a_folder_of_progress_that_is_not_ours_is_left_alone(refused, line, tmp_path):
    theirs = tmp_path / "a.json.progress"
    theirs.mkdir()
    (theirs / "thesis.txt").touch()
    assert "that no audit made" in refused(*line, "--output", tmp_path / "a.json")
    assert [path.name for path in theirs.iterdir()] == ["thesis.txt"]


def test_a_claim_is_that_of_the_delta_that_is_asked_for(tiny, run, made, others):
    line = ["audit", made, "--non-members", others, *ATTACKS, "--json"]
    at = {}
    for delta in (None, "1e-3", "0"):
        code, out, err = run(*line, *([] if delta is None else ["--delta", delta]))
        assert code == 0, err
        at[delta] = json.loads(out)["claimed"]
    own = at[None]["delta"]
    assert own == json.loads((made / "release" / "privacy.json").read_text())["delta"]
    assert at["1e-3"]["delta"] == 1e-3 > own
    assert at["1e-3"]["epsilon"] < at[None]["epsilon"]
    # Gaussian noise has no epsilon at delta 0.
    assert at["0"] == {"epsilon": None, "delta": 0.0}


def test_a_statement_that_was_written_over_is_said_to_be(tiny, run, made, others):
    line = ["audit", made, "--non-members", others, *ATTACKS, "--json"]
    code, out, err = run(*line)
    assert (code, "states otherwise" in err) == (0, False)
    claimed = json.loads(out)["claimed"]
    file = made / "release" / "privacy.json"
    recorded = json.loads(file.read_text())
    file.write_text(json.dumps(recorded | {"epsilon": 0.01}))
    code, out, err = run(*line)
    assert code == 0
    assert "states otherwise than its events give: epsilon: recorded 0.01" in err
    assert json.loads(out)["claimed"] == claimed


def test_an_audit_names_the_release_that_it_is_of(run, line, copied):
    code, out, err = run(*line, *ATTACKS, "--json")
    assert code == 0, err
    digest = hashlib.sha256(copied.read_bytes()).hexdigest()
    assert json.loads(out)["synthetic_sha256"] == digest


def test_without_anything_to_audit_it_says_what_it_takes(refused, members):
    assert "Give DIR, a run, or all of --synthetic" in refused("audit")
    assert "Expected --synthetic FILE" in refused("audit", "--members", members)


def test_a_folder_without_a_finished_run_is_refused(
    tiny, refused, made, members, others, tmp_path
):
    line = ["--members", members, "--non-members", others]
    assert "no internal/" in refused("audit", tmp_path / "none", *line)
    assert not (tmp_path / "none").exists()
    half = shutil.copytree(made, tmp_path / "half")
    (half / "release" / "synthetic.csv").unlink()
    assert "to go on" in refused("audit", half, *line)
    older = shutil.copytree(made, tmp_path / "older")
    (older / "internal" / "model" / "model.json").write_text('{"words": []}')
    assert "of this version" in refused("audit", older, *line)
    newer = shutil.copytree(made, tmp_path / "newer")
    statement = json.loads((newer / "release" / "privacy.json").read_text())
    statement["schema_version"] += 1
    (newer / "release" / "privacy.json").write_text(json.dumps(statement))
    refused("audit", newer, *line)
    damaged = shutil.copytree(made, tmp_path / "damaged")
    (damaged / "internal" / "model" / "model.json").write_text("{")
    assert "damaged" in refused("audit", damaged, *line)


def test_refusing_brings_no_tensorflow(line):
    code = (
        "import sys; from tfpriv.cli import main; code = main.run(sys.argv[1:]); "
        "assert 'tensorflow' not in sys.modules; sys.exit(code)"
    )
    arguments = [str(part) for part in [*line, "--delta", "2"]]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr


# Runs of `tfpriv rmat train`.


@pytest.fixture
def own(trained, trained_model, tmp_path, monkeypatch):
    """A copy of the run to write into, whose model is loaded already."""
    monkeypatch.setattr(
        "tfpriv.cli._representation_audit.load_model", lambda folder: trained_model
    )
    return shutil.copytree(trained[0], tmp_path / "rmat")


def test_representations_are_audited_with_the_run_alone(own, run):
    before = files(own / "release")
    code, out, err = run("audit", own)
    assert code == 0, err
    assert SECRET not in out + err
    assert "about" in err
    assert "Worst attacker" in out
    assert "a guess without the representation" in out
    path = own / "internal" / "audit.json"
    assert mode(path) == 0o600
    found = json.loads(path.read_text())
    assert found["kind"] == "representation"
    assert {"worst", "leaks", "attackers"} <= found["attribute_inference"].keys()
    assert {"worst", "leaks", "attackers"} <= found["inversion"].keys()
    assert found["statement"]["releases"] == 1
    for word in (SECRET, "female"):
        assert word not in path.read_text()
    assert files(own / "release") == before
    assert not (own / "internal" / "audit").exists()


def test_an_audit_of_representations_goes_on(own, run, monkeypatch):
    from tfpriv.attacks.inversion import InversionAttack

    def interrupt(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(InversionAttack, "fit_score", interrupt)
        assert run("audit", own, "--json")[0] == 130
    assert mode(own / "internal" / "audit") == 0o700

    def fail(*args):
        raise AssertionError("done before")

    monkeypatch.setattr("tfpriv.cli._representation_audit.make_attack", fail)
    code, out, err = run("audit", own, "--json")
    assert code == 0, err
    assert json.loads(out)["attribute_inference"]["attackers"]


def test_a_test_part_with_nothing_to_guess_is_refused(own, refused, monkeypatch):
    from tfpriv.cli import _representation_audit

    made = _representation_audit.parts_of

    def of_one_label(data, key):
        parts = made(data, key)
        first = parts.test.private[0]
        same = [i for i, name in enumerate(parts.test.private) if name == first]
        return dataclasses.replace(parts, test=parts.test.select(same))

    monkeypatch.setattr(_representation_audit, "parts_of", of_one_label)
    assert "at least two private labels" in refused("audit", own)
    assert not (own / "internal" / "audit").exists()


def test_what_only_synthetic_text_has_is_refused_for_representations(
    own, refused, tmp_path
):
    assert "no --non-members" in refused("audit", own, "--non-members", "x.csv")
    changed = write_gendered(tmp_path / "changed.csv", [["a b", "good", "male"]] * 9)
    refused("audit", own, "--members", changed)
    (own / "internal" / "model.keras").unlink()
    assert "to go on" in refused("audit", own)


def test_a_duration_is_in_words():
    assert command._duration(0.2) == "1 s"
    assert command._duration(89) == "89 s"
    assert command._duration(600) == "10 minutes"


def test_a_run_knows_its_records_unless_they_moved(run, refused, made, members, others):
    line = ["audit", made, "--non-members", others, *ATTACKS]
    assert run(*line)[0] == 0
    moved = members.rename(members.with_name("moved.csv"))
    assert "members.csv" in refused(*line)
    assert run(*line, "--members", moved)[0] == 0
    (made / "internal" / "source.json").unlink()
    assert "--members" in refused(*line)
