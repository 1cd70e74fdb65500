import json
import math

import pytest
import yaml

from tfpriv.accounting import (
    Compose,
    Gaussian,
    GaussianThreshold,
    Parallel,
    PoissonGaussian,
    PrivacyLedger,
    PureDP,
    epsilon,
)
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
    for words in ("RDP 4.2013", "PLD 3.7", "1e-05", "Covers", "Does not cover"):
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


# What a target allows.


def test_the_most_steps_for_a_target(capsys):
    arguments = "account --examples 1956 --batch 64 --noise-multiplier 0.9431"
    result = _json(capsys, *arguments.split(), "--target-epsilon", "8")
    assert (result["found"], result["steps"]) == ("steps", 918)
    assert result["epsilon"]["rdp"] <= 8


def test_the_largest_batch_for_a_target(capsys):
    arguments = "account --examples 1956 --steps 306 --noise-multiplier 1.0"
    result = _json(capsys, *arguments.split(), "--target-epsilon", "4.2013")
    assert (result["found"], result["batch"]) == ("batch", 64)


@pytest.mark.parametrize(
    "line",
    [
        "--batch 64 --target-epsilon 8",
        "--steps 10 --target-epsilon 8",
        "--noise-multiplier 1 --target-epsilon 8",
        "--batch 64 --steps 306",
        "--batch 64 --noise-multiplier 1",
        "--steps 10 --noise-multiplier 1 --sampling none --target-epsilon 1e3",
        "--batch 64 --noise-multiplier 0.01 --target-epsilon 1",
    ],
)
def test_too_little_or_nothing_to_find_is_refused(refused, line):
    refused("account", "--examples", "1956", *line.split())


def test_the_published_setting_is_quoted_on_both_grids(capsys):
    line = "account --examples 1956 --batch 64 --steps 727 --noise-multiplier 0.001"
    result = _json(capsys, *line.split(), "--sampling", "none")
    assert round(result["epsilon"]["rdp"]) == 363_630_220
    assert result["rdp_order"]["widened"]
    assert round(result["rdp_order"]["default_grid_epsilon"]) == 399_850_112
    assert any("399,850,112" in line for line in result["warnings"])


def test_a_group_costs_more(capsys):
    result = _json(capsys, *RUN, *NOISE, "--group", "3")
    assert result["group"]["size"] == 3
    assert result["group"]["epsilon"] > 3 * result["epsilon"]["rdp"]


def test_a_plot_is_drawn(capsys, tmp_path):
    path = tmp_path / "curve.png"
    result = _json(capsys, *RUN, *NOISE, "--plot", str(path))
    assert path.read_bytes()[:4] == b"\x89PNG"
    assert result["curve"][-1]["steps"] == 306
    assert result["curve"][-1]["epsilon"] == result["epsilon"]["rdp"]
    prices = [point["epsilon"] for point in result["curve"]]
    assert prices == sorted(prices)


@pytest.mark.parametrize("name", ["curve.txt", "none/curve.png"])
def test_a_plot_that_cannot_be_is_refused_first(refused, tmp_path, name):
    refused(*RUN, *NOISE, "--plot", tmp_path / name)


# The other mechanisms.


@pytest.mark.parametrize(
    "line",
    [
        "counts --noise-multiplier 1 --group",
        "counts --noise-multiplier 1 --releases",
        "laplace --epsilon 1 --dimension",
        "laplace --epsilon 1 --dimension 8 --group",
        "laplace --epsilon 1 --dimension 8 --releases",
        "response --epsilon 1 --group",
        "selection --noise-multiplier 9 --selection-delta 1e-6 --max-contributions",
    ],
)
def test_a_whole_number_that_no_float_can_hold_is_refused(refused, line):
    assert "Expected" in refused("account", *line.split(), "1" + 400 * "0")


def test_options_before_a_command_are_refused(refused):
    assert "--delta" in refused(
        "account", "--delta", "1e-6", "counts", "--noise-multiplier", "1"
    )


def test_counts(capsys):
    line = "account counts --noise-multiplier 2 --releases 3"
    result = _json(capsys, *line.split())
    assert result["epsilon"]["rdp"] == epsilon(Gaussian(2.0, 3), 1e-5)
    result = _json(capsys, *["account", "counts", "--target-epsilon", "1"])
    assert 0.999 < result["epsilon"]["rdp"] <= 1


def test_selection(capsys):
    line = "account selection --noise-multiplier 10 --selection-delta 1e-6"
    result = _json(capsys, *line.split())
    assert result["epsilon"]["rdp"] == epsilon(GaussianThreshold(10.0, 1e-6), 1e-5)
    assert result["additive_delta"] == 1e-6
    assert 48 < result["threshold"] < 49  # 1 + 10 * 4.75
    line = "account selection --noise-multiplier 10 --selection-delta 1e-5"
    result = _json(capsys, *line.split())
    assert result["epsilon"]["rdp"] is None
    assert any("no guarantee" in line for line in result["warnings"])


