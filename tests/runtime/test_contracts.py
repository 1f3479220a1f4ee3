"""The checks for authors of plug-ins: each notices what it is there for."""

from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from nnkgraph import testing
from nnkgraph.data import Graph, Neighborhoods
from nnkgraph.errors import ParameterError
from nnkgraph.formats import Format
from nnkgraph.formats.npy import Npy
from nnkgraph.formats.npz import Npz
from nnkgraph.kernels import Plain as PlainKernel
from nnkgraph.kernels.gaussian import Gaussian
from nnkgraph.kernels.linear import Linear
from nnkgraph.methods import Plain as PlainMethod
from nnkgraph.methods.knn import Knn
from nnkgraph.methods.nnk import Nnk
from nnkgraph.runtime.executors import Here
from nnkgraph.runtime.executors.serial import Serial
from nnkgraph.search import Plain as PlainSearch
from nnkgraph.search import distance_of, ranked
from nnkgraph.search.exact import Exact


def plugin(base, /, **members):
    """Return a frozen dataclass with a docstring that differs from its base."""
    about = {"__doc__": "A plug-in that is wrong on purpose.", "__module__": __name__}
    return dataclass(frozen=True)(type("Wrong", (base,), {**about, **members}))


def changed(**values):
    """Return a weigh that spoils what knn or nnk find."""

    def weigh(self, problem):
        found = super(type(self), self).weigh(problem)
        return replace(found, **{k: f(found, problem) for k, f in values.items()})

    return weigh


def scaled_by_block(found, problem):
    return found.weights * len(problem.index)


def spoiling(_, problem):
    problem.distance[:] += 1
    return Neighborhoods(np.zeros(problem.index.shape))


METHODS = {
    "has_error": plugin(Knn, has_error=True),
    "K_qq / 2": plugin(Nnk, weigh=changed(errors=lambda f, _: f.errors + 1e-3)),
    "certificate is": plugin(Nnk, weigh=changed(certificate=lambda f, _: f.errors + 1)),
    "negative": plugin(Knn, weigh=changed(weights=lambda f, _: f.weights - 0.5)),
    "not float64": plugin(
        Knn, weigh=changed(weights=lambda f, _: f.weights.astype("f4"))
    ),
    "have shape": plugin(Knn, weigh=changed(weights=lambda f, _: f.weights[:, 1:])),
    "not finite": plugin(Knn, weigh=changed(weights=lambda f, _: f.weights + np.inf)),
    "missing candidate": plugin(Knn, weigh=changed(weights=lambda f, _: f.weights + 1)),
    "weighed together": plugin(Knn, weigh=changed(weights=scaled_by_block)),
    "order of the rows": plugin(
        Knn,
        local=False,
        weigh=changed(weights=lambda f, p: f.weights * p.rows[:, None]),
    ),
    "new points": plugin(
        Knn,
        weigh=changed(weights=lambda f, p: f.weights * (1 + (p.rows is None))),
    ),
    "second time": plugin(
        Knn,
        weigh=changed(
            weights=lambda f, _: f.weights * np.random.default_rng().random()
        ),
    ),
    "is none of error": plugin(Knn, rule="majority"),
    "needs J": plugin(Knn, rule="error"),
    "below k": plugin(Knn, width=lambda _, k: k - 1),
    "lacks weigh": plugin(PlainMethod),
    "changes the candidates": plugin(Knn, weigh=spoiling),
}


@pytest.mark.parametrize("words", METHODS)
def test_wrong_methods_are_noticed(words, monkeypatch):
    cls = METHODS[words]
    monkeypatch.setitem(globals(), "Wrong", cls)
    with pytest.raises(AssertionError, match=words):
        testing.check_method(cls)


def test_a_method_is_tried_with_a_kernel_that_it_takes():
    with pytest.raises(AssertionError, match="refuses the kernel"):
        testing.check_method("kstar", kernel="linear")
    testing.check_method("knn", kernel="linear")


