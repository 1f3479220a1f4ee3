"""What the figures of a diagnosis mean, in words: one line per finding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from nnkgraph.build.report import CERTIFICATE_LIMIT
from nnkgraph.data.pairs import GEOMETRIC
from nnkgraph.runtime import registry
from nnkgraph.tasks.columns import Finding, bars_of, column_findings, share
from nnkgraph.tasks.doctor import _figures
from nnkgraph.tasks.doctor._figures import ENOUGH, SATURATED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.tasks.doctor._searched import SearchedRows


LOCAL = 4.0  # q95 / q05 of the k-th distances from which on sigma is local
_BOTH_WAYS: tuple[dict[str, Any], str] = (
    {"symmetrize": "mean"},
    "communities of embeddings come out better where edges may be one-sided",
)
_WAYS: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "the default rule leaves no node isolated"),
    ({"min_degree": 3}, "the default rule isolates nodes, `min_degree=3` none"),
    (
        {"symmetrize": "error-union", "min_degree": 3},
        "only a rule that keeps one-sided edges leaves no node isolated",
    ),
    ({"method": "knn"}, "NNK leaves nodes isolated under every rule, kNN does not"),
)
"""What is tried in turn, and the reason where it is taken."""


@dataclass(frozen=True)
class Suggestion:
    """Options for ``build_graph`` that were tried out."""

    settings: dict[str, Any]  # what differs from the options that were given
    reasons: list[str]  # why, one line each
    facts: dict[str, Any]  # what ``report.facts`` says about the graph


def better_options(
    searched: SearchedRows, scale: str, figures: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return a kernel and a scaling that should be tried, and why; or nothing."""
    name = registry.spec(searched.settings.kernel).partition(":")[0]
    free = {"kernel": name if searched.has_sigma else "gaussian", "sigma": None}
    better: dict[str, Any] = {}
    reasons = []
    if _alike(figures):
        better = free
        what = "this sigma" if searched.has_sigma else f"kernel {name}"
        told = "makes all similarities alike, a bandwidth from the data does not"
        reasons = [f"{what} {told}"]
        if _by_angle(figures):
            return {**better, "scale": "unit"}, reasons
    how, why = _better_scale(searched, scale, figures["columns"])
    if not how:
        return better, reasons
    if isinstance(getattr(searched.settings.kernel, "sigma", None), float):
        better = free  # a number in the unit of rows as they were
    return {**better, "scale": how}, [*reasons, why]


def _alike(figures: dict[str, Any]) -> bool:
    return bool(figures["similarities"] and figures["similarities"]["alike"])


def _by_angle(figures: dict[str, Any]) -> bool:
    """Return whether unit length and a bandwidth can take the place of the kernel."""
    scale, apart = figures["scale"], _is_apart(figures["columns"])
    free = scale == "unit" or (scale == "none" and not apart)
    return free and figures["kernel"] == "cosine" and figures["pca"] is None


def _is_apart(columns: dict[str, Any]) -> bool:
    """Return whether columns drown others that should count."""
    return bool(columns["scale_apart"] and not columns["principal"])


def _better_scale(
    searched: SearchedRows, scale: str, columns: dict[str, Any]
) -> tuple[str, str]:
    """Return a scaling that should be tried and the reason, or nothing."""
    nearness = searched.settings.kernel.nearness
    if scale != "none" or not columns:
        return "", ""
    if nearness in GEOMETRIC and _is_apart(columns):
        return "standard", (
            f"{len(columns['narrow'])} of {columns['columns']} columns hardly count "
            "beside wider ones without scaling"
        )
    if columns["zero_rows"] or searched.settings.pca is not None:
        return "", ""
    if columns["embeddings"] and nearness == "squared-distance" and searched.has_sigma:
        why = "rows look like embeddings, which are usually compared by angle"
        if columns["embeddings"]["one_length"]:
            why += "; these have one length already, rows that come later may not"
        return "unit", why
    products = nearness == "inner-product"
    alone = searched.facts(min_degree=0)["isolated"] if products else 0
    if alone > 0.01 * len(searched.rows.x):
        return "unit", "inner products favor long rows, which become hubs"
    return "", ""


