"""Make the sample data again: python sample_data/make.py (needs scikit-learn)."""

from pathlib import Path

import h5py
import numpy as np
from sklearn.datasets import load_digits, make_moons, make_swiss_roll

HERE = Path(__file__).parent


def main() -> None:
    roll, _ = make_swiss_roll(1000, noise=0.5, random_state=0)
    np.save(HERE / "swiss_roll.npy", roll)

    points, label = make_moons(400, noise=0.08, random_state=0)
    lines = ["id,x,y"]
    count = [0, 0]
    for (x, y), moon in zip(points.tolist(), label.tolist(), strict=True):
        lines.append(f"{'ab'[moon]}{count[moon]},{x:.6f},{y:.6f}")
        count[moon] += 1
    (HERE / "two_moons.csv").write_text("\n".join(lines) + "\n")

    digits = load_digits()
    with h5py.File(HERE / "digits.h5", "w", track_order=False) as file:
        file.create_dataset(
            "features",
            data=digits.data.astype(np.uint8),
            compression="gzip",
            track_times=False,
        )
        file.create_dataset(
            "labels", data=digits.target.astype(np.uint8), track_times=False
        )


if __name__ == "__main__":
    main()
