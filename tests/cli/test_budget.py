import json

import pytest

from tests.cli.conftest import SECRET
from tfpriv.accounting import (
    DataBudget,
    Gaussian,
    GaussianThreshold,
    GroupBound,
    PrivacyLedger,
    PureDP,
)


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    folder = tmp_path / "state"
    monkeypatch.setenv("TFPRIV_STATE_DIR", str(folder))
    monkeypatch.setattr("tfpriv.accounting.pld._FINEST_INTERVAL", 2e-3)
    return folder


@pytest.fixture
def budget(run, private):
    assert run("budget", "init", private, "--epsilon", "8")[0] == 0
    return DataBudget.find(private)


def test_a_data_set_is_given_a_budget(run, private, state):
    code, out, err = run("budget", "init", private, "--epsilon", "8", "--id", "mine")
    assert (code, err) == (0, "")
    assert "Data set mine: epsilon 8 at delta 1e-05" in out
    assert str(state) in out
    assert DataBudget.find(private).limit_epsilon == 8.0


def test_a_budget_that_is_there_is_not_made_again(run, refused, budget, private):
    assert "stays spent" in refused("budget", "init", private, "--epsilon", "9")


def test_an_author_without_a_bound_is_not_said_to_be_uncounted(run, budget, private):
    many = GroupBound("AUTHOR", 1000)
    budget.charge(GaussianThreshold(8.0, 1e-6), "label names", group=many)
    _, out, _ = run("budget", "show", private)
    assert "one AUTHOR, 1000 at most: no bound at this delta." in out
    assert "--group" not in out


def test_what_was_spent_on_what_is_shown(run, budget, private):
    budget.charge(Gaussian(4.0), "counts for the report")
    budget.charge(GaussianThreshold(8.0, 1e-6), "label names")
    budget.note("audit of the model")
    for what in (private, budget.id):
        code, out, err = run("budget", "show", what)
        assert (code, err) == (0, "")
        for words in (
            "counts for the report",
            "noise of multiplier 4",
            "audit of the model",
            "not charged",
            "by RDP, which decides",
            "1e-06 of that delta",
            "Left: for instance",
            "adding or removing one record",
        ):
            assert words in " ".join(out.split()), words
        assert SECRET not in out


def test_json_has_all_of_it(run, budget):
    budget.charge(Gaussian(4.0), "counts")
    budget.note("audit")
    result = json.loads(run("budget", "show", budget.id, "--json")[1])
    assert result["epsilon"]["rdp"] == budget.epsilon()
    assert result["epsilon"]["pld"] < result["epsilon"]["rdp"]
    assert result["decided_by"] == "rdp"
    assert [line["charged"] for line in result["lines"]] == [True, False]
    assert result["lines"][0]["event"] == Gaussian(4.0).to_json()
    left = result["left"]["noise_multiplier"]
    assert budget.ledger.affords(Gaussian(left))
    assert not budget.ledger.affords(Gaussian(0.99 * left))


