"""The data that is measured on: made here, in sample_data, or in a folder of yours."""

from __future__ import annotations

from pathlib import Path

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


def of_folder(folder: Path | None, most: int = 10_000) -> dict[str, np.ndarray]:
    """Return the matrices ``X`` of all npz files in a folder, cut to so many rows."""
    found = {}
    for path in sorted(folder.glob("*.npz")) if folder else []:
        with np.load(path) as file:
            if "X" in file and file["X"].ndim == 2:
                found[path.stem] = np.ascontiguousarray(file["X"][:most])
    return found
