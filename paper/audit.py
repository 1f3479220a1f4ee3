"""What ``nnkgraph audit`` finds where the truth is known.

Labels: two percent of them are flipped, and ranked by how suspicious they look, beside
votes of kNN and cleanlab. Near-duplicates: copies with noise are planted, and all pairs
compared. Outliers: of one class few rows stay, which are to be told from the others.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nnkgraph
from nnkgraph.build.run import open_run
from nnkgraph.build.settings import Running, Settings
from nnkgraph.data.labels import Labels
from nnkgraph.formats import write_file
from nnkgraph.tasks.audit.outliers import score_outliers
from nnkgraph.tasks.audit.votes import PRIOR, count_votes
from paper import data
from paper.results import Row, Table, mean, where
from paper.setting import Setting, say

K = 30
_LABELED = ("mnist", "letter", "isolet", "usps")
_LABELED_MORE = (
    *("optdigits", "pendigits", "satimage", "semeion", "segment", "mfeat_zernike"),
    *("mfeat_factors", "waveform"),
)
"""Sets that the score was chosen on, too: the prior of single voters is from these."""

_LABELED_UNSEEN = (
    *("spambase", "phoneme", "wall_robot", "pbmc68k", "qsar_biodeg", "pc3", "jm1"),
    "madelon",
)
"""Sets that played no part in any choice."""

_FLIPPED = 0.02
_PLANTED = ("deb_minilm", "mnist")
_LEVELS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Lengths of noise, in units of the median distance to the nearest row."""

_COPIES, _SAME = 400, 100
"""Planted copies of different rows, and of one row."""

_BRUTE = 20_000
"""Rows up to which all pairs are compared."""

_INLIERS = 6000
_RARE = (0.01, 20)
"""Rows of the rare class: a share of the others, or so many."""

_SETS = (
    *("optdigits", "pendigits", "satimage", "letter", "segment", "mfeat_factors"),
    *("mfeat_zernike", "waveform", "isolet", "usps", "semeion", "wall_robot"),
)
"""Sets that the score was chosen on, among some fifty others."""

_SETS_UNSEEN = ("spambase", "jm1", "phoneme", "pc3", "qsar_biodeg", "pbmc68k")
_KEYS = ("data", "print")


def run(setting: Setting) -> None:
    """Write a table of each kind, and all of them as audit.md."""
    if not data.names(setting):
        say("audit: there is no data; name a folder with --data")
        return
    parts = [
        _labels(setting, _LABELED),
        _labels(setting, _LABELED_MORE),
        _labels(setting, _LABELED_UNSEEN),
        _duplicates(setting),
        _outliers(setting, _SETS),
        _outliers(setting, _SETS_UNSEEN),
    ]
    parts = [one for one in parts if one]
    text = "\n".join("".join(f"| {' | '.join(line)} |\n" for line in p) for p in parts)
    write_file(setting.out / "audit.md", text.encode())


def _known(setting: Setting, stems: Iterable[str]) -> list[data.Set]:
    found = [data.named(setting, one) for one in stems]
    return [one for one in found if one is not None]


def _cases(sets: list[data.Set], **lists: Iterable[Any]) -> list[Row]:
    cases: list[Row] = [{"data": one.name, "print": one.print} for one in sets]
    for name, values in lists.items():
        cases = [{**case, name: value} for case in cases for value in values]
    return cases


def _searched(setting: Setting, x: Any, **options: Any) -> Any:
    """Return the candidates and regressions of all rows, and which are copies."""
    features = nnkgraph.Features.of(x)
    settings = Settings.of(features, k=K, search="exact", **options)
    with open_run(features, settings, Running(setting.workers)) as run:
        candidates, _, solved = run.solve()
        return candidates, solved, run.rows


# Labels.

_MODULES = ("cleanlab.filter", "cleanlab.rank")  # no part of any extra
_SCORES = ("own", "margin", "odds")


