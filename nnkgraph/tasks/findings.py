"""What an audit found, as marks on the nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nnkgraph.data import IndexArray

COLUMNS = ("id", "finding", "score", "other", "label", "suggested", "detail")
KINDS = ("near-duplicate", "outlier", "label")
"""The layers of a drawing, in the order that they are listed in."""

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Findings:
    """Findings by kind, most suspicious first."""

    kind: IndexArray  # (f,) which of the KINDS
    node: IndexArray  # (f,) whose it is
    other: IndexArray  # (f,) its twin or witness, -1 where there is none
    rows: list[dict[str, Any]]  # score, label, suggested and detail, as they are shown

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Sequence[Any]],
        n: int,
        ids: Sequence[str] | None,
        name: str = "audit",
    ) -> Findings:
        """Return the findings of a table for a graph of n nodes.

        The table names nodes by their ids, or by their numbers where they have none.
        """
        missing = [one for one in COLUMNS[:4] if one not in columns]
        if missing:
            raise InputError(
                f"{name}: no column {', '.join(map(repr, missing))}; an audit has "
                f"{', '.join(COLUMNS)}"
            )
        kinds = [str(one).strip() for one in columns["finding"]]
        _refuse(name, "kind of finding", set(kinds) - set(KINDS), KINDS)
        place = {
            str(one): at for at, one in enumerate(range(n) if ids is None else ids)
        }
        named = [str(one) for one in columns["id"]]
        _refuse(name, "id of the graph", set(named) - set(place))
        blank = [""] * len(named)
        scores = [_number(one, at, name) for at, one in enumerate(columns["score"])]
        more = [columns.get(one, blank) for one in COLUMNS[4:]]
        rows = [
            {"score": score, "label": str(a), "suggested": str(b), "detail": str(c)}
            for score, a, b, c in zip(scores, *more, strict=True)
        ]
        return cls(
            np.array([KINDS.index(one) for one in kinds], np.int64),
            np.array([place[one] for one in named], np.int64),
            np.array([place.get(str(one), -1) for one in columns["other"]], np.int64),
            rows,
        )

    def at(self, kind: int) -> IndexArray:
        """Return the numbers of the findings of a kind."""
        return np.flatnonzero(self.kind == kind)

    def first(self, most: int) -> IndexArray:
        """Return the nodes of the first so many findings, of every kind alike."""
        each = max(1, most // len(KINDS))
        some = np.concatenate([self.at(kind)[:each] for kind in range(len(KINDS))])
        nodes = np.append(self.node[some], self.other[some])
        return np.unique(nodes[nodes >= 0])


def _refuse(name: str, what: str, odd: set[str], known: Sequence[str] = ()) -> None:
    if odd:
        some = ", ".join(map(repr, sorted(odd)[:_SHOWN])) + ", ..." * (
            len(odd) > _SHOWN
        )
        among = f"; there are {', '.join(known)}" if known else ""
        raise InputError(f"{name}: no {what}: {some}{among}")


def _number(value: Any, row: int, name: str) -> float | None:
    """Return a score, None where the field is empty."""
    try:
        found = float(value) if str(value).strip() else float("nan")
    except ValueError as error:
        raise InputError(f"{name}: row {row + 1}: no score: {value!r}") from error
    return found if np.isfinite(found) else None
