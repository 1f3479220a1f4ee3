"""Plug-ins of other packages: a real one on the path, found by its metadata alone."""

import json
import os
import subprocess
import sys
from textwrap import dedent

import numpy as np
import pytest
from conftest import PROGRAM

from nnkgraph import formats
from nnkgraph.runtime import registry

CODE = '''
"""What another package adds: a kernel, a method and a format."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnkgraph.data import Features, Neighborhoods
from nnkgraph.errors import InputError
from nnkgraph.formats import Format
from nnkgraph.formats.npz import Npz
from nnkgraph.kernels import WithBandwidth
from nnkgraph.methods import Plain


@dataclass(frozen=True)
class Sharp(WithBandwidth):
    """exp(-power * distance^2 / sigma^2): a Gaussian with a factor."""

    base: ClassVar[str] = "squared-distance"
    ridge: ClassVar[float] = 0.0
    form: ClassVar[str] = "exponential"

    power: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        if self.power <= 0:
            raise ValueError("power has to be positive")

    def coefficients(self, distance, /):
        sigma = self.sigma_of_nodes(distance)
        return np.column_stack([-self.power / sigma**2, np.zeros(len(sigma))])


@dataclass(frozen=True)
class Halves(Plain):
    """Half of the similarity of every candidate."""

    def weigh(self, problem, /):
        return Neighborhoods(0.5 * problem.cross())


@dataclass(frozen=True, slots=True)
class Theirs(Format):
    """Graphs as in npz files, and features as lines of numbers."""

    suffixes: ClassVar[tuple[str, ...]] = (".theirs",)
    binary: ClassVar[bool] = True

    write_graph = Npz.write_graph
    read_graph = Npz.read_graph

    def read_features(self, source, options, /):
        with source.open() as stream:
            content = stream.read()
        try:
            rows = [line.split() for line in content.decode().splitlines()]
            x = np.array(rows, float)
        except ValueError as error:
            raise InputError(f"{source.name}: {error}") from error
        return Features.of(x, name=source.name)


plugin = Halves
'''


class Packages:
    """A folder with packages as pip would install them, and the program beside it."""

    def __init__(self, folder):
        self.folder = folder
        self.env = {**os.environ, "PYTHONPATH": self.path}

    @property
    def path(self):
        old = os.environ.get("PYTHONPATH", "")
        return os.pathsep.join(filter(None, [str(self.folder), old]))

    def add(self, name, entries, **modules):
        for module, code in modules.items():
            (self.folder / f"{module}.py").write_text(dedent(code))
        about = self.folder / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        (about / "entry_points.txt").write_text(dedent(entries))

    def run(self, *args, cwd, code=0, **env):
        done = subprocess.run(
            [PROGRAM, *map(str, args)],
            capture_output=True,
            text=True,
            cwd=cwd,
            env={**self.env, **env},
            timeout=200,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done


GOOD = """
[nnkgraph.kernels]
sharp = theirs:Sharp
gaussian = theirs:Sharp

[nnkgraph.methods]
halves = theirs

[nnkgraph.formats]
theirs = theirs:Theirs
"""


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    packages = Packages(tmp_path_factory.mktemp("site"))
    packages.add("their-package", GOOD, theirs=CODE)
    return packages


@pytest.fixture
def here(tmp_path):
    x = np.random.default_rng(5).normal(size=(80, 3))
    np.save(tmp_path / "x.npy", x)
    np.savetxt(tmp_path / "x.theirs", x, fmt="%.17g")
    return tmp_path


def test_list_shows_whose_they_are(good, here):
    listed = json.loads(good.run("list", "--json", cwd=here).stdout)
    found = {
        entry["name"]: entry
        for entries in listed.values()
        for entry in entries
        if "package" in entry
    }
    assert set(found) == {"sharp", "halves", "theirs"}
    assert {entry["package"] for entry in found.values()} == {"their-package 1.0"}
    assert found["sharp"]["parameters"] == {"sigma": "auto", "power": 1.0}
    text = good.run("list", "kernels", cwd=here).stdout
    assert "a Gaussian with a factor. (their-package 1.0)" in " ".join(text.split())
    assert text.count("gaussian") == 1  # ours: the name was taken


def test_help_and_completion_offer_them_without_importing(good, here):
    env = {"PYTHONVERBOSE": "1"}
    done = good.run("build", "--help", cwd=here, **env)
    words = " ".join(done.stdout.split())
    assert "precomputed, sharp: see nnkgraph list kernels" in words
    assert "import 'theirs'" not in done.stderr
    asked = {
        "_NNKGRAPH_COMPLETE": "bash_complete",
        "COMP_WORDS": "nnkgraph build --method ha",
        "COMP_CWORD": "3",
    }
    done = good.run(cwd=here, **asked, **env)
    assert done.stdout.splitlines() == ["plain,halves"]
    assert "import 'theirs'" not in done.stderr


SCRIPT = """
import sys
from nnkgraph.cli import main
from nnkgraph.runtime import registry
code = main.run(sys.argv[1:])
print(registry.foreign.cache_info().misses, file=sys.stderr)
raise SystemExit(code)
"""


def test_a_run_with_our_own_looks_for_no_package(here):
    build = ("build", "x.npy", "-k", "5", "-j", "1", "-o", "g.npz", "-q")
    for args in (build, ("verify", "x.npy", "g.npz", "-q"), ("--help",)):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, *args],
            capture_output=True,
            text=True,
            cwd=here,
            check=False,
        )
        assert (done.returncode, done.stderr.split()[-1]) == (0, "0")


