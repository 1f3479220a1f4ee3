"""What is odd in a data set: near-duplicates, outliers and suspicious labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from nnkgraph.build.report import search_facts
from nnkgraph.build.run import open_run
from nnkgraph.build.settings import SearchCall, Settings, features_of, split
from nnkgraph.data.labels import Labels
from nnkgraph.data.pairs import DISTANCES
from nnkgraph.errors import ParameterError, QualityWarning
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import within_memory
from nnkgraph.tasks.audit.outliers import score_outliers
from nnkgraph.tasks.audit.pairs import (
    missed_pairs,
    near_duplicates,
    parse_threshold,
    threshold_of,
)
from nnkgraph.tasks.audit.votes import ALONE, PRIOR, check_labels, count_votes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nnkgraph.build.run import Run
    from nnkgraph.data import Candidates, Features, FloatArray
    from nnkgraph.tasks.audit.outliers import Outliers
    from nnkgraph.tasks.audit.pairs import Near, Threshold
    from nnkgraph.tasks.audit.votes import Votes


class AuditCall(SearchCall, total=False):
    """Keywords of ``audit`` that ``build_graph`` explains."""

    sigma: str | float | None
    preset: str | None


@dataclass(frozen=True, eq=False)
class Audit:
    """What was found; rows are numbers of the input."""

    near: Near
    """All pairs of near-duplicates, their groups, and which rows to keep."""

    outlier_score: FloatArray
    """(N,) how many times as far from its neighbors as usual every row is."""

    outliers: Outliers
    """The parts of that score, for the distinct rows."""

    votes: Votes | None
    """What the neighbors say about the labels; None without labels."""

    columns: dict[str, list[Any]]
    """The table: a list for each of ``id``, ``finding``, ``score``, ``other``,
    ``label``, ``suggested`` and ``detail``."""

    facts: dict[str, Any]
    """Counts, thresholds, and what may have been missed; plain JSON values."""

    notes: list[str]
    """How candidates were found."""

    @property
    def count(self) -> int:
        """How many findings there are; suggestions for rows without label are none."""
        return int(self.facts["findings"])

    def __repr__(self) -> str:
        return f"<Audit: {self.facts['rows']} rows, {self.count} findings>"


@within_memory
def audit(
    features: Features | ArrayLike,
    labels: Labels | ArrayLike | None = None,
    /,
    *,
    duplicate: float | str | None = None,
    **options: Unpack[AuditCall],
) -> Audit:
    """Look for near-duplicates, outliers and, with labels, for suspicious ones.

    One search for neighbors serves all three. The other parameters are those of
    ``build_graph``; identical rows count as near-duplicates at distance 0.

    Parameters
    ----------
    labels : labels, optional
        A class for every row, missing for some. Neighbors vote on it, weighted by
        their regressions; the row itself and nothing else is left out.
    duplicate : float or str, optional
        Up to which distance pairs are near-duplicates, or ``"cosine=0.95"`` where rows
        are compared by angle (``scale="unit"`` or ``kernel="cosine"``). By default far
        below the usual distance to the nearest row. Distances are those of the search:
        of scaled rows; with angles, lengths of chords.

    Raises
    ------
    ResourceError
        Where so many pairs are within ``duplicate`` that it means nothing.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> x[7], x[8] = x[3], 9.0
    >>> found = nnkgraph.audit(x, x[:, 0] > 0, k=10)
    >>> found.near.row, found.near.other, found.outlier_score.argmax()
    (array([7]), array([3]), np.int64(8))
    """
    chosen, running = split(options, AuditCall)
    features = features_of(features)
    if chosen.setdefault("duplicates", "merge") != "merge":
        raise ParameterError("identical rows are findings here: leave duplicates out")
    settings = Settings.of(features, **chosen)
    if settings.kernel.nearness not in DISTANCES:
        raise ParameterError(
            "distances are looked at, but this kernel has similarities only: use "
            "kernel gaussian, laplacian or cosine"
        )
    kernel = registry.spec(settings.kernel).partition(":")[0]
    angles = settings.kernel.nearness == "squared-distance" and (
        kernel == "cosine" or settings.scale == "unit"
    )
    given = parse_threshold(duplicate, angles=angles)
    known = None
    if labels is not None:
        held = labels if isinstance(labels, Labels) else Labels.of(labels)
        rows = len(features.x), features.ids
        known = check_labels(held, *rows, features.name)
    with open_run(features, settings, running) as run:
        if known is None:
            candidates, solved = run.find(), None
        else:
            candidates, _, solved = run.solve()
        limit = threshold_of(*given, candidates, angles=angles)
        near = near_duplicates(run, candidates, limit)
        complete = candidates.exact or candidates.index.shape[1] == 0
        missed = None if complete else missed_pairs(run, candidates)
        odd = score_outliers(candidates, limit.usual)
        voted = None
        if known is not None and solved is not None:
            voted = count_votes(known, candidates, solved, run.rows)
        found = _audited(run, candidates, limit, near, missed, odd, known, voted)
    for message in candidates.warnings:
        warnings.warn(message, QualityWarning, stacklevel=3)
    return found


def _audited(
    run: Run,
    candidates: Candidates,
    limit: Threshold,
    near: Near,
    missed: dict[str, Any] | None,
    odd: Outliers,
    known: Labels | None,
    voted: Votes | None,
) -> Audit:
    """Put everything together."""
    from nnkgraph.tasks.audit.table import columns_of

    features, rows, settings = run.features, run.rows, run.settings
    columns = columns_of(run, candidates, limit, near, odd, known, voted)
    unusual = int((odd.score > odd.limit).sum())
    labels: dict[str, Any] | None = None
    if known is not None and voted is not None:
        labels = {
            "classes": len(known.classes),
            "labeled": int(known.known.sum()),
            "missing": int((~known.known).sum()),
            "suspicious": len(voted.suspicious),
            "suggested_for_missing": len(voted.unlabeled),
            "without_votes": voted.silent,
            "prior": [PRIOR, ALONE],
        }
    score = odd.score
    if rows.origin is not None and rows.first is not None:
        score = score[np.searchsorted(rows.origin, rows.first)]
    facts = {
        "schema": 1,
        "name": features.name,
        "rows": len(features.x),
        "distinct": len(rows.x),
        "ids": features.ids is not None,
        "findings": len(near.row) + unusual + (labels["suspicious"] if labels else 0),
        "k": int(candidates.index.shape[1]),
        "kernel": registry.spec(settings.kernel),
        "scale": settings.scale,
        "seed": settings.seed,
        "search": {**search_facts(candidates), "exact": candidates.exact},
        "near_duplicates": {
            "pairs": len(near.row),
            "identical": near.identical,
            "groups": near.groups,
            "rows_to_drop": near.spare,
            "threshold": limit.distance,
            "cosine": limit.cosine,
            "threshold_is": limit.why,
            "complete": missed is None,
            "missed": missed,
        },
        "outliers": {
            "rows": unusual,
            "limit": odd.limit if np.isfinite(odd.limit) else None,
        },
        "labels": labels,
        "warnings": [*run.warnings, *candidates.warnings],
    }
    notes = [*candidates.notes]
    return Audit(near, score, odd, voted, columns, facts, notes)
