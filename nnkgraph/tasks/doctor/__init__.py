"""What features are like, whether NNK matters on them, and how to build from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

from nnkgraph.build import report
from nnkgraph.build.run import open_run
from nnkgraph.build.settings import Settings, SolveCall, features_of, split
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import within_memory
from nnkgraph.tasks.columns import Finding, describe_columns, embedding_facts
from nnkgraph.tasks.doctor import _figures
from nnkgraph.tasks.doctor._findings import (
    Suggestion,
    better_options,
    findings,
    suggest,
)
from nnkgraph.tasks.doctor._searched import MIN_WEIGHT, search

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nnkgraph.data import Features
    from nnkgraph.kernels import Kernel
    from nnkgraph.tasks.doctor._searched import SearchedRows


@dataclass(frozen=True)
class Diagnosis:
    """Figures, what they mean, and what to do."""

    figures: dict[str, Any]  # all numbers; plain JSON values
    findings: list[Finding]  # the same in words
    suggestion: Suggestion | None  # without isolated nodes; None where no graph is
    notes: list[str]  # how candidates were found


@within_memory
def doctor(
    features: Features | ArrayLike, /, **options: Unpack[SolveCall]
) -> Diagnosis:
    """Look at features with the eyes of ``build_graph``, whose parameters these are.

    All rows are searched once and solved; every graph is made of what was found then.
    Only where the features should be scaled are they searched again, to try that out.
    Of more than 20,000 rows a sample, drawn by the seed, has its exact candidates among
    all rows found: figures are then estimates, and some are None.

    Returns
    -------
    Diagnosis
        The graphs it speaks of are those that ``build_graph`` makes of these features.
        ``figures["sample"]`` is None, or how many rows were drawn.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> found = nnkgraph.doctor(x, k=10)
    >>> found.figures["rows"]["distinct"]
    100
    """
    chosen, running = split(options, SolveCall)
    features = features_of(features)
    given: dict[str, Any] = {
        "kernel": "gaussian",
        "sigma": None,
        "scale": "none",
        **chosen,
        "min_weight": MIN_WEIGHT,
    }
    columns = describe_columns(features, given["kernel"])
    if columns:
        raw = given.get("pca") is None
        columns["embeddings"] = embedding_facts(features.x, columns) if raw else None
    given, replaced = _without_direction(given, columns)
    settings = Settings.of(features, **given)
    knn = registry.create("methods", "knn")
    with open_run(features, settings, running, methods=[knn]) as run:
        searched = search(run, _plain(features, given))
        figures = {
            **_all_figures(features, searched, columns),
            "scale": given["scale"],
            "pca": settings.pca,
            "replaced": list(replaced.values()),
        }
        suggestion = _suggested(searched, given, figures)
    changed = suggestion.settings if suggestion else {}
    if suggestion:
        better = {name: given[name] for name in replaced} | suggestion.settings
        reasons = [*replaced.values(), *suggestion.reasons]
        suggestion = replace(suggestion, settings=better, reasons=reasons)
    notes = list(searched.candidates.notes)
    return Diagnosis(figures, findings(figures, changed), suggestion, notes)


def _without_direction(
    given: dict[str, Any], columns: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Look without angles where some rows have none; say so."""
    said: dict[str, str] = {}
    zero = columns.get("zero_rows", 0)
    rows = "1 row is" if zero == 1 else f"{zero} rows are"
    without = f"{rows} all zeros, without a direction, which"
    cosine = given["kernel"].partition(":")[0] == "cosine"
    if zero and cosine and given.get("pca") is None:
        instead = "gaussian instead; remove them to use cosine"
        said["kernel"] = f"{without} kernel cosine refuses: {instead}"
        given = {**given, "kernel": "gaussian"}
    if zero and given["scale"] == "unit":
        instead = "not scaled instead; remove them to use it"
        said["scale"] = f"{without} scale unit refuses: {instead}"
        given = {**given, "scale": "none"}
    return given, said


def _all_figures(
    features: Features, searched: SearchedRows, columns: dict[str, Any]
) -> dict[str, Any]:
    """Count and measure everything."""
    proof = report.certificate(searched.solved(), searched.origin)
    shape = list(features.x.shape)
    found = report.search_facts(searched.candidates)
    return {
        "input": {"name": features.name, "shape": shape, "dtype": features.dtype},
        "ids": features.ids is not None,
        "kernel": registry.spec(searched.settings.kernel),
        "local": searched.is_local,
        "sample": searched.sample,
        "rows": _figures.row_facts(searched),
        "columns": columns,
        "search": {
            **found,
            "exact": searched.candidates.exact,
            **_figures.hardness_facts(searched),
        },
        "support": _figures.support_facts(searched),
        "overlap": _figures.overlap_facts(searched),
        "graphs": _figures.graph_facts(searched),
        "similarities": _figures.similarity_facts(searched),
        "hubs": _figures.hub_facts(searched, features.ids),
        "outside": _figures.outside_facts(searched),
        "distances": _figures.distance_facts(searched),
        "certificate": proof.as_dict() if proof else None,
        "warnings": searched.run.warnings,
    }


def _plain(features: Features, given: dict[str, Any]) -> Kernel:
    """Return the kernel of methods without an error, before it is fitted."""
    return Settings.of(features, **{**given, "method": "knn"}).kernel


def _suggested(
    searched: SearchedRows, given: dict[str, Any], figures: dict[str, Any]
) -> Suggestion | None:
    """Try options out, with another scale or kernel where the features need it."""
    better, reasons = better_options(searched, given["scale"], figures)
    columns = figures["columns"]
    if better:
        changed = {**given, **better}
        features = searched.run.features
        settings = Settings.of(features, **changed)
        again = search(searched.run.again(settings), _plain(features, changed))
        found = suggest(again, free_sigma=_is_free(changed), columns=columns)
        if found:
            better |= found.settings
            return replace(found, settings=better, reasons=[*reasons, *found.reasons])
    return suggest(searched, free_sigma=_is_free(given), columns=columns)


def _is_free(given: dict[str, Any]) -> bool:
    """Return whether sigma was left to a rule."""
    return given["sigma"] in {None, "auto", "kth-mean"} and ":" not in given["kernel"]
