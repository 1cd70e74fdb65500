"""What was released of which text, without the texts."""

from __future__ import annotations

import collections
import hashlib
import secrets

import numpy as np


class ReleaseMemory:
    """Keeps one released vector a text, so that asking again releases nothing more.

    A text is known by a keyed hash; the key is drawn anew for each memory and never
    leaves it.

    Args:
        size: texts that are kept; beyond, the one that was asked for longest ago goes.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._key = secrets.token_bytes(32)
        self._kept: collections.OrderedDict[bytes, np.ndarray] = (
            collections.OrderedDict()
        )

    def __len__(self) -> int:
        return len(self._kept)

    def recall(self, text: str) -> np.ndarray | None:
        """Returns what was released of a text, or None."""
        name = self._name(text)
        if name not in self._kept:
            return None
        self._kept.move_to_end(name)
        return self._kept[name]

    def keep(self, text: str, vector: np.ndarray) -> None:
        """Remembers what was released of a text."""
        self._kept[self._name(text)] = np.array(vector)
        while len(self._kept) > self.size:
            self._kept.popitem(last=False)

    def _name(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode(), key=self._key, digest_size=32).digest()
