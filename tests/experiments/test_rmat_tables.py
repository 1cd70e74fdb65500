"""The command, its report, and real cells of an untrained tiny BERT."""

import dataclasses
import json

import numpy as np
import pytest

from experiments.rmat_tables import command, plots, report
from experiments.rmat_tables.settings import TABLE_ARMS, Arm, Settings
from tfpriv.accounting import LaplaceCertificate

SENTENCES = ("I love the great day", "The door is brown", "I hate this awful thing")
GENDERS = ("male", "female", "gender-neutral")


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """Both Wizards, 45 rows a part."""
    folder = tmp_path / "data" / "md_gender" / "data_to_release" / "wizard"
    folder.mkdir(parents=True)
    for number, part in enumerate(("train", "valid", "test")):
        rows = [
            {
                "text": f"{SENTENCES[i // 3 % 3]} of page {i} {number}.",
                "gender": GENDERS[i % 3],
            }
            for i in range(45)
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{part}.jsonl").write_text(lines, encoding="utf-8")
    monkeypatch.setenv("TFPRIV_DATA_DIR", str(tmp_path / "data"))
    return folder


def estimate(value, half=0.02):
    return {"value": value, "low": value - half, "high": value + half}


def make_attack(auc):
    attacker = {
        "name": "mlp",
        "auc": estimate(auc),
        "adjusted_auc": estimate(auc, 0.03),
        "macro_f1": estimate(auc - 0.05),
        "balanced_accuracy": estimate(auc),
        "accuracy": estimate(auc),
        "auc_by_run": [auc],
    }
    return {
        "worst": "mlp",
        "leaks": auc > 0.55,
        "attackers": [{**attacker, "name": "other", "auc": estimate(0.4)}, attacker],
        "null_auc_bound": 0.54,
        "constant_macro_f1": 0.431,
        "prior_macro_f1": 0.463,
    }


def make_score(f1):
    matrix = np.diag([100, 200, 300])
    score = {"macro_f1": f1, "half": 0.01, "accuracy": f1}
    return {**score, "confusion": matrix.tolist(), "reader": {**score}}


FIGURES = {
    "none": (0.88, 0.80),
    "dpnr": (0.84, 0.70),
    "ads": (0.87, 0.52),
    "cape": (0.70, 0.60),
    "rmat": (0.86, 0.51),
}


def make_cell(settings, dataset, arm, seed):
    f1, auc = FIGURES.get(arm.method, (0.85, 0.5))
    nominal = LaplaceCertificate.nominal(1.0, 384).to_json()
    cell = {
        "experiment": "rmat_tables",
        "dataset": dataset,
        "arm": arm.key,
        "seed": seed,
        "floors": {"constant": 0.27, "prior": 0.33},
        "machine": "abacus, 2 cores",
        "versions": {"tfpriv": "0"},
        "seconds": 1.0,
        "certificate": None if arm.method in ("none", "ads") else nominal,
    }
    if arm.method in ("none", "second"):
        symbols = 3 if arm.method == "none" else 5
        counts = np.random.default_rng(0).integers(1, 30, (2, 3, 3, symbols))
        if arm.method == "none":
            for label in range(3):
                counts[:, label, :, label] += 300
        cell["counts"] = {"train": counts.tolist(), "test": counts.tolist()}
    if arm.method in ("code", "second"):
        cell["certified"] = {
            f"{epsilon:g}": {
                "certificate": LaplaceCertificate.from_epsilon(
                    epsilon, 3, "code"
                ).to_json(),
                "task": make_score(0.4 + 0.06 * epsilon),
                "attack": make_attack(0.5),
                "intensity": make_score(0.35 + 0.05 * epsilon),
            }
            for epsilon in settings.certified_epsilons
        }
        del cell["certificate"]
    else:
        cell |= {"task": make_score(f1 + 0.001 * seed), "attack": make_attack(auc)}
    return cell


@pytest.fixture
def run(pages, tmp_path, monkeypatch):
    # Plots take most of the time: one test looks at them.
    monkeypatch.setattr(report, "write_plots", lambda folder, found: [])
    done = []

    def run_cell(settings, dataset, arm, seed):
        done.append((dataset, seed, arm.key))
        return make_cell(settings, dataset, arm, seed)

    def call(*arguments, settings=None):
        done.clear()
        output = ["--output", str(tmp_path / "run")]
        code = command.main(settings or Settings(), [*output, *arguments], run_cell)
        return code, list(done)

    call.folder = tmp_path / "run"
    return call


def lines_with(run, *words):
    text = (run.folder / "results.md").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if all(word in line for word in words)]


