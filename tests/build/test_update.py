"""Graphs whose rows change: the bytes of a rebuild, at the cost of what changed."""

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import random_array

import nnkgraph
from bench.data import manifold
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.formats._base import Target
from nnkgraph.formats.npz import Npz

CHOICES = [
    {},
    {"preset": "paper"},
    {"preset": "paper", "symmetrize": "error-union"},
    {"preset": "paper", "symmetrize": "max", "weights": "kernel"},
    {"preset": "paper", "symmetrize": "none"},
    {"preset": "paper", "min_degree": 3, "connect": "mst"},
    {"preset": "cluster", "digits": 4},
    {"method": "l1", "scale": "standard"},
    {"method": "knn"},
    {"method": "lle", "scale": "minmax"},
    {"method": "omp", "kernel": "laplacian"},
    {"method": "mp", "search": "kdtree"},
    {"method": "kstar", "symmetrize": "mean"},
    {"kernel": "cosine"},
    {"kernel": "linear", "scale": "unit"},
    {"kernel": "polynomial"},
    {"kernel": "lle"},
    {"duplicates": "keep"},
    {"duplicates": "keep", "method": "knn", "symmetrize": "min"},
]


def content(graph):
    stream = io.BytesIO()
    Npz().write_graph(stream, graph, Target("x.npz", ".npz"))
    return stream.getvalue()


def changed(x, new, gone):
    kept = np.delete(x, gone, axis=0)
    return kept if new is None else np.concatenate([kept, new])


