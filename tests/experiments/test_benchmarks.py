"""The benchmarks run, pair their turns, and leave a run that is there alone."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import tensorflow as tf

from experiments._cells.turns import take_turns
from experiments.benchmarks import report, targets
from experiments.benchmarks.__main__ import main
from experiments.benchmarks.contests import CONTESTS, PRIVATE
from experiments.benchmarks.rollouts import PublishedRewards
from tfpriv.seqgan import sampling
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.rewards import rollout_reward


def test_ratio_is_taken_within_rounds():
    turns = {"base": [1.0, 10.0, 2.0], "other": [3.0, 30.0, 6.0]}
    rows = report.summary(
        [
            {
                "contest": "c",
                "contestant": name,
                "seconds": seconds,
                "cpu_seconds": [2 * x for x in seconds],
                "first": {"cpu_seconds": 7.0},
            }
            for name, seconds in turns.items()
        ]
    )
    assert rows[1]["cpu_ratio"] == [3, 3, 3]
    assert rows[1]["cpu_ms"][1] == 12000
    assert rows[1]["first_cpu_seconds"] == 7
    assert rows[0]["ratio"] == [1, 1, 1]
    assert rows[1]["ratio"] == [3, 3, 3]
    assert rows[1]["difference_ms"][1] == 4000


def test_every_contestant_runs_once_a_round_and_once_before():
    calls = []
    runs = {name: lambda name=name: calls.append(name) for name in "ab"}
    rng = np.random.default_rng(0)
    first, second = take_turns(runs, {"seed": 0}, rng, least=3, most=5, seconds=0)
    assert (first["contestant"], first["seed"]) == ("a", 0)
    assert len(first["seconds"]) == len(second["seconds"]) == 3
    assert len(first["cpu_seconds"]) == 3
    for turn in range(4):
        assert sorted(calls[2 * turn : 2 * turn + 2]) == ["a", "b"]


def test_folder_of_another_run_is_refused(tmp_path, capsys):
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(SystemExit) as stopped:
        main(["--quick", "--output", str(tmp_path)])
    assert stopped.value.code == 2
    assert "--output" in capsys.readouterr().err
    assert (tmp_path / "results.json").read_text() == "{}"


@pytest.mark.slow
def test_quick_run_times_every_contest(tmp_path):
    main(["--quick", "--output", str(tmp_path)])
    found = json.loads((tmp_path / "results.json").read_text())
    assert {row["contest"] for row in found["summary"]} == set(CONTESTS)
    assert all(row["ms"][0] > 0 for row in found["summary"])
    page = (tmp_path / "results.md").read_text()
    assert all(row["contestant"] in page for row in found["summary"])
    assert (tmp_path / "turns.png").stat().st_size > 0


def test_rewards_of_the_published_algorithm_are_ours():
    """In distribution: both are means of as many rollouts as make a small error."""
    rollouts = 300
    generator = Generator(12, 5, 4, 6, end_id=None, seed=0)
    discriminator = Discriminator(12, 5, 4, (1, 2), 6, seed=1)
    ids = tf.constant(generator.sample(6, seed=2))
    # Or it would call everything a half.
    untrained = discriminator(ids).numpy()
    kernel, bias = discriminator.head.trainable_variables
    kernel.assign(kernel * 2 / untrained.std(axis=0).max())
    bias.assign(-discriminator(ids).numpy().mean(axis=0))
    published = PublishedRewards(generator, discriminator, rollouts)(ids).numpy()
    reward = rollout_reward(generator, discriminator, rollouts=rollouts)
    ours = reward(ids, sampling.fresh_seed(3)).numpy()
    # A score is in [0, 1]: deviation 1/2 at most. Five deviations of the difference.
    assert np.abs(published - ours).max() < 5 * 0.5 * math.sqrt(2 / rollouts)
    assert np.ptp(ours) > 0.3
    # The twin of another prefix length is none.
    assert np.abs(published[:, :-1] - ours[:, 1:]).max() > 0.2
    np.testing.assert_allclose(published[:, -1], ours[:, -1], rtol=1e-5)


def row(contest, contestant, ratio, ms=1.0):
    return {
        "contest": contest,
        "contestant": contestant,
        "ratio": [ratio] * 3,
        "cpu_ratio": [ratio] * 3,
        "ms": [ms] * 3,
    }


@pytest.mark.parametrize(("ratio", "stock", "met"), [(0.9, 99, True), (1.1, 9, False)])
def test_targets_are_met_by_figures_and_not_by_absence(ratio, stock, met):
    summary = [
        row(targets.DISCRIMINATOR, PRIVATE, ratio),
        row(targets.DISCRIMINATOR, targets.STOCK, 1.0, ms=stock),
    ]
    memory = [{"contest": targets.DISCRIMINATOR, "ratio": 1.0 if met else 1.4}]
    found = targets.targets(summary, memory)
    assert [target["met"] for target in found] == [met] * 3


def test_targets_name_contests_and_contestants_that_exist():
    named = {(c, n) for c, n, *_ in targets._RATIOS + targets._SPEEDS}
    named |= {(c, other) for c, _, _, other in targets._SPEEDS}
    quick = {"Accounting", "Start-up"}
    for contest, name in named:
        assert contest in CONTESTS
        if contest in quick:
            assert name in CONTESTS[contest](0)
