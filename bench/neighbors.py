"""Time over recall: our searches and other libraries, all nearest neighbors of a set.

``make bench BENCH="neighbors --data DIR"`` measures every search in its own process and
writes docs/search.md and its picture. What a process compiles or imports is done before
the clock starts, on a few rows. DIR may have ``glove.npy`` and ``mnist.npz``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench import data

HOME = Path(__file__).parent.parent
K = 30
_SAMPLE = 1000
"""Rows whose true neighbors are known."""

_LONGEST = 1500
"""Seconds that one search may take."""

_COMPILED = 3000
"""Rows that a process compiles and imports with, before the clock starts."""


def sets(folder: Path | None) -> dict[str, Callable[[], np.ndarray]]:
    """Return what makes or reads the sets, by name."""
    found: dict[str, Callable[[], np.ndarray]] = {}
    if folder and (folder / "glove.npy").exists():
        found["GloVe 341,479 x 100, by angle"] = lambda: _unit(
            np.load(folder / "glove.npy")
        )
    if folder and (folder / "mnist.npz").exists():
        found["MNIST 70,000 x 784"] = lambda: np.load(folder / "mnist.npz")["X"]
    return found | {
        "surface 300,000 x 64": lambda: data.manifold(300_000, 64),
        "hard 300,000 x 64": lambda: data.waves(300_000, 64),
        "surface 1,000,000 x 64": lambda: data.manifold(1_000_000, 64),
    }


def _unit(x: np.ndarray) -> np.ndarray:
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def by_nnkgraph(x: np.ndarray, threads: int, search: str) -> np.ndarray:
    """Search with one of our own."""
    import nnkgraph

    return nnkgraph.find_candidates(x, k=K, search=search, workers=threads).index


def by_pynndescent(x: np.ndarray, threads: int, width: int) -> np.ndarray:
    """Search for more than k neighbors, and keep the best."""
    from pynndescent import NNDescent

    found = NNDescent(x, n_neighbors=width, n_jobs=threads, random_state=0)
    return found.neighbor_graph[0][:, 1 : K + 1]


def by_faiss_hnsw(x: np.ndarray, threads: int, ef: int) -> np.ndarray:
    """Build a hierarchy of graphs, and ask it for all rows."""
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexHNSWFlat(x.shape[1], 32)
    index.hnsw.efConstruction, index.hnsw.efSearch = 100, ef
    index.add(x)
    return index.search(x, K + 1)[1]


def by_faiss_ivf(x: np.ndarray, threads: int, probes: int) -> np.ndarray:
    """Put rows into lists, and ask some of them for every row."""
    import faiss

    faiss.omp_set_num_threads(threads)
    lists = int(4 * np.sqrt(len(x)))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(x.shape[1]), x.shape[1], lists)
    index.train(x[: 64 * lists])
    index.add(x)
    index.nprobe = probes
    return index.search(x, K + 1)[1]


def by_hnswlib(x: np.ndarray, threads: int, ef: int) -> np.ndarray:
    """Build a hierarchy of graphs, and ask it for all rows."""
    import hnswlib

    index = hnswlib.Index(space="l2", dim=x.shape[1])
    index.init_index(max_elements=len(x), ef_construction=100, M=24, random_seed=0)
    index.add_items(x, num_threads=threads)
    index.set_ef(ef)
    return index.knn_query(x, k=K + 1, num_threads=threads)[0]


def by_usearch(x: np.ndarray, threads: int, expansion: int) -> np.ndarray:
    """Build a hierarchy of graphs, and ask it for all rows."""
    from usearch.index import Index

    index = Index(ndim=x.shape[1], metric="l2sq", dtype="f32", expansion_add=100)
    index.expansion_search = expansion
    index.add(np.arange(len(x)), x, threads=threads)
    return index.search(x, K + 1, threads=threads).keys


def by_pipnn(x: np.ndarray, threads: int, runs: int) -> np.ndarray:
    """Carve the rows into overlapping groups, and walk the graph that they give."""
    import pipnn

    beam = 64 if runs == 1 else 128
    how = {"runs": runs, "beam_L": beam, "n_jobs": threads}
    return pipnn.self_knn_graph(x, K, **how)[0]


SEARCHES: dict[str, tuple[Callable[..., np.ndarray], tuple[Any, ...]]] = {
    "nnkgraph partition": (
        by_nnkgraph,
        ("partition:recall=0.95", "partition:recall=0.97", "partition"),
    ),
    "nnkgraph exact": (by_nnkgraph, ("exact",)),
    "pynndescent": (by_pynndescent, (31, 61)),
    "faiss HNSW": (by_faiss_hnsw, (40, 120)),
    "faiss IVF": (by_faiss_ivf, (16,)),
    "hnswlib": (by_hnswlib, (80,)),
    "usearch": (by_usearch, (128,)),
    "pipnn": (by_pipnn, (1, 3)),
}


def hits(index: np.ndarray, rows: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of true neighbors that were found, the row itself left out."""
    found = [
        len(np.intersect1d(some[some != row], true))
        for row, some, true in zip(rows, index[rows], truth, strict=True)
    ]
    return float(np.mean(found) / truth.shape[1])


