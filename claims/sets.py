"""The rows that claims are measured on: shipped, or made here."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from bench import data
from claims.runs import HOME

SAMPLES = HOME / "sample_data"


def moons() -> np.ndarray:
    """Return the two moons of sample_data."""
    with (SAMPLES / "two_moons.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return np.array([[float(row["x"]), float(row["y"])] for row in rows])


def shipped() -> dict[str, np.ndarray]:
    """Return small sets by name."""
    return {
        "two moons 400 x 2": moons(),
        "noisy Swiss roll 5000 x 3": data.noisy_swiss_roll(),
        "digits 1797 x 64": data.digits(),
    }


def given(path: Path) -> np.ndarray:
    """Return the rows of a file of the user's, as float64."""
    with np.load(path) as file:
        return file["X"].astype(np.float64)