def test_all_budgets_are_listed(run, budget, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("text\na\n")
    run("budget", "init", other, "--epsilon", "2")
    found = json.loads(run("budget", "show", "--json")[1])
    assert [budget["id"] for budget in found] == ["other", "private"]


def test_without_budgets_there_is_nothing_to_show(run, refused, private):
    code, out, _ = run("budget", "show")
    assert code == 0
    assert "No data set" in out
    assert "which has none" in refused("budget", "show", private)
    assert "none" in refused("budget", "show", "somebody")


def test_the_ledger_of_a_run_is_shown(run, tmp_path):
    (tmp_path / "run" / "internal").mkdir(parents=True)
    path = tmp_path / "run" / "internal" / "ledger.jsonl"
    ledger = PrivacyLedger(path, limit_epsilon=8.0, delta=1e-5)
    for _ in range(12):
        ledger.charge("step", PureDP(0.1), part="spam")
    before = sorted(path.parent.iterdir())
    for what in (tmp_path / "run", path):
        code, out, _ = run("budget", "show", what)
        assert code == 0
        assert "12 times" in out
        assert "step [spam]" in out
    assert sorted(path.parent.iterdir()) == before


def test_a_used_up_budget_says_so(run, budget):
    budget.charge(PureDP(8.0), "labels")
    out = run("budget", "show", budget.id)[1]
    assert "Left: nothing" in out
    assert "epsilon 8 by RDP" in out


def test_a_changed_file_is_accepted(run, refused, budget, private):
    private.write_text(f"AUTHOR,CONTENT,CLASS\nx,{SECRET},ham\n")
    with pytest.raises(ValueError, match="changed file"):
        budget.charge(Gaussian(9.0), "counts")
    code, out, _ = run("budget", "accept", private, "--id", budget.id)
    assert code == 0
    assert "stays spent" in out
    budget.charge(Gaussian(9.0), "counts")


def test_a_copied_ledger_is_accepted(run, refused, budget, state, monkeypatch):
    import shutil

    copy = state.with_name("copy")
    shutil.copytree(state, copy)
    monkeypatch.setenv("TFPRIV_STATE_DIR", str(copy))
    assert "--moved" in refused("budget", "show", budget.id)
    assert run("budget", "accept", "--moved", budget.id)[0] == 0
    assert run("budget", "show", budget.id)[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [[], ["FILE"], ["--id", "x"], ["FILE", "--id", "private", "--moved", "x"]],
)
def test_what_is_accepted_must_be_said(refused, budget, private, arguments):
    given = [private if part == "FILE" else part for part in arguments]
    refused("budget", "accept", *given)


@pytest.mark.parametrize(
    "change",
    [
        ["--epsilon", "0"],
        ["--epsilon", "-1"],
        ["--epsilon", "nan"],
        ["--epsilon", "inf"],
        ["--epsilon", "eight"],
        ["--delta", "0"],
        ["--delta", "1"],
        ["--delta", "2"],
        ["--delta", "nan"],
        ["--id", "a b"],
        ["--id", "../x"],
    ],
)
def test_bad_values_are_one_line_and_leave_nothing(refused, private, state, change):
    refused("budget", "init", private, "--epsilon", "8", *change)
    assert not state.exists() or not list(state.rglob("ledger*"))


def test_a_missing_file_is_one_line(refused, tmp_path):
    refused("budget", "init", tmp_path / "none.csv", "--epsilon", "8")
    refused("budget", "init", tmp_path, "--epsilon", "8")


def test_a_folder_that_cannot_be_made_is_one_line(refused, private, state):
    state.write_text("a file where the folder should be")
    refused("budget", "init", private, "--epsilon", "8")
    assert state.is_file()


@pytest.mark.parametrize("broken", [b"", b"{}\n", b"[1]\n", b"\xff\n"])
def test_a_damaged_ledger_is_one_line(refused, budget, broken):
    budget.ledger.path.write_bytes(broken)
    refused("budget", "show", budget.id)


def test_a_run_of_synthetic_text_is_paid_for_once_and_replays_again(
    private, tmp_path, tiny
):
    """What `synthesize` does with a budget, in the order it has to."""
    from tfpriv.accounting import Compose
    from tfpriv.datasets import read_table
    from tfpriv.seqgan.dp_seqgan import DPSeqGAN
    from tfpriv.seqgan.run_store import RunStore

    budget = DataBudget.create(private, epsilon=8.0, delta=1e-5)
    data = read_table(private, text="CONTENT", label="CLASS")
    folder = tmp_path / "run"
    settings = {"epsilon": 4.0, "discriminator_steps": 0}

    def fit():
        model = DPSeqGAN(**settings)
        plan = Compose(tuple(model._budget().events().values()))
        store = RunStore(folder)
        assert store.claim(zip(data.texts, data.labels, strict=True))
        ledger = store.ledger(limit_epsilon=4.0, delta=1e-5)
        DataBudget.find(private).charge(plan, "synthetic text", run=ledger)
        model.fit(data, run_dir=folder)

    fit()
    spent = budget.epsilon()
    assert 3.9 < spent <= 4.0
    fit()
    assert budget.epsilon() == spent
    assert len(budget.ledger.events()) == 1
    # A measurement that was charged and lost is made again, and paid for again.
    (folder / "lengths.npz").unlink()
    fit()
    assert budget.epsilon() > spent
    again = budget.ledger.events()[-1]
    assert "done again" in again.name
