"""An audit of a run of `tfpriv rmat train`: what its representations tell."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv.cli._audit_options import AuditOptions
from tfpriv.cli._representation_run import (
    COMMAND,
    columns_of,
    load_model,
    parts_of,
    read_config,
    records,
)
from tfpriv.cli.rmat_attack import check_parts, make_attack
from tfpriv.cli.run_folder import RunFolder

if TYPE_CHECKING:
    import numpy as np

    from tfpriv.datasets import Splits, TextDataset

# Texts that words are recovered from, and that the attackers learn that from.
_MOST_TESTED, _MOST_LEARNT = 2000, 5000
_SAMPLE = 32
_TITLES = {
    "attribute_inference": "The private attribute, guessed from representations",
    "inversion": "Words, guessed from representations",
}


@dataclasses.dataclass(frozen=True)
class RepresentationAudit:
    """Attribute inference and inversion, on one fresh release of every text.

    Attributes:
        data: the run's records.
        parts: of the run; attackers learn from the training part and are tested on
            the test part.
        model: the run's.
        output: file of the result.
        private: files of records, whose budgets are told.
        progress: folder of what was done, removed at the end.
        seed: of the attackers.
    """

    data: TextDataset
    parts: Splits
    model: Any
    output: Path
    private: tuple[Path, ...]
    progress: Path
    seed: int

    @classmethod
    def of_run(
        cls, options: AuditOptions, opened: contextlib.ExitStack
    ) -> RepresentationAudit:
        """Reads a run and its records, which it verifies.

        Args:
            options: of the command.
            opened: keeps the run locked.

        Raises:
            InputError: no finished run, other records than the run's, or a test part
                with one private label.
        """
        options.refuse("non_members", "reference", "attacks", "delta")
        run = read_config(options.directory)
        source = options.members or Path(run["file"])
        data = columns_of(run).read(source)
        folder = opened.enter_context(
            RunFolder(options.directory, records(data), {"command": COMMAND})
        )
        parts = parts_of(data, run["split_key"])
        check_parts(parts)
        return cls(
            data=data,
            parts=parts,
            model=load_model(options.directory),
            output=folder.internal / "audit.json",
            private=(source,),
            progress=folder.internal / "audit",
            seed=options.seed,
        )

    def describe(self) -> str:
        """What is about to happen, in a sentence."""
        texts = len(self.parts.train) + len(self.parts.test)
        return f"two attacks on representations of {texts} texts; to encode them will"

    def seconds(self) -> float:
        """About how long encoding takes, measured on some of the texts."""
        texts = list(self.parts.train.texts[:_SAMPLE])
        self.model.encode(texts)  # builds its graph
        started = time.perf_counter()
        self.model.encode(texts)
        spent = time.perf_counter() - started
        return spent / len(texts) * (len(self.parts.train) + len(self.parts.test))

    def run(self, report: Callable[[str, float], None]) -> dict[str, Any]:
        """Runs what is not done yet.

        Args:
            report: is told the attack and the share that is done.

        Returns:
            The result as plain JSON.
        """
        from tfpriv.seqgan.run_store import RunStore

        if not RunStore(self.progress).claim(records(self.data)):
            shutil.rmtree(self.progress)
            RunStore(self.progress).claim(records(self.data))
        store = RunStore(self.progress / "done")
        report("encoding", 0.0)
        encoded = store.arrays("encoded")
        if encoded is None:
            encoded = {
                name: self.model.encode(list(getattr(self.parts, name).texts))
                for name in ("train", "test")
            }
            store.save_arrays("encoded", encoded)
        steps = {
            "attribute_inference": self._attribute_inference,
            "inversion": self._inversion,
        }
        for number, (name, step) in enumerate(steps.items()):
            report(name.replace("_", " "), 0.4 + 0.3 * number)
            if store.json(name) is None:
                found = step(encoded)
                value = {**found.to_json(), "words_said": found.to_markdown()}
                store.save_json(name, value)
        report("done", 1.0)
        return {
            "kind": "representation",
            **{name: store.json(name) for name in steps},
            "statement": self.model.privacy_statement().to_json(),
        }

    def show(self, result: Mapping[str, Any]) -> None:
        """Prints both attacks' tables and what they mean."""
        import typer

        for name, title in _TITLES.items():
            typer.echo(f"{title}\n\n{result[name]['words_said']}\n")

    def finish(self) -> None:
        """Removes what was kept to go on from."""
        shutil.rmtree(self.progress, ignore_errors=True)

    def _attribute_inference(self, encoded: dict[str, np.ndarray]) -> Any:
        return make_attack(None, self.seed).fit_score(
            encoded["train"],
            self.parts.train.private,
            encoded["test"],
            self.parts.test.private,
        )

    def _inversion(self, encoded: dict[str, np.ndarray]) -> Any:
        from tfpriv.attacks.inversion import InversionAttack

        train, test = self.parts.train.texts, self.parts.test.texts
        return InversionAttack(seed=self.seed).fit_score(
            encoded["train"][:_MOST_LEARNT],
            train[:_MOST_LEARNT],
            encoded["test"][:_MOST_TESTED],
            test[:_MOST_TESTED],
        )
