"""TensorFlow Serving's PredictionService by gRPC."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv.serving.transport import (
    Tls,
    Unreachable,
    not_found,
    refused,
    too_slow,
)

_UNLIMITED = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
]


class GrpcTransport:
    """A `Transport` over one gRPC channel.

    Args:
        address: host:port.
        model: name of the model.
        version: of the model; None is the one that the server prefers.
        tls: None is a connection that anybody on the way can read.

    Raises:
        InputError: tensorflow-serving-api is not installed.
    """

    def __init__(
        self, address: str, model: str, version: int | None, tls: Tls | None
    ) -> None:
        try:
            import grpc
            from tensorflow_serving.apis import prediction_service_pb2_grpc
        except ImportError:
            raise InputError(
                "Expected grpcio and tensorflow-serving-api to be installed, received "
                "neither or one. pip install 'tfpriv[serving]', or take the REST "
                "address http://host:port."
            ) from None
        self.address, self.model, self.version = address, model, version
        if tls is None:
            self._channel = grpc.insecure_channel(address, options=_UNLIMITED)
        else:
            credentials = grpc.ssl_channel_credentials(
                _bytes(tls.root_certificates),
                _bytes(tls.client_key),
                _bytes(tls.client_certificate),
            )
            self._channel = grpc.secure_channel(
                address, credentials, options=_UNLIMITED
            )
        self._stub = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)

    def predict(
        self, signature: str, inputs: Mapping[str, np.ndarray], timeout: float
    ) -> dict[str, np.ndarray]:
        """See `Transport.predict`."""
        import tensorflow as tf
        from tensorflow_serving.apis import predict_pb2

        request = predict_pb2.PredictRequest()
        self._name(request.model_spec)
        request.model_spec.signature_name = signature
        for name, values in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(values))
        answer = self._call(self._stub.Predict, request, signature, timeout)
        with contextlib.suppress(TypeError, ValueError):
            return {k: tf.make_ndarray(value) for k, value in answer.outputs.items()}
        # Outside, as in `_call`: NumPy's error may hold what was answered.
        raise refused(self.address, signature, "an answer of another form")

    def signatures(self, timeout: float) -> dict[str, dict[str, Any]]:
        """See `Transport.signatures`."""
        from tensorflow_serving.apis import get_model_metadata_pb2

        request = get_model_metadata_pb2.GetModelMetadataRequest(
            metadata_field=["signature_def"]
        )
        self._name(request.model_spec)
        answer = self._call(self._stub.GetModelMetadata, request, "metadata", timeout)
        defined = get_model_metadata_pb2.SignatureDefMap()
        answer.metadata["signature_def"].Unpack(defined)
        return {
            name: {"inputs": _shapes(d.inputs), "outputs": _shapes(d.outputs)}
            for name, d in defined.signature_def.items()
        }

    def close(self) -> None:
        """Closes the channel."""
        self._channel.close()

    def _name(self, spec: Any) -> None:
        spec.name = self.model
        if self.version is not None:
            spec.version.value = self.version

    def _call(self, method: Any, request: Any, signature: str, timeout: float) -> Any:
        import grpc

        try:
            return method(request, timeout=timeout)
        except grpc.RpcError as error:
            code = error.code()
        # Outside of the handler: the error that is raised must not hold the other.
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED):
            raise Unreachable(
                f"Expected TensorFlow Serving's gRPC at {self.address}, received "
                f"{code.name}. Is it running there, on this port, with this TLS?"
            )
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            raise too_slow(self.address, timeout)
        if code is grpc.StatusCode.NOT_FOUND:
            raise not_found(self.address, self.model, self.version)
        raise refused(self.address, signature, code.name)


def _bytes(path: Path | None) -> bytes | None:
    return None if path is None else Path(path).read_bytes()


def _shapes(tensors: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {
        name: tuple(dim.size for dim in info.tensor_shape.dim)
        for name, info in tensors.items()
    }
