"""Random features and random options for ``nnkgraph build``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

METHODS = (
    *("nnk", "nnk", "nnk", "knn", "mp", "omp", "lle", "kstar", "l1", "l1:eta=0.1"),
    *("eps", "aew", "kalofolias"),
)
KERNELS = ("gaussian", "gaussian", "cosine", "linear", "laplacian", "polynomial", "lle")
RULES = ("error", "error-union", "max", "mean", "min", "mutual", "none")
OUTPUTS = ("npz", "tsv", "csv", "edgelist", "graphml", "mtx", "tsv.gz", "graphml.gz")


@dataclass(frozen=True)
class Line:
    """A command line, and the files it names."""

    features: Path
    output: Path
    options: tuple[str, ...]
    resume: Path | None


def random_features(chance: Random) -> np.ndarray:
    """Return a matrix: duplicates, constants, ties and odd scales are common."""
    rng = np.random.default_rng(chance.randrange(2**32))
    n = chance.choice([1, 2, 3, 5, 17, 60, 150, 400])
    x = rng.normal(size=(n, chance.choice([1, 2, 3, 7, 12])))
    if chance.random() < 0.3:
        x = np.round(2 * x)  # ties, and duplicates among them
    if chance.random() < 0.3:
        x[rng.integers(0, n, n // 3)] = x[0]
    if chance.random() < 0.2:
        x[:, 0] = chance.choice([0.0, 7.0])
    if chance.random() < 0.3:
        x *= chance.choice([1e-12, 1e-5, 1e6, 1e40])
    if chance.random() < 0.1:
        x += 1e6
    kinds = [np.float64, np.float64, np.float32, np.int16]
    kind = chance.choice(kinds) if np.abs(x).max() < 3e4 else np.float64
    return x.astype(kind)


def write_features(x: np.ndarray, folder: Path, chance: Random) -> Path:
    """Write features in any format that has no need of further options."""
    name = chance.choice(["x.npy", "x.npy", "x.npz", "x.csv", "x.h5"])
    path = folder / name
    if name == "x.npy":
        np.save(path, x)
    elif name == "x.npz":
        np.savez(path, x=x)
    elif name == "x.csv":
        np.savetxt(path, x.astype(np.float64), delimiter=",", fmt="%.17g")
    else:
        import h5py

        with h5py.File(path, "w") as file:
            file["x"] = x
    return path


def random_line(folder: Path, chance: Random) -> Line:
    """Return a random call of ``build``; some cannot work, and must say so."""
    x = random_features(chance)
    features = write_features(x, folder, chance)
    output = folder / "out" / f"g.{chance.choice(OUTPUTS)}"
    options = ["-j", chance.choice(["1", "1", "2"])]

    def maybe(probability: float, *words: str) -> None:
        if chance.random() < probability:
            options.extend(words)

    k = chance.choice([1, 2, 5, 10, 30])
    if chance.random() < 0.8:
        k = max(1, min(k, len(x) - 1))
    maybe(0.7, "-k", str(k))
    maybe(0.7, "--method", chance.choice(METHODS))
    maybe(0.4, "--kernel", chance.choice(KERNELS))
    maybe(0.3, "--sigma", chance.choice(["auto", "local", "kth-max", "matlab", "0.5"]))
    maybe(0.4, "--search", chance.choice(["exact", "kdtree", "auto"]))
    maybe(0.3, "--symmetrize", chance.choice(RULES))
    maybe(0.3, "--scale", chance.choice(["none", "standard", "minmax", "unit"]))
    maybe(0.2, "--pca", chance.choice(["1", "2", "5"]))
    maybe(0.3, "--duplicates", chance.choice(["merge", "keep", "error"]))
    maybe(0.2, "--min-degree", chance.choice(["1", "3"]))
    maybe(0.2, "--connect", "mst")
    maybe(0.1, "--round", "6")
    maybe(0.1, "--grow", "0.1")
    maybe(0.1, "--min-weight", chance.choice(["0", "0.01"]))
    if "--search" not in options and chance.random() < 0.15:
        path = folder / "knn.npz"
        np.savez(path, neighbors=_neighbors(x.astype(np.float64), k))
        options += ["--search", f"precomputed:path={path}"]
    resume = folder / "kept" if chance.random() < 0.4 else None
    if resume is not None:
        options += ["--resume", str(resume)]
    return Line(features, output, tuple(options), resume)


def _neighbors(x: np.ndarray, k: int) -> np.ndarray:
    score = ((x[:, np.newaxis] - x) ** 2).sum(axis=2)
    np.fill_diagonal(score, np.inf)
    return np.argsort(score, axis=1, kind="stable")[:, :k].astype(np.int32)
