"""What every plug-in has to keep, as checks for those who write one.

Each check takes a class, an object or a name of a plug-in, tries it on small data, and
raises ``AssertionError`` with a sentence that says what is wrong::

    from nnkgraph import testing

    def test_my_kernel():
        testing.check_kernel(MyKernel)

nnkgraph's own plug-ins pass the same checks.
"""

from __future__ import annotations

import inspect
import pickle
import tempfile
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from nnkgraph import data, formats
from nnkgraph.build.symmetrize import RULES
from nnkgraph.data import Candidates, Graph, SparseRows
from nnkgraph.data.pairs import BASES, MATRICES, cross_values
from nnkgraph.data.similarity import FORMS
from nnkgraph.errors import NnkGraphError, ParameterError
from nnkgraph.kernels import Kernel, Problem
from nnkgraph.runtime import blocks, registry
from nnkgraph.runtime.files import Source
from nnkgraph.search import Search, Wanted, distance_of, ranked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from nnkgraph.data import FloatArray, IndexArray, Neighborhoods
    from nnkgraph.methods import Method
    from nnkgraph.runtime.executors import Executor, Shared

__all__ = [
    "check_executor",
    "check_format",
    "check_kernel",
    "check_method",
    "check_search",
]

_K = 6
_PROVEN = 1e-9  # the largest certificate that a node may have


def check_method(plugin: Any, *, kernel: Any = "gaussian") -> None:
    """Check a method.

    Parameters
    ----------
    plugin : class, object or str
        The method; a class is made with its defaults.
    kernel : class, object or str
        A kernel that it works with, without open similarities of its own.
    """
    method: Method = _plugin("methods", plugin)
    similarity: Kernel = _plugin("kernels", kernel)
    for name in ("local", "has_error", "has_certificate", "dense", "uses_kernel"):
        _demand(isinstance(getattr(method, name), bool), f"{name} is not True or False")
    _demand(method.rule in RULES, f"rule {method.rule!r} is none of {', '.join(RULES)}")
    needs_error = method.rule.startswith("error") and not method.has_error
    _demand(not needs_error, f"rule {method.rule!r} needs J, but has_error is False")
    _demand(method.width(_K) >= _K, "width(k) is below k")
    try:
        method.check(similarity)
    except ParameterError as error:
        raise AssertionError(f"it refuses the kernel to try: {error}") from error
    x = _rows(60)
    problem, found = _weighed(method, similarity, x)
    _check_neighborhoods(method, problem, found)
    same = _equal(found, method.weigh(problem), "weights", "errors", "certificate")
    _demand(same, "the same problem has other weights the second time")
    order = np.random.default_rng(2).permutation(len(x))
    other = _dense(*_weighed(method, similarity, x[order]))
    expected = _dense(problem, found)[np.ix_(order, order)]
    close = np.abs(other - expected).max() <= 1e-6 * max(1.0, expected.max())
    _demand(close, "weights depend on the order of the rows")
    if method.local:
        _check_blocks(method, problem, found)
    for rows in (x.astype(np.float32), x[:2], x[:3]):
        _check_neighborhoods(method, *_weighed(method, similarity, rows))


def _weighed(method: Method, kernel: Kernel, x: Any) -> tuple[Problem, Neighborhoods]:
    """Return the problem of all rows as a build sees it, and what a method finds."""
    k = min(_K, len(x) - 1)
    rows = kernel.prepare(x, "x")
    with registry.create("executors", "serial").open(1) as pool:
        width = min(method.width(k), len(x) - 1)
        wanted = Wanted(rows, width, kernel.nearness, pool, similarity=_asked(kernel))
        found: Candidates = registry.create("search", "exact").find(wanted)
        fitted = kernel.fit(found)
        found = method.gather(wanted, found, fitted)
    _demand(isinstance(found, Candidates), "gather returns no Candidates")
    before = _copied(found)
    problem = _problem(rows, found, fitted, k)
    weighed = method.weigh(problem)
    kept = _equal(before, found, "index", "distance")
    _demand(kept, "weigh changes the candidates that it is given")
    texts = all(isinstance(one, str) for one in method.remarks(found, weighed))
    _demand(texts, "remarks returns something else than texts")
    return problem, weighed


