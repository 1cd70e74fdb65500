"""The one container that text travels in."""

from __future__ import annotations

import dataclasses
import itertools
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfpriv._errors import InputError
from tfpriv.text.cleaning import canonical

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf


# The fields that hold one value a record.
_PARTS = ("texts", "labels", "groups", "private")


@dataclasses.dataclass(frozen=True, repr=False)
class TextDataset:
    """Texts in order, with labels and a group for each, and where they came from.

    Texts are raw: nothing was cleaned. Neither `repr` nor any error shows one.

    Args:
        texts: sequence of str, length n.
        labels: sequence of str, length n, or None. Labels are names: the class 1
            is `"1"`.
        groups: sequence of str, length n, or None. Records of one group (an
            author, say) stay together wherever records are split. None makes the
            canonical text the group.
        private: sequence of str, length n, or None. A second label that a released
            representation must not tell, the gender of whom a text is about, say.
            Keyword only; nothing writes it to a file.
        text_column: str. The name of the text column where this was read from,
            and where it is written to.
        label_column: str. The same for the label.
        private_column: str. The same for the private label, for messages alone.
        provenance: mapping. Where the texts came from and what was left out on
            the way. It holds exact counts, so it is as private as the texts.

    Raises:
        InputError: the parts differ in length, hold something other than str, or
            two of the columns have one name.

    Examples:
        >>> data = TextDataset(["hi", "buy now", "Hi"], ["ham", "spam", "ham"])
        >>> len(data), data.label_names
        (3, ('ham', 'spam'))
        >>> data
        TextDataset(3 records, columns 'text' and 'label')
        >>> data.by_label()["spam"].texts
        ('buy now',)
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    private: tuple[str, ...] | None = dataclasses.field(default=None, kw_only=True)
    text_column: str = "text"
    label_column: str = "label"
    private_column: str = dataclasses.field(default="private", kw_only=True)
    provenance: Mapping[str, Any] = dataclasses.field(
        default_factory=dict, compare=False
    )

    def __post_init__(self) -> None:
        for name in _PARTS:
            values = getattr(self, name)
            if values is None and name != "texts":
                continue
            object.__setattr__(self, name, _strings(name, values, len(self.texts)))
        if self.text_column == self.label_column:
            raise InputError(
                "Expected different names for the text and the label column, received "
                f"{self.text_column!r} for both."
            )
        if self.private is None:
            return
        others = [self.text_column] + [self.label_column] * (self.labels is not None)
        if self.private_column in others:
            raise InputError(
                "Expected a name of its own for the private column, received "
                f"{self.private_column!r}, the text or the label column's."
            )

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        columns = f"column {self.text_column!r}"
        if self.labels is not None:
            columns = f"columns {self.text_column!r} and {self.label_column!r}"
        private = "" if self.private is None else f", private {self.private_column!r}"
        grouped = "" if self.groups is None else ", in declared groups"
        return f"TextDataset({len(self)} records, {columns}{private}{grouped})"

    @property
    def label_names(self) -> tuple[str, ...]:
        """The distinct labels in sorted order; empty without labels."""
        return tuple(sorted(set(self.labels or ())))

    @property
    def private_names(self) -> tuple[str, ...]:
        """The distinct private labels in sorted order; empty without them."""
        return tuple(sorted(set(self.private or ())))

    def targets(
        self,
        label_names: Sequence[str] | None = None,
        private_names: Sequence[str] | None = None,
    ) -> dict[str, np.ndarray]:
        """Labels and private labels as numbers, what `tfpriv.RMAT.fit` takes.

        Args:
            label_names: in the order of their numbers; None is `label_names` of this
                part. Give those of the training part to every part.
            private_names: likewise.

        Returns:
            {"label": int32 (n,), "private": int32 (n,)}; what the data set lacks is
            left out.

        Raises:
            InputError: a record whose label is not among the names; says its row only.

        Examples:
            >>> data = TextDataset(("a", "b"), labels=("no", "yes"))
            >>> data.targets()
            {'label': array([0, 1], dtype=int32)}
        """
        import numpy as np

        numbered = {}
        for target, names, values in (
            ("label", label_names or self.label_names, self.labels),
            ("private", private_names or self.private_names, self.private),
        ):
            if values is None:
                continue
            numbers = {name: number for number, name in enumerate(names)}
            for row, value in enumerate(values):
                if value not in numbers:
                    raise InputError(
                        f"Expected one of the {len(numbers)} names of {target!r} in "
                        f"every row, received another in row {row}."
                    )
            numbered[target] = np.array([numbers[v] for v in values], np.int32)
        return numbered

    def group_keys(self) -> tuple[str, ...]:
        """The group of each record: the declared one, or else the canonical text."""
        if self.groups is not None:
            return self.groups
        return tuple(canonical(text) for text in self.texts)

    def select(self, indices: Iterable[int]) -> TextDataset:
        """The records at `indices`, in that order; an index may come twice.

        Args:
            indices: iterable of int, each in [-n, n). NumPy integers will do, a
                boolean mask will not.

        Raises:
            InputError: an index is a bool.
            IndexError: an index is out of range.
        """
        positions = []
        for index in indices:
            if isinstance(index, bool) or type(index).__name__ in ("bool", "bool_"):
                raise InputError(
                    "Expected positions, received a boolean mask. "
                    "Use numpy.flatnonzero(mask)."
                )
            positions.append(operator.index(index))

        def take(values: tuple[str, ...] | None) -> tuple[str, ...] | None:
            return None if values is None else tuple(values[i] for i in positions)

        return dataclasses.replace(
            self,
            texts=take(self.texts),
            labels=take(self.labels),
            groups=take(self.groups),
            private=take(self.private),
        )

    def by_label(self) -> dict[str, TextDataset]:
        """One data set a label, in sorted order of the labels.

        Raises:
            InputError: there are no labels.
        """
        if self.labels is None:
            raise InputError(
                "Expected labels, received a data set without any. "
                "Read the file with label=COLUMN."
            )
        positions: dict[str, list[int]] = {name: [] for name in self.label_names}
        for position, label in enumerate(self.labels):
            positions[label].append(position)
        return {name: self.select(where) for name, where in positions.items()}

    def deduplicate(self) -> TextDataset:
        """Keeps the first record of each canonical text.

        After this a record is a whole group of equal texts: a guarantee for one
        record then holds for all copies of that text at once.
        """
        first: dict[str, int] = {}
        for position, text in enumerate(self.texts):
            first.setdefault(canonical(text), position)
        return self.select(first.values())

    def to_csv(
        self,
        path: str | os.PathLike,
        *,
        mode: int = 0o600,
        guard_formulas: bool = True,
    ) -> None:
        """Writes the text and the label column and no other; see `write_table`.

        Args:
            path: the file to write, in a folder that exists.
            mode: permission bits. Private (0600) by default; a synthetic release
                takes 0644.
            guard_formulas: whether a cell that a spreadsheet would run gets an
                apostrophe in front.
        """
        from tfpriv.datasets.writers import write_table

        write_table(self, path, format="csv", mode=mode, guard_formulas=guard_formulas)

    def to_tf_data(self) -> tf.data.Dataset:
        """A `tf.data.Dataset` of string scalars: (text, label), or text alone.

        The private label is not in it.
        """
        import tensorflow as tf

        parts = (self.texts,) if self.labels is None else (self.texts, self.labels)
        tensors = tuple(tf.constant(list(part), tf.string) for part in parts)
        if len(tensors) == 1:
            return tf.data.Dataset.from_tensor_slices(tensors[0])
        return tf.data.Dataset.from_tensor_slices(tensors)


def concatenate(datasets: Sequence[TextDataset], **changes: Any) -> TextDataset:
    """Puts data sets behind one another.

    Args:
        datasets: at least one. All have labels or none has; the same for groups and
            private labels.
        **changes: fields of the result (`text_column`, `provenance`, ...); those
            left out are the first data set's.

    Raises:
        InputError: some data sets have labels, groups or private labels and others
            do not.
    """
    joined: dict[str, tuple[str, ...] | None] = {}
    for name in _PARTS:
        parts = [getattr(dataset, name) for dataset in datasets]
        missing = [part is None for part in parts]
        if any(missing) and not all(missing):
            raise InputError(
                f"Expected {name} in all data sets or in none, "
                f"received them in {missing.count(False)} of {len(parts)}."
            )
        joined[name] = None
        if not any(missing):
            joined[name] = tuple(itertools.chain.from_iterable(parts))
    return dataclasses.replace(datasets[0], **{**joined, **changes})


def _strings(name: str, values: Iterable[str], length: int) -> tuple[str, ...]:
    if isinstance(values, str):
        raise InputError(f"Expected a sequence of str for {name}, received one str.")
    values = tuple(values)
    if len(values) != length:
        raise InputError(
            f"Expected as many {name} as texts, received {len(values)} {name} "
            f"and {length} texts."
        )
    for position, value in enumerate(values):
        if not isinstance(value, str):
            raise InputError(
                f"Expected str in {name}, received {type(value).__name__} at "
                f"position {position}."
            )
    return values
