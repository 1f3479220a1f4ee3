"""What is released: the files of wheel and sdist, and the program without extras."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser

import pytest
from conftest import SAMPLES

import nnkgraph

HOME = SAMPLES.parent
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
FOR_CLONES = {"all", "bench", "dev", "docs", "handover", "paper"}
"""Those of others, and for work in a clone: no command of the program asks for them."""

ROLL = SAMPLES / "swiss_roll.npy"
OPTIONAL = [
    ("plot", "matplotlib", ["plot", "graph.npz", "--what", "degrees", "-o", "a.png"]),
    ("plot", "matplotlib", ["compare", ROLL, "-k", "5", "-o", "a.png"]),
    ("plot", "matplotlib", ["explain", ROLL, "--node", "0", "-o", "a.png"]),
    ("cluster", "graspologic", ["cluster", "graph.npz", "-o", "a.csv"]),
    ("arrow", "pyarrow", ["build", ROLL, "-o", "a.parquet"]),
    (
        "dask",
        "distributed",
        ["build", ROLL, "-o", "a.npz", "--executor", "dask", "-j", "2"],
    ),
]
"""Extras, what they bring, and the commands that need it."""

IMPORTED = {"sklearn": "nnkgraph.sklearn"}
"""Extras that modules for Python need."""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the sdist, and the wheel from it, as ``make dist`` does."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, HOME],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    return path


def files_in(folder):
    return {
        path.relative_to(HOME).as_posix()
        for path in (HOME / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    about = f"nnkgraph-{nnkgraph.__version__}.dist-info"
    ours = {name for name in names if not name.startswith(about)}
    assert ours == files_in("nnkgraph")
    assert "nnkgraph/py.typed" in ours
    assert f"{about}/licenses/LICENSE" in names


def test_the_wheel_says_what_it_needs(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (one for one in archive.namelist() if one.endswith("/METADATA"))
        about = Parser().parsestr(archive.read(path).decode())
    assert about["Version"] == nnkgraph.__version__
    assert about["Requires-Python"] == ">=3.11"
    assert about["License-Expression"] == "MIT"
    assert set(about.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])


def test_the_sdist_holds_what_the_tests_need(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder in (
        "nnkgraph", "tests", "sample_data", "docs", "paper", "bench"
    ):  # fmt: skip
        assert files_in(folder) <= names
    assert "fuzz/__main__.py" in names  # not what fuzzing has found
    for name in (
        "pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "CITATION.cff",
        "LICENSE", "CONTRIBUTING.md", "SECURITY.md", ".pre-commit-config.yaml",
    ):  # fmt: skip
        assert name in names


def test_the_installed_wheel_runs(wheel, tmp_path):
    """Not where it was built: from a folder that pip has put it into."""
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
         "--no-index", "--target", tmp_path, wheel],
        check=True,
        capture_output=True,
    )  # fmt: skip
    script = """
import sys
from importlib.metadata import entry_points
(entry,) = entry_points(group="console_scripts", name="nnkgraph")
main = entry.load()
print(sys.modules[main.__module__].__file__)
sys.argv = ["nnkgraph", "list", "formats"]
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(tmp_path))
    assert "GraphML" in done.stdout


# Without extras.


@pytest.fixture
def bare(tmp_path):
    """Return an environment in which no optional package can be imported."""
    wanted = [
        one
        for extra, lines in PROJECT["optional-dependencies"].items()
        if extra not in FOR_CLONES
        for one in lines
    ]
    needed = {_package(one) for one in PROJECT["dependencies"]}
    hidden = {_package(one) for one in wanted} - needed
    lines = "\n".join(f"sys.modules[{one!r}] = None" for one in sorted(hidden))
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"import sys\n{lines}\n")
    return {"PYTHONPATH": str(folder)}


def _package(requirement):
    """Return the name that a requirement is imported by."""
    name = re.match(r"[\w-]+", requirement).group().replace("-", "_")
    return {"scikit_learn": "sklearn"}.get(name, name)


def test_every_extra_is_tried_below():
    tried = {extra for extra, *_ in OPTIONAL} | set(IMPORTED)
    tried.add("anndata")  # .h5ad files are read and written without it
    assert tried == set(PROJECT["optional-dependencies"]) - FOR_CLONES


@pytest.mark.parametrize("extra", PROJECT["optional-dependencies"])
def test_every_extra_is_explained(extra):
    assert f"\n| `{extra}` | " in (HOME / "docs" / "install.md").read_text()


def test_the_program_works_without_extras(program, bare, tmp_path):
    assert program("--help", env=bare).code == 0
    done = program("build", ROLL, "-o", "graph.npz", env=bare)
    assert done.code == 0, done.err
    assert program("info", "graph.npz", env=bare).code == 0
    assert program("list", env=bare).code == 0
    for extra, package, command in OPTIONAL:
        done = program(*command, env=bare)
        assert done.code == 5, done.err
        (line,) = done.lines  # said before the work begins
        assert package in line
        assert line.endswith(f": pip install 'nnkgraph[{extra}]'")
        assert not list(tmp_path.glob("a.*"))


@pytest.mark.parametrize("extra", IMPORTED)
def test_an_import_without_its_extra_names_it(extra, bare):
    module = IMPORTED[extra]
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {module} needs ")
    assert last.endswith(f": pip install 'nnkgraph[{extra}]'")