def one(file: str, threads: int, search: str, knob: Any, rows: str) -> dict[str, Any]:
    """Measure one search, in this process."""
    function = SEARCHES[search][0]
    x, (asked, truth) = np.load(file), np.load(rows).values()
    function(x[:_COMPILED].copy(), threads, knob)
    begin = time.perf_counter()
    index = function(x, threads, knob)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "recall": hits(index, asked, truth)}


def measured(folder: Path | None, threads: int, only: str) -> Iterator[dict[str, Any]]:
    """Yield time and recall of every search on every set, where `only` fits a line.

    It is a pattern, such as "hard.*faiss", for set, search and knob in this order.
    """
    for name, make in sets(folder).items():
        wanted = [
            (search, knob)
            for search, (_, knobs) in SEARCHES.items()
            for knob in knobs
            if re.search(only, f"{name}, {search}, {knob}")
        ]
        if not wanted:
            continue
        with tempfile.TemporaryDirectory() as place:
            x = np.ascontiguousarray(make(), np.float32)
            file, rows = Path(place, "x.npy"), Path(place, "rows.npz")
            np.save(file, x)
            np.savez(rows, *_truth(x))
            del x
            for search, knob in wanted:
                task = [str(file), threads, search, knob, str(rows)]
                line = {"set": name, "search": search, "knob": str(knob)}
                yield line | _apart(task)


def _truth(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows and their nearest, by plain float64 arithmetic."""
    rows = np.sort(np.random.default_rng(1).choice(len(x), _SAMPLE, replace=False))
    found, norms = [], np.einsum("ij,ij->i", x, x, dtype=np.float64)
    for start in range(0, _SAMPLE, 100):
        some = rows[start : start + 100]
        square = norms - 2.0 * (x[some].astype(np.float64) @ x.T)
        square[np.arange(len(some)), some] = np.inf
        found.append(np.argpartition(square, K, axis=1)[:, :K])
    return rows, np.concatenate(found)


def _apart(task: list[Any]) -> dict[str, Any]:
    """Measure in a process of its own; say why where that fails."""
    code = "import json, sys; from bench.neighbors import one;"
    code += "print(json.dumps(one(*json.loads(sys.argv[1]))))"
    call = [sys.executable, "-c", code, json.dumps(task)]
    try:
        run = subprocess.run(
            call, capture_output=True, text=True, timeout=_LONGEST, check=True, cwd=HOME
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {_LONGEST} s"}
    except subprocess.CalledProcessError as error:
        return {"failed": error.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def show(found: dict[str, Any]) -> str:
    """Return a row of the table."""
    figures = found.get("failed") or f"{found['seconds']:.1f} | {found['recall']:.4f}"
    return f"| {found['set']} | {found['search']} | {found['knob']} | {figures} |"


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds over what is missed, a panel a set."""
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(line["set"] for line in found))
    figure, panels = plt.subplots(
        1,
        len(names),
        figsize=(max(8, 4 * len(names)), 4),
        squeeze=False,
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for panel, name in zip(panels[0], names, strict=True):
        for at, search in enumerate(SEARCHES):
            some = [
                line
                for line in found
                if line["set"] == name and line["search"] == search and "recall" in line
            ]
            missed = [max(1 - line["recall"], 1e-4) for line in some]
            ours = search.startswith("nnkgraph")
            panel.plot(
                missed,
                [line["seconds"] for line in some],
                "o-" if ours else "s--",
                color=f"C{at}",
                linewidth=2.5 if ours else 1,
                label=search,
            )
        panel.set(xscale="log", yscale="log", title=name, xlabel="missed (1 - recall)")
    panels[0][0].invert_xaxis()
    panels[0][0].set_ylabel("seconds, two threads")
    figure.legend(
        *panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4
    )
    figure.savefig(path, dpi=110)


def draw_reached(found: list[dict[str, Any]], path: Path) -> None:
    """Draw a bar for every search: seconds until it finds enough, a panel a set."""
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(line["set"] for line in found))
    names = [name for name in names if len(_reached(found, name)) > 4]
    figure, panels = plt.subplots(
        1,
        len(names),
        figsize=(3.2 * len(names), 3),
        squeeze=False,
        layout="constrained",
    )
    for panel, name in zip(panels[0], names, strict=True):
        bars = _reached(found, name)
        longest = max(line["seconds"] for line in bars if line["recall"] >= _ENOUGH)
        for at, line in enumerate(bars):
            recall, ours = line["recall"], line["search"].startswith("nnkgraph")
            if recall < _ENOUGH:
                panel.text(0, at, f" at most {recall:.2f}", va="center", color="0.4")
                continue
            panel.barh(at, line["seconds"], color="#b3541e" if ours else "#9fb4c1")
            panel.text(
                line["seconds"] + longest / 60,
                at,
                f"{line['seconds']:.0f} s, {recall:.3f}",
                va="center",
            )
        panel.set_yticks(range(len(bars)), [line["search"] for line in bars])
        panel.set(title=name, xlim=(0, 2.1 * longest), xticks=[])
        panel.set_ylim(len(bars) - 0.5, -0.5)
        panel.spines[["top", "right", "bottom"]].set_visible(False)
    figure.supxlabel(f"seconds until recall is at least {_ENOUGH}, two threads")
    figure.savefig(path, dpi=110)


