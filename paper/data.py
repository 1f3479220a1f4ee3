"""The data: files of a folder, sets of OpenML where asked for, and shapes made here."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnkgraph.errors import InputError
from nnkgraph.formats import write_file
from paper.setting import Setting, say

OPENML = {
    "isolet": (300, 6238),
    "usps": (41082, 7291),
    "mnist": (554, 60000),
    "jm1": (1053, 0),
    "letter": (6, 0),
    "madelon": (1485, 0),
    "mfeat_factors": (12, 0),
    "mfeat_zernike": (22, 0),
    "optdigits": (28, 0),
    "pc3": (1050, 0),
    "pendigits": (32, 0),
    "phoneme": (1489, 0),
    "qsar_biodeg": (1494, 0),
    "satimage": (182, 0),
    "segment": (36, 0),
    "semeion": (1501, 0),
    "spambase": (44, 0),
    "wall_robot_navigation": (1497, 0),
    "waveform_5000": (60, 0),
}
"""Numbers at OpenML, and how many rows come first as training part (0: no split)."""


@dataclass(frozen=True)
class Set:
    """Features, classes, and which rows are for testing."""

    name: str
    x: NDArray[np.floating]
    y: NDArray[np.int64]
    split: NDArray[np.int64] | None = None

    @cached_property
    def print(self) -> str:
        """Tell apart sets of one name, whose results must not be mixed."""
        digest = hashlib.sha256(np.ascontiguousarray(self.x).data)
        digest.update(np.ascontiguousarray(self.y).data)
        if self.split is not None:
            digest.update(np.ascontiguousarray(self.split).data)
        return digest.hexdigest()[:8]


def names(setting: Setting) -> list[str]:
    """Return the sets of the folder that have classes."""
    if setting.data is None:
        return []
    if not setting.data.is_dir():
        raise InputError(f"{setting.data}: there is no such folder of data")
    found = []
    for path in sorted(setting.data.glob("*.npz")):
        with np.load(path) as file:
            if "X" in file and "y" in file:
                found.append(path.stem)
    return found


def load(setting: Setting, name: str) -> Set:
    """Read one set; classes are numbered from 0."""
    assert setting.data is not None  # names are known from there
    path = setting.data / f"{name}.npz"
    with np.load(path) as file:
        x, y = file["X"], file["y"]
        split = file["split"].astype(np.int64) if "split" in file else None
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise InputError(f"{path}: X is {x.shape} and y is {y.shape}: a class per row")
    return Set(name, x, np.unique(y, return_inverse=True)[1].astype(np.int64), split)


def named(setting: Setting, stem: str) -> Set | None:
    """Return the largest set whose name begins so, where there is one."""
    found = [load(setting, one) for one in names(setting) if one.startswith(stem)]
    return max(found, key=lambda one: len(one.x), default=None)


def download(folder: Path) -> None:
    """Fetch what is missing from OpenML; called only where somebody asks for it."""
    from sklearn.datasets import fetch_openml

    folder.mkdir(parents=True, exist_ok=True)
    for name, (number, first) in OPENML.items():
        path = folder / f"{name}.npz"
        if path.exists():
            continue
        say(f"download {name} from OpenML")
        try:
            x, y = fetch_openml(
                data_id=number, return_X_y=True, as_frame=False, parser="liac-arff"
            )
        except (OSError, ValueError) as error:
            say(f"warning: {name} is left out: {error}")
            continue
        x = np.asarray(x, np.float32)
        gaps = np.isnan(x)
        x[gaps] = np.broadcast_to(np.nanmedian(x, axis=0), x.shape)[gaps]
        arrays: dict[str, Any] = {"X": x, "y": np.unique(y, return_inverse=True)[1]}
        if first:
            arrays["split"] = (np.arange(len(x)) >= first).astype(np.int8)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        write_file(path, buffer.getvalue())


def swiss_roll(
    n: int, noise: float, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points of a rolled-up sheet, and the angle of each."""
    from sklearn.datasets import make_swiss_roll

    x, angle = make_swiss_roll(n, noise=noise, random_state=seed)
    return np.ascontiguousarray(x), angle


def severed_sphere(
    n: int, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points of a sphere without poles and with a slit, and their longitude.

    As in scikit-learn's example of manifold learning on a sphere, but with exactly n
    points: a tenth of a turn is missing, and an eighth of the way at each pole.
    """
    draw = np.random.default_rng(seed)
    longitude = draw.random(n) * (2 * np.pi - 0.55)
    t = np.pi * (1 + 6 * draw.random(n)) / 8
    side = np.sin(t)
    x = [side * np.cos(longitude), side * np.sin(longitude), np.cos(t)]
    return np.column_stack(x), longitude


def subset(
    whole: Set, sizes: list[int], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw so many rows of each class."""
    draw = np.random.default_rng(seed)
    rows = [
        draw.choice(members, min(size, len(members)), replace=False)
        for one, size in enumerate(sizes)
        if len(members := np.flatnonzero(whole.y == one))
    ]
    taken = np.sort(np.concatenate(rows))
    return np.ascontiguousarray(whole.x[taken], np.float64), whole.y[taken]


def for_graphs(setting: Setting, *stems: str) -> dict[str, Set]:
    """Return a noisy Swiss roll, and a hundred rows of each class of these sets."""
    roll, _ = swiss_roll(setting.rows(5000), 0.5)
    found = {"noisy_swiss_roll": roll}
    for stem in stems:
        whole = named(setting, stem)
        if whole is not None:
            found[stem], _ = subset(whole, [100] * (int(whole.y.max()) + 1), 0)
    return {one: Set(one, x, np.zeros(len(x), np.int64)) for one, x in found.items()}
