"""Neighbors of cells, in memory, where scanpy looks for them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from nnkgraph import formats
from nnkgraph.build.graph import grown, warn_of_quality, whole
from nnkgraph.build.run import open_run
from nnkgraph.build.settings import GraphCall, settings_of, split
from nnkgraph.data import Candidates, Features
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import within_memory

if TYPE_CHECKING:
    from nnkgraph.build.run import Run
    from nnkgraph.data import Graph
    from nnkgraph.methods import Method

_WIDER = 2
"""Candidates for each neighbor: NNK keeps about half of them."""

_MIN_DEGREE = 5
"""Edges of its own that a cell keeps: clusters of cells gain from more than three."""

_FEW_GENES = 50
"""So many columns scanpy takes as they are, without components."""

_METRICS: dict[str, dict[str, Any]] = {
    "euclidean": {},
    "l2": {},
    "cosine": {"scale": "unit"},
    "manhattan": {"kernel": "laplacian"},
    "cityblock": {"kernel": "laplacian"},
    "l1": {"kernel": "laplacian"},
}
"""What the metrics of scanpy are here, unless somebody says it."""


@within_memory
def neighbors(
    adata: Any,
    n_neighbors: int = 15,
    n_pcs: int | None = None,
    *,
    use_rep: str | None = None,
    metric: str = "euclidean",
    random_state: int = 0,
    key_added: str | None = None,
    copy: bool = False,
    **options: Unpack[GraphCall],
) -> Any:
    """Put the NNK graph of cells where ``scanpy.pp.neighbors`` puts its own.

    ``scanpy.tl.leiden``, ``umap``, ``paga``, ``diffmap``, ``dpt`` and ``ingest`` then
    run as after that.

    Parameters
    ----------
    adata : AnnData
        The cells.
    n_neighbors : int
        How many neighbors ``distances`` has, the cell itself among them. The graph
        chooses from twice as many, unless ``k`` says from how many.
    n_pcs : int, optional
        Use so many principal components; 0 takes ``X``.
    use_rep : str, optional
        What to use: ``"X"``, or a key of ``obsm``. By default ``X_pca``, or ``X`` where
        there are no more than 50 genes.
    metric : {"euclidean", "cosine", "manhattan"}
        What near means. Cosine is the Gaussian kernel of rows of length 1.
    random_state : int
        For searches that draw at random.
    key_added : str, optional
        As for scanpy: a name for the graph beside others.
    copy : bool
        Whether a copy gets the graph and is returned.
    **options
        As for ``build_graph``. Every cell keeps five edges of its own
        (``min_degree``), unless it is said otherwise.

    Returns
    -------
    AnnData or None
        The copy, where one is asked for. ``obsp["connectivities"]`` has the weights of
        the graph; ``obsp["distances"]`` those to the ``n_neighbors`` - 1 nearest other
        cells, nearest first; ``uns["neighbors"]`` the parameters, and under
        ``nnkgraph`` the provenance.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import nnkgraph
    >>> cells = anndata.AnnData(np.random.default_rng(0).normal(size=(100, 8)))
    >>> nnkgraph.neighbors(cells, n_neighbors=10)
    >>> cells.obsp["distances"].nnz, cells.uns["neighbors"]["params"]["metric"]
    (900, 'euclidean')
    """
    if metric not in _METRICS:
        known = ", ".join(_METRICS)
        raise ParameterError(f"unknown metric {metric!r}; choose from {known}")
    if options.get("method") in {"umap", "gauss"}:
        raise ParameterError(
            f"method {options['method']!r} is scanpy's own, which takes neighbors: "
            "scanpy.pp.neighbors(adata, transformer=nnkgraph.sklearn.KNNTransformer())"
        )
    if isinstance(n_neighbors, bool) or n_neighbors < 2:
        raise ParameterError(
            f"n_neighbors is {n_neighbors}; the cell itself is one, so 2 are the fewest"
        )
    features = _representation(adata, use_rep, n_pcs)
    n = len(features.x)
    if n_neighbors > n:
        warnings.warn(
            f"n_neighbors is {n_neighbors}, but there are only {n} cells: "
            f"n_neighbors = {n} is used",
            stacklevel=3,
        )
        n_neighbors = n
    made: dict[str, Any] = {**_METRICS[metric], "seed": random_state, **options}
    if made.get("k") is None:
        made["k"] = min(_WIDER * n_neighbors, n - 1)
    if made.get("min_degree") is None and made.get("preset") is None:
        made["min_degree"] = min(_MIN_DEGREE, made["k"])
    graph, found = _solved(features, made, n_neighbors - 1)
    _put(
        adata := adata.copy() if copy else adata,
        graph,
        found,
        key_added,
        {
            "n_neighbors": n_neighbors,
            "method": graph.provenance["method"],
            "random_state": graph.provenance["seed"],
            **({} if use_rep is None else {"use_rep": use_rep}),
            **({} if n_pcs is None else {"n_pcs": n_pcs}),
        },
    )
    return adata if copy else None


def _representation(adata: Any, use_rep: str | None, n_pcs: int | None) -> Features:
    """Return what scanpy would take."""
    if use_rep is None:
        plain = n_pcs == 0 or adata.n_vars <= _FEW_GENES
        use_rep = "X" if plain else "X_pca"
    if use_rep == "X":
        return Features.of(adata.X, name="adata.X")
    if use_rep not in adata.obsm:
        made = " (scanpy.pp.pca makes it)" if use_rep == "X_pca" else ""
        raise InputError(
            f"adata.obsm has no {use_rep!r}{made}; there are "
            f"{', '.join(adata.obsm.keys()) or 'none'}, and use_rep='X'"
        )
    x, name = adata.obsm[use_rep], f"adata.obsm[{use_rep!r}]"
    if n_pcs is None:
        return Features.of(x, name=name)
    if not 1 <= n_pcs <= x.shape[1]:
        raise InputError(f"{name}: {n_pcs} of {x.shape[1]} columns were asked for")
    return Features.of(np.asarray(x)[:, :n_pcs], name=name)


def _solved(
    features: Features, options: dict[str, Any], count: int
) -> tuple[Graph, Candidates]:
    """Return the graph, and the nearest other rows of every row."""
    chosen, running = split(options, GraphCall)
    settings = settings_of(features, chosen)
    if settings.rule == "none":
        raise ParameterError("scanpy needs an undirected graph: use another rule")
    with open_run(features, settings, running) as run:
        solution, known = grown(run, run.solve())
        found = solution[0]
        if run.rows.origin is not None or found.index.shape[1] < count:
            found = _plainly(run, count)
        # Files of worker processes end with the pool.
        index = np.array(found.index[:, :count])
        distance = np.array(found.distance[:, :count])
        graph = whole(run, solution, **known)
    if index.shape[1] < count or (index < 0).any():
        raise InputError(
            f"{features.name}: search {found.backend!r} does not give every row "
            f"{count} others; use search='exact'"
        )
    warn_of_quality(graph.report)
    return graph, replace(found, index=index, distance=distance)


def _plainly(run: Run, count: int) -> Candidates:
    """Search once more, copies among the neighbors."""
    method: Method = registry.create("methods", "knn")
    settings = replace(run.settings, k=count, duplicates="keep", method=method)
    return replace(run, checkpoint=None).again(settings).find()


def _put(
    adata: Any,
    graph: Graph,
    found: Candidates,
    key_added: str | None,
    params: dict[str, Any],
) -> None:
    """Write a graph and its neighbors."""
    from scipy.sparse import csr_matrix  # what scanpy makes and expects

    metric, distance = graph.provenance["metric"], found.distance
    if metric is None:
        raise ParameterError(
            f"kernel {graph.provenance['kernel']!r} has no distances, and scanpy needs "
            "them"
        )
    if metric == "chord":
        metric, distance = "cosine", distance**2 / 2  # 1 - cos
    n, count = distance.shape
    ends = np.arange(0, n * count + 1, count)
    lengths = csr_matrix((distance.ravel(), found.index.ravel(), ends), (n, n))
    key = "neighbors" if key_added is None else key_added
    before = "" if key_added is None else f"{key_added}_"
    names = {
        f"{what}_key": f"{before}{what}" for what in ("connectivities", "distances")
    }
    adata.obsp[names["distances_key"]] = lengths
    adata.obsp[names["connectivities_key"]] = csr_matrix(graph.adjacency)
    adata.uns[key] = {
        **names,
        "params": {**params, "metric": metric},
        "nnkgraph": formats.provenance_text(graph.provenance),
    }