def suggest(
    searched: SearchedRows, *, free_sigma: bool, columns: dict[str, Any]
) -> Suggestion | None:
    """Try options in turn and return the first without isolated nodes, if any.

    A free sigma was left to a rule: a better one may be taken.
    """
    ways = _WAYS
    if columns and columns["embeddings"] and searched.has_sigma:
        ways = (_BOTH_WAYS, *_WAYS)
    for base, first in _bases(searched, free_sigma=free_sigma):
        for way, reason in ways:
            settings = {**way, **base}
            options = {k: v for k, v in settings.items() if k != "kernel"}
            facts = searched.facts(**options)
            bad = searched.failed(settings.get("method", "nnk"), settings.get("sigma"))
            if not facts["isolated"] and not bad:
                reasons = [text for text in (first, reason) if text]
                return Suggestion(settings, reasons, facts)
    return None


def _bases(
    searched: SearchedRows, *, free_sigma: bool
) -> list[tuple[dict[str, Any], str]]:
    """Return the bandwidths to try, and why; a local one in the end."""
    if not searched.has_sigma or searched.is_local:
        return [({}, "")]
    name = registry.spec(searched.settings.kernel).partition(":")[0]
    local = {"kernel": name, "sigma": "local"}  # the kernel without its own sigma
    distances = _figures.distance_facts(searched) if free_sigma else None
    if distances and _is_wide(distances["kth_spread"]):
        spread = distances["kth_spread"]
        apart = "without bound" if spread is None else f"by a factor of {spread:.1f}"
        why = f"the distance to the last candidate varies {apart}: one bandwidth does"
        return [(local, f"{why} not fit all nodes")]
    return [({}, ""), (local, "with one bandwidth for all, nodes stay isolated")]


def _is_wide(spread: float | None) -> bool:
    """Return whether one bandwidth does not fit all distances; None is no bound."""
    return spread is None or spread >= LOCAL


_FAR = 0.1  # above this growing candidates would not come to an end soon


def outside_findings(figures: dict[str, Any]) -> Iterator[Finding]:
    """Say for how many nodes nothing outside the candidates matters."""
    say = partial(Finding, "was k enough?")
    outside, n = figures["outside"], _seen(figures)
    above = outside["nodes_above"]
    proven = "proven" if figures["search"]["exact"] else "likely (search approximate)"
    yield say(
        f"{proven} for {share(n - above, n)} nodes: nothing outside their candidates "
        f"has a similarity above {ENOUGH:g}"
    )
    if above:
        more = f"`grow={ENOUGH:g}` looks further for them"
        if figures["local"]:
            more = "a bandwidth of each node's own leaves it there"
        elif outside["median"] > _FAR:
            more = "with so wide a `sigma` only far more candidates could tell"
        yield say(
            f"open for {above}, up to {outside['max']:.3g} (median of all "
            f"{outside['median']:.3g}): {more}"
        )
    last = 100 * outside["last_kept_share"]
    yield say(f"{last:.1f} % of the nodes keep their last candidate")


def distance_findings(figures: dict[str, Any]) -> Iterator[Finding]:
    """Say how the bandwidth fits the distances, and those each other."""
    found = figures["distances"]
    kth, sigma = found["kth"], found["sigma"]
    say = partial(Finding, "distances" if sigma is None else "bandwidth and distances")
    nearest, last = found["nearest_median"], kth["median"]
    beside = f"nearest {nearest:.4g}, last {last:.4g} (medians)"
    if sigma is not None:
        mean = "mean sigma" if figures["local"] else "sigma"
        beside = f"{mean} {sigma:.6g} beside the distances of candidates: {beside}"
    yield say(beside)
    spread = found["kth_spread"]
    factor = "" if spread is None else f", a factor of {spread:.2f}"
    every = "all of the sample" if figures["sample"] else "all"
    yield say(
        f"last candidate: {kth['q05']:.4g} to {kth['q95']:.4g} for 90 % of the nodes"
        f"{factor}; {kth['min']:.4g} to {kth['max']:.4g} for {every}"
    )
    if sigma is not None and not figures["local"] and _is_wide(spread):
        yield say("that is wide: try `sigma='local'`", advice=True)
    for warning in [] if _alike(figures) else found["warnings"]:
        yield say(warning, advice=True)


