import json

import pytest

from experiments._synthesis import report


@pytest.fixture
def found(study, cells):
    return report.results(study, cells, quick=False, part="test")


@pytest.fixture
def text(found, tmp_path):
    report.write_markdown(tmp_path / "results.md", found)
    return (tmp_path / "results.md").read_text(encoding="utf-8")


def test_results_are_plain_json_with_every_cell(found, cells):
    again = json.loads(json.dumps(found, allow_nan=False))
    assert len(again["cells"]) == len(cells)
    assert again["command"] == (
        "python -m experiments.made_up --seeds 0 1 --output DIR"
    )


def test_a_row_has_its_epsilon_its_mean_and_its_gap(text):
    (row,) = [x for x in text.splitlines() if "| 7.99 for everything |" in x]
    assert row.startswith("| DPSeqGAN, epsilon 8 | 2 |")
    assert "0.920 +- 0.000 (-0.030 +-" in row


def test_paper_mode_is_never_given_an_epsilon_for_the_whole(text):
    (row,) = [
        x for x in text.splitlines() if x.startswith("| paper mode") and "4e" in x
    ]
    assert "none (discriminator alone: 4e8)" in row


def test_synthetic_rows_are_those_of_one_private_release_and_cannot_break_the_table(
    text,
):
    assert r"a \| pipe \<br /> and \*stars\*" in text
    assert "the text of seed one" not in text


def test_the_tuning_split_is_marked(study, cells, tmp_path):
    found = report.results(study, cells, quick=True, part="validation")
    report.write_markdown(tmp_path / "results.md", found)
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "for tuning, not a result" in text
    assert "figures mean nothing" in text
    assert "Accuracy on S2" in text


def test_an_unfinished_run_is_reported_too(study, cells, tmp_path):
    for some in (cells[:1], cells[2:3], cells[-1:]):
        found = report.results(study, some, quick=False, part="test")
        report.write_markdown(tmp_path / "results.md", found)
        report.write_plot(tmp_path / "accuracy.png", found)


def test_the_plot_is_a_picture(found, tmp_path):
    report.write_plot(tmp_path / "accuracy.png", found)
    assert (tmp_path / "accuracy.png").read_bytes().startswith(b"\x89PNG")