def _labels(setting: Setting, stems: Iterable[str]) -> list[list[str]]:
    """Rank flipped labels; return a table of the means over seeds."""
    sets = _known(setting, stems)
    if not sets:
        return []
    names = ["audit", *(f"knn {k}, {one}" for k in (10, K) for one in _SCORES)]
    clean = _cleanlab()
    names += clean
    table = Table(
        setting.out / "audit_labels.csv",
        (*_KEYS, "seed", "method"),
        ("precision", "average_precision", "flagged", "flipped_flagged"),
    )
    by_name = {one.name: one for one in sets}

    @lru_cache(maxsize=1)
    def ready(name: str) -> Any:
        x = by_name[name].x
        found = _searched(setting, x)
        plain = found[0]
        if found[2].copies:
            plain = nnkgraph.find_candidates(
                x, k=K, search="exact", duplicates="keep", workers=setting.workers
            )
        return found, np.asarray(plain.index, np.int64)

    def compute(cases: list[Row]) -> Iterator[Row]:
        own = by_name[cases[0]["data"]]
        found, near = ready(own.name)
        flips, y = _flipped(own.y, cases[0]["seed"])
        for case in cases:
            score, flagged = _ranked(case["method"], y, found, near)
            yield _judged(score, flagged, flips, case["seed"])

    cases = _cases(sets, seed=range(setting.repeats(5)), method=names)
    rows = table.fill(cases, compute, group=("data", "seed"))
    lines = [["labels", *(one.name for one in sets), "mean"], ["---"] * (len(sets) + 2)]
    for name in names:
        cells = []
        own = [where(rows, data=one.name, method=name) for one in sets]
        for some in own:
            right, area, count = (
                mean(some, one) for one in ("precision", "average_precision", "flagged")
            )
            cells.append(f"{right:.3f} / {area:.3f} / {count:,.0f}")
        means = [
            np.mean([mean(some, one) for some in own])
            for one in ("precision", "average_precision")
        ]
        lines.append([name, *cells, " / ".join(f"{one:.3f}" for one in means)])
    return lines


def _cleanlab() -> list[str]:
    """Return the names of what cleanlab offers, where it is installed."""
    if importlib.util.find_spec("cleanlab") is None:
        say("audit: cleanlab is not installed: its lines are left out")
        return []
    ways = ("self_confidence", "normalized_margin")
    return [f"cleanlab, knn {k}, {way}" for k in (10, K) for way in ways]


def _flipped(y: NDArray[np.int64], seed: int) -> tuple[NDArray[np.bool_], Any]:
    """Give a share of the rows another label, any of the others as often."""
    draw, classes = np.random.default_rng(seed), int(y.max()) + 1
    some = draw.choice(len(y), round(_FLIPPED * len(y)), replace=False)
    flips, other = np.zeros(len(y), np.bool_), y.copy()
    flips[some] = True
    other[some] = (y[some] + draw.integers(1, classes, len(some))) % classes
    return flips, other


def _ranked(method: str, y: Any, found: Any, near: Any) -> tuple[Any, Any]:
    """Return how suspicious labels are, and which are flagged."""
    if method == "audit":
        candidates, solved, rows = found
        votes = count_votes(Labels.of(y), candidates, solved, rows)
        return votes.score, votes.other > votes.own
    name, _, way = method.rpartition(", ")
    k = int(name.split()[-1])
    n, classes = len(y), int(y.max()) + 1
    key = np.arange(n)[:, np.newaxis] * classes + y[near[:, :k]]
    shares = np.bincount(key.ravel(), minlength=n * classes).reshape(n, classes) / k
    if name.startswith("cleanlab"):
        filters, ranks = map(importlib.import_module, _MODULES)
        issues = filters.find_label_issues(y, shares, n_jobs=1)
        quality = ranks.get_label_quality_scores(y, shares, method=way)
        return issues - quality, issues  # issues in their order, then all others
    every = np.arange(n)
    own = shares[every, y]
    shares[every, y] = -1.0
    other = shares.max(axis=1)
    score = {
        "own": 1 - own + 1e-3 * other,  # other labels order those with the same share
        "margin": other - own,
        "odds": (other + PRIOR) / (own + PRIOR),
    }[way]
    return score, other > own