def _reached(found: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the fastest run of each search that finds enough, else its best."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for line in found:
        if line["set"] == name and "recall" in line:
            runs.setdefault(line["search"], []).append(line)

    def order(line: dict[str, Any]) -> tuple[float, float]:
        short = max(_ENOUGH - line["recall"], 0.0)
        return short, line["seconds"]

    return sorted((min(some, key=order) for some in runs.values()), key=order)


_ENOUGH = 0.95
"""Recall below which a search does not count as done in the README's picture."""

_PAGE = HOME / "docs" / "search.md"
_BEGIN, _END = "<!-- measured -->\n", "<!-- end -->\n"


def page(folder: Path | None, threads: int, only: str) -> None:
    """Measure, and write table and picture into docs/search.md.

    Sets that were not measured this time keep their lines.
    """
    before, kept, after = _parts()
    for found in measured(folder, threads, only):
        print(show(found), flush=True)
        kept = [line for line in kept if _key(line) != _key(found)] + [found]
    names = list(sets(folder))
    kept.sort(key=lambda line: [*names, line["set"]].index(line["set"]))
    head = ["| data | search | knob | seconds | recall |", "|---|---|---|---|---|"]
    table = "\n".join([*head, *map(show, kept)])
    _PAGE.write_text(f"{before}{_BEGIN}{table}\n{_END}{after}")
    draw(kept, HOME / "docs" / "search.png")
    draw_reached(kept, HOME / "docs" / "speed.png")


def _parts() -> tuple[str, list[dict[str, Any]], str]:
    """Return what docs/search.md has before its table, the rows, and what follows."""
    before, rest = _PAGE.read_text().split(_BEGIN)
    table, after = rest.split(_END)
    return before, [row for row in map(_line, table.splitlines()[2:]) if row], after


def _key(line: dict[str, Any]) -> tuple[str, ...]:
    return line["set"], line["search"], line["knob"]


def _line(text: str) -> dict[str, Any] | None:
    """Read a row of the table again."""
    cells = [cell.strip() for cell in text.strip("|").split("|")]
    line: dict[str, Any] = dict(zip(("set", "search", "knob"), cells, strict=False))
    if len(cells) == 5:
        return line | {"seconds": float(cells[3]), "recall": float(cells[4])}
    return line | {"failed": cells[3]} if len(cells) == 4 else None


if __name__ == "__main__":
    draw_reached(_parts()[1], Path(sys.argv[1]))
