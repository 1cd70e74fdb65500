"""What long training shows, and that it leaves the terminal as it was."""

import pytest

from tfpriv.seqgan.progress_bar import terminal_report

SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")


def test_off_a_terminal_a_stage_is_one_line_on_stderr(capsys):
    with terminal_report() as report:
        for stage, done in (("counting", 0.0), ("counting", 0.1), ("ham", 0.5)):
            report(stage, done)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.split("\n") == ["  0% counting", " 50% ham", ""]


def test_on_a_terminal_a_bar_shows_stage_and_share(terminal, capsys):
    with terminal_report() as report:
        report("ham: adversarial", 0.42)
    out, err = capsys.readouterr()
    assert out == ""
    assert "ham: adversarial" in err
    assert "42%" in err


def test_a_fit_that_is_broken_off_gives_the_cursor_back(terminal, capsys):
    def interrupted():
        with terminal_report() as report:
            report("counting", 0.1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    err = capsys.readouterr().err
    assert err.rfind(SHOW_CURSOR) > err.rfind(HIDE_CURSOR) >= 0
