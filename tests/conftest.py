"""What tests share: the command in this process and as a program, and small data."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:
    # Before numpy comes: every processor has a worker, so threads would only wait.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import faults
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from nnkgraph.runtime import cache

# Tests share compiled code with the commands that they start, in whatever folders.
os.environ.setdefault("NNKGRAPH_CPU", "auto")
cache.settle_cpu()
os.environ.setdefault(
    "NUMBA_CACHE_DIR", f"{tempfile.gettempdir()}/nnkgraph-cache-{os.getuid()}"
)

settings.register_profile(
    "default",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")

PROGRAM = Path(sys.executable).with_name("nnkgraph")
SAMPLES = Path(__file__).parent.parent / "sample_data"


def pytest_runtest_setup(item):
    if sys.platform != "linux" and item.get_closest_marker("linux"):
        pytest.skip("there is no /proc here")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return faults.told(self.err)


@pytest.fixture
def run(capsys):
    """Run the command line in this process."""
    from nnkgraph.cli import main, talk

    def call(*args: object) -> Result:
        talk.reset(0)
        code = main.run([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return call


@pytest.fixture
def inside(run, tmp_path, monkeypatch):
    """Like ``program``, with its folder and environment, but in this process."""
    monkeypatch.chdir(tmp_path)

    def call(*args: object, env: dict[str, str] | None = None) -> Result:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            return run(*args)

    return call


@pytest.fixture
def program(tmp_path):
    """Run the installed command as a process of its own."""

    def call(*args: object, env=None, input_=None, cwd=tmp_path, timeout=120) -> Result:
        done = subprocess.run(
            [PROGRAM, *map(str, args)],
            input=input_,
            capture_output=True,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            timeout=timeout,
            check=False,
        )
        return Result(
            done.returncode,
            done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"),
        )

    return call


@pytest.fixture
def case(tmp_path) -> faults.Case:
    """The installed command in a folder of its own, watched for what it leaves."""
    for name in ("here", "tmp"):
        (tmp_path / name).mkdir()
    np.save(tmp_path / "here" / "x.npy", np.random.default_rng(5).normal(size=(60, 3)))
    return faults.Case(tmp_path / "here", tmp_path / "tmp", (str(PROGRAM),))


@pytest.fixture(scope="session")
def other_cache():
    """A compile cache that another user may use."""
    folder = faults.open_folder()
    copy = folder / "cache"
    shutil.copytree(cache.private(), copy / cache.state())
    for path in (copy, *copy.rglob("*")):
        shutil.chown(path, *(["nobody"] if os.geteuid() == 0 else [os.getuid()]))
    yield copy
    shutil.rmtree(folder)


@pytest.fixture
def other(other_cache):
    """Like ``case``, run by somebody who is not root."""
    folder = faults.open_folder()
    for name in ("here", "tmp", "home"):
        (folder / name).mkdir()
    x = np.random.default_rng(5).normal(size=(60, 3))
    np.save(folder / "here" / "x.npy", x)
    if os.geteuid() == 0:
        for path in folder.rglob("*"):
            os.chown(path, 65534, 65534)
    # What make coverage counts is ours, and cannot be written by somebody else.
    program = ("env", "COVERAGE_PROCESS_CONFIG=")
    program += (f"HOME={folder}/home", f"NUMBA_CACHE_DIR={other_cache}")
    wrapped = faults.ordinary_user((*program, str(PROGRAM)))
    yield faults.Case(folder / "here", folder / "tmp", wrapped)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Make the files once."""
    from nnkgraph.cli import main

    here = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(5)
    np.save(here / "x.npy", rng.normal(size=(60, 3)))
    np.save(here / "y.npy", rng.normal(size=(7, 3)))
    np.save(here / "z.npy", rng.normal(size=(5, 3)))
    np.save(here / "wide.npy", rng.normal(size=(7, 5)))
    names = [f"r{one}" for one in range(60)]
    (here / "names.txt").write_text("\n".join(names) + "\n")
    classes = ["ab"[one % 2] for one in range(60)]
    (here / "labels.csv").write_text("\n".join(["label", *classes]) + "\n")
    some = [one if at < 20 else "" for at, one in enumerate(classes)]
    rows = [f"{at},{one}" for at, one in enumerate(some)]
    (here / "some.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        for line in (
            "build x.npy -o g.npz -j 1 -k 5 -q",
            "build x.npy -o u.npz -j 1 -k 5 -q --updatable",
            "build x.npy -o named.npz --ids names.txt -j 1 -k 5 -q",
            "embed g.npz -o e.csv -q",
            "search x.npy -o knn.npz -k 5 -q",
        ):
            assert main.run(line.split()) == 0, line
    return here