@pytest.mark.parametrize("workers", [1, 2])
def test_build_takes_their_kernel_and_method(good, here, workers):
    spec = ("--kernel", "sharp:power=0.5", "--method", "halves")
    common = ("-k", 8, "--min-weight", 0, "-j", workers, "--report", "r.json")
    good.run("build", "x.npy", "-o", "g.npz", *spec, *common, cwd=here)
    assert json.loads((here / "r.json").read_text())["workers"] == workers
    graph = formats.read_graph(here / "g.npz")
    assert graph.provenance["kernel"] == "sharp:power=0.5"
    assert graph.provenance["method"] == "halves"
    # The same by our own: power 1/2 is the Gaussian, and knn has twice the weight.
    good.run("build", "x.npy", "-o", "own.npz", "--method", "knn", *common, cwd=here)
    ours = formats.read_graph(here / "own.npz")
    assert np.array_equal(graph.adjacency.indices, ours.adjacency.indices)
    assert np.array_equal(2 * graph.adjacency.data, ours.adjacency.data)


def test_info_shows_and_verify_refuses_what_it_cannot_derive(good, here):
    for option, name in (("--kernel", "sharp"), ("--method", "halves")):
        good.run("build", "x.npy", "-o", "g.npz", option, name, "-k", 6, cwd=here)
        assert name in good.run("info", "g.npz", cwd=here).stdout
        done = good.run("verify", "x.npy", "g.npz", cwd=here, code=3)
        line = done.stderr.strip()
        assert "\n" not in line
        assert f"{option[2:]} '{name}' of package their-package 1.0" in line
        assert "cannot be derived again" in line
    # Also where the package is not there any more.
    env = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    assert "halves" in good.run("info", "g.npz", cwd=here, **env).stdout
    done = good.run("verify", "x.npy", "g.npz", cwd=here, code=3, **env)
    assert "method 'halves', which cannot be derived again" in done.stderr


def test_their_format_is_read_and_written(good, here):
    good.run("build", "x.npy", "-o", "g.theirs", "-k", 6, cwd=here)
    good.run("build", "x.npy", "-o", "g.npz", "-k", 6, cwd=here)
    assert (here / "g.theirs").read_bytes() == (here / "g.npz").read_bytes()
    assert "nodes" in good.run("info", "g.theirs", cwd=here).stdout
    good.run("convert", "g.theirs", "g.tsv", cwd=here)
    good.run("verify", "x.npy", "g.theirs", cwd=here)
    good.run("build", "x.theirs", "-o", "again.npz", "-k", 6, cwd=here)
    assert (here / "again.npz").read_bytes() == (here / "g.npz").read_bytes()
    (here / "x.dat").write_bytes((here / "x.theirs").read_bytes())
    read = ("build", "x.dat", "--format", "theirs", "-o", "third.npz", "-k", 6)
    good.run(*read, cwd=here)
    assert (here / "third.npz").read_bytes() == (here / "g.npz").read_bytes()
    done = good.run("build", "x.npy", "-o", "g.ours", cwd=here, code=2)
    assert ".theirs" in done.stderr