@st.composite
def stories(draw):
    """Rows, and a few times rows that come and rows that go; many tie or are copies."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(20, 120)), draw(st.integers(1, 4))
    whole = draw(st.booleans())

    def some(count):
        if whole:  # no row of zeros: some kernels have no use for it
            return rng.integers(0, 5, size=(count, d)) + 1.0
        return rng.normal(size=(count, d))

    x, at = some(n), n
    steps = []
    for _ in range(draw(st.integers(1, 3))):
        gone = rng.choice(at, draw(st.integers(0, at // 5)), replace=False)
        new = some(draw(st.integers(0, 12)))
        again = rng.random(len(new)) < 0.3
        new[again] = x[rng.integers(0, len(x), again.sum())]
        steps.append((new if len(new) else None, gone))
        at += len(new) - len(gone)
    return x, steps, draw(st.integers(1, 8))


@settings(max_examples=40)
@given(stories(), st.sampled_from(CHOICES))
def test_an_update_has_the_bytes_of_a_rebuild(story, options):
    x, steps, k = story
    first = graph = nnkgraph.build_graph(x, k=k, updatable=True, **options)
    for new, gone in steps:
        graph = nnkgraph.update(graph, x, add=new, remove=gone)
        x = changed(x, new, gone)
        rebuilt = nnkgraph.build_graph(x, like=first, updatable=True)
        assert content(graph) == content(rebuilt)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(1).normal(size=(400, 4))


def test_only_what_changes_is_searched_and_solved_again(rows):
    graph = nnkgraph.build_graph(rows[:398], k=5, updatable=True)
    told = nnkgraph.update(graph, rows[:398], add=rows[398:]).report["update"]
    assert (told["added"], told["removed"], told["searched_again"]) == (2, 0, 2)
    # What must be solved again by definition: the rows that have a new one in the list.
    index, _ = nnkgraph.find_candidates(rows, k=5), None
    assert told["solved_again"] == 2 + int((index.index[:398] >= 398).any(axis=1).sum())


def test_the_scaling_keeps_its_numbers(rows):
    graph = nnkgraph.build_graph(rows, scale="standard", updatable=True)
    known = graph.provenance["scaling"]
    assert known["low"] == pytest.approx(rows.mean(axis=0))
    assert known["width"] == pytest.approx(rows.std(axis=0))
    far = nnkgraph.update(graph, rows, add=rows[:50] + 100.0)
    assert far.provenance["scaling"] == known
    together = np.concatenate([rows, rows[:50] + 100.0])
    assert not nnkgraph.verify(together, far).failed


@pytest.mark.parametrize("options", [{}, {"preset": "paper"}, {"method": "knn"}])
def test_verify_passes_on_an_update(rows, options):
    graph = nnkgraph.build_graph(rows[:350], updatable=True, **options)
    graph = nnkgraph.update(graph, rows[:350], add=rows[350:], remove=[0, 7])
    assert not nnkgraph.verify(np.delete(rows, [0, 7], axis=0), graph).failed


def test_a_copy_takes_the_place_of_its_first_row():
    x = np.array([[0.0], [1.0], [3.0], [6.0], [10.0], [0.0], [2.0]])
    graph = nnkgraph.build_graph(x, k=2, updatable=True)
    for gone, more in ([0], None), ([0, 5], [[0.0]]), ([0], [[0.0], [1.0]]):
        new = None if more is None else np.array(more)
        made = nnkgraph.update(graph, x, add=new, remove=gone)
        whole = changed(x, new, gone)
        assert content(made) == content(
            nnkgraph.build_graph(whole, like=graph, updatable=True)
        )


def test_sparse_rows(rows):
    x = random_array((300, 40), density=0.1, rng=3, format="csr")
    for options in {"kernel": "cosine"}, {"kernel": "gaussian"}, {"kernel": "linear"}:
        x.data[:] = np.ceil(4 * x.data)  # ties
        keep = np.flatnonzero(np.diff(x.indptr) > 0)
        some = x[keep]
        old, new = some[:-20], some[-20:]
        graph = nnkgraph.build_graph(old, k=6, updatable=True, **options)
        made = nnkgraph.update(graph, old, add=new, remove=[3, 30])
        left = np.delete(np.arange(some.shape[0]), [3, 30])
        again = nnkgraph.build_graph(some[left], like=graph, updatable=True)
        assert content(made) == content(again)


def test_workers_and_memory_change_no_byte(rows):
    graph = nnkgraph.build_graph(rows[:300], updatable=True)
    one = nnkgraph.update(graph, rows[:300], add=rows[300:], remove=[5])
    for how in {"workers": 2}, {"executor": "threads", "workers": 2}:
        two = nnkgraph.update(graph, rows[:300], add=rows[300:], remove=[5], **how)
        assert content(one) == content(two)


def test_fewer_rows_than_candidates(rows):
    few = rows[:10]
    graph = nnkgraph.build_graph(np.concatenate([few, few]), k=15, updatable=True)
    twice = np.concatenate([few, few])
    made = nnkgraph.update(graph, twice, add=rows[10:20])
    assert made.report["update"]["built_anew"]
    together = np.concatenate([twice, rows[10:20]])
    again = nnkgraph.build_graph(together, like=graph, updatable=True)
    assert content(made) == content(again)
    with pytest.raises(InputError, match="k is 15"):
        nnkgraph.update(graph, twice, remove=range(8))


@pytest.mark.parametrize(
    "options", [{}, {"method": "eps:radius=1.0"}, {"preset": "paper", "grow": 0.01}]
)
def test_a_graph_without_lists_is_built_again(rows, options):
    graph = nnkgraph.build_graph(rows[:300], k=6, **options)
    made = nnkgraph.update(graph, rows[:300], add=rows[300:320], remove=[1])
    told = made.report["update"]
    assert "does not keep" in told["built_anew"]
    assert made.updatable is None
    again = nnkgraph.build_graph(np.delete(rows[:320], 1, axis=0), like=graph)
    assert content(made) == content(again)


def test_drift_is_said(rows):
    graph = nnkgraph.build_graph(rows, preset="paper", updatable=True)
    near = nnkgraph.update(graph, rows, add=rows[:4] + 0.01)
    drift = near.report["update"]["drift"]
    both = np.concatenate([rows, rows[:4] + 0.01])
    fresh = nnkgraph.build_graph(both, preset="paper").provenance["sigma"]
    assert drift["of_all_rows"] == pytest.approx(fresh, rel=1e-12)
    assert drift["sigma"] == graph.provenance["sigma"]
    assert not any("build the graph anew" in one for one in near.report.warnings)
    wide = nnkgraph.update(graph, rows, add=5.0 * rows[:200])
    assert wide.report["update"]["drift"]["share"] > 0.05
    assert any("sigma='auto'" in one for one in wide.report.warnings)
    local = nnkgraph.build_graph(rows, updatable=True)
    assert nnkgraph.update(local, rows, remove=[1]).report["update"]["drift"] is None


REFUSED = [
    ({"method": "aew"}, "looks at all rows"),
    ({"method": "kalofolias"}, "looks at all rows"),
    ({"search": "pynndescent"}, "knows its own rows only"),
]


@pytest.mark.parametrize(("options", "what"), REFUSED)
def test_what_looks_at_all_rows_is_refused(rows, options, what):
    x = rows[:120]
    with pytest.raises(ParameterError, match=what):
        nnkgraph.build_graph(x, k=5, updatable=True, **options)
    graph = nnkgraph.build_graph(x[:, :2], k=3, **options)
    with pytest.raises(InputError, match=what):
        nnkgraph.update(graph, x[:, :2], remove=[0])


def test_given_candidates_and_similarities_are_refused(rows):
    x = rows[:60]
    found = nnkgraph.find_candidates(x, k=5)
    with pytest.raises(ParameterError, match="knows its own rows only"):
        nnkgraph.build_graph(x, k=5, candidates=found, updatable=True)
    given = nnkgraph.build_graph(x, k=5, candidates=found)
    with pytest.raises(InputError, match="candidates were given"):
        nnkgraph.update(given, x, remove=[0])
    gram = np.exp(-((x[:, np.newaxis] - x) ** 2).sum(axis=2))
    graph = nnkgraph.build_graph(gram, k=5, kernel="precomputed")
    with pytest.raises(InputError, match="no features"):
        nnkgraph.update(graph, gram, remove=[0])
    with pytest.raises(ParameterError, match="function"):
        nnkgraph.build_graph(x, k=5, kernel=_similar, updatable=True)
    with pytest.raises(ParameterError, match="grow"):
        nnkgraph.build_graph(x, k=5, preset="paper", grow=0.01, updatable=True)


def _similar(x, y):
    return np.exp(-((x[:, np.newaxis] - y) ** 2).sum(axis=2))


def test_rows_that_do_not_fit_are_refused(rows):
    names = [f"a{i}" for i in range(100)]
    x = nnkgraph.Features.of(rows[:100], ids=names)
    graph = nnkgraph.build_graph(x, k=5, updatable=True)
    other = nnkgraph.Features.of(rows[100:102], ids=["b1", "b2"])
    made = nnkgraph.update(graph, x, add=other, remove=["a3"])
    assert made.ids == (*names[:3], *names[4:], "b1", "b2")
    # A row that goes leaves its name to another.
    again = nnkgraph.Features.of(rows[100:101], ids=["a3"])
    assert nnkgraph.update(graph, x, add=again, remove=["a3"]).ids[-1] == "a3"
    wrong = [
        ({"add": again}, "'a3' is in"),
        ({"add": rows[100:102]}, "names"),
        ({"add": np.ones((2, 5))}, "5 columns"),
        ({"remove": ["zz"]}, "no row 'zz'$"),
        ({"remove": ["a1", "a1"]}, "twice"),
        ({"remove": [100]}, "no row 100$"),
        ({"remove": [-1]}, "no row -1$"),
        ({"remove": names}, "no row would be left"),
    ]
    for change, what in wrong:
        with pytest.raises(InputError, match=what):
            nnkgraph.update(graph, x, **change)
    unnamed = nnkgraph.build_graph(rows[:100], k=5, updatable=True)
    for row, what in (("a1", "no row 'a1', which has no ids"), (100, "no row 100$")):
        with pytest.raises(InputError, match=what):
            nnkgraph.update(unnamed, rows[:100], remove=[row])
    for features in rows[1:101], rows[:99], rows[:100, :3]:
        with pytest.raises(InputError, match="not what the graph was built from"):
            nnkgraph.update(graph, features, remove=[0])


def test_a_graph_of_another_version_is_refused(rows):
    graph = nnkgraph.build_graph(rows, k=5, updatable=True)
    for change in {"nnkgraph": "0.0.1"}, {"schema": 2}:
        old = replace(graph, provenance={**graph.provenance, **change})
        with pytest.raises(InputError, match="was built by"):
            nnkgraph.update(old, rows, remove=[0])
    with pytest.raises(InputError, match="another program"):
        nnkgraph.update(replace(graph, provenance={}), rows, remove=[0])


def test_like_takes_all_settings(rows):
    options = {"k": 7, "symmetrize": "mean", "scale": "minmax", "digits": 5}
    graph = nnkgraph.build_graph(rows, preset="paper", connect="mst", **options)
    made = nnkgraph.build_graph(rows, like=graph)
    same = graph.adjacency != made.adjacency
    assert same.nnz == 0
    known = {**made.provenance}
    assert known.pop("kernel") == f"gaussian:sigma={graph.provenance['sigma']!r}"
    assert known.pop("sigma_rule") == "auto"
    assert known == {one: graph.provenance[one] for one in known}
    assert content(nnkgraph.build_graph(rows, like=made)) == content(made)
    with pytest.raises(ParameterError, match="`k`"):
        nnkgraph.build_graph(rows, like=graph, k=3)
    bare = {**graph.provenance}
    del bare["scaling"]
    with pytest.raises(InputError, match="numbers of the scaling"):
        nnkgraph.build_graph(rows, like=replace(graph, provenance=bare))
    with pytest.raises(InputError, match="columns"):
        nnkgraph.build_graph(rows[:, :3], like=graph)


def test_query_takes_all_settings(rows):
    graph = nnkgraph.build_graph(rows, k=6, preset="paper", scale="standard")
    points = rows[:5] + 0.1
    found = nnkgraph.query(rows, points, graph=graph)
    named = nnkgraph.query(rows, points, k=6, preset="paper", scale="standard")
    assert (found.weights != named.weights).nnz == 0
    with pytest.raises(ParameterError, match="`k`"):
        nnkgraph.query(rows, points, graph=graph, k=3)
    with pytest.raises(InputError, match="not what the graph was built from"):
        nnkgraph.query(rows[1:], points, graph=graph)


def share_found(x, graph):
    """Return what share of its nearest rows every row has in its list."""
    last = nnkgraph.find_candidates(x, k=5, search="exact").distance[:, -1:]
    return (graph.updatable.distance <= last * (1 + 1e-12)).mean(axis=1)


def test_an_approximate_search_is_repeated_and_begins_anew(monkeypatch):
    # Groups, also where there are so few rows that an exact search costs less.
    monkeypatch.setattr("nnkgraph.search.partition._CHEAPER", 1e9)
    x = manifold(9000, 16).astype(float)
    options = {"k": 5, "search": "partition:recall=0.9", "updatable": True}
    graph = nnkgraph.build_graph(x[:4400], **options)
    assert int(graph.updatable.searched) == 4400
    made = nnkgraph.update(graph, x[:4400], add=x[4400:4440], remove=[1, 2])
    again = nnkgraph.update(graph, x[:4400], add=x[4400:4440], remove=[1, 2])
    assert content(made) == content(again)
    assert made.provenance["search"] == options["search"]
    assert not made.report["update"]["built_anew"]
    assert int(made.updatable.searched) == 4400
    together = np.concatenate([np.delete(x[:4400], [1, 2], axis=0), x[4400:4440]])
    assert not nnkgraph.verify(together, made, sample=300).failed
    before, after = share_found(x[:4400], graph), share_found(together, made)
    assert after.mean() > before.mean() - 0.001
    assert (after[-40:] == 1.0).all()  # new rows are searched exactly
    low, high = made.report.search["recall_interval"]
    assert low <= after.mean() <= high
    twice = nnkgraph.update(made, together, add=x[4440:])
    assert "4400 rows" in twice.report["update"]["built_anew"]
    assert int(twice.updatable.searched) == len(twice.updatable.index)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("update_index", lambda a: a + 1000),
        ("update_index", lambda a: a[:, :2]),
        ("update_index", lambda a: a.astype(float)),
        ("update_weights", lambda a: a - 1.0),
        ("update_weights", lambda a: a * np.nan),
        ("update_errors", lambda a: a[:-1]),
        ("update_distance", None),
        ("update_first", lambda a: a[::-1].copy()),
    ],
)
def test_damaged_lists_are_refused(rows, tmp_path, name, value):
    x = np.concatenate([rows[:60], rows[:2]])
    path = tmp_path / "g.npz"
    nnkgraph.write_graph(path, nnkgraph.build_graph(x, k=4, updatable=True))
    with np.load(path) as archive:
        members = dict(archive)
    if value is None:
        del members[name]
    else:
        members[name] = value(members[name])
    np.savez(path, **members)
    with pytest.raises(InputError, match="update"):
        nnkgraph.read_graph(path)


def test_lists_survive_a_file(rows, tmp_path):
    graph = nnkgraph.build_graph(rows[:300], updatable=True)
    nnkgraph.write_graph(tmp_path / "g.npz", graph)
    read = nnkgraph.read_graph(tmp_path / "g.npz")
    one, two = (
        nnkgraph.update(each, rows[:300], add=rows[300:]) for each in (graph, read)
    )
    assert content(one) == content(two)