def _check_neighborhoods(
    method: Method, problem: Problem, found: Neighborhoods
) -> None:
    weights, shape = found.weights, problem.index.shape
    _check_numbers("weights", weights, shape)
    _demand(weights.dtype == np.float64, f"weights are {weights.dtype}, not float64")
    _demand(not weights[~problem.present].any(), "a missing candidate has a weight")
    for name, flag in (("errors", "has_error"), ("certificate", "has_certificate")):
        values, there = getattr(found, name), getattr(method, flag)
        said = f"{flag} is {there}, but {name} says other"
        _demand((values is not None) == there, said)
        if values is not None:
            _check_numbers(name, values, shape[:1])
    if found.errors is not None:
        gap = np.abs(found.errors - _objective(problem, weights))
        formula = "K_qq / 2 - theta . b + theta' K theta / 2"
        right = (gap <= 1e-9 * problem.own()).all()
        _demand(right, f"errors is not J at the weights: {formula}")
    if found.certificate is not None:
        largest = float(found.certificate.max(initial=0.0))
        _demand(
            largest <= _PROVEN,
            f"a node's certificate is {largest:.1e}, above {_PROVEN:g}: it is not "
            "solved, or the certificate is no relative violation",
        )


def _check_numbers(name: str, values: Any, shape: tuple[int, ...]) -> None:
    _demand(values.shape == shape, f"{name} have shape {values.shape}, not {shape}")
    _demand(np.isfinite(values).all(), f"{name} has what is not finite")
    _demand((values >= 0).all(), f"{name} has a negative number")


def _check_blocks(method: Method, problem: Problem, found: Neighborhoods) -> None:
    """Blocks are independent, new points are weighed alike, candidates may lack."""
    for size in (1, 7):
        parts = [
            method.weigh(_part(problem, slice(start, start + size)))
            for start in range(0, len(problem.index), size)
        ]
        for name in ("weights", "errors", "certificate"):
            whole = getattr(found, name)
            if whole is not None:
                together = np.concatenate([getattr(one, name) for one in parts])
                _demand(
                    np.array_equal(together, whole),
                    f"{name} depends on which rows are weighed together: local has to "
                    "be False, or sums need a fixed order",
                )
    if problem.kernel.base not in MATRICES:
        fresh = method.weigh(replace(problem, rows=None))
        alike = _equal(fresh, found, "weights")
        _demand(alike, "rows that come as new points have other weights")
    index, distance = problem.index.copy(), problem.distance.copy()
    index[::3, 2:], distance[::3, 2:] = -1, np.inf
    index[::5], distance[::5] = -1, np.inf
    lacking = replace(problem, index=index, distance=distance)
    _check_neighborhoods(method, lacking, method.weigh(lacking))


def _objective(problem: Problem, weights: FloatArray) -> FloatArray:
    """Return J of every node by its definition."""
    local = problem.local()
    gram = _unpacked(local.gram, weights.shape[1])
    quadratic = np.einsum("qi,qij,qj->q", weights, gram, weights)
    explained = np.einsum("qi,qi->q", problem.cross(), weights)
    value: FloatArray = 0.5 * (problem.own() + quadratic) - explained
    return value


def check_kernel(plugin: Any, *, x: ArrayLike | None = None) -> None:
    """Check a kernel.

    Parameters
    ----------
    plugin : class, object or str
        The kernel; a class is made with its defaults.
    x : (n, d) array, optional
        Rows to try it on, where it does not suit all numbers.
    """
    kernel: Kernel = _plugin("kernels", plugin)
    searched = (*BASES, "similarity")
    _demand(kernel.nearness in searched, f"nearness is none of {', '.join(searched)}")
    _demand(float(kernel.ridge) >= 0, "ridge is negative")
    if kernel.form:
        _demand(kernel.form in FORMS, f"form is none of {', '.join(FORMS)}")
        _demand(kernel.base in BASES, f"base is none of {', '.join(BASES)}")
    else:
        _demand(hasattr(kernel, "local"), "it has neither a form nor a method local")
    if kernel.nearness == "similarity":
        _demand(callable(kernel), "nearness is similarity, but it cannot be called")
    rows = _rows(60) if x is None else np.array(x)
    if x is None and kernel.base in MATRICES:
        rows = np.square(rows[:, np.newaxis] - rows).sum(-1)
        rows = np.exp(-rows / 8) if kernel.base == "gram" else np.sqrt(rows)
    if x is None and kernel.base == "jaccard-distance":
        rows = np.maximum(rows, 0.0)
    before = rows.copy()
    prepared = kernel.prepare(rows, "x")
    _demand(np.array_equal(rows, before), "prepare changes the rows that it is given")
    _demand(len(prepared) == len(rows), "prepare returns another number of rows")
    if kernel.base not in MATRICES:
        fresh = _filled(kernel.prepare(rows[:5], "x"))
        alike = np.array_equal(fresh, _filled(prepared[:5]))
        _demand(
            alike, "prepare does not treat every row alone: new points would differ"
        )
    _check_similarities(kernel, prepared)


