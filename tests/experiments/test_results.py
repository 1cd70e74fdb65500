import json

import pytest

from experiments import results


@pytest.fixture
def write(tmp_path):
    def write(name, value, report="# Title\n\n## Part\n\n![plot](accuracy.png)\n"):
        folder = tmp_path / name / "results"
        folder.mkdir(parents=True)
        (folder / "results.json").write_text(json.dumps(value))
        (folder / "results.md").write_text(report)

    return write


def target(what, met):
    return {"what": what, "goal": "> 1", "value": "2", "met": met}


def test_missed_targets_come_first_and_met_ones_are_only_counted(write, tmp_path):
    targets = [target("one thing", True), target("other thing", False)]
    write("a", {"targets": targets, "command": "python -m experiments.a --seeds 0"})
    text = results.put_together(tmp_path)
    assert "1 of 2 targets were missed" in text
    assert "other thing" in text
    assert "one thing" not in text
    assert "`python -m experiments.a --seeds 0`" in text


def test_reports_are_one_heading_lower_with_their_pictures(write, tmp_path):
    write("a", {})
    text = results.put_together(tmp_path)
    assert "\n## Title\n" in text
    assert "\n### Part\n" in text
    assert "![plot](a/results/accuracy.png)" in text


def test_the_oracle_is_judged_against_each_control(write, tmp_path):
    rows = [
        {"seed": 0, "setting": setting, "metric": "nll_oracle", "value": value}
        for setting, value in {
            "SeqGAN": 8.8,
            "MLE": 9.0,
            "constant reward": 8.7,
        }.items()
    ]
    rows += [
        {"seed": 0, "setting": setting, "metric": "nll_test", "value": value}
        for setting, value in {"SeqGAN": 7.65, "MLE": 7.64}.items()
    ]
    write("seqgan_oracle", {"measurements": rows, "seeds": [0]})
    text = results.put_together(tmp_path)
    assert "2 of 3 targets were missed" in text
    assert "NLL_test no worse than MLE's" in text
    assert "below that of constant reward" in text


@pytest.mark.parametrize("value", [{"quick": True}, {"part": "S2"}])
def test_quick_runs_and_tuning_are_refused(write, tmp_path, value, capsys):
    write("a", value)
    assert results.main(["--folder", str(tmp_path)]) == 2
    assert not (tmp_path / "RESULTS.md").exists()
    assert capsys.readouterr().err.count("\n") == 1


def test_nothing_to_put_together_is_an_error(tmp_path):
    assert results.main(["--folder", str(tmp_path)]) == 2