def test_response(capsys):
    result = _json(capsys, *["account", "response", "--epsilon", "2", "--labels", "3"])
    assert result["epsilon"]["rdp"] == 2.0
    assert result["keep_probability"] == pytest.approx(math.e**2 / (math.e**2 + 2))
    assert result["adjacency"] == "replace-one"


def test_an_option_before_a_command_is_named_as_it_is_typed(refused):
    line = refused("account", "--json", "counts", "--noise-multiplier", "1")
    assert "received --json before it" in line


def test_several_records_of_one_person(capsys):
    line = ["account", "selection", "--selection-delta", "1e-12", "--group", "2"]
    few = _json(capsys, *line, "--noise-multiplier", "10")
    assert few["group"]["size"] == 2
    assert few["epsilon"]["rdp"] * 2 < few["group"]["epsilon"]
    # More names of one record: more of them may pass that only the two bring in.
    options = ["--noise-multiplier", "10", "--max-contributions", "50"]
    many = _json(capsys, *line, *options)
    assert many["event"]["max_contributions"] == 50
    line = ["account", "laplace", "--dimension", "3", "--domain", "code"]
    options = ["--epsilon", "2", "--releases", "2", "--group", "3"]
    result = _json(capsys, *line, *options)
    assert (result["record_epsilon"], result["group"]["record_epsilon"]) == (4, 12)
    assert main.run([*line, *options]) == 0
    assert "3 texts of one person: epsilon 12" in capsys.readouterr().out


def test_choices_of_pure_epsilon_are_uses(capsys, tmp_path):
    path = tmp_path / "uses.yaml"
    path.write_text(
        "- exponential: {epsilon: 0.5, times: 3}\n"
        "- selection: {noise_multiplier: 10, delta: 1e-9, max_contributions: 4}\n"
    )
    first, second = _json(capsys, "account", "compose", str(path))["uses"]
    assert first["epsilon_alone"] == pytest.approx(1.5, rel=1e-3)
    assert second["event"]["max_contributions"] == 4


def test_laplace_claim_beside_certificate(capsys):
    line = "account laplace --dimension 384 --nominal-epsilon 1 --mask-rate 0.5"
    result = _json(capsys, *line.split(), "--releases", "2")
    assert result["claimed_epsilon"] == pytest.approx(0.620115, abs=1e-6)
    assert result["claim_holds"] is False
    assert result["record_epsilon"] == 768
    line = "account laplace --dimension 16 --epsilon 4 --domain l1_ball"
    assert main.run(line.split()) == 0
    assert "epsilon 4" in capsys.readouterr().out


USES = """
delta: 1e-5
uses:
  - dp_sgd: {examples: 1956, batch: 64, steps: 306, noise_multiplier: 1.0}
  - gaussian_counts: {noise_multiplier: 4, times: 2}
    part: spam
  - gaussian_counts: {noise_multiplier: 5.0, name: words}
    part: ham
  - selection: {noise_multiplier: 10.0, delta: 1e-6}
  - response: {epsilon: 0.1}
  - {type: PureDP, epsilon: 0.1}
"""


@pytest.mark.parametrize("name", ["uses.yaml", "uses.json"])
def test_several_uses_are_composed(capsys, tmp_path, name):
    path = tmp_path / name
    uses = yaml.safe_load(USES.replace("1e-", "1.0e-"))
    path.write_text(USES if name.endswith("yaml") else json.dumps(uses))
    result = _json(capsys, "account", "compose", str(path))
    whole = Compose(
        (
            PoissonGaussian(64 / 1956, 1.0, 306),
            GaussianThreshold(10.0, 1e-6),
            PureDP(0.1, 2),
            Parallel((Gaussian(4.0, 2), Gaussian(5.0))),
        )
    )
    assert result["epsilon"]["rdp"] == pytest.approx(epsilon(whole, 1e-5), rel=1e-12)
    assert result["epsilon"]["pld"] < result["epsilon"]["rdp"]
    assert result["uses"][2]["name"] == "words"
    assert len(result["uses"]) == 6