def similarity_findings(figures: dict[str, Any]) -> Iterator[Finding]:
    """Say whether candidates are more similar than rows picked at random."""
    say = partial(Finding, "similarities")
    near, random = (
        f"{figures['similarities'][which]['q05']:.3f} to "
        f"{figures['similarities'][which]['q95']:.3f}"
        for which in ("candidates", "random")
    )
    yield say(f"candidates {near}, rows picked at random {random} (90 % of each)")
    if not _alike(figures):
        return
    way = "`kernel='gaussian'`, which has a bandwidth"
    if figures["distances"]["sigma"] is not None:
        way = "a narrower `sigma`, or leave it out to have it chosen"
    elif _by_angle(figures):
        way = "`scale='unit'` with `kernel='gaussian'`: by angle, with a bandwidth"
    yield say(
        "all alike: even rows picked at random are similar, and NNK may drop "
        f"candidates that matter; try {way}",
        advice=True,
    )


_HUB = 10.0  # times k: nodes that are chosen more often count as hubs
# From these on, approximate searches miss neighbors, or take long not to.
_HARD_DIMENSION, _HARD_SKEWNESS = 15.0, 5.0


def findings(figures: dict[str, Any], changed: dict[str, Any]) -> list[Finding]:
    """Put all figures into words, section by section.

    They are of the rows as they were given: where the suggestion has `changed` how
    they are compared, what depends on it says so.
    """
    found = [*_search(figures), *_support(figures["support"], figures["certificate"])]
    graphs = [
        *_overlap(figures),
        *_graphs(figures["graphs"], figures["input"]["shape"][0], changed),
    ]
    more = [*_hubs(figures)]
    if figures["similarities"]:
        found += similarity_findings(figures)
    if figures["outside"]:
        more += outside_findings(figures)
    if figures["distances"]:
        more += distance_findings(figures)
    if sample := figures["sample"]:
        found = [*_sample(sample), *_estimated(found, sample["rows"])]
        graphs = _estimated(graphs, sample["nodes"])
        more = _estimated(more, sample["rows"])
    data = _data(figures, changed.get("scale", figures["scale"]))
    return [*data, *column_findings(figures), *found, *graphs, *more]


def _estimated(found: list[Finding], rows: int) -> list[Finding]:
    of = f"(estimated from {rows} rows)"
    return [replace(one, section=f"{one.section} {of}") for one in found]


def _seen(figures: dict[str, Any]) -> int:
    """Return how many rows were looked at."""
    sample = figures["sample"]
    return int(sample["rows"] if sample else figures["rows"]["distinct"])


def _sample(sample: dict[str, Any]) -> Iterator[Finding]:
    say = partial(Finding, "sample")
    yield say(
        f"{sample['rows']} rows, drawn by the seed, with their exact candidates among "
        f"all rows; for {sample['nodes']} of them the candidates of candidates, too, "
        f"which tell edges ({sample['searched']} rows searched in all)"
    )
    yield say("components need all rows: they are not counted")


def _data(figures: dict[str, Any], better: str) -> Iterator[Finding]:
    n, d = figures["input"]["shape"]
    rows = figures["rows"]
    columns = "1 column" if d == 1 else f"{d} columns"
    say = partial(Finding, "data")
    yield say(f"{n} rows x {columns}, {figures['input']['dtype']}")
    if rows["copies"]:
        yield say(
            f"{share(rows['copies'], n)} rows repeat an earlier one (at most "
            f"{rows['largest_group']} alike): `duplicates='merge'`, the default, "
            f"hangs each on the first of its kind; {rows['distinct']} are searched"
        )
    else:
        yield say("no identical rows")
    if "near_duplicates" in rows:
        yield say(_near(figures) + _other_scale(figures["scale"], better))
    if embeddings := figures["columns"].get("embeddings"):
        yield _embeddings(embeddings, figures)
    for text in [*figures["replaced"], *figures["warnings"]]:
        yield say(text, advice=True)