def _judged(score: Any, flagged: Any, flips: Any, seed: int) -> Row:
    """Compare a ranking with the truth; equal scores are in random order."""
    draw = np.random.default_rng(seed).random(len(score))
    truth = flips[np.lexsort((draw, -score))]
    right = np.cumsum(truth)
    count = int(truth.sum())
    return {
        "precision": right[count - 1] / count,
        "average_precision": (right / np.arange(1, len(truth) + 1))[truth].mean(),
        "flagged": int(flagged.sum()),
        "flipped_flagged": flagged[flips].mean(),
    }


# Near-duplicates.


def _duplicates(setting: Setting) -> list[list[str]]:
    """Plant copies; return a table of what was found, missed and there besides."""
    sets = _known(setting, _PLANTED)
    by_name = {one.name: one for one in sets}
    table = Table(
        setting.out / "audit_duplicates.csv",
        (*_KEYS, "rows", "level"),
        ("threshold", "found", "missed", "groups", "others", "beside_brute_force"),
    )

    def compute(cases: list[Row]) -> Iterator[Row]:
        for case in cases:
            own = by_name[case["data"]]
            scale = "unit" if own.name.startswith("deb") else "none"
            yield planted(setting, own.x[: case["rows"]], case["level"], scale)

    many = setting.rows(_BRUTE)
    rows = table.fill(_cases(sets, rows=[many], level=_LEVELS), compute)
    head = ["copies", "noise", "threshold", "found", "missed", "other pairs"]
    lines = [[*head, "not as brute force"], ["---"] * (len(head) + 1)]
    for row in rows:
        values = [row[one] for one in ("found", "missed", "others")]
        lines.append(
            [row["data"], f"{row['level']:g}", f"{row['threshold']:.4g}"]
            + [f"{one:,}" for one in [*values, row["beside_brute_force"]]]
        )
    return lines


def planted(setting: Setting, x: Any, level: float, scale: str) -> Row:
    """Plant copies of rows with noise of one length, and audit."""
    draw = np.random.default_rng(0)
    x = np.unique(np.asarray(x, np.float64), axis=0)
    if scale == "unit":
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    n = len(x)
    search: Any = {"scale": scale, "workers": setting.workers}
    near = nnkgraph.find_candidates(x, k=1, **search).distance
    source = draw.choice(n, _COPIES + 1, replace=False)
    source = np.append(source[:-1], np.repeat(source[-1], _SAME))
    noise = draw.normal(size=(len(source), x.shape[1]))
    noise *= level * np.median(near) / np.linalg.norm(noise, axis=1, keepdims=True)
    x = np.concatenate([x, x[source] + noise])
    if scale == "unit":
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    found = nnkgraph.audit(x, k=K, search="exact", **search)
    limit = found.facts["near_duplicates"]["threshold"]
    pairs = {
        tuple(sorted(one)) for one in zip(found.near.row, found.near.other, strict=True)
    }
    planted = {(int(one), n + at) for at, one in enumerate(source)}
    family = np.append(np.arange(n), source)
    others = sum(family[i] != family[j] for i, j in pairs)
    return {
        "threshold": limit,
        "found": len(planted & pairs),
        "missed": len(planted - pairs),
        "groups": found.near.groups,
        "others": int(others),
        "beside_brute_force": len(pairs ^ _brute(x, limit)),
    }


