"""An import of TensorFlow that says nothing unless it fails.

No switch of TensorFlow does it: what is logged before its logger is set up, that there
is no GPU for one, goes to the file descriptor whatever TF_CPP_MIN_LOG_LEVEL is.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import IO


@contextlib.contextmanager
def quiet_import() -> Iterator[None]:
    """Keeps what TensorFlow logs while it is imported, past Python, off stderr.

    For programs, the command line and the experiments, not for a library: the whole
    process is without stderr meanwhile. Should the block raise, what was logged is
    shown after all. `TFPRIV_DEBUG=1` shows everything.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        kept = None if os.environ.get("TFPRIV_DEBUG") == "1" else os.dup(2)
    except OSError:  # started without a stderr
        kept = None
    if kept is None:
        yield
        return
    with _aside() as file:
        failed = True
        try:
            os.dup2(file.fileno(), 2)
            yield
            if "tensorflow" in sys.modules:
                # Looks for a GPU now: the complaint that there is none is kept too.
                sys.modules["tensorflow"].config.list_physical_devices("GPU")
            failed = False
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            if failed:
                file.seek(0)
                with contextlib.suppress(OSError):
                    os.write(2, file.read())


def _aside() -> IO[bytes]:
    try:
        return tempfile.TemporaryFile()
    except OSError:  # a full disk; a quiet import is worth no failure
        return open(os.devnull, "r+b")