KERNELS = {
    "positive definite": plugin(
        Linear,
        coefficients=lambda _, d: np.tile([1.0, -3.0], (len(d), 1)),
    ),
    "most similar": plugin(Linear, nearness="squared-distance"),
    "form is none": plugin(Gaussian, form="logistic"),
    "base is none": plugin(Gaussian, base="chebyshev", nearness="l1-distance"),
    "nearness is none": plugin(Gaussian, nearness="chebyshev"),
    "neither a form": plugin(Gaussian, form=""),
    "cannot be called": plugin(Gaussian, nearness="similarity"),
    "needs_all_rows is False": plugin(Gaussian, needs_all_rows=False),
    "treat every row alone": plugin(
        Linear, prepare=lambda _, x, name: x - x.mean(axis=0)
    ),
    "changes the rows": plugin(Linear, prepare=lambda _, x, name: np.add(x, 1, out=x)),
    "another number of rows": plugin(Linear, prepare=lambda _, x, name: x[1:]),
    "coefficients have shape": plugin(
        Linear, coefficients=lambda _, d: np.ones(len(d))
    ),
    "no positive number": plugin(Linear, bandwidth=lambda _, found: -1.0),
    "lacks base, form, ridge": plugin(PlainKernel),
}


@pytest.mark.parametrize("words", KERNELS)
def test_wrong_kernels_are_noticed(words, monkeypatch):
    cls = KERNELS[words]
    monkeypatch.setitem(globals(), "Wrong", cls)
    with pytest.raises(AssertionError, match=words):
        testing.check_kernel(cls)


def found(**values):
    """Return a find that spoils what the exact search finds."""

    def find(self, wanted):
        right = super(type(self), self).find(wanted)
        return replace(right, **{k: f(right, wanted) for k, f in values.items()})

    return find


def swapped(right, _):
    return right.index[:, ::-1]


def next_row(right, wanted):
    index = right.index.copy()
    index[:, 0] = wanted.asking
    return index


def farther(right, wanted):
    n = len(wanted.x)
    return np.array(
        [[j for j in range(n) if j != i][: right.index.shape[1]] for i in range(n)],
        np.int32,
    )


def shifted(right, wanted):
    return right.index if wanted.span is None else right.index[::-1]


def refused(self, wanted):
    raise ParameterError("never")


SEARCHES = {
    "best first": plugin(Exact, find=found(index=swapped)),
    "own candidate": plugin(Exact, find=found(index=next_row)),
    "index has shape": plugin(Exact, find=found(index=lambda f, _: f.index[:, 1:])),
    "not signed": plugin(Exact, find=found(index=lambda f, _: f.index.astype("u4"))),
    "no row number": plugin(Exact, find=found(index=lambda f, _: f.index + 200)),
    "twice": plugin(
        Exact,
        find=found(index=lambda f, _: np.repeat(f.index[:, :1], f.index.shape[1], 1)),
    ),
    "to the last digit": plugin(
        Exact, find=found(distance=lambda f, _: f.distance * (1 + 1e-15))
    ),
    "exactly where": plugin(
        Exact, find=found(distance=lambda f, _: np.full(f.distance.shape, np.inf))
    ),
    "recall is said": plugin(Exact, find=found(recall=lambda *_: 0.5)),
    "backend": plugin(Exact, find=found(backend=lambda *_: "")),
    "by_rows is True": plugin(Exact, find=found(index=shifted)),
    "refuses distances": plugin(Exact, find=refused),
    "lacks find": plugin(PlainSearch),
}


@pytest.mark.parametrize("words", SEARCHES)
def test_wrong_searches_are_noticed(words, monkeypatch):
    cls = SEARCHES[words]
    monkeypatch.setitem(globals(), "Wrong", cls)
    with pytest.raises(AssertionError, match=words):
        testing.check_search(cls)