def test_a_use_without_noise_leaves_no_guarantee(capsys, tmp_path):
    path = tmp_path / "uses.yaml"
    path.write_text("- gaussian_counts: {noise_multiplier: 4}\n- nothing: {}\n")
    result = _json(capsys, "account", "compose", str(path))
    assert result["epsilon"] == {"rdp": None, "pld": None}
    assert any("no guarantee" in line for line in result["warnings"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: [",
        "uses: 3",
        "uses: []",
        "colour: red\nuses: [{nothing: {}}]",
        "- 7",
        "- {nothing: {}, response: {epsilon: 1}}",
        "- snapping: {epsilon: 1}",
        "- response: 1",
        "- response: {}",
        "- response: {epsilon: 1, delta: 1e-6}",
        "- response: {epsilon: -1}",
        "- response: {epsilon: .nan}",
        "- response: {epsilon: '1'}",
        "- response: {epsilon: 1, times: 0}",
        "- response: {epsilon: 1, times: 2.0}",
        "- response: {epsilon: 1, name: 3}",
        "- {response: {epsilon: 1}, part: 3}",
        "- gaussian_counts: {noise_multiplier: 0}",
        "- gaussian_counts: {noise_multiplier: .inf}",
        "- selection: {noise_multiplier: 1, delta: 2}",
        "- dp_sgd: {examples: 10, batch: 11, steps: 1, noise_multiplier: 1}",
        "- dp_sgd: {examples: 10, steps: 1, noise_multiplier: 1}",
        "- dp_sgd: {examples: 0, batch: 1, steps: 1, noise_multiplier: 1}",
        "- dp_sgd: {examples: 9, batch: 1, steps: 0, noise_multiplier: 1}",
        "- {type: Louder, noise_multiplier: 1}",
        "delta: 2\nuses: [{response: {epsilon: 1}}]",
    ],
)
def test_a_bad_list_of_uses_is_one_line(refused, tmp_path, text):
    path = tmp_path / "uses.yaml"
    path.write_text(text)
    refused("account", "compose", path)


def test_a_missing_list_of_uses_is_one_line(refused, tmp_path):
    refused("account", "compose", tmp_path / "none.yaml")


def test_the_ledger_of_a_run_is_priced(capsys, tmp_path):
    (tmp_path / "internal").mkdir()
    path = tmp_path / "internal" / "ledger.jsonl"
    ledger = PrivacyLedger(path, limit_epsilon=8.0, delta=1e-6)
    ledger.charge("counts", Gaussian(4.0))
    for part in ("spam", "ham"):
        ledger.charge("step", Gaussian(5.0), part=part)
    before = path.read_bytes()
    for where in (tmp_path, tmp_path / "internal", path):
        result = _json(capsys, "account", "run", str(where))
        assert result["epsilon"]["rdp"] == ledger.epsilon()
        assert (result["charges"], result["delta"]) == (3, 1e-6)
    assert path.read_bytes() == before


def test_a_run_without_or_with_a_damaged_ledger_is_refused(refused, tmp_path):
    refused("account", "run", tmp_path)
    refused("account", "run", tmp_path / "none")
    (tmp_path / "ledger.jsonl").write_text("{}\n")
    refused("account", "run", tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "counts",
        "counts --noise-multiplier 1 --target-epsilon 1",
        "counts --noise-multiplier nan",
        "counts --noise-multiplier 0",
        "counts --noise-multiplier 1 --releases 0",
        "counts --noise-multiplier 1 --delta 0",
        "counts --noise-multiplier 1 --delta 1",
        "counts --noise-multiplier 1 --delta 2",
        "counts --noise-multiplier 1 --delta nan",
        "counts --noise-multiplier 1 --group 0",
        "counts --target-epsilon inf",
        "selection --noise-multiplier 1 --selection-delta 0",
        "selection --noise-multiplier 1 --selection-delta nan",
        "selection --target-epsilon 1 --selection-delta 1e-4",
        "response --epsilon nan",
        "response --epsilon 0",
        "response --epsilon 1 --labels 1",
        "response --epsilon 1 --labels 100000000",
        "laplace --dimension 0 --epsilon 1",
        "laplace --dimension 8",
        "laplace --dimension 8 --epsilon 1 --nominal-epsilon 1",
        "laplace --dimension 8 --epsilon inf",
        "laplace --dimension 8 --epsilon 1 --mask-rate 1",
        "laplace --dimension 8 --epsilon 1 --lengths 3",
        "laplace --dimension 8 --epsilon 1 --domain ball",
    ],
)
def test_a_bad_value_of_a_mechanism_is_one_line(refused, line):
    refused("account", *line.split())


@pytest.mark.parametrize(
    ("sigma", "steps"), [("1e-9", 10**9), ("1e6", 1), ("1e6", 10**9)]
)
def test_extreme_values_end_and_bound(capsys, sigma, steps):
    line = f"account --examples 1000 --batch 10 --steps {steps} --noise-multiplier"
    result = _json(capsys, *line.split(), sigma)
    price = result["epsilon"]["rdp"]
    assert price is None or price >= 0


def test_a_whole_number_is_a_number_and_a_text_is_not(capsys, refused):
    assert _json(capsys, *RUN, "--noise-multiplier", "1")["noise_multiplier"] == 1.0
    refused(*RUN, "--noise-multiplier", "one")
    refused(*RUN, "--noise-multiplier", "1", "--batch", "6.5")
