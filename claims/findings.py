"""What `audit` finds where the truth is known."""

from __future__ import annotations

import numpy as np

import nnkgraph
from bench import data
from claims.claim import Figure, Place, claim, stated
from claims.sets import SAMPLES


@claim(
    "duplicates",
    "After an exact search no pair of near-duplicates is missed, and none is beyond.",
    ("docs/audit.md", "After an exact search no pair is missed"),
    ("docs/audit.md", "none was missed within the threshold, none reported beyond"),
    limit="== 0",
    unit="pairs are not those of brute force",
)
def _duplicates(place: Place) -> Figure:
    from paper.audit import planted
    from paper.setting import Setting

    differ, found, missed = 0, 0, 0
    for level in (0.0, 0.05, 0.2):
        row = planted(Setting(place.scratch), data.digits(), level, "none")
        differ += row["beside_brute_force"]
        found += row["found"]
        missed += row["missed"]
    said = f"digits, three levels of noise: {found} planted copies found, {missed} "
    return Figure(differ, f"{said}beyond the threshold")


def _messy() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make the messy digits of docs/audit.md."""
    import h5py

    with h5py.File(SAMPLES / "digits.h5") as file:
        x, y = file["features"][:], file["labels"][:]
    draw = np.random.default_rng(0)
    wrong = draw.choice(len(y), 36, replace=False)
    y[wrong] = (y[wrong] + draw.integers(1, 10, 36)) % 10
    copies = draw.choice(len(y), 40, replace=False)
    x = np.concatenate([x, x[copies] + draw.normal(0, 0.2, (40, 64)).round(2)])
    x[-10:] = x[copies[-10:]]
    y = np.concatenate([y, y[copies]])
    x[5] = draw.permutation(x[5])
    labels = y.astype(float)
    labels[::200] = np.nan
    return x, labels, wrong


@claim(
    "messy-digits",
    "Of 36 wrong labels in the sample digits 35 are found, the first 31 are all wrong, "
    "and so are found all 40 copies and the broken image, and nothing else.",
    (
        "docs/audit.md",
        "of the 36 wrong labels 35 are, and the first 31 labels are all of them wrong",
    ),
    limit=">= 35",
    unit="wrong labels found",
)
def _messy_digits(_place: Place) -> Figure:
    x, labels, wrong = _messy()
    found = nnkgraph.audit(x, labels)
    suspicious = found.votes.suspicious
    names = np.append(np.arange(1797), np.full(40, -1))
    right = np.isin(names[suspicious], wrong)
    first = int(np.argmin(right)) if not right.all() else len(right)
    right_pairs = sum(
        b >= 1797 or a >= 1797
        for a, b in zip(found.near.row, found.near.other, strict=True)
    )
    outliers = found.facts["outliers"]["rows"]
    said = f"the first {first} all wrong; {right_pairs} of {len(found.near.row)} pairs are copies; {outliers} outlier"
    good = right_pairs == len(found.near.row) == 40 and first >= 31 and outliers == 1
    return Figure(int(right.sum()) if good else 0, said)


stated(
    "findings",
    "audit-figures",
    "Flipped labels, planted copies and rare classes on 18 sets, beside kNN, cleanlab "
    "and scikit-learn, for and against.",
    ("docs/audit.md", "All by `python -m paper audit --data DIR`"),
    ("docs/audit.md", "There it is not the best"),
    command="python -m paper audit --data DIR",
    why="an hour, and data",
)
