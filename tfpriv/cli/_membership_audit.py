"""A membership audit of synthetic text: its files, and how it goes on after a kill."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv._errors import InputError
from tfpriv.cli._audit_options import AuditOptions
from tfpriv.cli._common import quiet_import, say, warn
from tfpriv.cli._synthesis_run import SynthesisRun
from tfpriv.cli.run_folder import RunFolder

if TYPE_CHECKING:
    import numpy as np

    from tfpriv.attacks import AuditResult, AuditTexts, TextMembershipAttack
    from tfpriv.datasets import TextDataset

_DELTA = 1e-5
_TEXT, _SCORES = "text", "scores"


@dataclasses.dataclass(frozen=True)
class MembershipAudit:
    """Attacks on one release; what each found is saved once it is done.

    Attributes:
        texts: of the audit.
        attack: those on the text alone.
        claimed_epsilon: what the release is said to guarantee, None if nothing.
        output: file of the result; None shows it only.
        private: files of records, whose budgets are told.
        progress: folder of what was done, removed at the end; None keeps nothing.
        release: SHA-256 of the file of the synthetic texts.
        networks: attacks on the networks of a run: name to scores of all candidates.
    """

    texts: AuditTexts
    attack: TextMembershipAttack
    claimed_epsilon: float | None
    output: Path | None
    private: tuple[Path, ...]
    progress: Path | None
    release: str
    networks: Mapping[str, Callable[[], np.ndarray]] = dataclasses.field(
        default_factory=dict
    )

    @classmethod
    def of_files(cls, options: AuditOptions) -> MembershipAudit:
        """Reads files of any origin.

        Raises:
            InputError: one that cannot be used, or that does not go with the others.
        """
        column = options.text or _TEXT
        return cls._made(
            options,
            options.synthetic,
            _read(options.members, column, options.label),
            columns=(column, options.label),
            claimed=(
                options.claimed_epsilon,
                _DELTA if options.delta is None else options.delta,
            ),
            output=options.output,
            progress=options.progress,
        )

    @classmethod
    def of_run(
        cls, options: AuditOptions, opened: contextlib.ExitStack
    ) -> MembershipAudit:
        """Reads a run of `tfpriv synthesize`, and its records, which it verifies.

        Args:
            options: of the command.
            opened: keeps the run locked.

        Raises:
            InputError: no finished run, other records than the run's, or a file that
                cannot be used.
        """
        run = SynthesisRun.read(options.directory)
        # A claim at one delta is another one at another.
        delta = run.delta if options.delta is None else options.delta
        source, format = (options.members, None) if options.members else run.source
        options = dataclasses.replace(options, members=source)
        options.require("members", "non_members")
        records = _read(source, run.text, run.label, format)
        pairs = zip(records.texts, records.labels, strict=True)
        folder = opened.enter_context(RunFolder(run.path, pairs))
        audit = cls._made(
            options,
            run.synthetic,
            run.used(records),
            columns=(run.text, run.label),
            used=run.used,
            claimed=(run.epsilon(delta), delta),
            output=folder.internal / "audit.json",
            progress=folder.internal / "audit",
        )
        networks = _network_attacks(run, audit.texts)
        return dataclasses.replace(audit, networks=networks)

    @classmethod
    def _made(
        cls,
        options: AuditOptions,
        synthetic: Path,
        members: TextDataset,
        *,
        columns: tuple[str, str | None],
        used: Callable[[TextDataset], TextDataset] = lambda records: records,
        claimed: tuple[float | None, float],
        output: Path | None,
        progress: Path | None,
    ) -> MembershipAudit:
        from tfpriv.attacks import AuditTexts, TextMembershipAttack

        reference = options.reference
        epsilon, delta = claimed
        texts = AuditTexts.make(
            _read(synthetic, *columns),
            members,
            used(_read(options.non_members, *columns)),
            reference=None if reference is None else used(_read(reference, *columns)),
            seed=options.seed,
        )
        attack = TextMembershipAttack(options.attack_names(), delta=delta)
        attack.names(texts)
        given = (options.members, options.non_members, reference)
        private = tuple(file for file in given if file is not None)
        release = hashlib.sha256(synthetic.read_bytes()).hexdigest()
        return cls(texts, attack, epsilon, output, private, progress, release)

    def describe(self) -> str:
        """What is about to happen, in a sentence."""
        sizes = self.texts.sizes
        networks = f"{len(self.networks)} attacks on the run's networks and "
        return (
            f"{networks if self.networks else ''}{len(self.attack.names(self.texts))} "
            f"attacks on {sizes['synthetic']} synthetic texts, with "
            f"{sizes['members']} members, {sizes['non_members']} non-members and "
            f"{sizes['reference']} reference texts; those on the texts"
        )

    def seconds(self) -> float:
        """About how long `run` takes; what networks take is not in it."""
        return self.attack.seconds(self.texts)

    def run(self, report: Callable[[str, float], None]) -> dict[str, Any]:
        """Runs what is not done yet, and scores all.

        Args:
            report: is told the attack and the share that is done.

        Returns:
            The result as plain JSON.
        """
        steps = {name: self._step(name) for name in self.attack.names(self.texts)}
        steps |= self.networks
        store = self._store(steps)
        found: dict[str, np.ndarray] = {}
        for number, (name, step) in enumerate(steps.items()):
            report(name, number / len(steps))
            saved = None if store is None else _saved(store, name)
            found[name] = step() if saved is None else saved
            if store is not None and saved is None:
                store.save_arrays(_file_name(name), {_SCORES: found[name]})
        report("done", 1.0)
        result = self.attack.score(
            self.texts, found=found, claimed_epsilon=self.claimed_epsilon
        )
        return {
            "kind": "membership",
            **result.to_json(),
            "texts": self.texts.sizes,
            "synthetic_sha256": self.release,
        }

    def show(self, result: Mapping[str, Any]) -> None:
        """Prints a table and what it means."""
        from tfpriv.attacks import AuditResult

        _show(AuditResult.from_json(result))

    def finish(self) -> None:
        """Removes what was kept to go on from."""
        if self.progress is not None:
            shutil.rmtree(self.progress, ignore_errors=True)

    def _step(self, name: str) -> Callable[[], np.ndarray]:
        return lambda: self.attack.scores(self.texts, name)

    def _store(self, steps: Iterable[str]) -> Any:
        """Where scores are kept; those of an audit of other texts are removed."""
        if self.progress is None:
            return None
        from tfpriv.seqgan.run_store import RunStore

        if not RunStore(self.progress).claim(self._records()):
            shutil.rmtree(self.progress)
            RunStore(self.progress).claim(self._records())
        store = RunStore(self.progress / "scores")
        done = sum(_saved(store, name) is not None for name in steps)
        if done:
            say(f"going on: {done} attacks were done before.")
        return store

    def _records(self) -> Iterator[tuple[str, str, str]]:
        for part in ("synthetic", "members", "non_members", "reference"):
            texts = getattr(self.texts, part).texts
            for text, label in zip(texts, self.texts.labels[part], strict=True):
                yield part, text, label


def _read(
    file: Path, text: str, label: str | None, format: str | None = None
) -> TextDataset:
    """Reads a table; what was left out is said on stderr."""
    from tfpriv.datasets import read_table

    if text == label:
        raise InputError(
            f"Expected different columns for --text and --label, received {text!r} "
            "for both."
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = read_table(file, text=text, label=label, format=format)
    for warning in caught:
        warn(str(warning.message))
    return data


def _network_attacks(
    run: SynthesisRun, texts: AuditTexts
) -> dict[str, Callable[[], np.ndarray]]:
    """Attacks on discriminators and generators; none where the run has none.

    They see the run's internal folder, as nobody does whom only the release reaches.
    """
    internal = run.path / "internal"
    if not any(internal.glob("class-*.npz")):
        return {}
    with quiet_import():
        from tfpriv.attacks.class_discriminators import class_discriminators
        from tfpriv.seqgan.dp_seqgan import DPSeqGAN

    targets = class_discriminators(DPSeqGAN.load(internal / "model"), internal)
    if not targets:
        return {}

    def scores(of: str) -> np.ndarray:
        import numpy as np

        labels = np.array(texts.labels["candidates"])
        candidates = [*texts.members.texts, *texts.non_members.texts]
        # Of a class without networks nothing is known.
        found = np.full(len(labels), -np.inf)
        for target in targets:
            places = np.flatnonzero(labels == target.label)
            found[places] = getattr(target, of)([candidates[i] for i in places])
        return found

    return {
        "LOGAN": lambda: scores("logits"),
        "generator likelihood": lambda: scores("log_likelihoods"),
    }


def _show(found: AuditResult) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title="Members told from non-members",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    rate = min(found.worst.tpr, key=lambda rate: abs(rate - 0.01))
    table.add_column()
    for column in (
        f"AUC [{100 * found.confidence:g} %]",
        f"TPR at {100 * rate:g} % FPR",
        "epsilon",
    ):
        table.add_column(Text(column), no_wrap=True)
    for score in found.scores:
        mark = "*" if score is found.worst else " "
        table.add_row(
            f"{mark} {score.name}",
            str(score.auc),
            str(score.tpr[rate]),
            f">= {score.epsilon_lower:.2f}",
        )
    console = Console(highlight=False)
    console.print(table)
    for words in (found.verdict(), found.setting()):
        console.print(f"\n{words}", soft_wrap=True, markup=False)


def _saved(store: Any, attack: str) -> np.ndarray | None:
    """Scores of before; None without any, or where their file is damaged."""
    try:
        arrays = store.arrays(_file_name(attack))
    except InputError:
        return None
    return None if arrays is None else arrays.get(_SCORES)


def _file_name(attack: str) -> str:
    return attack.replace(" ", "_")
