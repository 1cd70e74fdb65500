"""What travels with an exported model: its statement, its labels, how to ask it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfpriv._files import PUBLIC, atomic_write, write_json
from tfpriv._version import __version__

SCHEMA_VERSION = 2
EXTRA = "assets.extra"
SERVING = "serving.json"
PRIVACY = "privacy.json"
TRAINED_ON = "trained_on"

_PER_RELEASE = """\
Every answer that reads a text is a release of it, with noise of its own: the graph
reads fresh bits from the operating system (/dev/urandom) on each call and holds no
seed. On a host without that device a call fails and nothing is released. The
certificate is per release: r releases of one text cost r times its epsilon, and their
mean has less noise. Retries, warm-up on private text and asking twice are releases
too."""
_DRAWN = """\
Drawing texts is post-processing: it costs nothing, however often it is done. Bits come
from the operating system (/dev/urandom); the graph holds no seed."""


def write_extra(
    folder: str | os.PathLike,
    name: str,
    *,
    kind: str,
    part: str,
    statement: Any,
    label_names: Sequence[str],
    signatures: Mapping[str, Any],
    ops: Sequence[str],
    trained_on: Any = None,
) -> None:
    """Writes `assets.extra` of a version of a model.

    Args:
        folder: the version.
        name: of the model.
        kind: "representation" or "generator".
        part: "whole", "client" or "server".
        statement: with `to_json` and `str`.
        label_names: in the order of the classes.
        signatures: name -> concrete function of the signature.
        ops: of tensorflow-text, that the graph has.
        trained_on: the DataBudget of the data set that the encoder learnt from
            without a guarantee; None if it has none.
    """
    extra = Path(folder) / EXTRA
    extra.mkdir(exist_ok=True)
    told = {n: _tensors(function) for n, function in sorted(signatures.items())}
    write_json(extra / PRIVACY, statement.to_json(), mode=PUBLIC)
    write_json(extra / "labels.json", list(label_names), mode=PUBLIC)
    described = {
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        "part": part,
        "name": name,
        "signatures": told,
        TRAINED_ON: _lineage(trained_on),
        "tensorflow_text_ops": sorted(ops),
        "versions": {"tfpriv": __version__, **_versions()},
    }
    write_json(extra / SERVING, described, mode=PUBLIC)
    with atomic_write(extra / "model_card.md", mode=PUBLIC) as file:
        file.write(_card(described, statement, label_names))


def _lineage(budget: Any) -> dict[str, str] | None:
    if budget is None:
        return None
    return {"data_set": budget.id, "ledger": budget.ledger.id}


def _versions() -> dict[str, str]:
    import importlib.metadata

    names = ("tensorflow", "tensorflow-text", "keras")
    return {name: importlib.metadata.version(name) for name in names}


def _tensors(function: Any) -> dict[str, dict[str, list]]:
    """Name -> [dtype, shape] of the inputs and outputs of a signature."""
    positional, named = function.structured_input_signature
    outputs = function.structured_outputs
    sides = {
        "inputs": {spec.name: spec for spec in (*positional, *named.values())},
        "outputs": outputs,
    }
    return {
        side: {
            name: [spec.dtype.name, list(spec.shape)] for name, spec in specs.items()
        }
        for side, specs in sides.items()
    }


def _card(
    described: Mapping[str, Any], statement: Any, label_names: Sequence[str]
) -> str:
    lines = [
        f"# {described['name']}",
        "",
        f"A {described['kind']} model of tfpriv, part: {described['part']}. Labels: "
        f"{', '.join(label_names)}.",
        "",
        "| signature | inputs | outputs |",
        "|---|---|---|",
    ]
    for name, sides in described["signatures"].items():
        cells = [
            ", ".join(
                f"{key} {dtype} {_shown(shape)}"
                for key, (dtype, shape) in sides[side].items()
            )
            for side in ("inputs", "outputs")
        ]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    ops = ", ".join(described["tensorflow_text_ops"]) or "none"
    what = _PER_RELEASE if described["kind"] == "representation" else _DRAWN
    if described["part"] == "server":
        what = "It reads representations that were released, and no text."
    trained_on = described[TRAINED_ON]
    if trained_on is not None:
        what += (
            f"\n\nThe encoder learnt from data set {trained_on['data_set']}, which has "
            "a budget, without a guarantee: its weights and what it releases tell "
            "about those records too."
        )
    lines += [
        "",
        f"Ops beside TensorFlow's own, from tensorflow-text: {ops}.",
        "",
        "## Privacy",
        "",
        what,
        "",
        "```",
        str(statement),
        "```",
    ]
    return "\n".join(lines) + "\n"


def _shown(shape: Sequence[int | None]) -> str:
    return f"({', '.join('B' if size is None else str(size) for size in shape)})"
