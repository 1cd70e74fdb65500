from __future__ import annotations

import errno
import os
import zipfile

import pytest

from tfpriv._errors import InputError
from tfpriv._files import DAMAGED, atomic_write, is_full, raise_if_of_the_system

HDF5 = OSError("Unable to write file (error message = 'No space left on device')")
NO_FOLDER = FileNotFoundError(
    errno.ENOENT, "No usable temporary directory found in ['/tmp', '/var/tmp']"
)
FULL = [
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EDQUOT, "Disk quota exceeded"),
    HDF5,
    NO_FOLDER,
]
OTHERS = [
    PermissionError(errno.EACCES, "Permission denied", "/tmp/model"),
    OSError(errno.EMFILE, "Too many open files"),
    OSError(errno.EIO, "Input/output error"),
]
DAMAGES = [
    ValueError("not a model"),
    zipfile.BadZipFile("File is not a zip file"),
    OSError("Unable to open file (file signature not found)"),
    FileNotFoundError(errno.ENOENT, "No such file or directory", "vocabulary.txt"),
]


def chained(cause, kind):
    """An error that a library raised because of, or while it handled, another."""
    try:
        try:
            raise cause
        except type(cause) as error:
            if kind == "from":
                raise ValueError("1 object could not be loaded") from error
            raise ValueError("1 object could not be loaded")  # noqa: B904
    except ValueError as error:
        return error


@pytest.mark.parametrize("error", FULL, ids=str)
def test_a_full_disk_is_told_apart_from_a_damaged_file(error):
    assert is_full(error)
    for found in (error, chained(error, "from"), chained(error, "while")):
        with pytest.raises(OSError, match=r"full disk.*TMPDIR"):
            raise_if_of_the_system(found)


@pytest.mark.parametrize("error", OTHERS, ids=str)
def test_other_faults_of_the_machine_are_raised_as_they_are(error):
    assert not is_full(error)
    for found in (error, chained(error, "from")):
        with pytest.raises(OSError) as raised:
            raise_if_of_the_system(found)
        assert raised.value is error


@pytest.mark.parametrize("error", DAMAGES, ids=str)
def test_a_damaged_file_is_no_fault_of_the_machine(error):
    assert isinstance(error, DAMAGED)
    assert not is_full(error)
    for found in (error, chained(error, "while")):
        raise_if_of_the_system(found)


def test_what_is_no_ordinary_file_is_not_written_over(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="ordinary file"), atomic_write(pipe):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    assert pipe.is_fifo()
