"""What docs/audit.md shows in Python runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tfpriv.datasets import TextDataset

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"
TEXTS = [f"please look at my {what} number {i}" for i in range(9) for what in "abc"]


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda records: records, "epsilon is at least"),
        (lambda records: records.select(range(9)), "no evidence against any epsilon"),
    ],
)
def test_canaries_and_the_one_run_audit_run_as_typed(make, found, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    code = code.replace("public_texts, 100,", "public_texts, 100, alternatives=7,")
    data = TextDataset(TEXTS, ["ham"] * len(TEXTS))
    names = {"make": make, "data": data, "public_texts": TEXTS}
    exec(compile(code, str(PAGE), "exec"), names)
    out = capsys.readouterr().out
    assert found in out
    assert "records none above" in out
