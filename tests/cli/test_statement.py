import json
import math

import pytest

from tfpriv.accounting import (
    Gaussian,
    LaplaceCertificate,
    NonPrivate,
    PrivacyLedger,
    PrivacyStatement,
    PrivateRead,
    RepresentationStatement,
)

READS = [
    PrivateRead("token counts", Gaussian(2.0)),
    PrivateRead("lengths", Gaussian(4.0)),
]


@pytest.fixture(autouse=True)
def _quick_distributions(monkeypatch):
    """Coarser loss distributions: one tampering asks for them."""
    monkeypatch.setattr("tfpriv.accounting.pld._FINEST_INTERVAL", 2e-3)


PRETRAINING = PrivateRead("pre-training", NonPrivate(), "it reads the texts")


def _release(folder, reads=READS):
    statement = PrivacyStatement(reads, delta=1e-5)
    release = folder / "run" / "release"
    release.mkdir(parents=True)
    statement.write(release / "privacy.json")
    (release / "statement.txt").write_text(str(statement) + "\n")
    return release


def _representation(folder, **settings):
    certificate = LaplaceCertificate.from_epsilon(4.0, 16, radius=1.0, **settings)
    statement = RepresentationStatement(
        certificate,
        method="RMAT",
        encoder_trained_on_private_text=True,
        randomness="the noise comes from a cryptographic generator",
    )
    statement.save(folder / "vectors.npy.privacy.json")
    (folder / "vectors.npy").write_bytes(b"")
    return folder / "vectors.npy"


