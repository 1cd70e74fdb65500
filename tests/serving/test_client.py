"""The client against servers that answer, refuse, are busy, slow, or not there."""

from __future__ import annotations

import http.server
import json
import socket
import ssl
import subprocess
import threading
import time
import traceback

import grpc
import numpy as np
import pytest

from tests.serving.servers import Refusal, serve_grpc, serve_rest
from tfpriv._errors import InputError
from tfpriv.serving import ServingClient

SECRET = "hunter2"
TEXTS = ["she", "", "go\0od", "猫", f"{SECRET} is long"]
LENGTHS = [len(text.encode()) for text in TEXTS]


def client(address, **settings):
    return ServingClient(address, "stand_in", **{"deadline": 30, **settings})


def told(error):
    """Everything that an exception shows to whoever prints or logs it."""
    return "".join(traceback.format_exception(error))


# --- Answers -------------------------------------------------------------------


def test_encode_keeps_the_order_whatever_the_batches(address, stand_in):
    with client(address, batch_size=2) as asked:
        vectors = asked.encode(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (5, 2)
    assert list(vectors[:, 0]) == LENGTHS
    assert [size for _, size in stand_in.asked] == [2, 2, 1]


def test_labels_from_texts_and_from_representations(address):
    with client(address) as asked:
        labels, probabilities = asked.predict(TEXTS)
        again, same = asked.classify(asked.encode(TEXTS))
    assert labels == again == ["long" if n > 3 else "short" for n in LENGTHS]
    np.testing.assert_allclose(probabilities, same, atol=1e-5)
    assert probabilities.shape == (5, 2)


def test_a_lone_surrogate_and_a_megabyte_and_many_texts(address, stand_in):
    with client(address) as asked:
        assert asked.encode(["\ud800"])[0, 0] == 1
        big = asked.encode(["x" * 2**20] * 5)
        assert list(big[:, 0]) == [2**20] * 5
        assert max(size for _, size in stand_in.asked) == 2
        many = asked.encode(["x" * (i % 9) for i in range(10_000)])
    assert list(many[:, 0]) == [i % 9 for i in range(10_000)]


def test_the_version_that_is_asked_for(address):
    with client(address, version=3) as asked:
        assert asked.encode(["a"]).shape == (1, 2)


# --- What was asked for before ---------------------------------------------------


def test_by_default_asking_twice_is_two_releases(address, stand_in):
    with client(address) as asked:
        first, second = asked.encode(["a", "a"]), asked.encode(["a", "a"])
    assert len({*first[:, 1], *second[:, 1]}) == 4
    assert stand_in.asked == [("encode", 2), ("encode", 2)]


def test_a_remembered_text_is_released_once(address, stand_in):
    with client(address, remember=True) as asked:
        first = asked.encode(["a", "bb", "a"])
        second = asked.encode(["ccc", "a", "bb"])
    np.testing.assert_array_equal(first[0], first[2])
    np.testing.assert_array_equal(first[:2], second[1:])
    assert stand_in.asked == [("encode", 2), ("encode", 1)]


def test_memory_has_a_size_and_no_texts(stand_in):
    with serve_grpc(stand_in) as address, client(address, remember=2) as asked:
        asked.encode([SECRET, "b", "c"])
        assert len(asked._memory) == 2
        assert SECRET not in repr(vars(asked._memory))
        asked.encode(["c", "b"])
        assert stand_in.asked == [("encode", 3)]
        asked.encode([SECRET])
        assert stand_in.asked[-1] == ("encode", 1)


def test_what_was_answered_before_a_failure_is_remembered(stand_in):
    with (
        serve_grpc(stand_in) as address,
        client(address, remember=True, batch_size=1, retries=0) as asked,
    ):
        asked.signatures()
        predict, calls = stand_in.predict, []

        def second_fails(signature, inputs):
            calls.append(signature)
            if len(calls) == 2:
                raise Refusal(400, "no")
            return predict(signature, inputs)

        stand_in.predict = second_fails
        with pytest.raises(RuntimeError, match="INVALID_ARGUMENT"):
            asked.encode(["a", "b"])
        asked.encode(["a", "b"])
    assert len(calls) == 3


# --- Servers that do not answer ----------------------------------------------------


def test_a_busy_server_is_asked_again(address, stand_in):
    with client(address) as asked:
        asked.signatures()
        stand_in.busy = 2
        assert asked.encode(["a"]).shape == (1, 2)
        stand_in.busy = 3
        with pytest.raises(ConnectionError, match=r"UNAVAILABLE|HTTP 503"):
            asked.encode(["a"])


def test_a_slow_server_takes_no_longer_than_the_deadline(address, stand_in):
    with client(address) as asked:
        asked.signatures()
        asked.deadline = 0.5
        stand_in.delay = 2.0
        start = time.monotonic()
        with pytest.raises(TimeoutError, match="deadline") as caught:
            asked.encode([SECRET])
        assert time.monotonic() - start < 1.9
    assert SECRET not in told(caught.value)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_a_server_that_is_down_is_named(scheme):
    address = f"{scheme}127.0.0.1:{free_port()}"
    with client(address) as asked, pytest.raises(ConnectionError, match=address):
        asked.encode(["a"])


def test_a_server_of_another_kind_is_an_error_of_one_line(stand_in):
    with serve_rest(stand_in) as rest, serve_grpc(stand_in) as rpc:
        for address in (rest.removeprefix("http://"), f"http://{rpc}"):
            with (
                client(address, deadline=5) as asked,
                pytest.raises((ConnectionError, RuntimeError, TimeoutError)) as caught,
            ):
                asked.encode([SECRET])
            assert "\n" not in str(caught.value)


class Html(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>hello</html>")

    def log_message(self, *_):
        pass


def test_a_web_server_is_no_model_server():
    server = http.server.HTTPServer(("127.0.0.1", 0), Html)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        with client(address) as asked, pytest.raises(RuntimeError, match="no JSON"):
            asked.signatures()
    finally:
        server.shutdown()
        server.server_close()


TEXT = {"tensor_shape": {"dim": [{"size": "-1"}]}}
ROWS = {"tensor_shape": {"dim": [{"size": "-1"}, {"size": "2"}]}}
SIGNATURES = {
    "encode": {"inputs": {"text": TEXT}, "outputs": {"representation": ROWS}},
    "serving_default": {
        "inputs": {"text": TEXT},
        "outputs": {"probabilities": ROWS, "label": TEXT},
    },
}


def metadata(signatures):
    return {"metadata": {"signature_def": {"signature_def": signatures}}}


class Other(http.server.BaseHTTPRequestHandler):
    """A server whose messages are JSON, and of another version."""

    def do_GET(self):
        self.tell(self.server.metadata)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.tell(self.server.answer)

    def tell(self, answer):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def other():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def failure(other, signatures, answer, method="encode"):
    other.metadata, other.answer = signatures, answer
    address = f"http://127.0.0.1:{other.server_address[1]}"
    with client(address) as asked, pytest.raises((RuntimeError, InputError)) as caught:
        getattr(asked, method)(["a", "b"])
    assert SECRET not in told(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        None,
        {"metadata": {}},
        metadata({"encode": {}}),
        metadata({"encode": {"inputs": {"text": {}}, "outputs": {}}}),
        metadata({"encode": {"inputs": {"text": TEXT}, "outputs": {"other": ROWS}}}),
        metadata(
            {
                "encode": {
                    "inputs": {"text": TEXT},
                    "outputs": {"representation": {"tensor_shape": {}}},
                }
            }
        ),
    ],
)
def test_signatures_of_another_form_are_told_in_a_line(other, answer):
    failure(other, answer, None)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        None,
        {"predictions": [[1, 2], [3, 4]]},
        {"outputs": [[1, 2], [3]]},
        {"outputs": [[SECRET, "a"], ["b", "c"]]},
        {"outputs": [[{SECRET: 1}, 1], [2, 3]]},
        {"outputs": SECRET},
        {"outputs": [[1, None], [3, 4]]},
        {"outputs": {"representation": [[1, float("nan")], [3, 4]]}},
    ],
)
def test_representations_of_another_form_are_told_in_a_line(other, answer):
    assert type(failure(other, metadata(SIGNATURES), answer)) is RuntimeError


