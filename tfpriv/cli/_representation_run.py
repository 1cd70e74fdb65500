"""What the representation commands share: records, parts, and a run's model."""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv._errors import InputError
from tfpriv._files import DAMAGED, PRIVATE, raise_if_of_the_system, write_json
from tfpriv.cli._common import quiet_import, warn

if TYPE_CHECKING:
    from tfpriv.datasets import Splits, TextDataset

COMMAND = "rmat train"
VADER = "vader"
MODEL = "model.keras"
_SENTIMENTS = ("negative", "neutral", "positive")
_CONFIG = "config.json"


@dataclasses.dataclass(frozen=True)
class Columns:
    """Where records come from; `label` may be "vader", the sentiment of the text.

    Attributes:
        text, label, private: names of columns.
        format: of the file, where its name does not tell.
        labels: names of the task's labels that were declared public; records with
            another one are left out. None: those that the records have, except that
            the sentiments VADER knows are public.
    """

    text: str
    label: str
    private: str
    format: str | None = None
    labels: tuple[str, ...] | None = None

    @property
    def declared(self) -> tuple[str, ...] | None:
        """The label names that no record was asked for; None if there are none."""
        if self.labels is None and self.label == VADER:
            return _SENTIMENTS
        return self.labels

    def read(self, file: Path) -> TextDataset:
        """Reads the records; what was left out is said on stderr.

        Raises:
            InputError: a file that cannot be used, two columns of one name, or a
                label that is the same in all records.
        """
        from tfpriv.datasets import read_table, with_vader_labels

        named = {"--text": self.text, "--label": self.label, "--private": self.private}
        for first, second in (
            ("--text", "--label"),
            ("--text", "--private"),
            ("--label", "--private"),
        ):
            if named[first] == named[second]:
                raise InputError(
                    f"Expected different columns for {first} and {second}, received "
                    f"{named[first]!r} for both."
                )
        vader = self.label == VADER
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            data = read_table(
                file,
                text=self.text,
                label=None if vader else self.label,
                private=self.private,
                format=self.format,
            )
        for warning in caught:
            warn(str(warning.message))
        if vader:
            data = with_vader_labels(data, VADER)
        data = self._declared_alone(data)
        check_labels(data)
        return data

    def _declared_alone(self, data: TextDataset) -> TextDataset:
        if self.declared is None:
            return data
        known = set(self.declared)
        kept = [i for i, label in enumerate(data.labels) if label in known]
        if len(kept) < len(data):
            warn(
                f"{len(data) - len(kept)} of {len(data)} records have a label that is "
                "not among --labels and are left out."
            )
        missing = sum(name not in data.label_names for name in self.declared)
        if missing and self.labels is not None:
            warn(
                f"no record has {missing} of the {len(known)} labels of --labels; they "
                "will not be learnt. Check the names, and the column given as --label."
            )
        return data.select(kept)


def check_labels(data: TextDataset) -> None:
    """Refuses a task or a private label that is the same everywhere."""
    for names, column, kind in (
        (data.label_names, data.label_column, "labels"),
        (data.private_names, data.private_column, "private labels"),
    ):
        if len(names) < 2:
            raise InputError(
                f"Expected at least two {kind} in column {column!r}, received "
                f"{len(names)}: there is nothing to tell apart. Choose another column."
            )


def records(data: TextDataset) -> list[tuple[str, str, str]]:
    """What a run is sealed with."""
    return list(zip(data.texts, data.labels, data.private, strict=True))


def parts_of(data: TextDataset, split_key: str) -> Splits:
    """The distinct texts in three parts, 60/20/20, by the run's secret key.

    Raises:
        InputError: a part is empty, or training has one class alone.
    """
    from tfpriv.datasets import split

    parts = split(data.deduplicate(), seed=int(split_key, 16))
    if not all(len(part) for part in parts):
        raise InputError(
            f"Expected records for training, validation and test (60/20/20 of the "
            f"distinct texts), received {len(data.deduplicate())} distinct texts. Give "
            "more."
        )
    train = parts.train
    for kind, known, column in (
        ("labels", train.label_names, train.label_column),
        ("private labels", train.private_names, train.private_column),
    ):
        if len(known) < 2:
            raise InputError(
                f"Expected at least two {kind} of column {column!r} in the training "
                f"part (three fifths of the distinct texts, by chance), received "
                f"{len(known)}. Give more records of the other classes."
            )
    return parts


