"""What TensorFlow Serving answers, on loopback: gRPC and REST on one SavedModel.

No TensorFlow Serving binary is on the registries. This speaks its messages
(tensorflow-serving-api) and its JSON, with plain TensorFlow behind.

    python -m tests.serving.servers saved_models/NAME --rest-port 8501 --grpc-port 8500
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import http.server
import json
import pathlib
import re
import threading
import time

import grpc
import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers its ops)
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
)

CODES = {404: grpc.StatusCode.NOT_FOUND, 400: grpc.StatusCode.INVALID_ARGUMENT}


class Refusal(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status, self.message = status, message


class Model:
    """A folder of versions, of which the highest is served."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        versions = [int(p.name) for p in folder.iterdir() if p.name.isdecimal()]
        if not versions:
            raise FileNotFoundError(f"No versions of servable {folder.name}")
        self.name, self.version = folder.name, max(versions)
        path = str(folder / str(self.version))
        self.signatures = dict(tf.saved_model.load(path).signatures)
        self.delay = 0.0
        self.busy = 0  # requests that are turned away first
        self.asked = []  # signature and batch size of each request

    def check(self, name, version):
        if name != self.name or version not in (None, self.version):
            raise Refusal(404, f"Servable not found for request: {name}, {version}")

    def predict(self, signature, inputs):
        if self.busy:
            self.busy -= 1
            raise Refusal(503, "busy")
        time.sleep(self.delay)
        function = self.signatures.get(signature or "serving_default")
        if function is None:
            raise Refusal(400, f"Serving signature name: {signature!r} not found")
        specs = inputs_of(function)
        if set(inputs) != set(specs):
            raise Refusal(400, f"input size does not match: {sorted(inputs)}")
        tensors = {}
        for name, value in inputs.items():
            value = tf.constant(value)
            if value.dtype != specs[name].dtype:
                raise Refusal(400, f"{name} has another type, quoting {value}")
            if not specs[name].shape.is_compatible_with(value.shape):
                raise Refusal(400, f"{name} has another shape, quoting {value}")
            tensors[name] = value
        self.asked.append((signature, next(iter(tensors.values())).shape[0]))
        try:
            outputs = function(**tensors)
        except tf.errors.OpError as error:
            raise Refusal(400, error.message) from None
        return {name: value.numpy() for name, value in outputs.items()}


def inputs_of(function):
    positional, named = function.structured_input_signature
    return {spec.name: spec for spec in (*positional, *named.values())}


class Grpc(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, model):
        self.model = model

    def _checked(self, spec):
        version = spec.version.value if spec.HasField("version") else None
        self.model.check(spec.name, version)

    def Predict(self, request, context):
        answer = predict_pb2.PredictResponse()
        try:
            self._checked(request.model_spec)
            inputs = {k: tf.make_ndarray(v) for k, v in request.inputs.items()}
            signature = request.model_spec.signature_name
            for name, value in self.model.predict(signature, inputs).items():
                answer.outputs[name].CopyFrom(tf.make_tensor_proto(value))
        except Refusal as error:
            code = CODES.get(error.status, grpc.StatusCode.UNAVAILABLE)
            context.abort(code, error.message)
        answer.model_spec.CopyFrom(request.model_spec)
        answer.model_spec.version.value = self.model.version
        return answer

    def GetModelMetadata(self, request, context):
        try:
            self._checked(request.model_spec)
        except Refusal as error:
            context.abort(CODES[error.status], error.message)
        answer = get_model_metadata_pb2.GetModelMetadataResponse()
        answer.metadata["signature_def"].Pack(signature_map(self.model))
        return answer


def signature_map(model):
    defined = get_model_metadata_pb2.SignatureDefMap()
    for name, function in model.signatures.items():
        definition = defined.signature_def[name]
        outputs = function.structured_outputs
        for infos, specs in (
            (definition.inputs, inputs_of(function)),
            (definition.outputs, outputs),
        ):
            for key, spec in specs.items():
                infos[key].dtype = spec.dtype.as_datatype_enum
                for size in spec.shape:
                    infos[key].tensor_shape.dim.add(size=-1 if size is None else size)
    return defined