def test_a_search_that_is_called_exact_finds_the_nearest(monkeypatch):
    """It has right distances of other rows, in order."""

    def find(self, wanted):
        right = Exact().find(wanted)
        index, score = ranked(wanted.x, wanted.x, farther(right, wanted), wanted.base)
        return replace(right, index=index, distance=distance_of(score, wanted.base))

    cls = plugin(Exact, find=find)
    monkeypatch.setitem(globals(), "Wrong", cls)
    with pytest.raises(
        AssertionError, match=r"exact is True, but 0\.\d+ of the nearest"
    ):
        testing.check_search(cls)


def test_a_search_that_forgets_its_seed_is_noticed(monkeypatch):
    def find(self, wanted):
        right = Exact().find(wanted)
        index = farther(right, wanted) if wanted.block == 7 else right.index
        index, score = ranked(wanted.x, wanted.x, index, wanted.base)
        distance = distance_of(score, wanted.base)
        return replace(right, index=index, distance=distance, exact=False)

    cls = plugin(Exact, find=find)
    monkeypatch.setitem(globals(), "Wrong", cls)
    with pytest.raises(AssertionError, match="the second time"):
        testing.check_search(cls)


class Counting:
    count = 0


def without(**fields):
    """Return a write_graph that loses something."""

    def write_graph(self, stream, graph, target):
        Npz().write_graph(stream, replace(graph, **fields), target)

    return write_graph


def with_a_counter(self, stream, graph, target):
    Counting.count += 1
    provenance = {**graph.provenance, "count": Counting.count}
    Npz().write_graph(stream, replace(graph, provenance=provenance), target)


def without_isolated(self, stream, graph, target):
    there = np.flatnonzero(np.diff(graph.adjacency.indptr) > 0)
    inner = graph.adjacency[there][:, there]
    Npz().write_graph(stream, Graph(inner, directed=graph.directed), target)


def rounded(self, stream, graph, target):
    adjacency = graph.adjacency.copy()
    adjacency.data = adjacency.data * (1 + 1e-15)
    Npz().write_graph(stream, replace(graph, adjacency=adjacency), target)


def trusting(self, source, extras, note):
    if not source.head.startswith(b"PK"):
        raise KeyError("magic")
    return Npz().read_graph(source, extras, note)


def of_files_only(self, source, extras, note):
    graph = Npz().read_graph(source, extras, note)
    return graph if source.path else Graph(graph.adjacency[::-1])


def graph_format(**members):
    """Return a format like npz, which writes and reads graphs only."""
    ours = {
        "suffixes": (".wrong",),
        "binary": True,
        "write_graph": Npz.write_graph,
        "read_graph": Npz.read_graph,
    }
    return plugin(Format, **{**ours, **members})


FORMATS = {
    "ids of the nodes": graph_format(write_graph=without(ids=None)),
    "errors are lost": graph_format(write_graph=without(errors=None)),
    "provenance": graph_format(write_graph=without(provenance={})),
    "directed is another": graph_format(write_graph=without(directed=True)),
    "isolated nodes": graph_format(write_graph=without_isolated),
    "last digit": graph_format(write_graph=rounded),
    "equal bytes": graph_format(write_graph=with_a_counter),
    "empty file": graph_format(write_graph=lambda *_: None),
    "no UTF-8": graph_format(binary=False),
    "raises KeyError": graph_format(read_graph=trusting),
    "edges or weights": graph_format(read_graph=of_files_only),
    "no suffixes": graph_format(suffixes=()),
    "after a dot": graph_format(suffixes=("wrong",)),
    "reads features": plugin(Npy),
}


@pytest.mark.parametrize("words", FORMATS)
def test_wrong_formats_are_noticed(words, monkeypatch):
    cls = FORMATS[words]
    monkeypatch.setitem(globals(), "Wrong", cls)
    with pytest.raises(AssertionError, match=words):
        testing.check_format(cls)


def test_a_right_format_of_ones_own_passes(monkeypatch):
    cls = graph_format()
    monkeypatch.setitem(globals(), "Wrong", cls)
    testing.check_format(cls)
    testing.check_format(cls())


def read_by_count(self, source, options):
    Counting.count += 1
    right = Npy().read_features(source, options)
    return replace(right, x=right.x + Counting.count)