def warn_of_unseen(data: TextDataset, parts: Splits) -> None:
    """Says how many classes no training record has; they count as errors later."""
    for kind, names, known in (
        ("labels", data.label_names, parts.train.label_names),
        ("private labels", data.private_names, parts.train.private_names),
    ):
        unseen = len(set(names) - set(known))
        if unseen:
            warn(
                f"{unseen} of {len(names)} {kind} have no record in the training part: "
                "they are never predicted, and count as errors where the test part "
                "has them."
            )


def targets(data: TextDataset, config: Mapping[str, Any]) -> dict[str, Any]:
    """The labels of a part as numbers, in the order of the run's names."""
    return data.targets(config["label_names"], config["private_names"])


def new_config(
    data: TextDataset, columns: Columns, settings: Mapping[str, Any], file: Path
) -> dict[str, Any]:
    """What a new run writes down first, a split key of its own included."""
    return {
        "schema_version": 1,
        "command": COMMAND,
        **dataclasses.asdict(columns),
        **settings,
        "file": str(file.resolve()),
        "label_names": list(columns.declared or data.label_names),
        "private_names": list(data.private_names),
        "split_key": secrets.token_hex(16),
    }


def load_or_make_config(internal: Path, fresh: dict[str, Any]) -> dict[str, Any]:
    """The run's own config; a new run takes, and writes, the fresh one."""
    path = internal / _CONFIG
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    write_json(path, fresh, mode=PRIVATE)
    return fresh


def read_config(folder: Path) -> dict[str, Any]:
    """Reads the config of a finished run.

    Raises:
        InputError: there is no such run, or its training has not ended.
    """
    path = folder / "internal" / _CONFIG
    mend = "Train one with `tfpriv rmat train`."
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"Expected the folder of a run of `tfpriv rmat train`, received {folder}, "
            f"which has no internal/{_CONFIG}. {mend}"
        ) from None
    except OSError as error:
        raise InputError(
            f"Expected a run that can be read, received {path}: {error.strerror}."
        ) from None
    except ValueError:
        config = None
    if not isinstance(config, dict) or config.get("command") != COMMAND:
        raise InputError(
            f"Expected the folder of a run of `tfpriv rmat train`, received {folder}, "
            f"a run of another command or a damaged one. {mend}"
        )
    if not (folder / "internal" / MODEL).is_file():
        raise InputError(
            f"Expected a run whose training has ended, received {folder} without "
            f"internal/{MODEL}. Give its `tfpriv rmat train` command again to go on."
        )
    return config


def columns_of(config: Mapping[str, Any]) -> Columns:
    """The columns that a run was made of."""
    labels = config.get("labels")
    names = ("text", "label", "private", "format")
    return Columns(
        **{name: config[name] for name in names},
        labels=None if labels is None else tuple(labels),
    )


def load_model(folder: Path) -> Any:
    """Loads the trained model of a run: imports TensorFlow.

    Raises:
        InputError: the file is damaged.
    """
    path = folder / "internal" / MODEL
    with quiet_import():
        import keras

        import tfpriv.representation  # noqa: F401  (registers the classes)
    try:
        return keras.saving.load_model(path, compile=False)
    except DAMAGED as error:
        raise_if_of_the_system(error)
        # The error of a file that somebody edited may say anything.
        raise InputError(
            f"Expected {path} as `tfpriv rmat train` wrote it, received a damaged "
            "file. Train again into a new folder."
        ) from None


def save_model(model: Any, folder: Path) -> None:
    """Writes a model whole or not at all, without what only training needs."""
    config = model.get_config()
    del config["backbone"], config["preprocessor"]
    # The optimizers' moments would make the file three times as large.
    plain = type(model)(model.backbone, model.tokenizer, **config)
    plain.set_weights(model.get_weights())
    staged = folder / f".{MODEL.removesuffix('.keras')}.keras"
    plain.save(staged)
    os.chmod(staged, PRIVATE)
    os.replace(staged, folder / MODEL)
