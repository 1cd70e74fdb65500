"""Models as files that TensorFlow Serving loads, and a client for them.

`export.py` is the file to read first: it writes a SavedModel from a representation
model or a DP-SeqGAN, with everything that a server needs and nothing of tfpriv.
`served_representation.py` and `served_generator.py` are the graphs, `graph_check.py`
says what may be in one. `ExportedModel` reads what was written, and `ServingClient`
asks a server by gRPC or REST.
"""

from tfpriv.serving.client import ServingClient
from tfpriv.serving.export import export
from tfpriv.serving.exported_model import ExportedModel

__all__ = ["ExportedModel", "ServingClient", "export"]
