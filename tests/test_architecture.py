"""Who may import whom (DESIGN.md), read from the syntax trees of the sources.

Imports inside functions, under TYPE_CHECKING, relative ones and
`importlib.import_module("tfpriv...")` count like any other.
"""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

PACKAGE = pathlib.Path(__file__).parents[1] / "tfpriv"

# The ground first, the roof last: a package imports only packages before it.
ORDER = (
    "accounting",
    "mechanisms",
    "text",
    "datasets",
    "layers",
    "dp_training",
    "representation",
    "seqgan",
    "attacks",
    "evaluation",
    "serving",
    "beam",
    "cli",
)
STRANGERS = frozenset({("representation", "seqgan"), ("seqgan", "representation")})
TENSORFLOW = frozenset(
    {
        "keras",
        "keras_hub",
        "keras_nlp",
        "tensorflow",
        "tensorflow_datasets",
        "tensorflow_privacy",
        "tensorflow_text",
        "tf_keras",
    }
)
# No TensorFlow at all, and none before a function needs it.
WITHOUT_TENSORFLOW = frozenset({"accounting", "mechanisms"})
LAZY_TENSORFLOW = frozenset({"accounting", "cli", "datasets", "mechanisms", "text"})
# A TFDS builder subclasses a class of TFDS; what uses one imports it in a function.
BUILDERS = ["datasets", "builders"]


def _is_lazy(node: ast.AST) -> bool:
    """Whether what is in `node` does not run when its module is imported."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def _imports(path: pathlib.Path, module: str) -> Iterator[tuple[str, int, bool]]:
    """Yields (dotted name, line, whether it runs on import) of all imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    lazy = {
        id(inner)
        for block in ast.walk(tree)
        if _is_lazy(block)
        for inner in ast.walk(block)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parent, *([base] if base else [])])
            # `from tfpriv import text` names a package in its alias.
            names = [f"{base}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in {"import_module", "__import__"} and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    names = [first.value]
        for name in names:
            yield name, node.lineno, id(node) not in lazy


def violations(package: pathlib.Path) -> list[str]:
    """Every import in the tree of `package` that DESIGN.md forbids, as one line."""
    found = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if parts == ("__init__",):
            continue  # the façade: it names everything and imports it lazily
        module = ".".join([package.name, *parts]).removesuffix(".__init__")
        home = parts[0]
        where = path.relative_to(package.parent)
        if home not in ORDER and not (len(parts) == 1 and home.startswith("_")):
            found.append(f"{where}: {home} is not in DESIGN.md's list")
            continue
        for name, line, on_import in _imports(path, module):
            builder = list(parts[:2]) == BUILDERS
            on_import = on_import and not builder
            fault = _fault(home, name.split("."), package.name, on_import)
            if fault:
                found.append(f"{where}:{line}: {fault}")
    return found


def _fault(home: str, name: list[str], package: str, on_import: bool) -> str | None:
    if name[0] in TENSORFLOW:
        if home in WITHOUT_TENSORFLOW or home not in ORDER:
            return f"{home} imports {name[0]}"
        if home in LAZY_TENSORFLOW and on_import:
            return f"{home} imports {name[0]} outside a function"
        return None
    if name[0] != package:
        return None
    if len(name) == 1:
        return f"{home} imports the whole of {package}"
    target = name[1]
    if target.startswith("_"):
        return None
    if target not in ORDER:
        return f"{home} imports {target}, which is not in DESIGN.md's list"
    if name[1:3] == BUILDERS and home in LAZY_TENSORFLOW and on_import:
        return f"{home} imports a TFDS builder outside a function"
    if target == home:
        return None
    if home not in ORDER:
        return f"the ground ({home}) imports {target}"
    if (home, target) in STRANGERS:
        return f"{home} imports {target}: they never import each other"
    if ORDER.index(target) > ORDER.index(home):
        return f"{home} imports {target}, which lies above it"
    return None


def test_each_package_imports_only_what_lies_below_it():
    assert violations(PACKAGE) == []


def test_one_module_alone_binds_tensorflow_privacy():
    users = [
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        if any(
            name.split(".")[0] == "tensorflow_privacy"
            for name, _, _ in _imports(path, "tfpriv.any")
        )
    ]
    assert [user for user in users if not user.startswith("dp_training/")] == []
    assert len(users) <= 1


def test_import_brings_the_standard_library_alone():
    code = """
        import sys
        before = set(sys.modules)
        import tfpriv
        roots = {name.split(".")[0] for name in set(sys.modules) - before}
        print(sorted(roots - sys.stdlib_module_names - {"tfpriv"}))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


# The broken twin: one fault a row. A checker that lets one pass is no checker.
BROKEN = {
    "upwards": ("text/a.py", "from tfpriv.datasets import read_table"),
    "inside a function": ("text/a.py", "def f():\n    import tfpriv.seqgan.generator"),
    "for types only": (
        "text/a.py",
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from tfpriv.cli import main",
    ),
    "relative": ("datasets/a.py", "from ..seqgan import generator"),
    "relative, from a package": ("datasets/__init__.py", "from .. import seqgan"),
    "deeper": ("datasets/builders/a.py", "from ...evaluation import downstream"),
    "by alias": ("mechanisms/a.py", "from tfpriv import layers as harmless"),
    "by name": ("text/a.py", "import importlib\nimportlib.import_module('tfpriv.cli')"),
    "facade": ("seqgan/a.py", "import tfpriv"),
    "strangers": ("seqgan/a.py", "from tfpriv.representation import encoder"),
    "strangers, turned": ("representation/a.py", "import tfpriv.seqgan"),
    "cli": ("attacks/a.py", "from tfpriv.cli.main import run"),
    "accounting": ("accounting/a.py", "from tfpriv.mechanisms import GaussianCounts"),
    "ground": ("_files.py", "from tfpriv.text import clean"),
    "unknown package": ("helpers/a.py", "import os"),
    "unknown module": ("utils.py", "import os"),
    "unknown target": ("cli/a.py", "from tfpriv.utils import x"),
    "tensorflow in accounting": ("accounting/a.py", "def f():\n    import tensorflow"),
    "tensorflow on import": ("cli/a.py", "import keras"),
    "builder on import": ("datasets/a.py", "from tfpriv.datasets import builders"),
    "tensorflow in a class": ("datasets/a.py", "class A:\n    import tensorflow as tf"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_twin_is_caught(name, tmp_path):
    where, code = BROKEN[name]
    path = tmp_path / "tfpriv" / where
    path.parent.mkdir(parents=True)
    path.write_text(code, encoding="utf-8")
    assert len(violations(tmp_path / "tfpriv")) == 1


def test_what_is_allowed_passes(tmp_path):
    good = {
        "__init__.py": "def __getattr__(name):\n    import tfpriv.cli",
        "_files.py": "import os\nfrom tfpriv._errors import InputError",
        "accounting/a.py": "import numpy\nfrom tfpriv._files import write_json",
        "seqgan/a.py": "import keras\nfrom tfpriv import accounting, text\n"
        "from tfpriv.dp_training import trainer\nfrom . import b",
        "evaluation/a.py": "from tfpriv.attacks import canaries",
        "datasets/builders/a.py": "import tensorflow_datasets as tfds",
        "datasets/a.py": "def f():\n    from tfpriv.datasets.builders import a",
        "text/a.py": "if TYPE_CHECKING:\n    import tensorflow as tf",
        "cli/a.py": "def f():\n    import tensorflow\n    from tfpriv import seqgan",
    }
    for where, code in good.items():
        path = tmp_path / "tfpriv" / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    assert violations(tmp_path / "tfpriv") == []
