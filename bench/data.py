"""The data that is measured on: made here, in sample_data, or in a folder of yours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

HOME = Path(__file__).parent.parent


def noisy_swiss_roll(n: int = 5000, seed: int = 0) -> np.ndarray:
    """Return points of a rolled-up sheet, with noise."""
    rng = np.random.default_rng(seed)
    t = 1.5 * np.pi * (1 + 2 * rng.random(n))
    x = np.column_stack([t * np.cos(t), 21 * rng.random(n), t * np.sin(t)])
    return x + 0.5 * rng.normal(size=x.shape)


def digits() -> np.ndarray:
    """Return the 1797 x 64 handwritten digits of sample_data."""
    with h5py.File(HOME / "sample_data" / "digits.h5") as file:
        return file["features"][:].astype(np.float64)


def manifold(n: int, d: int, *, inner: int = 12, seed: int = 0) -> np.ndarray:
    """Return n points near a curved surface of few dimensions in d, as float32."""
    rng = np.random.default_rng(seed)
    inner = min(inner, d)
    frame = rng.normal(size=(inner, d))
    x = np.empty((n, d), np.float32)
    for start in range(0, n, 4096):
        rows = slice(start, min(n, start + 4096))
        z = rng.normal(size=(rows.stop - rows.start, inner))
        noise = 0.05 * rng.normal(size=(len(z), d))
        x[rows] = np.tanh(z @ frame) + noise
    return x


def waves(n: int, d: int, *, inner: int = 8, seed: int = 0) -> np.ndarray:
    """Return n points that are hard to find neighbors of, as float32.

    Waves of a few hidden dimensions fold them so often that they fill the space.
    """
    rng = np.random.default_rng(seed)
    frame = rng.normal(size=(inner, d))
    x = np.empty((n, d), np.float32)
    for start in range(0, n, 4096):
        rows = slice(start, min(n, start + 4096))
        z = rng.normal(size=(rows.stop - rows.start, inner))
        x[rows] = np.sin(z @ frame) + 0.05 * rng.normal(size=(len(z), d))
    return x


def topics(n: int, d: int, *, count: int = 200, words: int = 60, seed: int = 0) -> Any:
    """Return n sparse rows of word counts: mixtures of topics with Zipf's columns.

    A topic prefers some words; every row has about ``words`` entries, drawn from the
    words of two topics and from those that all rows use.
    """
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    usual = 1.0 / np.arange(1, d + 1)
    usual /= usual.sum()
    total = rng.poisson(1.12 * words, n) + 1
    indptr = np.concatenate([[0], np.cumsum(total)])
    column = np.empty(indptr[-1], np.int64)
    # A topic has an order of words of its own, and the same law for their shares.
    order = np.argsort(rng.random((count, d)), axis=1).astype(np.int32)
    row = np.repeat(np.arange(n), total)
    topic = rng.integers(0, count, (n, 2))[row, rng.integers(0, 2, len(row))]
    rank = np.searchsorted(np.cumsum(usual), rng.random(len(row)))
    rank = np.minimum(rank, d - 1)
    column[:] = np.where(rng.random(len(row)) < 0.3, rank, order[topic, rank])
    counts = csr_array((np.ones(len(row), np.float32), (row, column)), shape=(n, d))
    counts.sum_duplicates()
    return counts


def of_folder(folder: Path | None, most: int = 10_000) -> dict[str, np.ndarray]:
    """Return the matrices ``X`` of all npz files in a folder, cut to so many rows."""
    found = {}
    for path in sorted(folder.glob("*.npz")) if folder else []:
        with np.load(path) as file:
            if "X" in file and file["X"].ndim == 2:
                found[path.stem] = np.ascontiguousarray(file["X"][:most])
    return found