def _filled(rows: Any) -> FloatArray:
    """Return rows with their zeros."""
    dense: FloatArray = rows.dense() if isinstance(rows, SparseRows) else rows
    return dense


def _check_similarities(kernel: Kernel, rows: Any) -> None:
    exact = registry.create("search", "exact")
    found = _found(exact, rows, kernel.nearness, similarity=_asked(kernel))
    problem = _problem(rows, found, _fitted(kernel, found))
    local, cross, own = problem.local(), problem.cross(), problem.own()
    b, m = problem.index.shape
    _demand(local.gram.shape == (b, m * (m + 1) // 2), "gram is no packed triangles")
    shaped = cross.shape == (b, m) and own.shape == (b,)
    _demand(shaped, "cross or own has no such shape")
    border = np.empty((b, m + 1, m + 1))
    border[:, 1:, 1:] = _unpacked(local.gram, m)
    border[:, 0, 1:] = border[:, 1:, 0] = cross
    border[:, 0, 0] = own
    _demand(np.isfinite(border).all(), "a similarity is not finite")
    size = np.abs(border).max(axis=(1, 2))
    _demand((size > 0).all(), "all similarities of a node are zero")
    least = np.linalg.eigvalsh(border).min(axis=1) / size
    _demand(
        (least >= -1e-8).all(),
        "similarities are not positive definite: the least eigenvalue of a node and "
        f"its candidates is {least.min():.1e} of the largest entry",
    )
    _demand(
        (np.diff(cross, axis=1) <= 1e-9 * size[:, np.newaxis]).all(),
        f"candidates by {kernel.nearness} are not the most similar rows, best first",
    )
    for some in (slice(0, 1), slice(3, 10)):
        part = _part(problem, some).local()
        whole = replace(local, gram=local.gram[some], cross=local.cross[some])
        alike = _equal(part, whole, "gram", "cross")
        _demand(alike, "similarities depend on which nodes are looked at together")


def _fitted(kernel: Kernel, found: Candidates) -> Kernel:
    """Fit a kernel to candidates, and check what fitting promises."""
    fitted = kernel.fit(found)
    _demand(type(fitted) is type(kernel), "fit returns something else than the kernel")
    _demand(fitted.fit(found) == fitted, "fitting it a second time changes it")
    _demand(not fitted.needs_all_rows, "needs_all_rows is still True once it is fitted")
    _check_spec(fitted)
    few = replace(found, index=found.index[:9], distance=found.distance[:9])
    _demand(
        kernel.needs_all_rows or kernel.fit(few) == fitted,
        "fit depends on the rows that it sees, but needs_all_rows is False",
    )
    sigma = fitted.bandwidth(found)
    _demand(sigma is None or 0 < sigma < np.inf, "bandwidth is no positive number")
    if fitted.form:
        shape = fitted.coefficients(found.distance).shape
        _demand(shape == (len(found.index), 2), f"coefficients have shape {shape}")
    return fitted


def check_search(plugin: Any, *, x: ArrayLike | None = None) -> None:
    """Check a search.

    Parameters
    ----------
    plugin : class, object or str
        The search; a class is made with its defaults.
    x : (n, d) array, optional
        Rows to try it on, where it knows only some: 6 candidates of each are asked for.
    """
    search: Search = _plugin("search", plugin)
    # Whole numbers are full of ties, which belong to the lower row number.
    ties = np.random.default_rng(3).integers(0, 3, (150, 4)).astype(np.float64)
    tries = [_rows(150), ties, _rows(150).astype(np.float32), _rows(2), _rows(8)]
    known = 0
    for rows in tries if x is None else [np.ascontiguousarray(x)]:
        for base in ("squared-distance", "l1-distance", "inner-product"):
            try:
                found = _found(search, rows, base)
            except ParameterError:
                continue  # It says which kernels it is not made for.
            known += 1
            _check_candidates(found, rows, base)
            _check_search_again(search, found, rows, base)
    _demand(known > 0, "it refuses distances and inner products alike")


def _found(search: Search, x: Any, base: str, **options: Any) -> Candidates:
    with registry.create("executors", "serial").open(1) as pool:
        return _copied(
            search.find(Wanted(x, min(_K, len(x) - 1), base, pool, **options))
        )


def _copied(found: Candidates) -> Candidates:
    index, distance = np.array(found.index), np.array(found.distance)
    return replace(found, index=index, distance=distance)


def _check_candidates(found: Candidates, x: Any, base: str) -> None:
    index, distance = found.index, found.distance
    n, k = len(x), min(_K, len(x) - 1)
    _demand(index.shape == (n, k), f"index has shape {index.shape}, not {(n, k)}")
    _demand(index.dtype.kind == "i", f"index is {index.dtype}, not signed integers")
    _demand(distance.shape == (n, k), f"distance has shape {distance.shape}")
    _demand(distance.dtype == np.float64, f"distance is {distance.dtype}, not float64")
    rows = ((index >= -1) & (index < n)).all()
    _demand(rows, "a candidate is no row number or -1")
    itself = (index == np.arange(n)[:, np.newaxis]).any()
    _demand(not itself, "a row is its own candidate")
    once = all(len({*row[row >= 0]}) == (row >= 0).sum() for row in index)
    _demand(once, "a row has a candidate twice")
    infinite = np.array_equal(np.isinf(distance), index < 0)
    _demand(infinite, "distances are not infinite exactly where a candidate is missing")
    own, score = ranked(x, x, index, base)
    _demand(
        np.array_equal(own, index),
        "candidates are not best first, ties by row number: nnkgraph.search.ranked "
        "orders them",
    )
    _demand(
        np.array_equal(distance_of(score, base), distance),
        "distances are not those of nnkgraph.search.distance_of to the last digit",
    )
    true = _nearest(x, base)[:, :k]
    hits = (index[:, :, np.newaxis] == true[:, np.newaxis]).any(axis=1)
    if found.exact:
        _demand(
            np.array_equal(index, true),
            f"exact is True, but {hits.mean():.3f} of the nearest rows were found, or "
            "ties were not decided by the lower row number",
        )
    if found.recall is not None:
        # A row that is as near as the last true one is as good.
        last = distance_of(ranked(x, x, true, base)[1], base)[:, -1:]
        share = (distance <= last).mean()
        _demand(
            abs(found.recall - share) <= 0.1,
            f"recall is said to be {found.recall:.2f}, and is {share:.2f}",
        )
    _demand(found.backend, "backend does not say which search it was")


def _check_search_again(search: Search, found: Candidates, x: Any, base: str) -> None:
    told: list[int] = []
    again = _found(search, x, base, block=7, on_rows=told.append)
    _demand(
        np.array_equal(again.index, found.index),
        "the same search finds other candidates the second time, in smaller blocks",
    )
    _demand(sum(told) <= len(x), "on_rows hears of more rows than there are")
    if search.by_rows and len(x) > _K:
        part = _found(search, x, base, span=range(3, len(x) - 1))
        whole = replace(found, index=found.index[3:-1], distance=found.distance[3:-1])
        alike = _equal(part, whole, "index", "distance")
        _demand(alike, "by_rows is True, but a part of the rows has other candidates")


def _nearest(x: Any, base: str) -> IndexArray:
    """Return all other rows of each, best first, by the definition."""
    n = len(x)
    every = np.ascontiguousarray(np.broadcast_to(np.arange(n), (n, n)))
    value = cross_values(x, x, every, base)
    value = -value if base == "inner-product" else value
    np.fill_diagonal(value, np.inf)
    return np.lexsort((every, value), axis=1)[:, : n - 1]


def check_format(plugin: Any, *, features: Any = None) -> None:
    """Check a format: all that it can read and write.

    Parameters
    ----------
    plugin : class, object or str
        The format.
    features : path, optional
        A file with features, needed where it reads such files; ``FILE::ITEM`` too.
    """
    chosen: Any = _plugin("formats", plugin)
    _demand(len(chosen.suffixes) > 0, "it has no suffixes")
    for suffix in chosen.suffixes:
        good = suffix.startswith(".") and suffix == suffix.lower()
        _demand(good, f"suffix {suffix!r} is not lower case after a dot")
    with tempfile.TemporaryDirectory() as folder:
        for suffix in chosen.suffixes:
            path = Path(folder, f"file{suffix}")
            if chosen.can("write_graph"):
                _check_graphs(chosen, path, suffix)
            if chosen.can("write_candidates"):
                _check_neighbors(chosen, path)
            if chosen.can("write_answers"):
                _check_answers(chosen, path)
        if chosen.can("read_features"):
            _demand(features, "it reads features: name a file, features=PATH")
            _check_features(chosen, str(features), Path(folder))


def _check_graphs(chosen: Any, path: Path, suffix: str) -> None:
    for graph in _graphs():
        write = partial(formats.write_graph, path, graph, format=chosen)
        content = _written(path, write)
        if not (chosen.binary or suffix.endswith(".gz")):
            _demand(_is_text(content), "binary is False, but it writes no UTF-8")
        if not chosen.can("read_graph"):
            continue
        _check_same(graph, formats.read_graph(path, format=chosen))
        held = Source(path.name, None, content, len(content), content[:4096])
        aside = {name: getattr(graph, name) for name in chosen.sidecar}
        extras = formats.Extras(**aside)
        piped = chosen.read_graph(replace(held, suffix=suffix), extras, formats.ignore)
        _check_same(graph, piped)
    if chosen.can("read_graph"):
        _check_damaged(path, lambda: formats.read_graph(path, format=chosen))


def _check_same(graph: Graph, found: Graph) -> None:
    _demand(
        found.n_nodes == graph.n_nodes,
        f"{graph.n_nodes} nodes became {found.n_nodes}: isolated nodes have to survive",
    )
    _demand(found.ids == graph.ids, "the ids of the nodes are others when read again")
    _demand(found.directed is graph.directed, "directed is another when read again")
    alike = _equal(found.adjacency, graph.adjacency, "indptr", "indices", "data")
    _demand(
        alike, "edges or weights are others when read again, maybe in the last digit"
    )
    _demand(found.provenance == graph.provenance, "the provenance is lost or changed")
    for name in ("errors", "candidates", "bridges", "distances"):
        lost = f"{name} are lost or changed: write them, or name them in sidecar"
        _demand(_equal(graph, found, name), lost)


def _check_neighbors(chosen: Any, path: Path) -> None:
    index = np.array([[1, 2], [0, -1], [1, 0]], np.int32)
    distance = np.array([[0.1, 1 / 3], [0.1, np.inf], [1 / 3, 2.0]])
    found = Candidates(index, distance)
    write = partial(formats.write_candidates, path, found, provenance={})
    _written(path, partial(write, format=chosen))
    if chosen.can("read_candidates"):
        read, far = formats.read_candidates(path, format=chosen)
        _demand(np.array_equal(read, index), "candidates are others when read")
        same = far is not None and np.array_equal(far, distance)
        _demand(same, "distances of candidates are others when read")


def _check_answers(chosen: Any, path: Path) -> None:
    weights = csr_array(np.array([[0.5, 0.0, 0.25], [0.0, 1.0, 0.0]]))
    answers = data.Answers(weights, np.array([0.1, 0.2]))
    _written(path, partial(formats.write_answers, path, answers, format=chosen))


def _check_features(chosen: Any, spec: str, folder: Path) -> None:
    read = partial(formats.read_features, format=chosen)
    found = read(spec)
    matrix = hasattr(found.x, "matrix") or np.ndim(found.x) == 2
    _demand(matrix, "features are no matrix")
    _demand(read(spec).sha256 == found.sha256, "a second reading gives other features")
    path, item = formats.split_item(spec)
    content = Path(path).read_bytes()
    suffix = max((s for s in chosen.suffixes if path.lower().endswith(s)), key=len)
    held = Source("held", None, content, len(content), content[:4096], item, suffix)
    piped = chosen.read_features(held, formats.TextOptions())
    same = piped.sha256 == found.sha256 and piped.ids == found.ids
    _demand(same, "features that come through a pipe are others than those in a file")
    copy = folder / f"damaged{suffix}"
    copy.write_bytes(content)
    _check_damaged(copy, lambda: read(f"{copy}::{item}" if item else str(copy)))


def _check_damaged(path: Path, read: Callable[[], object]) -> None:
    """Damage a file in many ways: it is read, or refused by an error of ours."""
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for damaged in _damaged(content, rng):
        path.write_bytes(damaged)
        try:
            read()
        except NnkGraphError:
            continue
        except Exception as error:
            raise AssertionError(
                f"a damaged file raises {type(error).__name__} ({error}): raise "
                "nnkgraph.errors.InputError with the name of the file"
            ) from error
    path.write_bytes(content)


def _damaged(content: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    for share in (0.0, 0.1, 0.5, 0.9, 0.99):
        yield content[: int(share * len(content))]
    for _ in range(40):
        changed = bytearray(content)
        for place in rng.integers(0, max(1, len(content)), 3):
            changed[place] = int(rng.integers(0, 256))
        yield bytes(changed)


def _written(path: Path, write: Callable[[], object]) -> bytes:
    """Write a file twice, and return its content."""
    write()
    first = path.read_bytes()
    _demand(len(first) > 0, "it writes an empty file")
    write()
    _demand(path.read_bytes() == first, "equal content is not written as equal bytes")
    return first


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _graphs() -> Iterator[Graph]:
    """Yield graphs with all that one can carry; some nodes have no edges."""
    ends = np.array([(0, 1), (1, 3), (0, 4), (1, 5), (3, 5), (4, 5)]).T
    weights = np.array([5e-324, 0.1, 1e308, 1 / 3, 2.0**-1022, 7.0])
    ids = ("10", "b-é", "c", "d.e", "日本", "x:y", "1")
    for directed, names in product((False, True), (None, ids)):
        a = coo_array((weights, (ends[0], ends[1])), shape=(7, 7)).tocsr()
        a = a if directed else (a + a.T).tocsr()
        a.sort_indices()
        row, column = np.repeat(np.arange(7), np.diff(a.indptr)), a.indices
        yield Graph(
            csr_array(a),
            names,
            directed,
            np.array([0.1, 5e-324, 1 / 3, 0, 1e-9, 0.5, 1]),
            np.array([[1, -1], [0, 2]] * 3 + [[6, 0]], np.int32),
            None if directed else np.array([[0, 1]]),
            {"schema": 1, "sigma": 0.1, "text": "<&\"'> ü", "list": [1, None]},
            distances=(row + column - 1) / 3,
        )
    yield Graph(csr_array((3, 3)))


def check_executor(plugin: Any, *, workers: int = 2) -> None:
    """Check an executor and the pool that it opens.

    Parameters
    ----------
    plugin : class, object or str
        The executor; a class is made with its defaults.
    workers : int
        How many it is asked for.
    """
    executor: Executor = _plugin("executors", plugin)
    for name in ("in_process", "attached"):
        _demand(isinstance(getattr(executor, name), bool), f"{name} is no bool")
    x = np.arange(1000.0)
    with executor.open(workers, block_timeout=120.0) as pool:
        for name in ("workers", "threads", "block_factor"):
            _demand(getattr(pool, name) >= 1, f"a pool's {name} are not at least 1")
        for _ in range(2):
            shared, out = pool.share(x), pool.output((1000,), np.float64)
            _demand(np.array_equal(shared.open(), x), "share changes an array")
            with blocks.without_timeout(pool):
                blocks.run(pool, _doubled, shared, (out,), rows=1000, block=64)
            right = np.array_equal(out.open(), 2 * x)
            _demand(right, "results of blocks are lost, or not where they belong")
            pool.revive()  # what comes now finds workers again
        running = {pool.submit(divmod, number, 3): number for number in range(9)}
        while running:
            done = pool.wait(running)
            _demand(done, "wait returns no call although some are running")
            for future in done:
                right = future.result() == divmod(running.pop(future), 3)
                _demand(right, "a call has the result of another")
        try:
            future = pool.submit(int, "x")
            pool.wait([future])
            future.result()
        except ValueError:
            return
        raise AssertionError("an error in a worker is lost")


def _doubled(x: Shared, start: int, stop: int) -> tuple[FloatArray]:
    return (2 * x.open()[start:stop],)


def _plugin(folder: str, given: Any) -> Any:
    """Return a plug-in of a class, an object or a name, once it keeps what all do."""
    try:
        if isinstance(given, str):
            given = registry.create(folder, given)
        cls = given if isinstance(given, type) else type(given)
        fault = registry.fault_of(folder, cls)
        _demand(not fault, fault)
        plugin = given if given is not cls else cls()
    except (NnkGraphError, TypeError) as error:
        raise AssertionError(str(error)) from error
    about = inspect.cleandoc(cls.__doc__ or "").partition("\n")[0]
    is_made = about.startswith(f"{cls.__name__}(")  # what dataclasses write themselves
    _demand(
        10 < len(about) < 100 and not is_made,
        "the first line of its docstring, which 'nnkgraph list' shows, is not 11 to 99 "
        "characters long",
    )
    try:
        same = pickle.loads(pickle.dumps(plugin)) == plugin  # noqa: S301 - our own
    except Exception as error:
        raise AssertionError(f"it cannot be sent to workers: {error}") from error
    _demand(same, "it is another once it was sent to a worker and back")
    _check_spec(plugin)
    return plugin


def _check_spec(plugin: Any) -> None:
    """Check that a plug-in can be made again from the text that graphs store."""
    cls, text = type(plugin), registry.spec(plugin)
    try:
        again = registry.made(cls, text.partition(":")[2], "it")
    except NnkGraphError as error:
        raise AssertionError(
            f"it cannot be made again from {text!r}, which graphs store: {error}"
        ) from error
    _demand(again == plugin, f"{text!r}, which graphs store, makes another one")


def _demand(kept: Any, otherwise: str) -> None:
    if not kept:
        raise AssertionError(otherwise)


def _rows(n: int) -> FloatArray:
    return np.random.default_rng(1).normal(size=(n, 4))


def _asked(kernel: Kernel) -> Any:
    """Return what a search asks where no base says how similar rows are."""
    return kernel if kernel.nearness == "similarity" else None


def _problem(rows: Any, found: Candidates, kernel: Kernel, k: int = 0) -> Problem:
    every = np.arange(len(rows))
    return Problem(rows, rows, found.index, found.distance, kernel, rows=every, k=k)


def _part(problem: Problem, rows: slice) -> Problem:
    return replace(
        problem,
        queries=problem.queries[rows],
        index=np.ascontiguousarray(problem.index[rows]),
        distance=np.ascontiguousarray(problem.distance[rows]),
        rows=None if problem.rows is None else problem.rows[rows],
    )


def _unpacked(gram: FloatArray, m: int) -> FloatArray:
    """Return packed lower triangles as symmetric matrices."""
    full: FloatArray = np.zeros((len(gram), m, m))
    full[:, *np.tril_indices(m)] = gram
    return full + np.tril(full, -1).transpose(0, 2, 1)


def _dense(problem: Problem, found: Neighborhoods) -> FloatArray:
    n, there = len(problem.index), problem.present
    dense: FloatArray = np.zeros((n, n))
    dense[np.nonzero(there)[0], problem.index[there]] = found.weights[there]
    return dense


def _equal(one: Any, other: Any, *names: str) -> bool:
    """Return whether some arrays, or that there is none, are the same in both."""
    pairs = ((getattr(one, name), getattr(other, name)) for name in names)
    return all(np.array_equal(*pair) for pair in pairs)
