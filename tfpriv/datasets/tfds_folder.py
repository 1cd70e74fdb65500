"""A data set as a folder that TensorFlow Datasets reads, and how to parse TFRecords."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv import _validation
from tfpriv._errors import InputError
from tfpriv._files import PRIVATE

if TYPE_CHECKING:
    from tfpriv.datasets.text_dataset import TextDataset

_SPLIT = re.compile(r"\w+", re.ASCII)
_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


def write_tfds(
    dataset: TextDataset | Mapping[str, TextDataset],
    directory: str | os.PathLike,
    *,
    label_names: Sequence[str] | None = None,
    name: str = "texts",
    version: str = "1.0.0",
    mode: int = PRIVATE,
) -> None:
    """Writes a folder for `tfds.builder_from_directory`: text, and label if any.

    The features are `text` and `label`, a ClassLabel whose numbers follow
    `label_names`. Groups, private labels and provenance are never written. The folder
    is whole or not there.

    Args:
        dataset: records of the split "train", or a data set for each split.
        directory: a folder that does not exist, in one that does.
        label_names: of the classes in order; None is all labels that occur, sorted.
        name: str. Of the data set, for TFDS: small letters, digits and underscores.
        version: str. Of the data set, as "1.0.0".
        mode: permission bits of the files. Private (0600) by default; a synthetic
            release takes 0644.

    Raises:
        InputError: a folder that exists, splits of which some have labels and others
            do not, a label that is not among the names, or a bad name.
        OSError: the folder cannot be written.

    Examples:
        >>> import pathlib, tempfile
        >>> import tensorflow_datasets as tfds
        >>> from tfpriv.datasets import TextDataset
        >>> data = TextDataset(["hi", "buy now"], ["ham", "spam"])
        >>> folder = pathlib.Path(tempfile.mkdtemp(), "mine")
        >>> write_tfds(data, folder)
        >>> builder = tfds.builder_from_directory(folder)
        >>> builder.info.features["label"].names
        ['ham', 'spam']
        >>> [int(row["label"]) for row in builder.as_dataset(split="train")]
        [0, 1]
    """
    splits = dataset if isinstance(dataset, Mapping) else {"train": dataset}
    names = _checked(splits, label_names, name, version)
    directory = Path(directory)
    if os.path.lexists(directory):
        raise InputError(
            f"Expected a new folder, received {directory}, which exists. Name another."
        )
    if not directory.parent.is_dir():
        raise InputError(
            f"Expected a folder in one that exists, received {directory}. Make "
            f"{directory.parent} first."
        )
    folder = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
    try:
        _write(splits, folder, names, name, version)
        for file in folder.iterdir():
            file.chmod(mode)
        # Who may read the files may also look where they are.
        folder.chmod(mode | (mode & 0o444) >> 2)
        os.rename(folder, directory)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def feature_spec(*columns: str) -> dict[str, Any]:
    """How `tf.io.parse_example` reads what `write_table` writes as TFRecord.

    Args:
        *columns: names of the features, strings all of them; "text" and "label"
            unless given.

    Returns:
        name -> tf.io.FixedLenFeature.

    Examples:
        >>> sorted(feature_spec("CONTENT", "CLASS"))
        ['CLASS', 'CONTENT']
    """
    import tensorflow as tf

    return {
        column: tf.io.FixedLenFeature([], tf.string)
        for column in columns or ("text", "label")
    }


def _checked(
    splits: Mapping[str, TextDataset],
    label_names: Sequence[str] | None,
    name: str,
    version: str,
) -> list[str] | None:
    """Returns the label names in order; None without labels."""
    if not splits:
        raise InputError("Expected at least one split, received none.")
    for split in splits:
        if not isinstance(split, str) or not _SPLIT.fullmatch(split):
            raise InputError(
                "Expected names of letters, digits and underscores for the splits, "
                f"received {split!r}."
            )
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            "Expected a name of small letters, digits and underscores, received "
            f"{name!r}."
        )
    if not isinstance(version, str) or not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise InputError(f"Expected a version as '1.0.0', received {version!r}.")
    labelled = {data.labels is not None for data in splits.values()}
    if len(labelled) > 1:
        raise InputError(
            "Expected labels in all splits or in none, received some of each."
        )
    if labelled == {False}:
        return None
    if label_names is None:
        return sorted({name for data in splits.values() for name in data.label_names})
    _validation.integer(label_names=len(label_names))
    for split, data in splits.items():
        for row, label in enumerate(data.labels or ()):
            if label not in label_names:
                raise InputError(
                    f"Expected one of the {len(label_names)} label names in every row "
                    f"of split {split!r}, received another in row {row}."
                )
    return list(label_names)


def _write(
    splits: Mapping[str, TextDataset],
    folder: Path,
    label_names: list[str] | None,
    name: str,
    version: str,
) -> None:
    import tensorflow as tf
    import tensorflow_datasets as tfds

    from tfpriv.datasets.writers import _encodable

    features: dict[str, Any] = {"text": tfds.features.Text()}
    if label_names is not None:
        features["label"] = tfds.features.ClassLabel(names=label_names)
    kinds = tfds.features.FeaturesDict(features)
    infos = []
    for split, data in splits.items():
        file = tfds.core.ShardedFileTemplate(
            data_dir=folder,
            dataset_name=name,
            split=split,
            filetype_suffix="tfrecord",
        )
        path = file.sharded_filepath(shard_index=0, num_shards=1)
        size = 0
        with tf.io.TFRecordWriter(str(path)) as writer:
            for row, text in enumerate(data.texts):
                example = {"text": _encodable(text)}
                if data.labels is not None:
                    example["label"] = data.labels[row]
                record = kinds.serialize_example(kinds.encode_example(example))
                writer.write(record)
                size += len(record)
        infos.append(
            tfds.core.SplitInfo(
                name=split,
                shard_lengths=[len(data)],
                num_bytes=size,
                filename_template=file,
            )
        )
    tfds.folder_dataset.write_metadata(
        data_dir=folder,
        features=kinds,
        split_infos=infos,
        filename_template=None,
        version=version,
        supervised_keys=("text", "label") if label_names is not None else None,
        check_data=False,
    )
