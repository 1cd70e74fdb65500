"""The demo's second half: what a representation tells, protected and not."""

from __future__ import annotations

import dataclasses
import importlib.resources
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv._errors import InputError
from tfpriv._figures import rounded_up
from tfpriv._files import PRIVATE, write_json
from tfpriv.cli._common import quiet_import, say
from tfpriv.cli._representation_run import (
    COMMAND,
    Columns,
    load_model,
    load_or_make_config,
    new_config,
    parts_of,
    records,
)
from tfpriv.cli._representation_settings import RepresentationSettings
from tfpriv.cli._representation_training import (
    finished,
    train_and_release,
)
from tfpriv.cli.rmat_attack import attack_model
from tfpriv.cli.run_folder import RunFolder

if TYPE_CHECKING:
    from tfpriv.attacks import AttributeInferenceAttack, AttributeInferenceResult
    from tfpriv.datasets import Splits

# The sample is public, its labels too.
_COLUMNS = Columns("text", "label", "gender", labels=("ham", "spam"))
_EPSILON = 4.0
_EPOCHS = 2
# The sample is public and artificial: its parts are those of the other half.
_SPLIT_KEY = "0"
# A BERT without pretraining has more to learn, and is quick.
_SMALL_EPOCHS, _SMALL_RATE, _SMALL_WORDS = 8, 1e-3, 4000


class RepresentationDemo:
    """RMAT on the bundled sample: task spam or ham, private the author's gender.

    Args:
        path: folder of the run, an ordinary one of `tfpriv rmat train`.
        seed: of weights and batches.

    Raises:
        InputError: the folder cannot be used.
    """

    def __init__(self, path: Path, seed: int) -> None:
        self.settings = RepresentationSettings(
            epsilon=_EPSILON, epochs=_EPOCHS, seed=seed
        ).complete()
        source = importlib.resources.files("tfpriv.datasets") / "sample/comments.csv"
        with importlib.resources.as_file(source) as file:
            self.file = file
            self.data = _COLUMNS.read(file)
        compared = {"command": COMMAND, "seed": seed, "epsilon": _EPSILON}
        self.folder = RunFolder(path, records(self.data), compared)

    def run(self) -> dict[str, Any]:
        """Trains, attacks and compares; what was measured already is not again."""
        folder = self.folder
        with quiet_import():
            import tfpriv.representation  # noqa: F401
        settings = self._on_a_bert()
        fresh = new_config(self.data, _COLUMNS, settings.to_json(), self.file)
        config = load_or_make_config(
            folder.internal, {**fresh, "split_key": _SPLIT_KEY}
        )
        parts = parts_of(self.data, config["split_key"])
        trained = finished(folder)
        if trained is None:
            model = settings.build(2, 2, public_labels=True)
            trained = train_and_release(model, parts, folder, config)
        attacked = self._kept(
            "attack", lambda: _attack(load_model(folder.path), parts, settings.seed)
        )
        control = self._kept("unprotected", lambda: _unprotected(settings, parts))
        return {
            "folder": str(folder.path),
            "backbone": "a small BERT without pretraining"
            if settings.preset
            else "MiniLM",
            "private": _COLUMNS.private,
            "privacy": trained["privacy"],
            "statement": trained["statement"],
            "rmat": {
                "task_macro_f1": trained["task_macro_f1"],
                "constant_macro_f1": trained["constant_macro_f1"],
                "epsilon": trained["epsilon"],
                "attack": attacked,
            },
            "unprotected": {"epsilon": None, **control},
        }

    def _kept(self, name: str, measure: Any) -> dict[str, Any]:
        path = self.folder.internal / f"demo_{name}.json"
        if not path.exists():
            write_json(path, measure(), mode=PRIVATE)
        return json.loads(path.read_text(encoding="utf-8"))

    def _on_a_bert(self) -> RepresentationSettings:
        """The settings on MiniLM, or on a small BERT where it is not installed."""
        from tfpriv.representation import minilm_folder

        try:
            minilm_folder()
        except InputError:
            say("MiniLM is not installed: a small BERT without pretraining is used.")
        else:
            return self.settings
        folder = self.folder.internal / "bert"
        if not (folder / "config.json").exists():
            save_small_bert(folder)
        return dataclasses.replace(
            self.settings,
            preset=str(folder),
            epochs=_SMALL_EPOCHS,
            learning_rate=_SMALL_RATE,
        )


