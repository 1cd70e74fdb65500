"""Texts to representations that do the task and hide a private attribute."""

from tfpriv.representation.ads import ADS
from tfpriv.representation.cape import CAPE
from tfpriv.representation.design import ReleaseDesign
from tfpriv.representation.dpnr import DPNR
from tfpriv.representation.encoder import PrivateEncoder
from tfpriv.representation.presets import load_bert, minilm_folder
from tfpriv.representation.rmat import RMAT
from tfpriv.representation.text_model import PrivateTextModel
from tfpriv.representation.unprotected import Unprotected
from tfpriv.representation.word_pieces import WordPieces

__all__ = [
    "ADS",
    "CAPE",
    "DPNR",
    "RMAT",
    "PrivateEncoder",
    "PrivateTextModel",
    "ReleaseDesign",
    "Unprotected",
    "WordPieces",
    "load_bert",
    "minilm_folder",
]