def test_their_errors_are_one_line(good, here):
    call = ("build", "x.npy", "-o", "g.npz")
    done = good.run(*call, "--kernel", "sharp:power=-1", cwd=here, code=2)
    assert "kernel 'sharp': power has to be positive" in done.stderr
    done = good.run(*call, "--kernel", "sharp:powr=1", cwd=here, code=2)
    assert "did you mean 'power'" in done.stderr
    done = good.run(*call, "--method", "halfs", cwd=here, code=2)
    assert "did you mean 'halves'" in done.stderr
    assert not (here / "g.npz").exists()


def test_options_of_the_command_work_on_their_kernel(good, here):
    call = ("build", "x.npy", "-k", 6, "--kernel", "sharp")
    good.run(*call, "-o", "a.npz", "--sigma", "0.7", cwd=here)
    graph = formats.read_graph(here / "a.npz")
    assert graph.provenance["kernel"] == "sharp:sigma=0.7"
    good.run(*call, "-o", "b.npz", "--resume", "kept", cwd=here)
    done = good.run("explain", "x.npy", "--node", 3, "--graph", "a.npz", cwd=here)
    assert "edges in the graph" in done.stdout


BROKEN = """
[nnkgraph.kernels]
absent = no_such_module:Kernel
raising = raising:Kernel
leaving = leaving:Kernel
nameless = lacking:Missing
empty = lacking
bare = lacking:Bare
number = lacking:NUMBER
annotated = lacking:Annotated
malformed = 1 !! 2

[nnkgraph.formats]
absent = no_such_module:Format

[nnkgraph.methods]
absent = no_such_module:Method
"""
LACKING = """
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from somewhere import Thing

NUMBER = 5

@dataclass(frozen=True)
class Bare:
    form: str = ""

@dataclass(frozen=True)
class Annotated:
    thing: "Thing" = None
"""


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    packages = Packages(tmp_path_factory.mktemp("broken"))
    packages.add(
        "broken",
        BROKEN,
        raising="raise RuntimeError('no\\nluck')",
        leaving="raise SystemExit(3)",
        lacking=LACKING,
    )
    return packages


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("absent", 5, "cannot be imported: ModuleNotFoundError: No module named"),
        ("raising", 5, "cannot be imported: RuntimeError: no"),
        ("leaving", 5, "cannot be imported: SystemExit: 3"),
        ("nameless", 2, "lacking has no 'Missing'"),
        ("empty", 2, "module lacking has no 'plugin'"),
        ("bare", 2, "is no kernel: Bare lacks bandwidth, base, coefficients"),
        ("number", 2, "5 is no class"),
        ("annotated", 2, "types of its parameters cannot be found"),
        ("malformed", 5, "cannot be imported"),
    ],
)
def test_a_broken_one_says_so_when_it_is_used(broken, here, name, code, words):
    call = ("build", "x.npy", "-o", "g.npz", "--kernel", name)
    done = broken.run(*call, cwd=here, code=code)
    assert f"kernel '{name}' of package broken 1.0" in done.stderr
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (here / "g.npz").exists()


def test_broken_ones_are_listed_and_break_nothing_else(broken, here):
    listed = json.loads(broken.run("list", "--json", cwd=here).stdout)
    entries = {one["name"]: one for one in listed["kernels"] if "package" in one}
    assert len(entries) == 9
    assert all("broken" in one for one in entries.values())
    shown = " ".join(broken.run("list", "kernels", cwd=here).stdout.split())
    assert "broken: kernel 'absent' of package broken 1.0 cannot be imported" in shown
    assert "exp(-distance(x, y)^2" in shown
    for args in (("--help",), ("build", "--help"), ("compare", "--help")):
        broken.run(*args, cwd=here)
    broken.run("build", "x.npy", "-o", "g.npz", "-k", 5, cwd=here)


def test_metadata_that_cannot_be_read_breaks_no_help(tmp_path, here):
    packages = Packages(tmp_path)
    packages.add("garbled", "[nnkgraph.kernels]\nthis is no entry\n")
    packages.add("right", "[nnkgraph.kernels]\nsharp = theirs:Sharp\n", theirs=CODE)
    assert "sharp" in packages.run("build", "--help", cwd=here).stdout
    assert "right 1.0" in packages.run("list", "kernels", cwd=here).stdout


