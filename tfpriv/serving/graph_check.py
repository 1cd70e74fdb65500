"""What may be in a graph that is served: no Python, no state of a seed, known ops."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

TEXT_OPS = frozenset(
    {
        "CaseFoldUTF8",
        "FastWordpieceTokenizeWithOffsets",
        "NormalizeUTF8",
        "RegexSplitWithOffsets",
    }
)
"""Ops of tensorflow-text that a graph may have; TensorFlow Serving links them."""

# Registered in every TensorFlow, but they call Python that a server has not.
_PYTHON = frozenset({"EagerPyFunc", "GeneratorDataset", "PyFunc", "PyFuncStateless"})
# Whatever draws from a seed, a stored generator or the process's Mersenne Twister. The
# layers' bits come from the operating system (tfpriv/layers/_randomness.py).
_DRAWS = ("Random", "Rng", "Multinomial", "NonDeterministic", "TruncatedNormal")


def check_graph(folder: str | os.PathLike) -> frozenset[str]:
    """Checks a SavedModel's graph and returns the names of its ops.

    Args:
        folder: a version of a model, which holds saved_model.pb.

    Raises:
        RuntimeError: an op that is neither TensorFlow's own nor in `TEXT_OPS`, that
            calls Python or draws from a seed, or a variable that is no weight: the
            message has its name.
    """
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel.FromString(
        (Path(folder) / "saved_model.pb").read_bytes()
    )
    nodes = list(_nodes(saved))
    ops = frozenset(node.op for node in nodes)
    functions = {
        function.signature.name
        for graph in saved.meta_graphs
        for function in graph.graph_def.library.function
    }
    for op in sorted(ops - TEXT_OPS - functions):
        if not hasattr(tf.raw_ops, op):
            raise _refused(op, "not of TensorFlow, nor of tensorflow-text as allowed")
        if op in _PYTHON:
            raise _refused(op, "which calls Python")
        if any(part in op for part in _DRAWS):
            raise _refused(op, "which draws from a seed or a generator's state")
    _check_variables(node for node in nodes if node.op == "VarHandleOp")
    return ops - functions


def _nodes(saved: Any) -> Iterator[Any]:
    for graph in saved.meta_graphs:
        yield from graph.graph_def.node
        for function in graph.graph_def.library.function:
            yield from function.node_def


def _check_variables(nodes: Iterable[Any]) -> None:
    import tensorflow as tf

    for node in nodes:
        dtype = tf.dtypes.as_dtype(node.attr["dtype"].type)
        if not dtype.is_floating:
            name = node.attr["shared_name"].s.decode() or node.name
            raise RuntimeError(
                f"Expected weights alone in the served graph, received the variable "
                f"{name!r} of type {dtype.name}: the state of a seed generator replays "
                "noise after every reload. Leave it out of the model."
            )


def _refused(op: str, what: str) -> RuntimeError:
    return RuntimeError(
        f"Expected ops that TensorFlow Serving runs and that replay nothing, received "
        f"{op}, {what}. Build the layer that uses it from other ops."
    )