@pytest.mark.parametrize(
    "outputs",
    [
        [1, 2],
        {"probabilities": [[1, 0], [0, 1]]},
        {"probabilities": [[1, 0], [0, 1]], "label": [1, 2]},
        {"probabilities": [[1, 0], [0, 1]], "label": ["a"]},
        {"probabilities": [1, 0], "label": ["a", "b"]},
        {"probabilities": 3, "label": SECRET},
        {"probabilities": [[1, 0], [0, float("nan")]], "label": ["a", "b"]},
    ],
)
def test_labels_of_another_form_are_told_in_a_line(other, outputs):
    answer = {"outputs": outputs}
    error = failure(other, metadata(SIGNATURES), answer, method="predict")
    assert type(error) is RuntimeError


def test_words_instead_of_numbers_by_grpc_are_refused(stand_in):
    with serve_grpc(stand_in) as address, client(address) as asked:
        asked.signatures()
        words = np.full((1, 2), SECRET.encode(), object)
        stand_in.predict = lambda *_: {"representation": words}
        with pytest.raises(RuntimeError, match="finite") as caught:
            asked.encode(["a"])
    assert SECRET not in told(caught.value)


def test_another_model_or_version_is_named(address):
    for settings, words in (
        ({"model": "other"}, "model 'other'"),
        ({"model": "stand_in", "version": 9}, "version 9"),
    ):
        with (
            ServingClient(address, **settings) as asked,
            pytest.raises(InputError, match=words),
        ):
            asked.encode(["a"])


