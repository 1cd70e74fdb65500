"""What every test shares: a small, quiet TensorFlow and the folder of real data."""

from __future__ import annotations

import os
import pathlib
import tempfile

# Before anything imports TensorFlow; whoever sets one of these by hand keeps it.
for _name, _value in {
    "CUDA_VISIBLE_DEVICES": "-1",
    "KERAS_BACKEND": "tensorflow",
    "MPLBACKEND": "Agg",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    # Not the budgets of whoever runs the tests.
    "TFPRIV_STATE_DIR": f"{tempfile.gettempdir()}/tfpriv-tests-{os.getpid()}",
}.items():
    os.environ.setdefault(_name, _value)

import hypothesis  # noqa: E402
import pytest  # noqa: E402

# These test the built wheel and run outside the repository (.ci/run).
collect_ignore = ["installed"]

hypothesis.settings.register_profile(
    "tfpriv",
    deadline=None,
    max_examples=50,
    derandomize=bool(os.environ.get("CI")),
)
hypothesis.settings.load_profile("tfpriv")


@pytest.fixture(scope="session")
def data_dir() -> pathlib.Path:
    """The folder of real data; a test that asks for it is skipped without one."""
    name = os.environ.get("TFPRIV_DATA_DIR")
    if not name:
        pytest.skip("needs real data: set TFPRIV_DATA_DIR to its folder")
    path = pathlib.Path(name)
    if not path.is_dir():
        pytest.fail(f"Expected TFPRIV_DATA_DIR to be a folder, received {name!r}.")
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives slow tests an hour, unless they say how long: machines are shared."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(3600))
