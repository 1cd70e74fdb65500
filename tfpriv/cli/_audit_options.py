"""What `tfpriv audit` was asked, and whether it makes sense together."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

from tfpriv._errors import InputError
from tfpriv._validation import fraction, integer, positive

_ONLY_WITH_FILES = ("synthetic", "text", "label", "claimed_epsilon", "output")


@dataclasses.dataclass(frozen=True)
class AuditOptions:
    """The options of `tfpriv audit`, under their own names."""

    directory: Path | None
    members: Path | None
    non_members: Path | None
    synthetic: Path | None
    reference: Path | None
    text: str | None
    label: str | None
    claimed_epsilon: float | None
    delta: float | None
    attacks: str | None
    output: Path | None
    seed: int

    @property
    def progress(self) -> Path | None:
        """The folder beside --output in which progress is kept; None without one."""
        output = self.output
        return output and output.with_name(f"{output.name}.progress")

    def check(self) -> None:
        """Refuses what cannot be used, before a file is read.

        Raises:
            InputError: numbers out of range, options that do not go together, or an
                output that cannot be written.
        """
        integer(0, seed=self.seed)
        if self.claimed_epsilon is not None:
            positive(claimed_epsilon=self.claimed_epsilon)
        if self.delta is not None:
            fraction(delta=self.delta)
        self.attack_names()
        if self.directory is None:
            self.require("synthetic", "members", "non_members")
            self._check_output()
            return
        for name in _ONLY_WITH_FILES:
            if getattr(self, name) is not None:
                raise InputError(
                    f"Expected no {_flag(name)} beside DIR, received "
                    f"{getattr(self, name)}: the run tells it. Leave out one of them."
                )

    def require(self, *names: str) -> None:
        """Refuses options that were not given.

        Raises:
            InputError: the first of them.
        """
        for name in names:
            if getattr(self, name) is None:
                what = "DIR, a run" if self.directory is None else str(self.directory)
                raise InputError(
                    f"Expected {_flag(name)} FILE, received none. "
                    + (
                        f"Give {what}, or all of --synthetic, --members, --non-members."
                        if self.directory is None
                        else f"To audit {what}, give the file."
                    )
                )

    def refuse(self, *names: str) -> None:
        """Refuses options that the audit of a run has no use for.

        Raises:
            InputError: the first of them that was given.
        """
        for name in names:
            if getattr(self, name) is not None:
                raise InputError(
                    f"Expected no {_flag(name)} for a run of `tfpriv rmat train`, "
                    f"received {getattr(self, name)}. Leave it out."
                )

    def attack_names(self) -> tuple[str, ...] | None:
        """The names of --attacks, which commas separate; None is all."""
        from tfpriv.attacks import TextMembershipAttack

        if self.attacks is None:
            return None
        names = tuple(name.strip() for name in self.attacks.split(","))
        return TextMembershipAttack(names).attacks

    def _check_output(self) -> None:
        if self.output is None:
            return
        if self.output.is_dir() or not self.output.parent.is_dir():
            raise InputError(
                f"Expected a file in a folder that exists for --output, received "
                f"{self.output}."
            )
        if self.output.exists() and not self.output.is_file():
            raise InputError(
                f"Expected an ordinary file for --output, received {self.output}. "
                "Leave --output out, and the result is only shown."
            )
        kept = self.progress
        if kept.exists() and not _is_ours(kept):
            raise InputError(
                f"Expected no {kept} that no audit made, received one: progress is "
                "kept there, and removed at the end. Name another --output."
            )
        for name in ("synthetic", "members", "non_members", "reference"):
            file = getattr(self, name)
            if file is not None and self.output.resolve() == file.resolve():
                raise InputError(
                    f"Expected another file for --output than for {_flag(name)}, "
                    f"received {file} for both."
                )
        # A folder that cannot be written, or a full disk, is found out now.
        with tempfile.TemporaryFile(dir=self.output.parent):
            pass


def _is_ours(folder: Path) -> bool:
    """Whether an audit made a folder, or one that was killed began it."""
    if not folder.is_dir():
        return False
    names = [entry.name for entry in folder.iterdir()]
    return "records.key" in names or all(n.startswith(".records.") for n in names)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