def _tamper(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def test_a_release_is_explained_to_whoever_decides_and_to_whoever_computes(
    run, tmp_path
):
    release = _release(tmp_path)
    for where in (release.parent, release, release / "privacy.json"):
        code, out, err = run("statement", where)
        assert (code, err) == (0, "")
        said = " ".join(out.split())
        assert "one person's record left out" in said
        assert "times as likely in one world as in the other" in said
        assert "Gaussian noise of multiplier 2 on all records" in said
        assert "Not covered:" in said
        assert "dp-accounting 0.4.3" in said


def test_a_release_without_a_guarantee_says_so_first(run, tmp_path):
    out = run("statement", _release(tmp_path, [*READS, PRETRAINING]))[1]
    assert out.startswith("This release gives NO mathematical guarantee")
    assert "pre-training" in out


def test_a_representation_is_explained(run, tmp_path):
    code, out, _ = run("statement", _representation(tmp_path))
    assert code == 0
    assert "made of one text, or of any other" in " ".join(out.split())
    assert "54.6" in out  # e^4
    assert "98.3 %" in out


def test_the_words_match_the_figures(tmp_path):
    from tfpriv.accounting.plain_words import plain_words

    for sigma in (0.1, 1.0, 3.7, 100.0):
        statement = PrivacyStatement([PrivateRead("x", Gaussian(sigma))], delta=1e-5)
        words = " ".join(plain_words(statement))
        sure = float(words.split("at most ")[2].split(" %")[0])
        exact = 100 / (1 + math.exp(-statement.epsilon))
        assert exact <= sure <= exact + 0.1
        assert ("next to nobody" in words) == (statement.epsilon > 10)


def test_what_was_not_changed_is_verified(run, tmp_path):
    for where in (_release(tmp_path), _representation(tmp_path)):
        code, out, err = run("statement", where, "--verify")
        assert (code, err) == (0, "")
        assert "Verified" in out
        assert "dp-accounting 0.4.3" in out


TAMPERINGS = {
    "epsilon": lambda value: value.update(epsilon=0.5),
    "epsilon, by little": lambda value: value.update(epsilon=value["epsilon"] - 1e-6),
    "no epsilon": lambda value: value.pop("epsilon"),
    "delta": lambda value: value.update(delta=1e-9),
    "noise": lambda value: value["events"][0]["event"].update(noise_multiplier=9.0),
    "an event left out": lambda value: value["events"].pop(),
    "an event called internal": lambda value: value["events"][0].update(released=False),
    "a price": lambda value: value["events"][0].update(epsilon=0.1),
    "words": lambda value: value.update(not_covered=[]),
    "a key of its own": lambda value: value.update(certified_by="nobody"),
    "the accountant": lambda value: value.update(accountant="pld"),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_file_that_was_changed_fails(run, tmp_path, name):
    release = _release(tmp_path)
    _tamper(release / "privacy.json", TAMPERINGS[name])
    code, out, err = run("statement", release, "--verify")
    assert code == 1
    assert "Verified" not in out
    assert err.count("\n") == 1
    assert "recorded" in err
    assert "recomputed" in err or "other words" in err
    code, out, _ = run("statement", release, "--verify", "--json")
    assert code == 1
    result = json.loads(out)
    assert result["verified"] is False
    assert result["differences"]


@pytest.mark.parametrize("name", ["epsilon", "word_epsilon", "delta"])
def test_a_representation_that_was_changed_fails(run, tmp_path, name):
    where = _representation(tmp_path)
    file = where.with_name("vectors.npy.privacy.json")
    _tamper(file, lambda value: value.update({name: 1e-9}))
    assert run("statement", where, "--verify")[0] == 1


def test_a_certificate_that_was_changed_fails(run, tmp_path):
    where = _representation(tmp_path)

    def more_noise(value):
        value["certificate"]["parameters"]["scale"] = 50.0

    _tamper(where.with_name("vectors.npy.privacy.json"), more_noise)
    assert run("statement", where, "--verify")[0] == 1


def test_words_that_were_changed_beside_the_figures_fail(run, tmp_path):
    release = _release(tmp_path)
    text = release / "statement.txt"
    text.write_text(text.read_text().replace("epsilon = ", "epsilon = 0.1, not "))
    code, _, err = run("statement", release, "--verify")
    assert code == 1
    assert "statement.txt" in err


def test_a_statement_that_leaves_out_what_the_run_was_charged_for_fails(run, tmp_path):
    release = _release(tmp_path, READS[:1])
    internal = release.parent / "internal"
    internal.mkdir()
    ledger = PrivacyLedger(
        internal / "ledger.jsonl", limit_epsilon=math.inf, delta=1e-5
    )
    ledger.charge("token counts", Gaussian(2.0))
    assert run("statement", release, "--verify")[0] == 0
    ledger.charge("lengths", Gaussian(4.0))
    code, _, err = run("statement", release.parent, "--verify")
    assert code == 1
    assert "ledger has" in err


def test_another_version_is_named(run, tmp_path):
    release = _release(tmp_path)
    _tamper(
        release / "privacy.json",
        lambda value: value["versions"].update({"dp-accounting": "0.3.0"}),
    )
    code, out, _ = run("statement", release, "--verify")
    assert code == 0
    assert "0.3.0 -> 0.4.3" in out


def test_json_is_the_recomputed_statement(run, tmp_path):
    release = _release(tmp_path)
    _tamper(release / "privacy.json", TAMPERINGS["epsilon"])
    result = json.loads(run("statement", release, "--json")[1])
    expected = PrivacyStatement(READS, delta=1e-5)
    assert result["statement"]["epsilon"] == expected.epsilon
    assert result["plain_words"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "{}",
        '{"schema_version": 2}',
        '{"schema_version": 1, "kind": "embedding"}',
        '{"schema_version": 1, "kind": "representation"}',
        '{"schema_version": 1, "events": [{"name": "x"}]}',
    ],
)
def test_what_is_no_statement_is_one_line(refused, tmp_path, text):
    (tmp_path / "privacy.json").write_text(text)
    refused("statement", tmp_path)


@pytest.mark.parametrize("value", [math.nan, math.inf, "1e-5", 0, 1, 2, None])
def test_a_statement_with_a_bad_delta_is_one_line(refused, tmp_path, value):
    release = _release(tmp_path)
    _tamper(release / "privacy.json", lambda found: found.update(delta=value))
    refused("statement", release, "--verify")


def test_a_folder_without_a_release_is_one_line(refused, tmp_path):
    refused("statement", tmp_path)
    refused("statement", tmp_path / "none")