def test_every_cell_is_run_once_and_never_again(run):
    arguments = ("--datasets", "wizard_as_published", "--only", "none", "rmat")
    code, done = run(*arguments, "--seeds", "0", "1")
    assert code == 0
    assert [cell[1:] for cell in done] == [
        (0, "none"),
        (0, "rmat"),
        (1, "none"),
        (1, "rmat"),
    ]
    code, done = run(*arguments[:3], "dpnr", "rmat", "--seeds", "1")
    assert (code, done) == (0, [("wizard_as_published", 1, "dpnr")])
    results = json.loads((run.folder / "results.json").read_text("utf-8"))
    assert len(results["cells"]) == 5
    assert results["seeds"] == [0, 1]


def test_all_data_sets_that_are_there_are_run_and_the_front_on_one(run):
    settings = Settings(front_epsilons=(0.5,))
    code, done = run("--seeds", "0", settings=settings)
    assert code == 0
    published = [key for dataset, _, key in done if dataset == "wizard_as_published"]
    assert published == list(TABLE_ARMS)
    wizard = [key for dataset, _, key in done if dataset == "wizard"]
    assert wizard == [*TABLE_ARMS, *settings.front()]
    results = json.loads((run.folder / "results.json").read_text("utf-8"))
    names = plots.write_plots(run.folder, results)
    assert names == ["methods.png", "certified.png", "front.png"]
    for name in names:
        assert (run.folder / name).read_bytes().startswith(b"\x89PNG")
    assert run("--seeds", "0", settings=settings) == (0, [])
    assert lines_with(run, "](front.png)")


def test_tables_put_published_figures_and_floors_beside_ours(run):
    run("--seeds", "0", "1", "--only", "none", "rmat", "ads")
    (row,) = [
        line
        for line in lines_with(run, "| Wizard as published", "| RMAT |")
        if "0.510" in line
    ]
    assert "| 37.2 |" in row
    assert "43.1 / 46.3" in row
    assert "0.510 [0.480, 0.540]" in row
    (row,) = lines_with(run, "| Wizard as published", "| RMAT | 2 | 75.3")
    assert row.endswith("| 1 | 384 | 384 |")
    (row,) = lines_with(run, "ConvAI2 | 69K")
    assert "not measured: data not available here" in row
    assert lines_with(run, "ConvAI2 | RMAT | 89.3 | not measured: data not")


def test_certified_releases_stand_beside_the_label_at_random(run):
    run("--datasets", "wizard", "--only", "none", "code", "second", "l1@4")
    rows = lines_with(run, "| Wizard (female, male) | 4 |")
    titles = [row.split(" | ")[2] for row in rows]
    assert titles[:3] == [
        "predicted label, randomised response",
        "RMAT, code of the class",
        "RMAT, L1 ball",
    ]
    assert any("both predicted labels" in row for row in rows)
    assert all(" - |" not in row for row in rows[1:3])


def test_targets_are_judged_and_baselines_that_win_are_named(run):
    run("--datasets", "wizard_as_published")
    results = json.loads((run.folder / "results.json").read_text("utf-8"))
    met = {target["what"]: target["met"] for target in results["targets"]}
    name = "Wizard as published (neutral, female)"
    assert met[f"{name}, no protection: task macro-F1"]
    assert met[f"{name}, RMAT: task macro-F1"]
    assert met[f"{name}, RMAT: AUC of the worst attacker"]
    assert met[f"{name}, RMAT against ADS: not more task at no more leakage"]
    FIGURES["ads"] = (0.87, 0.505)
    try:
        (run.folder / "cells" / "wizard_as_published_seed0_ads.json").unlink()
        run("--datasets", "wizard_as_published")
    finally:
        FIGURES["ads"] = (0.87, 0.52)
    results = json.loads((run.folder / "results.json").read_text("utf-8"))
    met = {target["what"]: target["met"] for target in results["targets"]}
    assert not met[f"{name}, RMAT against ADS: not more task at no more leakage"]