def read_carelessly(self, source, options):
    if not source.head.startswith(b"\x93NUMPY"):
        raise IndexError("head")
    return Npy().read_features(source, options)


def read_files_only(self, source, options):
    right = Npy().read_features(source, options)
    return right if source.path else replace(right, x=-right.x)


FEATURES = {
    "second reading": read_by_count,
    "raises IndexError": read_carelessly,
    "through a pipe": read_files_only,
}


@pytest.mark.parametrize("words", FEATURES)
def test_wrong_readers_of_features_are_noticed(words, monkeypatch, points):
    cls = plugin(Npy, read_features=FEATURES[words])
    monkeypatch.setitem(globals(), "Wrong", cls)
    with pytest.raises(AssertionError, match=words):
        testing.check_format(cls, features=points)


class Pool:
    """Passes everything on to a pool that works, but for some members."""

    def __init__(self, pool, members):
        self.__dict__.update(pool=pool, members=members)

    def __getattr__(self, name):
        if name in self.members:
            return self.members[name]
        return getattr(self.pool, name)

    def __setattr__(self, name, value):
        setattr(self.pool, name, value)


def opened(**members):
    @contextmanager
    def open_(self, workers, /, **options):
        with Serial().open(workers, **options) as pool:
            yield Pool(pool, members)

    return open_


class Lost(Here):
    """An array of which every look gives a new one."""

    def open(self):
        return self.array.copy()


def unheard(running):
    """Return nothing, unless blocks.run waits for its own calls."""
    return set() if len(set(running)) > 4 else set(running)


def answered(value):
    future = Future()
    future.set_result(value)
    return future


EXECUTORS = {
    "workers are not": plugin(Serial, open=opened(workers=0)),
    "share changes": plugin(Serial, open=opened(share=lambda x: Here(x + 1))),
    "not where they belong": plugin(
        Serial, open=opened(output=lambda shape, dtype: Lost(np.zeros(shape, dtype)))
    ),
    "wait returns no call": plugin(Serial, open=opened(wait=unheard)),
    "result of another": plugin(
        Serial,
        open=opened(submit=lambda f, *a: answered(f(*a) if f is not divmod else 0)),
    ),
    "is lost": plugin(
        Serial, open=opened(submit=lambda f, *a: answered(f(*a) if f is not int else 0))
    ),
    "in_process is no bool": plugin(Serial, in_process=None),
    "lacks attached, in_process, open": plugin(object),
}


@pytest.mark.parametrize("words", EXECUTORS)
def test_wrong_executors_are_noticed(words, monkeypatch):
    cls = EXECUTORS[words]
    monkeypatch.setitem(globals(), "Wrong", cls)
    with pytest.raises(AssertionError, match=words):
        testing.check_executor(cls)


@dataclass(frozen=True)
class Undocumented(Knn):
    pass


@dataclass(frozen=True)
class Forgetful(Knn):
    """Has a parameter that text cannot give back."""

    share: float = 0.5
    names: tuple[str, ...] = ("a",)


@dataclass
class Mutable(PlainMethod):
    """Can be changed at any time."""


@dataclass(frozen=True)
class Needy(Knn):
    """Cannot be made without its parameter."""

    share: float = field()


COMMON = {
    "docstring": Undocumented,
    "cannot be made again|makes another": Forgetful(names=("b", "c")),
    "no frozen dataclass": Mutable,
    "share": Needy,
    "unknown method 'forest'": "forest",
    "no class|no frozen": 5,
}


@pytest.mark.parametrize("words", COMMON)
def test_what_no_plugin_may_be(words):
    with pytest.raises(AssertionError, match=words):
        testing.check_method(COMMON[words])


def test_a_class_that_workers_cannot_import_is_noticed():
    @dataclass(frozen=True)
    class Local(Knn):
        """Stands in a function, where nobody else finds it."""

    with pytest.raises(AssertionError, match="sent to workers"):
        testing.check_method(Local)
