"""The texts of an audit: what was released, who was in it, who was not."""

from __future__ import annotations

import dataclasses
from collections import Counter
from functools import cached_property

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer
from tfpriv.datasets import TextDataset
from tfpriv.text import Tokenizer, canonical

LEAST = 50
"""Members, and non-members, without which no audit can say anything."""

_REFERENCE_SHARE = 1 / 3
_PARTS = ("synthetic", "members", "non_members", "reference")


@dataclasses.dataclass(frozen=True, repr=False)
class AuditTexts:
    """Synthetic texts, and records to tell members from others by them.

    Of several records with one canonical text the first counts. All four have labels
    or none; a label is compared as it is.

    Attributes:
        synthetic: what was released.
        members: records that it was made from.
        non_members: records of the same population that it was not made from.
        reference: further such records, which calibrate the attacks and are never
            scored.
        copies: how many records each member stands for; empty where each is one.
    """

    synthetic: TextDataset
    members: TextDataset
    non_members: TextDataset
    reference: TextDataset
    copies: tuple[int, ...] = ()

    @classmethod
    def make(
        cls,
        synthetic: TextDataset,
        members: TextDataset,
        non_members: TextDataset,
        *,
        reference: TextDataset | None = None,
        seed: int = 0,
    ) -> AuditTexts:
        """Checks the texts, and sets reference texts aside where none are given.

        Args:
            synthetic: as above.
            members: as above.
            non_members: as above.
            reference: as above; None takes a third of the non-members, drawn at random.
            seed: of that draw.

        Raises:
            InputError: too few texts, some with labels and some without, no label in
                common, or records that are members and not.
        """
        integer(0, seed=seed)
        parts = {
            "synthetic texts": synthetic,
            "members": members,
            "non-members": non_members,
        }
        if reference is not None:
            parts["reference texts"] = reference
        _check_labels(parts)
        counts = Counter(map(canonical, members.texts))
        members, non_members = members.deduplicate(), non_members.deduplicate()
        copies = tuple(counts[canonical(text)] for text in members.texts)
        _check_apart("non-members", non_members, members)
        aside = 0
        if reference is None:
            order = np.random.default_rng(seed).permutation(len(non_members))
            share = aside = round(_REFERENCE_SHARE * len(non_members))
            reference = non_members.select(sorted(order[:share]))
            non_members = non_members.select(sorted(order[share:]))
        else:
            _check_apart("reference texts", reference, members)
            _check_apart("reference texts", reference, non_members)
        _check_enough("members", len(members))
        _check_enough("non-members", len(non_members), aside=aside)
        _check_enough("reference texts", len(reference), 1)
        _check_enough("synthetic texts", len(synthetic), 1)
        return cls(synthetic, members, non_members, reference, copies)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(part)} {name}" for name, part in self._parts())
        return f"AuditTexts({sizes})"

    @property
    def labelled(self) -> bool:
        """Whether the texts have labels."""
        return self.synthetic.labels is not None

    @property
    def single(self) -> np.ndarray:
        """Which members are one record, bool of shape (members,)."""
        return np.array(self.copies or [1] * len(self.members)) == 1

    @property
    def sizes(self) -> dict[str, int]:
        """How many texts each part has."""
        return {name: len(part) for name, part in self._parts()}

    @cached_property
    def tokens(self) -> dict[str, list[list[str]]]:
        """The tokens of the texts of each part; "candidates" are members and others."""
        tokenizer = Tokenizer()
        found = {
            name: tokenizer.tokenize_all(part.texts) for name, part in self._parts()
        }
        return found | {"candidates": found["members"] + found["non_members"]}

    @cached_property
    def details(self) -> dict[str, list[list[str]]]:
        """What `tokens` does not keep: pieces of numbers, links, addresses and names.

        The tokenizer says that there was a number and not which; here are the words
        of the canonical text that are no token.
        """
        found = {
            name: [
                sorted(set(canonical(text).split()).difference(tokens))
                for text, tokens in zip(part.texts, self.tokens[name], strict=True)
            ]
            for name, part in self._parts()
        }
        return found | {"candidates": found["members"] + found["non_members"]}

    @cached_property
    def labels(self) -> dict[str, list[str]]:
        """The labels in the same order; without labels one empty label for all."""
        found = {
            name: list(part.labels or [""] * len(part)) for name, part in self._parts()
        }
        return found | {"candidates": found["members"] + found["non_members"]}

    def _parts(self) -> list[tuple[str, TextDataset]]:
        return [(name, getattr(self, name)) for name in _PARTS]


def _check_labels(parts: dict[str, TextDataset]) -> None:
    having = [name for name, part in parts.items() if part.labels is not None]
    if having and len(having) < len(parts):
        lacking = next(name for name in parts if name not in having)
        raise InputError(
            f"Expected labels for all texts or for none, received {lacking} without "
            f"and {having[0]} with. Name the label column of all, or of none."
        )
    names = list(parts)
    for other in names[1:] if having else ():
        if not set(parts[names[0]].labels) & set(parts[other].labels):
            raise InputError(
                f"Expected {other} with labels that {names[0]} have, received "
                f"{len(parts[other].label_names)} labels of which they have none. "
                "Check the label columns, or leave labels out."
            )


def _check_apart(name: str, texts: TextDataset, others: TextDataset) -> None:
    known = set(map(canonical, others.texts))
    shared = sum(canonical(text) in known for text in texts.texts)
    if shared:
        raise InputError(
            f"Expected {name} that are apart from the other records, received "
            f"{shared} of {len(texts)} whose text, case and marks aside, is among "
            "them. A record cannot be both: leave those out of one file."
        )


def _check_enough(name: str, count: int, least: int = LEAST, *, aside: int = 0) -> None:
    if count >= least:
        return
    received = f"received {count}"
    if aside:
        received += f" and {aside} more set aside as reference texts"
    raise InputError(
        f"Expected at least {least} distinct {name}, {received}. On fewer an attack is "
        "not told from chance."
    )
