"""DP-SeqGAN's table and figures, from cells whose figures are easy to check by hand."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import numpy as np
import pytest

from experiments.dp_seqgan import command, figures, report, tables
from experiments.dp_seqgan.explanation import explanation
from experiments.dp_seqgan.settings import (
    ARMS,
    CANARY_ARMS,
    DEFAULT_ARMS,
    Settings,
)
from experiments.results import put_together

MEMBERS, OTHERS = 60, 40


def attack(name, label, ranks, **more):
    value = 0.9 if min(ranks) >= OTHERS else 0.5
    return {
        "attack": name,
        "label": label,
        "score": {
            "members": MEMBERS,
            "non_members": OTHERS,
            "auc": {"value": value, "low": 0.0, "high": 1.0},
        },
        "ranks": " ".join(map(str, ranks)),
        **more,
    }


def cell(arm, seed):
    """SeqGAN is attacked without a mistake, everything else at chance."""
    result = {
        "experiment": "dp_seqgan",
        "arm": arm,
        "seed": seed,
        "metrics": {"accuracy/RNN": 0.80 + 0.02 * seed, "accuracy/CNN": 0.93},
        "metrics_from": "experiments.youtube_spam",
        "convergence": {
            "all rows": {"rows": 320, "steps": 60, "accuracy": [0.5, 0.8, 0.9, 0.91]}
        },
        "machine": "abacus, 2 cores",
        "versions": {"tfpriv": "0"},
        "seconds": 1.0,
        "cpu_seconds": 60.0,
    }
    if arm == "original":
        return result
    if arm in CANARY_ARMS:
        audit = {"correct": 9, "guesses": 10, "epsilon_lower": 1.25}
        audit |= {"ceiling": 2.5, "records_ceiling": 3.5}
        exposure = {"in": 7.5, "out": 1.5, "ceiling": 8.0, "p_value": 1e-9}
        exposure = {f"exposure/{name}": value for name, value in exposure.items()}
        privacy = {"epsilon": None, "events": []}
        found = [{"attack": "generator", "audit": audit, **exposure}]
        return result | {"canaries": found, "privacy": privacy}
    drawn = sorted(np.random.default_rng([seed, 7]).permutation(100)[:MEMBERS].tolist())
    highest = list(range(OTHERS, 100))
    guaranteed = arm.startswith("default")
    ranks = highest if arm == "seqgan" else drawn
    right = 0.73 if arm == "seqgan" else 0.6
    right = {"value": right, "low": right - 0.05, "high": right + 0.05}
    noise = {"noise_multiplier": {"paper": 0.001}.get(arm, 7.5)}
    return result | {
        "privacy": {
            "epsilon": 7.996 if guaranteed else None,
            "events": [
                {
                    "name": "discriminator",
                    "event": {} if arm == "seqgan" else noise,
                    "epsilon": 4.0 if guaranteed else 4e8,
                }
            ],
        },
        "attacks": [
            attack("LOGAN", "spam", ranks),
            attack(
                "published (shadow SVM)", "ham", drawn, accuracy=right, called_in=1.0
            ),
        ],
        "regularisation": [
            {
                "label": label,
                "train/mean": {"seqgan": 0.9, "paper": 0.75}.get(arm, 0.6),
                "held_out/mean": 0.6,
                "train/taken_for_real": 1.0,
                "held_out/taken_for_real": 0.5,
                "train/outliers": 0.7,
                "train/others": 0.8,
                "held_out/outliers": None,
                "held_out/others": 0.6,
            }
            for label in ("ham", "spam")
        ],
    }


CELLS = [
    cell(arm, seed)
    for arm in ("original", "seqgan", "paper", "default@8")
    for seed in (0, 1)
]


@pytest.fixture
def found():
    return report.results(Settings(), copy.deepcopy(CELLS), quick=False)


def test_mixtures_have_a_row_a_share_and_classifier_and_a_mean_over_seeds():
    mixtures = [
        {"real": 0.1, "synthetic": x, "rows": 9, "accuracy/LR": y, "accuracy/RNN": 0.5}
        for x, y in ((0.0, 0.7), (1.0, 0.8))
    ]
    cells = [c | {"mixtures": mixtures} if c["seed"] else c for c in CELLS]
    lines = tables.augmentation({"cells": cells})
    (row,) = [x for x in lines if x.startswith("| SeqGAN | 1 | 10% | LR |")]
    assert row == "| SeqGAN | 1 | 10% | LR | 0.700 | - | 0.800 | - | - |"
    assert tables.augmentation({"cells": CELLS}) == []


def test_members_that_rank_highest_are_told_and_random_ones_are_not():
    (logan, published) = figures.pooled(CELLS, "seqgan")
    assert (logan.name, logan.auc.value, logan.members) == ("LOGAN", 1.0, 2 * MEMBERS)
    assert logan.attacks_tried == 2
    assert published.auc.low <= 0.5 <= published.auc.high


def test_ranks_of_equal_scores_are_no_leak_and_order_is_kept():
    ranks = list(
        map(
            int,
            figures.member_ranks(np.array([3.0, 1.0]), np.array([2.0, 0.0])).split(),
        )
    )
    assert ranks == [1, 3]
    tied = list(map(int, figures.member_ranks(np.zeros(500), np.zeros(500)).split()))
    assert abs(np.mean(tied) - 499.5) < 60


def test_an_rnn_has_converged_where_it_stays():
    assert figures.epochs_to_converge([0.5, 0.9, 0.91, 0.9]) == 2
    assert figures.epochs_to_converge([0.9, 0.5, 0.91, 0.9]) == 3
    assert figures.epochs_to_converge([0.9]) == 1
    shown = figures.convergence(CELLS, "original", "all rows")
    assert shown["epochs"].mean == 3
    assert shown["steps"].mean == 30


def test_table_1_stands_beside_the_published_figures(found):
    text = "\n".join(tables.attack_accuracy(found))
    assert "| SeqGAN | 2 | 0.730 +- 0.000 (AUC" in text
    assert "0.73 and 0.61" in text
    assert "0.51 and 0.50" in text


def test_what_has_no_guarantee_claims_none(found):
    assert tables.claimed(CELLS, "default@8") == "8"
    assert tables.claimed(CELLS, "paper") == "nothing (discriminator: 400,000,000)"
    text = "\n".join(tables.every_attack(found))
    assert "safe" not in text


def test_regularisation_is_the_mean_over_classes_and_skips_what_is_missing(found):
    text = "\n".join(tables.regularisation(found))
    assert "| 0.300 +- 0.000 |" in text  # the gap
    assert text.count("| - |") == 3  # no outlier of S2, in any arm
    assert "original data" not in text


def test_paper_mode_is_explained_by_what_its_discriminator_has_learnt(found):
    text = "\n".join(explanation(found))
    assert "| SeqGAN | none | 0.300 +- 0.000 | 0.730 | 1.00 | 0.900 |" in text
    assert "| DP-SeqGAN, paper mode | 0.001 | 0.150 +- 0.000 | 0.600 | 1.00 |" in text
    assert "| DP-SeqGAN, epsilon 8 | 7.5 | 0.000 +- 0.000 |" in text
    assert "Noise of 0.001 clips leaves 50 % of the gap" in text
    assert "The published 0.51 and 0.50 are what it finds at a gap of 0" in text
    assert "The published CNN is at 0.914 after real rows and 0.927" in text
    assert "and at 0.930 after paper mode's." in text
    # The RNN's .81 after real rows is below the published .914 after synthetic ones.
    assert text.count("has from real ones alone") == 1
    for cell in found["cells"]:
        cell["metrics"] = cell["metrics"] | {"accuracy/RNN": 0.95}
    found["published"]["attack_accuracy"]["paper"] = [0.6, 0.4]
    text = "\n".join(explanation(found))
    assert text.count("has from real ones alone") == 2
    assert "The published 0.60 and 0.40" in text
    without = [cell for cell in CELLS if cell["arm"] != "paper"]
    assert explanation(report.results(Settings(), without, quick=False)) == []


def test_what_collapsed_is_said_of_the_cells_that_know(found):
    assert "collapsed" not in "\n".join(explanation(found))
    for cell, collapsed in zip(found["cells"], ({}, {}, {"ham": 15}), strict=False):
        cell |= {"sizes": {"S1": {"ham": 9, "spam": 9}}, "collapsed": collapsed}
    text = "\n".join(explanation(found))
    assert "original data: the text of 0 of 4 generators collapsed in" in text
    assert "SeqGAN: the text of 1 of 2 generators collapsed in" in text
    assert "in round 15: they go" in text


def test_canaries_stand_beside_what_could_have_been_found():
    with_canaries = [*CELLS, cell("canaries/seqgan", 0)]
    found = report.results(Settings(), with_canaries, quick=False)
    text = "\n".join(tables.canaries(found))
    assert "| SeqGAN | 0 | generator | 7.50 | 1.50 | 8.00 | 1e-09 |" in text
    assert "| 9 of 10 | 1.25 | 2.50 / 3.50 | nothing |" in text
    # They are no runs of the arm itself.
    assert "| SeqGAN | 2 |" in "\n".join(tables.usefulness(found))


def test_targets_are_computed(found):
    met = {t["what"]: t["met"] for t in found["targets"]}
    assert met["SeqGAN: AUC of the best attack"]
    assert met["SeqGAN, ham: accuracy of the published attack"]
    # .6 +- .05 does not hold the published .51.
    paper = "DP-SeqGAN, paper mode, ham: accuracy of the published attack"
    assert not met[paper]
    assert met["epsilon 8: lower bound of the worst attack's AUC, corrected, pooled"]
    assert not met["paper mode: accuracy of the RNN, as published"]
    assert met["paper mode: accuracy of the CNN, as published"]
    worse = [cell("seqgan", seed) | {"arm": "default@8"} for seed in (0, 1)]
    bad = report.results(Settings(), [*CELLS[:6], *worse], quick=False)
    met = {t["what"]: t["met"] for t in bad["targets"]}
    assert not met[
        "epsilon 8: lower bound of the worst attack's AUC, corrected, pooled"
    ]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr("tfpriv.datasets.read", lambda name: None)
    done = []

    def run_cell(settings, arm, seed, work):
        done.append((seed, arm))
        return cell(arm, seed)

    def call(*arguments):
        done.clear()
        output = ["--output", str(tmp_path / "dp_seqgan" / "results")]
        code = command.main(Settings(), [*output, *arguments], run_cell)
        return code, list(done)

    return call


@pytest.mark.slow
def test_every_cell_is_run_once_and_the_report_is_whole(run, tmp_path):
    only = ["--only", "original", "seqgan", "paper", "default@8"]
    assert run("--seeds", "0", *only)[1] == [(0, arm) for arm in only[1:]]
    assert run("--seeds", "0", "1", *only)[1] == [(1, arm) for arm in only[1:]]
    assert run("--seeds", "0", *only) == (0, [])
    folder = tmp_path / "dp_seqgan" / "results"
    for name in ("attacks.png", "accuracy.png", "convergence.png", "results.md"):
        assert (folder / name).stat().st_size > 1000 or name == "results.md"
    # It goes into RESULTS.md as any other experiment does.
    text = put_together(tmp_path)
    assert "dp_seqgan/results/attacks.png" in text
    assert "python -m experiments.dp_seqgan --seeds 0 1 --output DIR" in text


@pytest.mark.slow
def test_all_arms_but_the_long_one_run_by_default(run):
    code, done = run("--seeds", "3")
    assert code == 0
    assert [arm for _, arm in done] == [*DEFAULT_ARMS, *CANARY_ARMS]
    assert set(ARMS) - set(DEFAULT_ARMS) == {"seqgan_full"}


def test_bad_input_ends_with_2_before_work(run, tmp_path, capsys):
    assert run("--only", "magic") == (2, [])
    run("--only", "original", "--seeds", "0")
    assert run("--quick", "--only", "original") == (2, [])
    err = capsys.readouterr().err
    assert "received 'magic'" in err
    assert "Choose another --output" in err


@pytest.mark.slow
def test_a_quick_run_measures_every_branch(data_dir, tmp_path):
    command_line = [sys.executable, "-m", "experiments.dp_seqgan", "--quick"]
    command_line += ["--output", str(tmp_path / "run"), "--only"]
    command_line += ["original", "seqgan", "default@8", "canaries/default@8"]
    subprocess.run(command_line, check=True, capture_output=True)
    results = json.loads((tmp_path / "run" / "results.json").read_text("utf-8"))
    assert results["quick"]
    (audited,) = [one for one in results["cells"] if one["arm"] in CANARY_ARMS]
    assert {one["attack"] for one in audited["canaries"]} >= {"released text"}
    for one in results["cells"]:
        if one["arm"] in CANARY_ARMS:
            continue
        assert 0 <= one["metrics"]["accuracy/RNN"] <= 1
        if one["arm"] in ("original", *CANARY_ARMS):
            continue
        names = {found["attack"] for found in one["attacks"]}
        assert {"LOGAN", "LiRA online", "LiRA offline", "generator likelihood"} <= names
        assert {"published (shadow SVM)", "nearest neighbour"} <= names
        assert len(one["regularisation"]) == 2
    assert not list((tmp_path / "run" / "work").iterdir())
    assert "Table 1" in (tmp_path / "run" / "results.md").read_text("utf-8")
