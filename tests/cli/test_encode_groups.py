"""`tfpriv encode --group`: what all the texts of one author cost."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import SECRET, write
from tfpriv.accounting import DataBudget

GROUP = ["--group", "AUTHOR", "--group-size", "3"]


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("TFPRIV_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def texts(tmp_path):
    """Seven texts of which no author has more than three."""
    return write(
        tmp_path / "texts.csv",
        [[f" {SECRET}-{i // 3}", f"she is good {SECRET}", ""] for i in range(7)],
    )


@pytest.fixture
def command(trained, preloaded, texts, tmp_path):
    return ["encode", trained[0], texts, "--output", tmp_path / "out.npy"]


def stated(tmp_path):
    return json.loads((tmp_path / "out.npy.privacy.json").read_text())


def test_the_statement_has_the_epsilon_of_an_author_too(run, command, tmp_path):
    code, _, err = run(*command, *GROUP, "--releases", "2")
    assert code == 0, err
    # The default is a code of epsilon 4: twice released, of three texts.
    assert stated(tmp_path)["epsilon"] == pytest.approx(8)
    group = stated(tmp_path)["group"]
    assert (group["unit"], group["size"]) == ("AUTHOR", 3)
    assert group["epsilon"] == pytest.approx(24)
    assert "24 for all of one AUTHOR, 3 at most" in err
    code, out, _ = run("statement", tmp_path / "out.npy")
    assert code == 0
    said = " ".join(out.split())
    assert "all the texts of one AUTHOR at once, 3 at most" in said
    assert "For all the texts of one AUTHOR, 3 at most: epsilon 24" in said
    assert "more than 3 texts of one AUTHOR" in said
    assert SECRET not in err + out


def test_json_has_it(run, command):
    code, out, _ = run(*command, *GROUP, "--json")
    assert code == 0
    group = json.loads(out)["statement"]["group"]
    assert group["epsilon"] == pytest.approx(12)


def test_without_it_nobody_is_promised_anything_together(run, command, tmp_path):
    assert run(*command)[0] == 0
    assert stated(tmp_path)["group"] is None
    assert any("same person" in line for line in stated(tmp_path)["not_covered"])


def test_a_smaller_epsilon_for_an_author_is_found_out(run, command, tmp_path):
    assert run(*command, *GROUP)[0] == 0
    assert run("statement", tmp_path / "out.npy", "--verify")[0] == 0
    told = stated(tmp_path)
    told["group"]["epsilon"] = told["epsilon"]
    (tmp_path / "out.npy.privacy.json").write_text(json.dumps(told))
    code, _, err = run("statement", tmp_path / "out.npy", "--verify")
    assert code == 1
    assert "group.epsilon" in err


def test_the_budget_shows_what_an_author_paid(run, command, texts, tmp_path):
    assert run("budget", "init", texts, "--epsilon", "9")[0] == 0
    assert run(*command, *GROUP)[0] == 0
    assert DataBudget.find(texts).epsilon() == pytest.approx(4)
    (total,) = DataBudget.find(texts).group_totals()
    assert (total.unit, total.size, total.unbounded) == ("AUTHOR", 3, 0)
    assert total.epsilon == pytest.approx(12)
    _, out, _ = run("budget", "show", texts)
    assert "For all the records of one AUTHOR, 3 at most: 12" in out
    # One release that did not look leaves no bound for an author.
    assert run(*command[:3])[0] == 0
    _, out, _ = run("budget", "show", texts)
    assert "no bound, since one charge did not have --group" in out
    groups = json.loads(run("budget", "show", texts, "--json")[1])["groups"]
    assert groups == [{"unit": "AUTHOR", "size": 3, "epsilon": None, "unbounded": 1}]


def test_an_author_with_more_texts_is_refused_unread_and_not_named(
    refused, run, command, texts, tmp_path, monkeypatch
):
    def fail(*args):
        raise AssertionError("a text was read")

    monkeypatch.setattr("tfpriv.cli.encode._read", fail)
    assert run("budget", "init", texts, "--epsilon", "9")[0] == 0
    line = refused(*command, "--group", "AUTHOR", "--group-size", "2")
    assert "at most 2 records of one 'AUTHOR'" in line
    assert "record 3 " in line
    assert DataBudget.find(texts).ledger.events() == ()
    assert not (tmp_path / "out.npy").exists()


def test_a_command_that_does_not_count_is_caught(refused, command, texts, monkeypatch):
    """The twin: it takes the group size at its word."""
    monkeypatch.setattr("tfpriv.accounting.GroupBound.check", lambda *args: None)
    with pytest.raises(AssertionError):
        refused(*command, "--group", "AUTHOR", "--group-size", "2")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--group", "AUTHOR"], "--group alone"),
        (["--group-size", "2"], "--group-size alone"),
        (["--group", "AUTHOR", "--group-size", "0"], "group_size"),
        (["--group", "AUTHOR", "--group-size", "1" + 20 * "0"], "group_size"),
        (["--group", "NOBODY", "--group-size", "2"], "NOBODY"),
        (["--group", "CONTENT", "--group-size", "2"], "different columns"),
        (["--group", "CLASS", "--group-size", "9"], "record 1 of"),
    ],
)
def test_options_that_say_no_bound_are_refused(refused, command, options, words):
    assert words in refused(*command, *options)


def test_plain_text_has_no_authors(trained, preloaded, refused, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("one\ntwo\n")
    assert "no column" in refused("encode", trained[0], path, *GROUP)
