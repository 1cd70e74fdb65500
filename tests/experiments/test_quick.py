"""The whole of an experiment at its smallest sizes."""

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("name", ["youtube_spam", "sentiment"])
def test_a_quick_run_measures_every_arm(name, data_dir, tmp_path):
    command = [sys.executable, "-m", f"experiments.{name}", "--quick"]
    command += ["--seeds", "0", "--output", str(tmp_path / "run")]
    subprocess.run(command, check=True, capture_output=True)
    results = json.loads((tmp_path / "run" / "results.json").read_text("utf-8"))
    assert results["quick"]
    for cell in results["cells"]:
        assert 0 <= cell["metrics"]["accuracy/LR"] <= 1
        assert cell["metrics"]["perplexity"] > 1
        if cell["arm"].startswith("default"):
            assert cell["privacy"]["epsilon"] <= 8
            assert {route["chosen"] for route in cell["routes"]} <= {
                "seed",
                "pretrained",
                "adversarial",
            }
            # A class whose noisy size is next to nothing has no adversarial part.
            tried = all("adversarial" in x["divergence"] for x in cell["routes"])
            expected = {"seed", "adversarial"} if tried else {"seed"}
            assert cell["candidates"].keys() == expected
        elif cell["arm"] in ("paper", "seqgan"):
            assert cell["privacy"]["epsilon"] is None
            assert "examples" not in cell
    assert "trained on" in (tmp_path / "run" / "results.md").read_text("utf-8")
    assert (tmp_path / "run" / "accuracy.png").is_file()
