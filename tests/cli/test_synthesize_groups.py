"""`tfpriv synthesize --group`: what all the records of one author cost."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import SECRET, rows, write

COLUMNS = ["--text", "CONTENT", "--label", "CLASS"]
GROUP = ["--group", "AUTHOR", "--group-size", "3"]


@pytest.fixture
def output(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def command(tmp_path, output):
    """Records of which no author has more than three."""
    records = rows(ham=63, spam=64)
    for number, record in enumerate(records):
        record[0] = f"{SECRET}-{number // 3}"
    private = write(tmp_path / "private.csv", records)
    options = ["--output", output, "--discriminator-steps", "0"]
    return ["synthesize", private, *COLUMNS, *options]


def statement(output):
    return json.loads((output / "release" / "privacy.json").read_text())


def test_the_statement_has_the_epsilon_of_an_author_too(tiny, run, command, output):
    code, out, _ = run(*command, *GROUP)
    assert code == 0
    group = statement(output)["group"]
    assert (group["unit"], group["size"]) == ("AUTHOR", 3)
    # Noise divided by three costs more than three times as much.
    assert 3 * statement(output)["epsilon"] < group["epsilon"] < 60
    assert "one AUTHOR, 3 at most: epsilon" in out
    assert "one AUTHOR, 3 at most" in (output / "release/statement.txt").read_text()
    code, out, _ = run("statement", output)
    assert code == 0
    assert "one AUTHOR at once, 3 at most" in out
    assert SECRET not in out


def test_without_it_nobody_is_promised_anything_together(tiny, run, command, output):
    assert run(*command)[0] == 0
    assert statement(output)["group"] is None
    assert any("group privacy" in line for line in statement(output)["not_covered"])


def test_a_model_that_was_saved_still_says_it(tiny, run, command, output):
    from tfpriv.seqgan.dp_seqgan import DPSeqGAN

    assert run(*command, *GROUP)[0] == 0
    loaded = DPSeqGAN.load(output / "internal" / "model").privacy_statement()
    assert loaded.to_json() == statement(output)


def test_a_smaller_epsilon_for_an_author_is_found_out(tiny, run, command, output):
    assert run(*command, *GROUP)[0] == 0
    assert run("statement", output, "--verify")[0] == 0
    path = output / "release" / "privacy.json"
    told = statement(output)
    told["group"]["epsilon"] *= 0.5
    path.write_text(json.dumps(told))
    code, _, err = run("statement", output, "--verify")
    assert code == 1
    assert "group.epsilon" in err


def test_an_author_with_more_records_is_refused_and_not_named(refused, command, output):
    line = refused(*command, "--group", "AUTHOR", "--group-size", "2")
    assert "at most 2 records of one 'AUTHOR'" in line
    assert "record 3 " in line
    assert not output.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--group", "AUTHOR"], "--group alone"),
        (["--group-size", "2"], "--group-size alone"),
        (["--group", "AUTHOR", "--group-size", "0"], "group_size"),
        (["--group", "NOBODY", "--group-size", "2"], "NOBODY"),
        (["--group", "CONTENT", "--group-size", "2"], "different columns"),
    ],
)
def test_options_that_say_no_bound_are_refused(refused, command, options, words):
    assert words in refused(*command, *options)
