"""Where averaging over all neighbors wins: what helps NNK on noisy classes.

Votes mix the shares of the regression with those of the kernel over all candidates,
(1 - a) theta / sum(theta) + a K / sum(K), or the regression has a penalty; a is fixed,
or chosen on one half of the rows by leave-one-out errors and judged on the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

import nnkgraph
from paper import data
from paper.results import Row, Table, mean, where, write_csv
from paper.setting import Setting, say
from paper.study_graphs import K, Prepared

NOISY = ("jm1", "pc3", "waveform_5000")
"""Sets with noisy classes, where the paper's NNK loses to an average of neighbors."""

ROWS = 5000
BLENDS = (0.0, 0.25, 0.5, 0.75, 1.0)
_SIGMAS = {"mean / 3": 1 / 3, "mean": 1.0, "2 mean": 2.0}
_PENALTIES = (0.05, 0.2)
_KEYS = ("data", "print", "rows", "sigma", "vote")
_MEANS = ("vote", "sigma", "all_sets", "noisy_sets", "better", "worse")
_CHOSEN = "blend chosen by labels"


def run(setting: Setting) -> None:
    """Write noise.csv and its means."""
    names = data.names(setting)
    if not names:
        say("noise: there is no data; name a folder with --data")
        return
    votes = [f"blend {one}" for one in BLENDS] + [_CHOSEN]
    votes += [f"l1 {one}" for one in _PENALTIES]
    rows = setting.rows(ROWS)
    cases = [
        {"data": name, "print": mark, "rows": rows, "sigma": sigma, "vote": vote}
        for name in names
        for mark in [data.load(setting, name).print]
        for sigma in _SIGMAS
        for vote in votes
    ]

    @lru_cache(maxsize=1)
    def ready(name: str) -> Prepared:
        return Prepared.of(data.load(setting, name), rows)

    def compute(some: list[Row]) -> Iterable[Row]:
        first = some[0]
        found = _errors(ready(first["data"]), _SIGMAS[first["sigma"]])
        return [{"loo": round(found[case["vote"]], 5)} for case in some]

    table = Table(setting.out / "noise.csv", _KEYS, ("loo",))
    found = table.fill(cases, compute, group=("data", "sigma"))
    base = {
        row["data"]: row["loo"] for row in where(found, sigma="mean / 3", vote=votes[0])
    }
    means = [_line(found, base, vote, one) for vote in votes for one in _SIGMAS]
    write_csv(setting.out / "noise_means.csv", _MEANS, means)


def _line(rows: list[Row], base: dict[str, float], vote: str, sigma: str) -> Row:
    own = where(rows, vote=vote, sigma=sigma)
    gain = np.array([base[row["data"]] - row["loo"] for row in own])
    return {
        "vote": vote,
        "sigma": sigma,
        "all_sets": round(mean(own, "loo"), 4),
        "noisy_sets": round(mean([r for r in own if r["data"] in NOISY], "loo"), 4),
        "better": int((gain > 1e-3).sum()),
        "worse": int((gain < -1e-3).sum()),
    }


def _errors(ready: Prepared, multiple: float) -> dict[str, float]:
    """Return the leave-one-out errors of all votes with one bandwidth."""
    found, y = ready.candidates("gaussian"), ready.y
    sigma = multiple * float(found.distance[:, -1].mean())
    kernel = np.exp(-0.5 * (found.distance / sigma) ** 2)
    far = kernel.sum(axis=1) <= 0
    kernel[far, 0] = 1.0  # nothing is near: the nearest row votes
    shares = kernel / kernel.sum(axis=1, keepdims=True)
    theta = _weights(ready, sigma, "nnk")
    votes = {a: (1 - a) * theta + a * _voted(shares, found.index, y) for a in BLENDS}
    wrong = {a: vote.argmax(axis=1) != y for a, vote in votes.items()}
    result = {f"blend {a}": float(one.mean()) for a, one in wrong.items()}
    half = np.random.default_rng(0).random(len(y)) < 0.5
    parts = []
    for chosen, judged in ((half, ~half), (~half, half)):
        best = min(BLENDS, key=lambda a, chosen=chosen: wrong[a][chosen].mean())  # type: ignore[misc]
        parts.append(wrong[best][judged])
    result[_CHOSEN] = float(np.concatenate(parts).mean())
    for eta in _PENALTIES:
        vote = _weights(ready, sigma, f"l1:eta={eta}")
        result[f"l1 {eta}"] = float((vote.argmax(axis=1) != y).mean())
    return result


def _weights(ready: Prepared, sigma: float, method: str) -> Any:
    """Return the votes of neighborhoods, as shares."""
    graph = nnkgraph.build_graph(
        ready.x,
        k=K,
        method=method,
        sigma=sigma,
        candidates=ready.candidates("gaussian"),
        symmetrize="none",
        min_weight=0,
    )
    votes = graph.adjacency @ np.eye(int(ready.y.max()) + 1)[ready.y]
    total = votes.sum(axis=1, keepdims=True)
    return votes / np.where(total > 0, total, 1.0)


def _voted(shares: Any, index: Any, y: Any) -> Any:
    votes = np.zeros((len(y), int(y.max()) + 1))
    rows = np.repeat(np.arange(len(y)), index.shape[1])
    np.add.at(votes, (rows, y[index].ravel()), shares.ravel())
    return votes
