import json
import math

import pytest

from tfpriv.cli import main

RUN = ["account", "--examples", "1956", "--batch", "64", "--steps", "306"]
NOISE = ["--noise-multiplier", "1.0"]


@pytest.fixture(autouse=True)
def _quick_distributions(monkeypatch):
    """Coarser loss distributions; tests/accounting has the exact figures."""
    monkeypatch.setattr("tfpriv.accounting.pld._FINEST_INTERVAL", 2e-3)


def _json(capsys, *arguments):
    assert main.run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_epsilon_by_both_accountants(capsys):
    result = _json(capsys, *RUN, *NOISE)
    assert result["epsilon"]["rdp"] == pytest.approx(4.2012, abs=5e-5)
    assert result["epsilon"]["pld"] == pytest.approx(3.7206, abs=0.01)
    assert result["adjacency"] == "add-or-remove-one"
    assert result["covers"]
    assert result["not_covered"]
    assert result["warnings"] == []


def test_noise_for_an_epsilon(capsys):
    arguments = "account --examples 1956 --batch 64 --steps 918 --target-epsilon 8"
    result = _json(capsys, *arguments.split())
    assert result["noise_multiplier"] == 0.9431
    assert 7.9 < result["epsilon"]["rdp"] <= 8


def test_people_are_told_what_the_number_covers(capsys):
    assert main.run([*RUN, *NOISE]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for words in ("RDP 4.2012", "PLD 3.7", "1e-05", "Covers", "Does not cover"):
        assert words in out
    assert "adding or removing one record" in out
    assert "Poisson" in out


def test_once_per_epoch_claims_no_amplification(capsys):
    result = _json(capsys, *RUN, *NOISE, "--sampling", "once_per_epoch")
    assert result["passes"] == 11
    assert result["adjacency"] == "zero-out-one"
    assert any("305 steps stay within 10" in line for line in result["warnings"])


def test_full_batch_needs_no_batch(capsys):
    arguments = "account --examples 1000 --steps 40 --sampling full_batch"
    result = _json(capsys, *arguments.split(), "--target-epsilon", "8")
    assert result["noise_multiplier"] == 4.033
    assert result["batch"] == 1000


def test_warnings_explain_themselves(capsys):
    result = _json(capsys, *RUN, *NOISE, "--delta", "0.01")
    assert any("above 1/n" in line for line in result["warnings"])
    result = _json(capsys, *RUN, "--noise-multiplier", "0.3")
    assert any("rules out next to nothing" in line for line in result["warnings"])
    zero = "account --examples 100000000 --batch 1 --steps 1 --noise-multiplier 1"
    result = _json(capsys, *zero.split())
    assert result["epsilon"]["rdp"] == 0
    assert any("epsilon 0 is true" in line for line in result["warnings"])


def test_values_come_from_a_config_file_unless_given(capsys, tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text("examples: 1956\nbatch: 64\nsteps: 10\nnoise-multiplier: 1.0\n")
    result = _json(capsys, "account", "--config", str(config), "--steps", "306")
    assert result["epsilon"]["rdp"] == pytest.approx(4.2012, abs=5e-5)


@pytest.mark.parametrize("text", ["colour: red\n", "- 1\n", "a: [\n", "\x00"])
def test_a_bad_config_file_is_code_2(capsys, tmp_path, text):
    config = tmp_path / "run.yaml"
    config.write_text(text)
    assert main.run(["account", "--config", str(config)]) == 2
    assert main.run(["account", "--config", str(tmp_path / "none.yaml")]) == 2
    assert capsys.readouterr().err.count("\n") == 2


@pytest.mark.parametrize(
    "change",
    [
        ["--delta", "0"],
        ["--delta", "1"],
        ["--delta", "2"],
        ["--delta", "nan"],
        ["--noise-multiplier", "0"],
        ["--noise-multiplier", "nan"],
        ["--noise-multiplier", "inf"],
        ["--noise-multiplier", "-1"],
        ["--batch", "1957"],
        ["--batch", "0"],
        ["--steps", "0"],
        ["--examples", "0"],
        ["--sampling", "shuffled"],
        ["--sampling", "full_batch"],
        ["--target-epsilon", "8"],
    ],
)
def test_bad_values_are_one_line_and_code_2(capsys, change):
    assert main.run([*RUN, *NOISE, *change]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
def test_a_bad_target_is_code_2(value):
    assert main.run([*RUN, "--target-epsilon", value]) == 2
    assert main.run(RUN) == 2


def test_an_infinite_epsilon_is_null_in_json(capsys):
    result = _json(capsys, *RUN, "--noise-multiplier", "1e-200")
    assert result["epsilon"] == {"rdp": None, "pld": None}
    assert math.isclose(result["noise_multiplier"], 1e-200)


def test_a_run_too_long_for_pld_still_gets_its_rdp(capsys):
    long = "account --examples 1000000 --batch 1 --steps 1000000000"
    result = _json(capsys, *long.split(), "--noise-multiplier", "1")
    assert result["epsilon"]["rdp"] > 0
    assert result["epsilon"]["pld"] is None
    assert any("no PLD" in line for line in result["warnings"])