def save_small_bert(folder: Path) -> None:
    """Writes a BERT of two layers with random weights, and a public vocabulary."""
    import string

    import keras_nlp
    from wordfreq import top_n_list

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.punctuation]
    letters = string.ascii_lowercase + string.digits
    pieces += [*letters, *(f"##{letter}" for letter in letters)]
    pieces += [word for word in top_n_list("en", _SMALL_WORDS) if word.isalpha()]
    vocabulary = list(dict.fromkeys(pieces))
    keras_nlp.models.BertTokenizer(
        vocabulary=vocabulary, lowercase=True
    ).save_to_preset(folder)
    keras_nlp.models.BertBackbone(
        vocabulary_size=len(vocabulary),
        num_layers=2,
        num_heads=4,
        hidden_dim=128,
        intermediate_dim=256,
        max_sequence_length=64,
    ).save_to_preset(folder)


def show_comparison(result: dict[str, Any]) -> None:
    """Prints task and attack, protected beside unprotected, and the certificate."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print()
    table = Table(
        title=f"Representations of held-out texts ({result['backbone']}; task spam or "
        f"ham, private {result['private']})",
        title_justify="left",
    )
    for column in ("", "task macro-F1", "worst attacker's AUC", "certified epsilon"):
        table.add_column(column)
    for name in ("unprotected", "rmat"):
        row = result[name]
        area = row["attack"]["auc"]
        table.add_row(
            name.replace("rmat", "RMAT"),
            f"{row['task_macro_f1']:.3f}",
            f"{area['value']:.3f} [{area['low']:.3f}, {area['high']:.3f}]",
            "none"
            if row["epsilon"] is None
            else f"{rounded_up(row['epsilon'])} per release",
        )
    guess = f"{result['rmat']['constant_macro_f1']:.3f}"
    table.add_row("a constant guess", guess, "0.500", "0")
    console.print(table)
    statement = Path(result["statement"]).read_text(encoding="utf-8")
    certified = next(x for x in statement.splitlines() if x.startswith("Certified"))
    console.print(certified, soft_wrap=True, markup=False)
    for name in ("privacy", "statement"):
        console.print(f"  {result[name]}", soft_wrap=True, markup=False)
    console.print(
        f"Next: tfpriv encode {result['folder']} FILE, with texts of your own.",
        soft_wrap=True,
        markup=False,
    )


def _unprotected(settings: RepresentationSettings, parts: Splits) -> dict[str, Any]:
    """The same BERT's own vectors, and what a classifier and attackers make of them."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    control = RepresentationSettings(
        method="none", preset=settings.preset, seed=settings.seed
    )
    model = control.build(2, 2)
    say("encoding without protection.")
    train, test = (model.encode(list(part.texts)) for part in (parts.train, parts.test))
    task = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
    task.fit(train, parts.train.labels)
    f1 = f1_score(parts.test.labels, task.predict(test), average="macro")
    found = _attempt(settings.seed).fit_score(
        train, parts.train.private, test, parts.test.private
    )
    return {"task_macro_f1": float(f1), "attack": _told(found)}


def _attack(model: Any, parts: Splits, seed: int) -> dict[str, Any]:
    return _told(attack_model(_attempt(seed), model, parts))


def _attempt(seed: int) -> AttributeInferenceAttack:
    from tfpriv.attacks import AttributeInferenceAttack

    return AttributeInferenceAttack(seeds=[seed])


def _told(found: AttributeInferenceResult) -> dict[str, Any]:
    return {
        "worst": found.worst.name,
        "auc": found.worst.adjusted_auc.to_json(),
        "leaks": found.leaks,
        "constant_macro_f1": found.constant_macro_f1,
        "macro_f1": found.highest_macro_f1.macro_f1.value,
    }
