"""What graphs are good for: clusters, propagation, votes."""

from __future__ import annotations

import importlib.util
import re

import numpy as np

import nnkgraph
from bench import data
from claims import sets
from claims.claim import Figure, NotRunError, Place, claim, stated
from claims.runs import HOME, run


def _labels() -> np.ndarray:
    import h5py

    with h5py.File(sets.SAMPLES / "digits.h5") as file:
        labels: np.ndarray = file["labels"][:]
    return labels


def _clusters(graph: nnkgraph.Graph, y: np.ndarray, seeds: int, name: str) -> float:
    """Return how Leiden agrees with classes, as the mean over seeds."""
    if importlib.util.find_spec("graspologic_native") is None:
        raise NotRunError("nnkgraph[cluster] is not installed")
    labels = nnkgraph.Labels.of(y)
    found = [
        nnkgraph.cluster(graph, labels, seed=seed).partitions[0].facts[name]
        for seed in range(seeds)
    ]
    return float(np.mean(found))


@claim(
    "digits-clusters",
    "Leiden on `--preset cluster` finds the classes of the sample digits.",
    ("docs/clusters.md", "1        12      0.8386      192        27  0.9221  0.9024"),
    limit=">= 0.9",
    unit="AMI",
)
def _digits_clusters(_place: Place) -> Figure:
    graph = nnkgraph.build_graph(data.digits(), preset="cluster")
    return Figure(_clusters(graph, _labels(), 5, "ami"), "mean of five seeds")


@claim(
    "digits-propagation",
    "With 5 % of the labels propagation errs at 3.6 % of the other digits.",
    ("docs/labels.md", "error 3.57% of the reached"),
    limit="<= 5",
    unit="% errors",
)
def _digits_propagation(place: Place) -> Figure:
    file, wrong = sets.SAMPLES / "digits.h5", []
    run(place, "build", f"{file}::features", "-o", "g.npz", "-q")
    for seed in range(3):
        line = ("--labels", f"{file}::labels", "--sample", 0.05, "--seed", seed)
        said = run(place, "propagate", "g.npz", *line, "-o", "all.csv")
        wrong.append(float(re.findall(r"error ([\d.]+)% of the reached", said)[0]))
    return Figure(float(np.mean(wrong)), f"three draws: {wrong}")


@claim(
    "pbmc-types",
    "On 700 cells Leiden agrees with the known types by 0.44 on the genes, 0.50 on "
    "`--pca 50` and 0.48 on scanpy's components.",
    ("docs/single_cells.md", "adjusted Rand index of 0.44 on the 765 genes"),
    limit=">= 0.42",
    unit="is the least adjusted Rand index",
    data=("pbmc68k_reduced.npz",),
)
def _pbmc_types(place: Place) -> Figure:
    with np.load(place.file("pbmc68k_reduced.npz")) as file:
        x, pca, y = (file[name].astype(np.float64) for name in ("X", "X_pca", "y"))
    rows = {"genes": (x, {}), "--pca 50": (x, {"pca": 50}), "X_pca": (pca, {})}
    found = {
        name: _clusters(nnkgraph.build_graph(one, **more), y.astype(int), 1, "ari")
        for name, (one, more) in rows.items()
    }
    said = ", ".join(f"{name} {one:.2f}" for name, one in found.items())
    return Figure(min(found.values()), said)


@claim(
    "embeddings-mean",
    "On sentence embeddings `--scale unit --symmetrize mean` agrees with the sections "
    "better than the default, and than kNN with k = 30.",
    (
        "docs/embeddings.md",
        "| `--scale unit --symmetrize mean` | **0.375** | 21.1 | 0 |",
    ),
    (
        "docs/study.md",
        "agrees with the sections better (AMI 0.365) than on the default graph (0.332)",
    ),
    limit=">= 0",
    unit="is the lead over the better of the two, AMI",
    data=("deb_minilm_4k.npz",),
)
def _embeddings_mean(place: Place) -> Figure:
    with np.load(place.file("deb_minilm_4k.npz")) as file:
        x, y = file["X"], file["y"]
    options = {
        "mean": {"symmetrize": "mean"},
        "default": {},
        "kNN": {
            "method": "knn",
            "symmetrize": "max",
            "weights": "one",
            "min_weight": 0,
        },
    }
    found = {
        name: _clusters(nnkgraph.build_graph(x, scale="unit", **more), y, 10, "ami")
        for name, more in options.items()
    }
    said = ", ".join(f"{name} {one:.3f}" for name, one in found.items())
    return Figure(found["mean"] - max(found["default"], found["kNN"]), said)


@claim(
    "study-graphs",
    "The study compares 78 graphs, and its page has a line for each.",
    ("docs/study.md", "78 graphs of each of 23 data sets"),
    ("docs/study.md", "<!-- measured -->"),
    limit="== 78",
    unit="graphs",
)
def _study_graphs(_place: Place) -> Figure:
    from paper.study_graphs import kinds

    text = (HOME / "docs" / "study.md").read_text().partition("<!-- measured -->")[2]
    lines = sum(line.startswith("| ") for line in text.splitlines()) - 2
    return Figure(len(kinds()) if lines == len(kinds()) else 0, f"{lines} lines")


stated(
    "quality",
    "study",
    "78 graphs of 23 sets, judged by votes, propagation, clusters and eigenmaps; where "
    "NNK loses.",
    ("docs/study.md", "78 graphs of each of 23 data sets"),
    ("docs/choices.md", "errs in 27.4 % instead of 30.7 %"),
    ("README.md", "on 23 data sets, and where NNK loses"),
    command="make study DATA=DIR",
    why="hours, and data; QUICK=1 takes five minutes",
)
stated(
    "quality",
    "clusters-table",
    "`--preset cluster` is best on average and on five of eight sets.",
    (
        "docs/clusters.md",
        "`--preset cluster` is best on average and on five of eight sets.",
    ),
    command="python -m bench clusters --data DIR",
    why="ten minutes, and data",
)
stated(
    "quality",
    "paper",
    "The paper's tables, repeated: NNK errs least on USPS and Isolet.",
    ("paper/README.md", "Test error in percent, parameters by 5-fold cross-validation"),
    command="make paper DATA=DIR",
    why="hours, and data",
)
stated(
    "quality",
    "scanpy",
    "Graphs of cells beside those of scanpy.",
    (
        "docs/single_cells.md",
        "0.443 on this graph and 0.440 on that of `sc.pp.neighbors`",
    ),
    command="the lines of the page, with scanpy",
    why="needs scanpy, which is no part of what is installed",
)