def test_an_unfinished_run_is_reported_too(run):
    for arm in ("second", "code", "front", "cape"):
        assert run("--datasets", "wizard", "--only", arm)[0] == 0
    assert lines_with(run, "| constant / prior guess |")
    results = json.loads((run.folder / "results.json").read_text("utf-8"))
    results["cells"] = [c for c in results["cells"] if c["arm"] == "second"]
    assert plots.write_plots(run.folder, results) == []


def test_a_run_of_other_settings_is_refused_before_work(run, capsys):
    run("--only", "none")
    other = Settings(mask_rate=0.2)
    assert run("--only", "rmat", settings=other) == (2, [])
    assert "mask_rate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--only", "magic"), "magic"),
        (("--datasets", "magic"), "magic"),
        (("--datasets", "convai2"), "not available here"),
        (("--datasets", "wizard_as_published", "--only", "front"), "front"),
    ],
)
def test_bad_arguments_are_found_before_work(run, arguments, named, capsys):
    assert run(*arguments) == (2, [])
    message = capsys.readouterr().err
    assert named in message
    assert message.count("\n") == 1


def test_without_any_data_nothing_is_run(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TFPRIV_DATA_DIR", str(tmp_path / "nowhere"))
    assert run() == (2, [])
    assert "received none" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_real_cell_holds_what_the_tables_need_and_no_text(pages):
    from experiments.rmat_tables.cells import run_cell

    settings = dataclasses.replace(Settings().quick(), certified_epsilons=(4.0,))
    cell = run_cell(settings, "wizard", Arm.parse("second"), 0)
    text = json.dumps(cell, allow_nan=False)
    assert not any(sentence in text for sentence in SENTENCES)
    assert cell["sizes"] == {"train": 30, "test": 60}
    release = cell["certified"]["4"]
    certificate = LaplaceCertificate.from_json(release["certificate"])
    assert (certificate.domain, certificate.dimension) == ("code", 5)
    assert 3.99 < certificate.record_epsilon <= 4.0
    assert np.sum(cell["counts"]["test"]) == 60
    assert np.shape(cell["counts"]["test"]) == (2, 3, 3, 5)
    for part in (release["task"], release["intensity"], cell["codes"]):
        assert 0 <= part["macro_f1"] <= 1
        assert np.sum(part["confusion"]) == 60
    assert release["attack"]["test_rows"] == 60


@pytest.mark.slow
def test_a_quick_run_measures_every_arm(pages, tmp_path):
    output = tmp_path / "run"
    arguments = ["--quick", "--datasets", "wizard", "--output", str(output)]
    arms = [*TABLE_ARMS, "l1@2", "front"]
    assert command.main(Settings(), [*arguments, "--only", *arms]) == 0
    results = json.loads((output / "results.json").read_text("utf-8"))
    assert results["quick"]
    cells = {cell["arm"]: cell for cell in results["cells"]}
    assert len(cells) == len(arms) - 1 + len(Settings().quick().front())
    for arm in ("none", "ads"):
        assert cells[arm]["certificate"] is None
    certificate = LaplaceCertificate.from_json(cells["l1@2"]["certificate"])
    assert 1.99 < certificate.record_epsilon <= 2.0
    # The noise of the codes is drawn, not left out: at epsilon 1 they are others.
    code = cells["code"]
    assert code["certified"]["1"]["task"]["confusion"] != code["codes"]["confusion"]
    assert "figures mean nothing" in (output / "results.md").read_text("utf-8")


@pytest.mark.slow
def test_data_sets_that_are_not_here_run_on_their_format_examples(
    data_dir, tmp_path, monkeypatch
):
    """Five rows a file: an attack has too few of them, and the cell says so."""
    examples = data_dir / "md_gender_format_examples"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "md_gender").symlink_to(examples)
    monkeypatch.setenv("TFPRIV_DATA_DIR", str(tmp_path / "data"))
    output = tmp_path / "run"
    names = ["convai2", "light", "opensubtitles"]
    arguments = ["--quick", "--output", str(output), "--datasets", *names]
    assert command.main(Settings(), [*arguments, "--only", "none", "code"]) == 0
    results = json.loads((output / "results.json").read_text("utf-8"))
    assert {cell["dataset"] for cell in results["cells"]} == set(names)
    attacks = [cell["attack"] for cell in results["cells"] if cell["arm"] == "none"]
    assert any("refused" in attack for attack in attacks)
    text = (output / "results.md").read_text("utf-8")
    assert "no attack possible" in text