class Rest(http.server.BaseHTTPRequestHandler):
    model = None
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._answer(self._metadata)

    def do_POST(self):
        self._answer(self._predict)

    def _answer(self, method):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        try:
            status, answer = 200, method(body)
        except Refusal as error:
            status, answer = error.status, {"error": error.message}
        data = json.dumps(answer, indent=4).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _match(self, ending):
        pattern = rf"/v1/models/([^/:]+)(?:/versions/(\d+))?{ending}"
        match = re.fullmatch(pattern, self.path)
        if not match:
            raise Refusal(404, "Malformed request")
        version = None if match[2] is None else int(match[2])
        self.model.check(match[1], version)

    def _metadata(self, _):
        self._match("/metadata")
        from google.protobuf import json_format

        defined = json_format.MessageToDict(
            signature_map(self.model), preserving_proto_field_name=True
        )
        return {"metadata": {"signature_def": defined}}

    def _predict(self, body):
        self._match(":predict")
        try:
            request = json.loads(body)
        except ValueError:
            raise Refusal(400, f"JSON Parse error: {body[:80]!r}") from None
        signature = request.get("signature_name", "serving_default")
        function = self.model.signatures.get(signature)
        if function is None:
            raise Refusal(400, f"Serving signature name: {signature!r} not found")
        specs = inputs_of(function)
        rows = request.get("instances")
        if rows is not None:
            if not rows or not isinstance(rows[0], dict):
                rows = [{next(iter(specs)): row} for row in rows]
            given = {name: [row[name] for row in rows] for name in rows[0]}
        else:
            given = request["inputs"]
            given = given if isinstance(given, dict) else {next(iter(specs)): given}
        try:
            inputs = {
                name: np.array(values, specs[name].dtype.as_numpy_dtype)
                for name, values in given.items()
            }
        except (KeyError, ValueError, TypeError):
            raise Refusal(400, f"Failed to process element: {given}") from None
        outputs = {
            name: as_json(value)
            for name, value in self.model.predict(signature, inputs).items()
        }
        if rows is None:
            single = len(outputs) == 1
            return {"outputs": next(iter(outputs.values())) if single else outputs}
        if len(outputs) == 1:
            return {"predictions": next(iter(outputs.values()))}
        columns = [[(k, row) for row in v] for k, v in outputs.items()]
        return {"predictions": [dict(row) for row in zip(*columns, strict=True)]}


def as_json(value):
    if value.dtype == object:
        return [text.decode() for text in value]
    return value.astype(float).round(6).tolist()


@contextlib.contextmanager
def serve_grpc(model, port=0, credentials=None):
    """Yields the address."""
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(8),
        options=[("grpc.max_receive_message_length", -1)],
    )
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        Grpc(model), server
    )
    if credentials is None:
        port = server.add_insecure_port(f"127.0.0.1:{port}")
    else:
        port = server.add_secure_port(f"127.0.0.1:{port}", credentials)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None)


@contextlib.contextmanager
def serve_rest(model, port=0, context=None):
    """Yields the address."""
    handler = type("Handler", (Rest,), {"model": model})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    scheme = "http" if context is None else "https"
    try:
        yield f"{scheme}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--grpc-port", type=int, default=8500)
    parser.add_argument("--rest-port", type=int, default=8501)
    options = parser.parse_args()
    model = Model(options.folder)
    with (
        serve_grpc(model, options.grpc_port) as first,
        serve_rest(model, options.rest_port) as second,
        contextlib.suppress(KeyboardInterrupt),
    ):
        print(f"{model.name}, version {model.version}: gRPC {first}, REST {second}")
        threading.Event().wait()


if __name__ == "__main__":
    main()
