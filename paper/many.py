"""Table 2: local classifiers on random halves of many sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from paper import data, figures, published
from paper.local import METHODS, VALUES, tested
from paper.results import Row, Table, mean, where, write_csv
from paper.setting import Setting, say

_KEYS = ("data", "print", "k", "seed", "method")
_SETS = (
    *("data", "rows", "features", "classes", "paper_rule", "repetitions"),
    *(f"{what}_{m}" for what in ("error", "deviation", "rank") for m in METHODS),
    *("verdict_knn", "verdict_kstar", "verdict_nnk"),
)
_TABLE = (
    *(
        "sets",
        "count",
        "method",
        "error",
        "deviation",
        "wins",
        "ties",
        "losses",
        "rank",
    ),
    *("nnk_against_it", "published_error", "published_deviation"),
    *("published_wtl", "published_rank"),
)
_LEFT_OUT = {"usps1_nnk": "its rows are in USPS"}
_ROWS, _FEATURES = (500, 20_000), (5, 1000)
_PAPER_ROWS, _PAPER_FEATURES = (1000, 20_000), (20, 1000)


def run(setting: Setting) -> None:
    """Write table2.csv, table2_sets.csv, what they are made of, and a figure."""
    known = {one.name: one for one in _sets(setting)}
    if not known:
        say("table2: no set of the data folder fits: nothing to do")
        return
    table = Table(setting.out / "many.csv", _KEYS, VALUES)
    cases = [
        {"data": s.name, "print": s.print, "k": 30, "seed": seed, "method": m}
        for s in known.values()
        for seed in range(setting.repeats(10))
        for m in METHODS
    ]

    def compute(some: list[Row]) -> Iterable[Row]:
        own = known[some[0]["data"]]
        return [row for row, _ in tested(setting, own, some, test_size=0.5)]

    rows = table.fill(cases, compute, group=("data", "seed"))
    lines = [_line(one, where(rows, data=one.name)) for one in known.values()]
    write_csv(setting.out / "table2_sets.csv", _SETS, lines)
    for line in where(lines, verdict_nnk="loss"):
        others = (f"{m} {line[f'error_{m}']:.2f}" for m in METHODS[:-1])
        say(
            f"NNK loses on {line['data']}: {line['error_nnk']:.2f}, {', '.join(others)}"
        )
    fitting = where(lines, paper_rule=1)
    groups = {"all": lines, "20 to 1000 features": fitting}
    summary = [
        _summary(name, some, method)
        for name, some in groups.items()
        if some
        for method in METHODS
    ]
    write_csv(setting.out / "table2.csv", _TABLE, summary)
    figures.save(setting.out / "table2.png", _figure(lines))


def _sets(setting: Setting) -> list[data.Set]:
    found = []
    for name in data.names(setting):
        if name in _LEFT_OUT:
            say(f"table2: {name} is left out: {_LEFT_OUT[name]}")
            continue
        own = data.load(setting, name)
        if _fits(own, _ROWS, _FEATURES):
            most = 3000 if setting.quick else _ROWS[1]
            if len(own.x) <= most:
                found.append(own)
        else:
            say(f"table2: {name} is left out: its shape is {own.x.shape}")
    return found


def _fits(own: data.Set, rows: tuple[int, int], features: tuple[int, int]) -> bool:
    n, d = own.x.shape
    return bool(rows[0] <= n <= rows[1] and features[0] <= d <= features[1])


def judge(errors: dict[str, float], spreads: dict[str, float]) -> dict[str, str]:
    """Say who wins, ties or loses on one set, as the paper does.

    The best wins. Who is within one standard deviation of the best ties, and so do
    several that are equally good.
    """
    best = min(errors.values())
    winners = [one for one, error in errors.items() if error == best]
    near = best + min(spreads[one] for one in winners)
    return {
        one: "win" if winners == [one] else "tie" if error <= near else "loss"
        for one, error in errors.items()
    }


def _line(own: data.Set, rows: list[Row]) -> Row:
    """Return a line about one set, errors in percent."""
    from scipy.stats import rankdata

    errors, spreads = {}, {}
    for method in METHODS:
        values = [100 * row["error"] for row in where(rows, method=method)]
        errors[method] = float(np.mean(values))
        spreads[method] = float(np.std(values))
    ranks = dict(zip(METHODS, rankdata([errors[m] for m in METHODS]), strict=True))
    verdict = judge(errors, spreads)
    line: Row = {
        "data": own.name,
        "rows": len(own.x),
        "features": own.x.shape[1],
        "classes": int(own.y.max()) + 1,
        "paper_rule": int(_fits(own, _PAPER_ROWS, _PAPER_FEATURES)),
        "repetitions": len(rows) // len(METHODS),
    }
    for method in METHODS:
        line[f"error_{method}"] = round(errors[method], 3)
        line[f"deviation_{method}"] = round(spreads[method], 3)
        line[f"rank_{method}"] = float(ranks[method])
        line[f"verdict_{method}"] = verdict[method]
    return line


def _summary(name: str, lines: list[Row], method: str) -> Row:
    verdicts = [line[f"verdict_{method}"] for line in lines]
    printed = published.TABLE_2[method]
    return {
        "sets": name,
        "count": len(lines),
        "method": method,
        "error": round(mean(lines, f"error_{method}"), 2),
        "deviation": round(mean(lines, f"deviation_{method}"), 2),
        "wins": verdicts.count("win"),
        "ties": verdicts.count("tie"),
        "losses": verdicts.count("loss"),
        "rank": round(mean(lines, f"rank_{method}"), 4),
        "nnk_against_it": "" if method == "nnk" else _against(lines, method),
        "published_error": printed["error"],
        "published_deviation": printed["deviation"],
        "published_wtl": printed["wtl"],
        "published_rank": printed["rank"],
    }


def _against(lines: list[Row], other: str) -> str:
    """Count wins, ties and losses of NNK against one other method."""
    verdicts = [
        judge(
            {m: line[f"error_{m}"] for m in ("nnk", other)},
            {m: line[f"deviation_{m}"] for m in ("nnk", other)},
        )
        for line in lines
    ]
    lost = [one["nnk"] == "loss" for one in verdicts]
    won = [one[other] == "loss" for one in verdicts]
    return f"{sum(won)}/{len(lines) - sum(won) - sum(lost)}/{sum(lost)}"


def _figure(lines: list[Row]) -> Any:
    """Draw how much better or worse than kNN the others are, on every set."""
    figure, axes = figures.panels(1, 1, width=7.2, height=1.4 + 0.24 * len(lines))
    panel = axes[0, 0]
    order = sorted(lines, key=lambda one: one["error_nnk"] - one["error_knn"])
    for method in ("kstar", "nnk"):
        gain = [one[f"error_{method}"] - one["error_knn"] for one in order]
        spread = [one[f"deviation_{method}"] for one in order]
        own = figures.style(method) | {"linestyle": ""}
        panel.errorbar(gain, range(len(order)), xerr=spread, elinewidth=1, **own)
    panel.axvline(0, color="#0072b2", linewidth=1.2)
    panel.set_yticks(range(len(order)), [one["data"] for one in order])
    panel.invert_yaxis()
    text = f"{lines[0]['repetitions']} random halves of {len(lines)} sets, k = 30"
    figures.finish(panel, text, "error minus that of kNN, percentage points", "")
    panel.legend(frameon=False)
    return figure