def _other_scale(scale: str, better: str) -> str:
    """Say that rows which are near in one scale need not be so in a better one."""
    if scale == better:
        return ""
    how = "without scaling" if scale == "none" else f"with `scale={scale!r}`"
    return f"; that is {how}: look again with `scale={better!r}`, as suggested below"


def _near(figures: dict[str, Any]) -> str:
    """Say how many rows have another that is nearly the same."""
    rows, seen = figures["rows"], _seen(figures)
    near, cosine = rows["near_duplicates"], rows.get("near_cosine")
    what = f"another row with a cosine above {cosine}"
    if cosine is None:
        what = (
            f"another row closer than {rows['near_distance']:.3g}, "
            f"{100 * rows['near_share']:.2g} % of the median distance to the last "
            "candidate"
        )
    of = " in the sample" if figures["sample"] else ""
    if not near:
        return f"no near-duplicates{of}: no row has {what}"
    if near > seen / 2:
        small = "angles" if cosine else "distances"
        usual = f"{small} are small throughout, which need not mean copies"
        return f"{share(near, seen)} rows{of} have {what}: {usual}"
    return f"{share(near, seen)} rows{of} are near-duplicates: they have {what}"


def _embeddings(lengths: dict[str, Any], figures: dict[str, Any]) -> Finding:
    """Say why rows look like embeddings, and how those are compared."""
    low, high = lengths["length_q05"], lengths["length_q95"]
    why = f"{figures['columns']['columns']} dense columns, "
    if lengths["one_length"]:
        return Finding("data", f"rows look like embeddings: {why}all of one length")
    text = f"rows look like embeddings: {why}both signs, none much wider than others"
    free = figures["scale"] == "none" and figures["kernel"].startswith("gaussian")
    if not free or figures["columns"]["zero_rows"]:
        return Finding("data", text)
    return Finding(
        "data",
        f"{text}; their lengths differ ({low:.3g} to {high:.3g} for 90 %): "
        "`scale='unit'` compares them by angle, as is usual",
        advice=True,
    )


def _search(figures: dict[str, Any]) -> Iterator[Finding]:
    search, k = figures["search"], figures["support"]["k"]
    recall = search["recall"]
    if search["exact"]:
        quality = "these are the best by definition"
    elif recall is None:
        quality = "nobody knows whether these are the best"
    else:
        quality = f"recall {recall:.4f} (estimated)"
    found = f"{k} candidates a node, search {search['backend']}"
    yield Finding("search", f"{found}: {quality}")
    if figures["sample"] or not search["exact"]:
        yield from _hardness(search, figures["hubs"]["skewness"])


def _hardness(search: dict[str, Any], skewness: float | None) -> Iterator[Finding]:
    """Say how hard the data is for approximate search, and what recall costs."""
    dimension, crowd = search["dimension"], skewness or 0.0
    hard = (dimension or 0.0) > _HARD_DIMENSION or crowd > _HARD_SKEWNESS
    around = f"about {dimension:.0f} dimensions around a row " if dimension else ""
    around += f"(hard from {_HARD_DIMENSION:.0f} on), " if dimension else ""
    yield Finding(
        "search",
        f"{'hard' if hard else 'easy'} for approximate search: {around}hubs with "
        f"skewness {crowd:.1f} (hard from {_HARD_SKEWNESS:.0f} on)",
    )
    takes = f"`search='auto'` takes {search['auto']} ({search['auto_why']})"
    if hard and search["auto"] not in {"exact", "kdtree"}:
        takes += "; look at the recall it reports: `search='exact'` misses nothing"
    yield Finding("search", takes)