def test_a_model_without_the_signature_is_named(address, stand_in):
    del stand_in.signatures["encode"]
    with client(address) as asked, pytest.raises(InputError, match="'encode'"):
        asked.encode(["a"])


def test_no_error_quotes_a_text_that_a_server_quotes(address, stand_in):
    with client(address) as asked:
        asked.signatures()

        def quote(signature, inputs):
            raise Refusal(400, f"cannot read {inputs}")

        stand_in.predict = quote
        with pytest.raises(RuntimeError) as caught:
            asked.encode([SECRET])
    assert SECRET not in told(caught.value)
    assert SECRET in f"cannot read { {'text': [SECRET]} }"  # what was quoted


def test_an_answer_of_another_size_is_refused(address, stand_in):
    with client(address) as asked:
        asked.signatures()
        stand_in.predict = lambda *_: {"representation": np.zeros((1, 2), np.float32)}
        with pytest.raises(RuntimeError, match=r"shape \(2, 2\)"):
            asked.encode(["a", "b"])


# --- Encryption ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A key and a certificate of 127.0.0.1 that vouches for itself."""
    folder = tmp_path_factory.mktemp("tls")
    key, pem = folder / "key.pem", folder / "cert.pem"
    line = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    line += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    try:
        subprocess.run(
            [*line, "-keyout", key, "-out", pem], check=True, capture_output=True
        )
    except FileNotFoundError:
        pytest.skip("needs openssl, to make a certificate")
    return key, pem


def test_both_ways_are_encrypted_and_check_the_server(stand_in, certificate):
    key, pem = certificate
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), pem.read_bytes())])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    with (
        serve_grpc(stand_in, credentials=credentials) as rpc,
        serve_rest(stand_in, context=context) as rest,
    ):
        for address in (rpc, rest):
            with client(address, root_certificates=pem) as asked:
                assert asked.encrypted
                assert asked.encode(["a"]).shape == (1, 2)
        for settings in ({"address": rpc, "tls": True}, {"address": rest}):
            with (
                client(deadline=3, retries=0, **settings) as stranger,
                pytest.raises(ConnectionError),
            ):
                stranger.encode(["a"])


@pytest.mark.parametrize(
    ("address", "readable"),
    [
        ("localhost:8500", False),
        ("127.0.0.1:8500", False),
        ("http://localhost:8501", False),
        ("example.org:8500", True),
        ("http://example.org:8501", True),
        ("https://example.org:8501", False),
        ("[::1]:8500", False),
        ("localhost.example.org:8500", True),
        ("127.example.org:8500", True),
        ("http://localhost@example.org:8501", True),
    ],
)
def test_it_is_known_who_can_read_along(address, readable):
    with client(address) as asked:
        assert asked.readable_on_the_way is readable


# --- Arguments -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["", "localhost", "localhost:", ":8500", "localhost:0", "ftp://a:1", "a:b", 8500],
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(InputError, match="host:port"):
        client(address)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"deadline": 0}, "deadline"),
        ({"deadline": float("nan")}, "deadline"),
        ({"retries": -1}, "retries"),
        ({"batch_size": 0}, "batch_size"),
        ({"version": 0}, "version"),
        ({"remember": -1}, "remember"),
        ({"remember": "yes"}, "remember"),
        ({"tls": "yes"}, "tls"),
        ({"root_certificates": "none.pem"}, "none.pem"),
        ({"client_key": __file__}, "together"),
    ],
)
def test_a_wrong_setting_is_refused(settings, words):
    with pytest.raises(InputError, match=words):
        client("localhost:8500", **settings)
    with pytest.raises(InputError, match="https"):
        client("http://localhost:8501", tls=True)
    with pytest.raises(InputError, match="name of a model"):
        ServingClient("localhost:8500", "")


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ("one", "received str"),
        (["a", None], "row 1"),
        (["a", 3], "row 1"),
        ([b"a"], "row 0"),
        ([], "at least one"),
        (None, "NoneType"),
    ],
)
def test_rows_that_are_no_texts_are_refused_before_asking(texts, words):
    with client("localhost:1") as asked:
        for method in (asked.encode, asked.predict):
            with pytest.raises(InputError, match=words):
                method(texts)


def test_representations_of_another_shape_or_type_are_refused(address):
    with client(address) as asked:
        for values in ([[1, 2, 3]], [1, 2], [], [["a", "b"]], [[1, np.nan]]):
            with pytest.raises(InputError, match=r"shape \(n, 2\)"):
                asked.classify(values)
