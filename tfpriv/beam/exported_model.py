"""An exported model, wherever Beam's file systems reach."""

from __future__ import annotations

import os

from tfpriv.beam._require import require_beam
from tfpriv.serving.exported_model import ExportedModel


def find_model(model_dir: str | os.PathLike) -> ExportedModel:
    """Finds the highest version of a model, or reads the version given.

    Args:
        model_dir: what `tfpriv export` wrote, `NAME` or `NAME/<version>`, on any file
            system of Beam's that TensorFlow reads too.

    Raises:
        InputError: as of `ExportedModel.find`.
    """
    require_beam()
    return ExportedModel.find(model_dir, _BeamFiles())


class _BeamFiles:
    """`Files` of Beam's file systems."""

    def exists(self, path: str) -> bool:
        from apache_beam.io.filesystems import FileSystems

        return FileSystems.exists(path)

    def match(self, pattern: str) -> list[str]:
        from apache_beam.io.filesystems import FileSystems

        found = FileSystems.match([pattern])[0].metadata_list
        return [metadata.path for metadata in found]

    def read(self, path: str) -> bytes:
        from apache_beam.io.filesystems import FileSystems

        with FileSystems.open(path) as file:
            return file.read()