def _brute(x: NDArray[np.float64], limit: float) -> set[tuple[int, int]]:
    """Return all pairs up to a distance; of identical rows those with the first."""
    first: dict[bytes, int] = {}
    same = np.array([first.setdefault(row.tobytes(), i) for i, row in enumerate(x)])
    own = np.flatnonzero(same == np.arange(len(x)))
    found = {(int(same[i]), int(i)) for i in np.flatnonzero(same != np.arange(len(x)))}
    rows = x[own]
    length = (rows**2).sum(axis=1)
    slack = 1e-9 * length.max()
    for start in range(0, len(rows), 1000):
        part = rows[start : start + 1000]
        square = length[start : start + 1000, np.newaxis] + length - 2 * part @ rows.T
        for i, j in np.argwhere(square <= limit**2 + slack):
            a, b = own[start + i], own[j]
            if a < b and np.sqrt(((x[a] - x[b]) ** 2).sum()) <= limit:
                found.add((int(a), int(b)))
    return found


# Outliers.


def _outliers(setting: Setting, stems: Iterable[str]) -> list[list[str]]:
    """Make one class rare; return a table of areas under the ROC curve."""
    sets = _known(setting, stems)
    if not sets:
        return []
    by_name = {one.name: one for one in sets}
    names = ("audit", "sklearn LOF", "k-th distance", "mean distance", "J", "support")
    table = Table(setting.out / "audit_outliers.csv", (*_KEYS, "rare", "class"), names)

    def compute(cases: list[Row]) -> Iterator[Row]:
        for case in cases:
            x, truth = _rare(by_name[case["data"]], case["rare"], case["class"])
            yield _areas(setting, x, truth)

    classes = range(setting.repeats(4))
    cases = _cases(sets, rare=_RARE, **{"class": classes})
    rows = table.fill(cases, compute)
    lines = [["outliers", "rare", *names], ["---"] * (len(names) + 2)]
    for rare in _RARE:
        some = where(rows, rare=rare)
        shown = f"{rare:.0%}" if rare < 1 else f"{rare}"
        for one in [*sets, None]:
            own = some if one is None else where(some, data=one.name)
            cells = [f"{mean(own, name):.3f}" for name in names]
            lines.append([one.name if one else "mean", shown, *cells])
    return lines


def _rare(own: data.Set, rare: float, which: int) -> tuple[Any, NDArray[np.bool_]]:
    """Return standardized rows in which one class, of four spread ones, is rare."""
    draw = np.random.default_rng(which)
    code = int(np.unique(own.y)[(which * (int(own.y.max()) + 1)) // 4])
    others, inside = np.flatnonzero(own.y != code), np.flatnonzero(own.y == code)
    others = draw.choice(others, min(_INLIERS, len(others)), replace=False)
    count = round(rare * len(others)) if rare < 1 else int(rare)
    inside = draw.choice(inside, min(max(5, count), len(inside)), replace=False)
    rows = np.sort(np.concatenate([others, inside]))
    x = own.x[rows].astype(np.float64)
    spread = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1), np.isin(rows, inside)


def _areas(setting: Setting, x: Any, truth: NDArray[np.bool_]) -> Row:
    """Score all rows in several ways."""
    from sklearn.metrics import roc_auc_score
    from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

    candidates, solved, rows = _searched(setting, x, preset="paper")
    spread = slice(None)
    if rows.origin is not None:
        spread = np.searchsorted(rows.origin, rows.first)
    usual = float(np.median(candidates.distance[:, 0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of copies
        lof = -LocalOutlierFactor(n_neighbors=K).fit(x).negative_outlier_factor_
    distance = NearestNeighbors(n_neighbors=K).fit(x).kneighbors()[0]
    scores = {
        "audit": score_outliers(candidates, usual).score[spread],
        "sklearn LOF": lof,
        "k-th distance": distance[:, -1],
        "mean distance": distance.mean(axis=1),
        "J": solved.errors[spread],
        "support": (solved.weights > 0).sum(axis=1)[spread],
    }
    return {name: round(roc_auc_score(truth, one), 5) for name, one in scores.items()}
