"""`python -m tfpriv.beam`."""

import os
import sys

from tfpriv.beam.command import run
from tfpriv.beam.runners import stop_workers

if __name__ == "__main__":
    code = run()
    if code == 130:
        # Threads and workers of Beam would first finish what they have.
        stop_workers()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
