"""The module file of a TFX Trainer: `run_fn` trains RMAT and exports it.

TFX is not imported, and no step of TensorFlow Transform is needed: the model takes
strings. What `run_fn` reads of its argument are the attributes of TFX's `FnArgs`:
`train_files`, `eval_files`, `train_steps`, `eval_steps`, `schema_path`,
`serving_model_dir` and `custom_config`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

import tfpriv
from tfpriv._errors import InputError

DEFAULTS: dict[str, Any] = {
    "text": "text",
    "label": "label",
    "private": "gender",
    "preset": None,  # MiniLM from the locks
    "model_name": "rmat",
    "epsilon": 4.0,
    "scale": "l1",
    "mask_rate": 0.1,
    "dimension": 16,
    "adversary_weight": 1.0,
    "learning_rate": 2e-4,
    "batch_size": 32,
    "label_names_are_public": True,  # they stand in the schema, which people write
}
"""What `custom_config` may change."""


def run_fn(fn_args: Any) -> None:
    """Trains on TFRecords of tf.Example and writes a SavedModel.

    Args:
        fn_args: as TFX gives it. `serving_model_dir` gets what `tfpriv.serving.export`
            writes as one version: saved_model.pb at its top, `assets.extra` with the
            privacy statement beside it.

    Raises:
        InputError: no steps, no files, a schema that lacks a feature or its domain, an
            unknown setting, or a folder that holds something.
    """
    config = _config(getattr(fn_args, "custom_config", None))
    if not fn_args.train_steps:
        raise InputError(
            f"Expected train_steps, since the records repeat for ever, received "
            f"{fn_args.train_steps}. Give TrainArgs(num_steps=...)."
        )
    target = _target(fn_args.serving_model_dir)
    domains = _domains(fn_args.schema_path, config)
    train = dataset(fn_args.train_files, domains, config, training=True)
    valid = dataset(fn_args.eval_files, domains, config)
    model = tfpriv.RMAT.from_preset(
        config["preset"],
        num_classes=len(domains["label"]),
        num_private_classes=len(domains["private"]),
        epsilon=config["epsilon"],
        scale=config["scale"],
        dimension=config["dimension"],
        mask_rate=config["mask_rate"],
        public_labels=config["label_names_are_public"],
    )
    model.compile(
        optimizer=tf.keras.optimizers.AdamW(config["learning_rate"]),
        adversary_optimizer=tf.keras.optimizers.AdamW(config["learning_rate"]),
        adversary_weight=config["adversary_weight"],
    )
    model.fit(
        train,
        validation_data=valid,
        steps_per_epoch=fn_args.train_steps,
        validation_steps=fn_args.eval_steps,
        verbose=2,
    )
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export.") as folder:
        version = tfpriv.serving.export(
            model,
            Path(folder, config["model_name"]),
            label_names=domains["label"],
        )
        # TFX numbers versions by itself, when it pushes.
        os.replace(version, target)


def dataset(
    patterns: list[str],
    domains: dict[str, list[str]],
    config: dict[str, Any],
    *,
    training: bool = False,
) -> tf.data.Dataset:
    """Batches of (texts, {"label": ids, "private": ids}) of some files.

    Args:
        patterns: globs of TFRecord files; gzip where the name ends in .gz.
        domains: "label" and "private" -> values in the order of their numbers.
        config: of this module.
        training: whether records are shuffled and repeat for ever.

    Raises:
        InputError: no file matches.
    """
    files = sorted({file for glob in patterns for file in tf.io.gfile.glob(glob)})
    if not files:
        raise InputError(
            f"Expected TFRecord files at {', '.join(patterns) or 'train_files'}, "
            "received none."
        )
    packed = {file.endswith(".gz") for file in files}
    parts = [
        tf.data.TFRecordDataset(
            [file for file in files if file.endswith(".gz") == gz],
            "GZIP" if gz else "",
        )
        for gz in sorted(packed)
    ]
    records = parts[0] if len(parts) == 1 else parts[0].concatenate(parts[1])
    if training:
        records = records.shuffle(10_000).repeat()
    columns = [config["text"], config["label"], config["private"]]
    spec = tfpriv.datasets.feature_spec(*columns)

    def parse(batch: tf.Tensor) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        features = tf.io.parse_example(batch, spec)
        targets = {
            target: _number(features[config[target]], values)
            for target, values in domains.items()
        }
        return features[config["text"]], targets

    return records.batch(config["batch_size"]).map(parse).prefetch(2)


def _number(values: tf.Tensor, names: list[str]) -> tf.Tensor:
    """Position of each value in its domain; -1, which `fit` refuses, for others."""
    equal = values[:, None] == tf.constant(names)[None, :]
    position = tf.argmax(equal, axis=1, output_type=tf.int32)
    return tf.where(tf.reduce_any(equal, axis=1), position, -1)


def _config(given: Any) -> dict[str, Any]:
    unknown = sorted(set(given or {}) - set(DEFAULTS))
    if unknown:
        raise InputError(
            f"Expected custom_config of {', '.join(DEFAULTS)}, received {unknown[0]!r}."
        )
    return {**DEFAULTS, **(given or {})}


def _target(folder: str) -> Path:
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(
            f"Expected a new or empty folder as serving_model_dir, received {path}."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _domains(schema_path: str, config: dict[str, Any]) -> dict[str, list[str]]:
    """The declared values of both labels, in the schema's order."""
    try:
        with tf.io.gfile.GFile(schema_path) as file:
            schema = text_format.Parse(file.read(), schema_pb2.Schema())
    except (tf.errors.OpError, text_format.ParseError) as error:
        raise InputError(
            f"Expected a schema of TensorFlow Metadata in {schema_path}, received "
            f"{type(error).__name__}."
        ) from None
    features = {feature.name: feature for feature in schema.feature}
    for column in (config["text"], config["label"], config["private"]):
        if column not in features or features[column].type != schema_pb2.BYTES:
            raise InputError(
                f"Expected a feature {column!r} of type BYTES in {schema_path}, "
                "received none."
            )
    shared = {domain.name: domain for domain in schema.string_domain}
    domains = {}
    for target in ("label", "private"):
        feature = features[config[target]]
        domain = shared.get(feature.domain, feature.string_domain)
        if len(domain.value) < 2:
            raise InputError(
                f"Expected a string_domain of two or more values for "
                f"{config[target]!r} in {schema_path}, received {len(domain.value)}. "
                "Declare them: values read off the records would not be public."
            )
        domains[target] = list(domain.value)
    return domains