@pytest.fixture
def kit(made, run, tmp_path, monkeypatch):
    """A copy of the files, and an empty directory for temporary ones."""
    shutil.copytree(made, tmp_path / "here")
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return faults.Kit(tmp_path / "here", tmp_path / "tmp", run, PROGRAM)


@pytest.fixture
def points(tmp_path) -> Path:
    """A small feature file."""
    path = tmp_path / "points.npy"
    np.save(path, np.random.default_rng(5).normal(size=(60, 3)))
    return path


def brute_force(x, k, base="squared-distance"):
    """The definition of exact search, in plain numpy on float64."""
    x = np.asarray(x, np.float64)
    if base == "squared-distance":
        score = ((x[:, np.newaxis] - x[np.newaxis]) ** 2).sum(axis=2)
    else:
        score = -(x @ x.T)
    np.fill_diagonal(score, np.inf)
    # Sums in another order differ in their last digits: ties are decided on rounded
    # scores, so use data whose scores are exact (integers) where ties matter.
    index = np.lexsort((np.broadcast_to(np.arange(len(x)), score.shape), score), axis=1)
    return index[:, :k], np.take_along_axis(score, index[:, :k], axis=1)


_OUTCOMES: dict[str, set[str]] = {}
"""How the tests of each row of the catalogue of faults ended."""


def pytest_runtest_logreport(report):
    """Note how the tests of the catalogue of faults end."""
    name, _, parameters = report.nodeid.partition("[")
    rows = faults.rows_of(name.rpartition("::")[2])
    for row in {*rows, *faults.rows_of(f"test_{parameters}")}:
        if report.when == "call" or report.outcome != "passed":
            bad = report.outcome == "failed" or hasattr(report, "wasxfail")
            outcome = "failed" if bad else report.outcome
            _OUTCOMES.setdefault(row, set()).add(outcome)


def pytest_terminal_summary(terminalreporter):
    """Show the catalogue of faults, where all of it was run, and what was not run."""
    if set(_OUTCOMES) | set(faults.WAITING) | set(faults.IMPOSSIBLE) >= set(
        faults.ROWS
    ):
        terminalreporter.section("catalogue of faults")
        for line in faults.table(_OUTCOMES):
            terminalreporter.write_line(line)
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(r.longrepr[2]).removeprefix("Skipped: ") for r in skipped)
    if reasons:
        said = (f"{count} because {reason}" for reason, count in reasons.items())
        terminalreporter.section("tests that did not run")
        terminalreporter.write_line("; ".join(said))


SLOW_PLACES = {"project", "robustness"}
SLOW_PLACES |= {"test_dask", "test_entry_points", "test_sklearn", "test_workers"}
SLOW_PLACES |= {"test_messages", "test_resume", "test_shards", "test_terminal"}
SLOW_FIXTURES = {"case", "other", "program", "job", "large"}
"""Where whole commands and processes start, or another package's checks run."""


def pytest_collection_modifyitems(items):
    """Mark what takes long, so that ``make quick`` leaves it out."""
    for item in items:
        places = SLOW_PLACES & {item.path.parent.name, item.path.stem}
        long = places or SLOW_FIXTURES & {*item.fixturenames}
        if long and not item.get_closest_marker("quick"):
            item.add_marker("slow")


def pytest_configure():
    """Hear signals, even where a shell in the background has them ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            interrupt = signal.default_int_handler
            signal.signal(number, interrupt if number == 2 else signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Let ``-n auto`` be what was granted; more than eight would wait for the disk."""
    from nnkgraph.runtime.limits import granted_cpus

    return min(granted_cpus(), 8)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config, specs):
    """Compile what most tests need once for all workers, before they start."""
    # One that fails is no concern of ours: tests will tell.
    subprocess.run([sys.executable, Path(__file__).with_name("warm.py")], check=False)


# In a browser

ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-dev-shm-usage", "--window-size=1280,1000"),
)
HAS_BROWSER = shutil.which("chromium") and shutil.which("chromedriver")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A Chromium that notes what the console says and what is requested."""
    webdriver = pytest.importorskip("selenium.webdriver")
    if not HAS_BROWSER:
        pytest.skip("there is no chromium here: make browser installs it")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for one in ARGUMENTS:
        options.add_argument(one)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('browser')}")
    logs = {"browser": "ALL", "performance": "ALL"}
    options.set_capability("goog:loggingPrefs", logs)
    service = Service(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


def requests(browser):
    """The addresses that were asked for since the last time."""
    entries = (json.loads(one["message"]) for one in browser.get_log("performance"))
    sent = "Network.requestWillBeSent"
    messages = [one["message"] for one in entries]
    return [
        one["params"]["request"]["url"] for one in messages if one["method"] == sent
    ]


def wait_for(condition):
    """Wait until something is true; drawing is up to the browser's clock."""
    until = time.monotonic() + 20
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found