def _support(support: dict[str, Any], certificate: dict[str, Any]) -> Iterator[Finding]:
    say = partial(Finding, "support: what NNK keeps of its candidates")
    k, kept = support["k"], support["kept_over_k"]
    yield say(
        f"{support['mean']:.1f} of {k} candidates a node (kept/k {kept:.2f}), "
        f"{support['min']} to {support['max']}",
        bars=bars_of(support["histogram"]),
    )
    if support["saturated"]:
        yield say(
            f"saturated (kept/k above {SATURATED:g}): NNK prunes little here, and "
            "mutual kNN is nearly the same graph",
            advice=True,
        )
    else:
        yield say(f"not saturated: kept/k is at most {SATURATED:g}")
    failed = certificate["nodes_failed"]
    text = f"every solution is proven ({certificate['kkt_max']:.1e} at the worst)"
    if failed:
        text = f"{failed} solutions miss the certificate of {CERTIFICATE_LIMIT:g}: "
        text += "build would fail; try another `sigma`"
    yield say(text, advice=failed > 0)


def _overlap(figures: dict[str, Any]) -> Iterator[Finding]:
    say = partial(Finding, "does NNK matter here?")
    common = figures["overlap"]["jaccard"]
    gone = 1 - figures["overlap"]["covered"]
    nnk, *_, mutual, _ = (line["edges_per_node"] for line in figures["graphs"])
    yield say(
        f"edges per node: NNK {nnk:.2f}, mutual kNN {mutual:.2f}; overlap of the two "
        f"(Jaccard) {common:.2f}"
    )
    verdict = "hardly: the two graphs are nearly the same"
    if common < SATURATED:
        much = "" if common >= 0.5 else ", much"
        verdict = f"yes{much}: NNK drops {100 * gone:.0f} % of the edges of mutual kNN"
    yield say(verdict)


def _graphs(
    lines: list[dict[str, Any]], n: int, changed: dict[str, Any]
) -> Iterator[Finding]:
    say = partial(Finding, "graphs: what build would give")
    if {"scale", "kernel", "sigma"} & {*changed}:
        yield say("with the options as given; the suggested line has others")
    yield say(
        f"{'method, rule':<24}{'edges/node':>12}{'components':>12}{'isolated':>12}"
    )
    for line in lines:
        extra = f" `min_degree={line['min_degree']}`" if line["min_degree"] else ""
        name = f"{line['method']} {line['symmetrize']}{extra}"
        components, isolated = line["components"], str(line["isolated"])
        if components is None:
            components, isolated = "-", f"{100 * line['isolated'] / n:.1f} %"
        yield say(
            f"{name:<24}{line['edges_per_node']:12.2f}{components:>12}{isolated:>12}",
            advice=line["isolated"] > 0.01 * n,
        )


def _hubs(figures: dict[str, Any]) -> Iterator[Finding]:
    say = partial(Finding, "hubs: how often nodes are candidates of others")
    hubs = figures["hubs"]
    name, row, times = hubs["largest_id"], hubs["largest_row"], hubs["largest_over_k"]
    node = f"row {row}" if name is None else f"{name!r} (row {row})"
    about = "about " if figures["sample"] else ""
    text = f"{node} most often: {about}{hubs['largest']} times ({times:.1f} k)"
    text += ": a hub, few of its edges are mutual" * (times > _HUB)
    yield say(text, bars=bars_of(hubs["histogram"]))
    if figures["sample"]:
        yield say(
            "who is nobody's candidate, only all rows tell: not more than knn mutual "
            "isolates"
        )
        return
    if not hubs["unchosen"]:
        yield say("every node is a candidate of some other")
        return
    yield say(
        f"{share(hubs['unchosen'], figures['rows']['distinct'])} nodes are nobody's "
        "candidate: rules that want both sides isolate them, `min_degree=3` does not",
        advice=hubs["unchosen_share"] > 0.01,
    )
