"""What users meet: commands of the pages, the start, pages that load nothing."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from html.parser import HTMLParser

from bench import data
from bench.commands import nnkgraph as program
from bench.commands import seconds_of
from claims import sets
from claims.claim import Figure, Place, claim, stated
from claims.runs import failures, run, saved

_BLOCKS = "tests/project/test_docs.py::test_every_block_runs_and_prints_what_is_shown"


@claim(
    "readme",
    "Every command and example of README runs, and prints what is shown.",
    ("README.md", "Commands below run in the clone"),
    limit="== 0",
    unit="tests failed",
)
def _readme(place: Place) -> Figure:
    return failures(place, f"{_BLOCKS}[README]")


@claim(
    "pages",
    "Every command and example of all pages runs, and prints what is shown.",
    ("docs/install.md", "Commands of these pages run in that folder"),
    limit="== 0",
    unit="tests failed",
    long="three minutes",
)
def _pages(place: Place) -> Figure:
    return failures(place, _BLOCKS, workers=2)


@claim(
    "options",
    "Every option and command that a page names exists, every table of options is that "
    "of the program, and every link leads somewhere.",
    ("README.md", "`nnkgraph COMMAND --help` explains every option, with examples"),
    limit="== 0",
    unit="tests failed",
)
def _options(place: Place) -> Figure:
    paths = ("tests/project/test_docs.py", "tests/project/test_site.py")
    names = "reference or options or tables or rule or every_link_of_a_page"
    return failures(place, *paths, "-k", names, workers=2)


@claim(
    "start",
    "Help and completion load nothing heavy, so that they are there at once.",
    ("docs/warm.md", "Help and completion load neither that nor numpy."),
    limit="== 0",
    unit="heavy modules",
)
def _start(_place: Place) -> Figure:
    heavy = ("numpy", "scipy", "numba", "h5py", "pynndescent", "tqdm", "matplotlib")
    code = "import sys; from nnkgraph.cli import main; main.run(sys.argv[1:]); "
    code += f"print(len(sys.modules), *(m for m in {heavy} if m in sys.modules), "
    code += "file=sys.stderr)"
    loaded, counts = 0, []
    for words in (["--help"], ["--version"], ["build", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            capture_output=True,
            text=True,
            check=True,
        )
        count, *names = done.stderr.split()
        counts.append(count)
        loaded += len(names)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run(program("--version"), capture_output=True, check=True)
        times.append(time.perf_counter() - begin)
    said = f"{', '.join(counts)} modules for --help, --version, build --help; "
    return Figure(loaded, f"{said}{min(times):.2f} s")


@claim(
    "start-build",
    "A small table is a graph almost at once, from the prompt: imports take most of it.",
    ("README.md", "done in 0.50 s"),
    limit="<= 3",
    unit="times the time in which Python imports numpy, scipy.sparse and numba",
)
def _start_build(place: Place) -> Figure:
    line = ["build", str(sets.SAMPLES / "two_moons.csv"), "-k", "15", "-q", "-o"]
    run(place, *line, "g.npz")
    build = program(*line, str(place.scratch / "g.npz"))
    bare = [sys.executable, "-c", "import numpy, scipy.sparse, numba"]
    took, least = (min(seconds_of(one) for _ in range(3)) for one in (build, bare))
    return Figure(took / least, f"{took:.2f} s beside {least:.2f} s")


class _Loaded(HTMLParser):
    """Collects what a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag loads."""
        for name, value in attrs:
            link = name == "href" and tag == "link"
            if value and (link or name in {"src", "srcset", "poster", "data"}):
                self.found.append(value)


@claim(
    "page-alone",
    "The page of `report` loads nothing from anywhere.",
    ("docs/pages.md", "It loads nothing from anywhere"),
    ("README.md", "one self-contained page about a graph"),
    limit="== 0",
    unit="addresses are loaded",
)
def _page_alone(place: Place) -> Figure:
    features = f"{sets.SAMPLES / 'digits.h5'}::features"
    labels = f"{sets.SAMPLES / 'digits.h5'}::labels"
    run(place, "build", features, "-o", "g.npz", "-q")
    run(place, "report", "g.npz", "--labels", labels, "-o", "g.html", "-q")
    text = (place.scratch / "g.html").read_text()
    page = _Loaded()
    page.feed(text)
    loaded = [one for one in page.found if not one.startswith("data:")]
    loaded += re.findall(r"(?:url\(|@import)\s*[\"']?(?!data:|#)([\w/:][^\"')]*)", text)
    calls = (
        r"\b(?:fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts)\b"
    )
    loaded += re.findall(calls, text)
    said = f"{len(text) / 1e6:.1f} MB of 1797 nodes"
    said += f": {', '.join(loaded[:3])}" * bool(loaded)
    return Figure(len(loaded), said)


@claim(
    "page-size",
    "A page of 4,000 nodes with names has half a MB.",
    ("docs/pages.md", "0.5 MB for 4,000 nodes with names"),
    limit="<= 0.6",
    unit="MB",
)
def _page_size(place: Place) -> Figure:
    saved(place, "x.npy", data.manifold(4000, 16))
    names = "".join(f"a node called {i}\n" for i in range(4000))
    (place.scratch / "names.txt").write_text(names)
    run(place, "build", "x.npy", "--ids", "names.txt", "-o", "g.npz", "-q")
    run(place, "report", "g.npz", "-o", "g.html", "-q")
    return Figure((place.scratch / "g.html").stat().st_size / 1e6)


@claim(
    "page-browser",
    "In a browser the page requests nothing, and the console is silent.",
    ("docs/pages.md", "It loads nothing from anywhere"),
    limit="== 0",
    unit="tests failed",
    command="pytest tests/tasks/test_report.py -k nothing_is_requested",
)
def _page_browser(place: Place) -> Figure:
    return failures(place, "tests/tasks/test_report.py", "-k", "nothing_is_requested")


stated(
    "use",
    "handover",
    "Graphs go on in UMAP, openTSNE, PHATE, cleanlab, HDBSCAN and others.",
    ("docs/migration.md", "What follows runs after these lines"),
    command="make test-handover",
    why="installs these packages first",
)
stated(
    "use",
    "demo",
    "`make demo` takes about a minute, from a clone to a picture.",
    ("README.md", "graphs from sample_data/, a picture: a minute"),
    command="make demo",
    why="installs a virtual environment",
)
