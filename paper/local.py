"""Local classifiers with a bandwidth or L/C from cross-validation, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nnkgraph.tasks.classify import classify
from paper.data import Set
from paper.results import Row
from paper.setting import GRID, Setting

METHODS = ("knn", "kstar", "nnk")
VALUES = ("parameter", "value", "cv_error", "error", "neighbors")


def tested(
    setting: Setting, own: Set, cases: list[Row], **part: Any
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Choose on the training part, test on the other; yield a row and all details.

    Parameters
    ----------
    cases : list of Row
        Methods with one k and one seed.
    part : Any
        ``split`` or ``test_size``, which say what the test part is.
    """
    methods = [case["method"] for case in cases]
    found = classify(
        own.x,
        own.y,
        **part,
        methods=methods,
        k=cases[0]["k"],
        sigma=GRID,
        lc=GRID if "kstar" in methods else None,
        cv=5,
        scale="standard",
        preset="paper",
        seed=cases[0]["seed"],
        workers=setting.workers,
    )
    for line in found.lines:
        which = "lc" if "lc" in line else "sigma"
        row = {one: line[one] for one in VALUES[2:]}
        yield {"parameter": which, "value": line[which], **row}, line