def test_a_broken_format_is_named_where_a_suffix_is_unknown(broken, here):
    done = broken.run("build", "x.npy", "-o", "g.absent", cwd=here, code=2)
    assert "format 'absent' of package broken 1.0 cannot be imported" in done.stderr
    call = ("build", "x.npy", "-o", "-", "--format", "absent")
    assert "no_such_module" in broken.run(*call, cwd=here, code=5).stderr


def test_a_name_in_two_packages_is_refused_with_both(tmp_path, here):
    packages = Packages(tmp_path)
    packages.add("one", "[nnkgraph.methods]\nhalves = theirs\n", theirs=CODE)
    packages.add("two", "[nnkgraph.methods]\nhalves = theirs:Halves\n")
    call = ("build", "x.npy", "-o", "g.npz", "--method", "halves")
    done = packages.run(*call, cwd=here, code=2)
    assert "is in more than one package: one 1.0 and two 1.0" in done.stderr
    assert "broken: " in packages.run("list", "methods", cwd=here).stdout


@pytest.fixture
def inside(good, monkeypatch):
    """The package in this very process."""
    registry.foreign.cache_clear()
    monkeypatch.syspath_prepend(good.folder)
    yield good
    registry.foreign.cache_clear()
    sys.modules.pop("theirs", None)
    registry._load_foreign.cache_clear()


def test_their_plugins_pass_our_checks(inside):
    from nnkgraph.tasks.testing import check_format, check_kernel, check_method

    check_kernel("sharp:power=2")
    check_method("halves")
    path = inside.folder / "x.theirs"
    np.savetxt(path, np.arange(12.0).reshape(4, 3))
    check_format("theirs", features=path)


def test_the_text_of_a_plugin_names_its_entry_point(inside):
    made = registry.create("kernels", "sharp:power=3")
    assert registry.spec(made) == "sharp:power=3.0"
    assert registry.create("kernels", registry.spec(made)) == made
    # An object that was made without the name has it, too.
    import theirs

    assert registry.spec(theirs.Halves()) == "halves"
    assert registry.spec(theirs.Sharp()) == "sharp"  # gaussian is another's


def test_a_class_without_an_entry_point_is_called_by_its_own_name():
    from dataclasses import make_dataclass

    cls = make_dataclass("Mine", [("a", int, 1)], frozen=True)
    cls.__module__ = "gaussian"  # no reason to take it for ours
    assert registry.spec(cls(2)) == "gaussian.Mine:a=2"


FAULTY = """
[nnkgraph.methods]
failing = faulty.methods:Failing
wrong = faulty.methods:Wrong

[nnkgraph.kernels]
malformed = 1 !! 2
"""
FAULTS = '''
from dataclasses import dataclass

from nnkgraph.methods import Plain


@dataclass(frozen=True)
class Failing(Plain):
    """A method that divides by zero."""

    def weigh(self, problem, /):
        return helped(problem)


def helped(problem):
    return problem.index / (1 // 0)


@dataclass(frozen=True)
class Wrong(Plain):
    """A method that returns what it must not."""

    def weigh(self, problem, /):
        return problem.index
'''


@pytest.mark.parametrize("workers", [1, 2])
def test_a_mistake_in_their_code_names_their_package(tmp_path, here, workers):
    packages = Packages(tmp_path)
    (tmp_path / "faulty").mkdir()
    packages.add("faulty", FAULTY, **{"faulty/__init__": "", "faulty/methods": FAULTS})
    call = ("build", "x.npy", "-o", "g.npz", "-k", 5, "-j", workers, "-q", "--method")
    line = packages.run(*call, "failing", cwd=here, code=1).stderr.strip()
    assert "\n" not in line
    number = FAULTS[: FAULTS.index("1 // 0")].count("\n") + 1
    place = f"{tmp_path}/faulty/methods.py, line {number}"
    assert f"bug in package faulty 1.0 ({place}): ZeroDivisionError: " in line
    assert line.endswith(
        "report it to its authors with the output of the same command and -vv"
    )
    # What it returned is of no use, and our own code finds out.
    line = packages.run(*call, "wrong", cwd=here, code=1).stderr.strip()
    assert "\n" not in line
    assert "bug, with plug-ins of faulty 1.0: AttributeError: " in line
    assert not (here / "g.npz").exists()
