"""What is released: the files of wheel and sdist, and the program without extras."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser

import pytest
import yaml
from conftest import SAMPLES

import nnkgraph

HOME = SAMPLES.parent
TOLD = tomllib.loads((HOME / "pyproject.toml").read_text())
PROJECT, BUILD = TOLD["project"], TOLD["build-system"]
FOR_CLONES = {"all", "bench", "dev", "docs", "handover", "paper", "peers"}
"""Those of others, and for work in a clone: no command of the program asks for them."""

ROLL = SAMPLES / "swiss_roll.npy"
OPTIONAL = [
    ("amg", "pyamg", ["embed", "graph.npz", "--solver", "amg", "-o", "a.npy"]),
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
        "nnkgraph", "tests", "sample_data", "docs", "paper", "bench", "claims",
        "examples", "packaging", ".github",
    ):  # fmt: skip
        assert files_in(folder) <= names
    assert "fuzz/__main__.py" in names  # not what fuzzing has found
    assert files_in("mutants") <= names
    for name in (
        "pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "CITATION.cff",
        "LICENSE", "CONTRIBUTING.md", "SECURITY.md", ".pre-commit-config.yaml",
        ".zenodo.json",
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


# What says the same in several places.

CONDA = yaml.safe_load((HOME / "packaging/conda/recipe.yaml").read_text())
CITATION = yaml.safe_load((HOME / "CITATION.cff").read_text())
ZENODO = json.loads((HOME / ".zenodo.json").read_text())
PYTHONS = [
    one.rpartition(" ")[2]
    for one in PROJECT["classifiers"]
    if re.search(r":: 3\.\d+$", one)
]


def test_the_version_is_the_same_everywhere():
    version = nnkgraph.__version__
    changes = (HOME / "CHANGELOG.md").read_text()
    top = re.search(r"^## (.*)$", changes, re.MULTILINE).group(1)
    assert re.fullmatch(rf"{version} \((unreleased|\d{{4}}-\d\d-\d\d)\)", top)
    assert CITATION["version"] == CONDA["context"]["version"] == version
    for line in (HOME / "examples/module.lua").read_text().splitlines():
        assert set(re.findall(r"nnkgraph/(\d[\d.]+\d)", line)) <= {version}
    date = top.partition(" ")[2].strip("()")
    assert str(CITATION.get("date-released", "unreleased")) == date


def test_the_conda_recipe_is_what_the_project_says():
    needs = CONDA["requirements"]
    own = [re.sub(r"([<>=])", r" \1", one, count=1) for one in PROJECT["dependencies"]]
    assert needs["run"] == ["__unix", "python >=${{ python_min }}", *own]
    least = PROJECT["requires-python"].removeprefix(">=")
    assert CONDA["context"]["python_min"] == least == PYTHONS[0]
    (backend,) = BUILD["requires"]
    assert backend.replace(">=", " >=") in needs["host"]
    (script,) = PROJECT["scripts"].items()
    assert CONDA["build"]["python"]["entry_points"] == [" = ".join(script)]
    assert CONDA["about"]["summary"] == PROJECT["description"]
    assert CONDA["about"]["license"] == PROJECT["license"]


def test_citation_and_zenodo_are_what_the_project_says():
    names = [one["name"] for one in PROJECT["authors"]]
    for about, text in ((CITATION, "abstract"), (ZENODO, "description")):
        assert about[text] == PROJECT["description"]
        assert about["keywords"] == PROJECT["keywords"]
        assert about["license"] == PROJECT["license"]
        authors = about["authors" if about is CITATION else "creators"]
        assert [one["name"] for one in authors] == names
    (paper,) = ZENODO["related_identifiers"]
    number = paper["identifier"].removeprefix("arXiv:")
    assert CITATION["preferred-citation"]["url"].endswith(f"/{number}")


def instructions(name):
    """Yield the instructions of a container recipe: COPY and RUN, in Docker's words."""
    section = ""
    for line in (HOME / "examples" / name).read_text().splitlines():
        word, _, rest = line.strip().partition(" ")
        if line.startswith("%"):
            section = word
        elif name == "Dockerfile" and word in {"COPY", "RUN"}:
            yield from ((word, one) for one in rest.split(" && "))
        elif section == "%files" and word:
            assert rest == f"/src/{word}"
            yield "COPY", word
        elif section == "%post" and word:
            yield "RUN", line.strip()


@pytest.mark.parametrize("name", ["Dockerfile", "nnkgraph.def"])
def test_an_image_is_made_of_what_is_there_and_starts_warm(name, tmp_path):
    found = list(instructions(name))
    copied = [
        one
        for word, rest in found
        if word == "COPY"
        for one in rest.split()
        if not one.startswith("/src")
    ]
    assert copied == ["pyproject.toml", "README.md", "LICENSE", "nnkgraph"]
    runs = [rest.removeprefix(f"{CACHE} ") for word, rest in found if word == "RUN"]
    assert runs == [
        "pip install --no-cache-dir /src",
        "rm -rf /src",
        f"nnkgraph warm --all {CACHE.partition('=')[2]}",
        "nnkgraph warm --check",
    ]
    text = (HOME / "examples" / name).read_text()
    assert CACHE in text
    assert re.search(r"^From: |^FROM ", text, re.MULTILINE)
    assert re.search(r"python:(3\.\d+)-slim", text).group(1) in PYTHONS
    for one in copied:
        here, there = HOME / one, tmp_path / "src" / one
        copy = shutil.copytree if here.is_dir() else shutil.copy
        there.parent.mkdir(exist_ok=True)
        copy(here, there)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir"]
    done = subprocess.run(
        [*build, tmp_path, tmp_path / "src"], check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr


CACHE = "NNKGRAPH_CACHE=/opt/nnkgraph-cache"


def test_workflows_try_every_python_and_system():
    tests = yaml.safe_load((HOME / ".github/workflows/test.yml").read_text())
    systems = [one for one in PROJECT["classifiers"] if "Operating System" in one]
    assert len(systems) == 2
    release = yaml.safe_load((HOME / ".github/workflows/release.yml").read_text())
    for job in tests["jobs"]["test"], release["jobs"]["try"]:
        matrix = job["strategy"]["matrix"]
        assert matrix["python"] == PYTHONS
        assert {one.partition("-")[0] for one in matrix["os"]} == {"ubuntu", "macos"}
    assert release["jobs"]["publish"]["needs"] == "try"
    assert release[True]["push"]["tags"] == ["v*"]  # YAML takes `on` for a truth value
    targets = set(
        re.findall(r"^([a-z-]+):", (HOME / "Makefile").read_text(), re.MULTILINE)
    )
    every = tests["jobs"]["test"]["strategy"]["matrix"]["include"]
    asked = {one["tests"] for one in every}
    for flow in (tests, release):
        for job in flow["jobs"].values():
            for step in job["steps"]:
                run = re.sub(r"\$\{\{.*?\}\}", "", step.get("run", ""))
                words = run.partition("\n")[0].split()
                if words[:1] == ["make"]:
                    asked |= {one for one in words[1:] if "=" not in one}
    assert asked >= {"test", "quick", "lint", "types"}
    assert asked <= targets


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
