"""Requests that TensorFlow Serving replays while it loads a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfpriv._errors import InputError

WARM_UP = "assets.extra/tf_serving_warmup_requests"


def require_serving_api() -> None:
    """Raises InputError unless TensorFlow Serving's messages can be imported."""
    try:
        import tensorflow_serving.apis.prediction_log_pb2  # noqa: F401
    except ImportError:
        raise InputError(
            "Expected tensorflow-serving-api to be installed, received no such "
            "package. pip install 'tfpriv[serving]'."
        ) from None


def write_warm_up(
    folder: str | os.PathLike,
    name: str,
    inputs: Mapping[str, list[Mapping[str, Any]]],
) -> None:
    """Writes warm-up requests into a version of a model.

    Args:
        folder: the version; its `assets.extra` is there.
        name: of the model.
        inputs: signature -> one mapping of input tensors for each request.
    """
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    with tf.io.TFRecordWriter(str(Path(folder) / WARM_UP)) as writer:
        for signature, requests in inputs.items():
            for tensors in requests:
                request = predict_pb2.PredictRequest()
                request.model_spec.name = name
                request.model_spec.signature_name = signature
                for key, tensor in tensors.items():
                    value = tf.make_tensor_proto(tensor.numpy())
                    request.inputs[key].CopyFrom(value)
                log = prediction_log_pb2.PredictLog(request=request)
                writer.write(
                    prediction_log_pb2.PredictionLog(
                        predict_log=log
                    ).SerializeToString()
                )


def replay_warm_up(folder: str | os.PathLike) -> dict[str, int]:
    """Loads a version of a model as a server does and answers its warm-up requests.

    Returns:
        signature -> how many requests were answered.

    Raises:
        RuntimeError: a signature without a request, or an answer of another batch
            size, or one that is not finite.
    """
    import numpy as np
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    signatures = tf.saved_model.load(str(folder)).signatures
    answered = dict.fromkeys(signatures, 0)
    for record in tf.data.TFRecordDataset(str(Path(folder) / WARM_UP)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        request = log.predict_log.request
        signature = request.model_spec.signature_name
        tensors = {
            key: tf.constant(tf.make_ndarray(value))
            for key, value in request.inputs.items()
        }
        outputs = signatures[signature](**tensors)
        sizes = {int(v.shape[0]) for v in outputs.values()}
        finite = all(
            np.isfinite(v.numpy()).all()
            for v in outputs.values()
            if v.dtype.is_floating
        )
        if len(sizes) != 1 or not finite:
            raise RuntimeError(
                f"Expected finite outputs of one batch size from signature "
                f"{signature!r}, received others. The model was not exported."
            )
        answered[signature] += 1
    missing = sorted(name for name, count in answered.items() if not count)
    if missing:
        raise RuntimeError(
            f"Expected a warm-up request for every signature, received none for "
            f"{missing[0]!r}. The model was not exported."
        )
    return answered
