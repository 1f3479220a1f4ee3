"""Shards: parts of the rows that give, put together, what one run gives."""

import json
import random
import shutil
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from faults import assert_one_line, content

from nnkgraph import formats
from nnkgraph.build.graph import build_graph, find_candidates
from nnkgraph.build.shards import (
    Shard,
    _check_groups,
    build_shard,
    merge_candidates,
    merge_graph,
    read_part,
    read_parts,
    search_shard,
    write_part,
)
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime.archive import open_archive, write_archive
from nnkgraph.runtime.checkpoint import Block
from nnkgraph.runtime.files import open_source
from nnkgraph.runtime.progress import Stages

SEARCHED = {"k": 8, "search": "exact"}


@pytest.fixture(scope="module")
def x():
    """Rows with copies far from their first row, and in one shard with it."""
    rows = np.random.default_rng(3).normal(size=(230, 4))
    rows[100:120] = rows[10:30]
    rows[229] = rows[228]
    return rows


def parts(folder, kind, x, count=4, **settings):
    """Write all shards of a run; return their files."""
    paths = []
    for number in range(1, count + 1):
        shard = Shard(number, count)
        path = folder / f"{kind}-{number}.npz"
        if kind == "search":
            part = search_shard(x, shard, **settings)
        else:
            part, _ = build_shard(x, shard, **settings)
        write_part(path, part)
        paths.append(path)
    return paths


def merged(paths):
    return merge_graph(read_parts(paths), Stages())


def as_bytes(graph, path, ending=".npz"):
    target = path / f"graph{ending}"
    formats.write_graph(target, graph)
    return target.read_bytes()


@pytest.fixture
def knn(x, tmp_path):
    """Candidates of all rows in a file."""
    found = find_candidates(x, k=8, search="exact")
    formats.write_candidates(tmp_path / "knn.npz", found, provenance={})
    return f"precomputed:path={tmp_path / 'knn.npz'}"


@pytest.mark.parametrize("count", [1, 2, 7, 300])
@pytest.mark.parametrize("n", [1, 6, 64, 229])
def test_shards_are_all_rows_each_once(n, count):
    for grain in (1, 64):
        ranges = [Shard(i, count).rows(n, grain) for i in range(1, count + 1)]
        assert [row for one in ranges for row in one] == list(range(n))
        assert all(one.start % grain == 0 or not one for one in ranges)
    sizes = [len(Shard(i, count).rows(n)) for i in range(1, count + 1)]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("duplicates", ["merge", "keep"])
@pytest.mark.parametrize("search", ["exact", "kdtree"])
def test_candidates_of_shards_are_those_of_one_run(x, tmp_path, search, duplicates):
    settings = {"k": 8, "search": search, "duplicates": duplicates}
    paths = parts(tmp_path, "search", x, **settings)
    found, _ = merge_candidates(read_parts(paths[::-1]), Stages())
    plain = find_candidates(x, **settings)
    assert np.array_equal(found.index, plain.index)
    assert np.array_equal(found.distance, plain.distance)
    for name in ("backend", "exact", "threads", "recall", "notes"):
        assert getattr(found, name) == getattr(plain, name)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sigma": "kth-max", "symmetrize": "none", "min_degree": 2},
        {"sigma": "local", "symmetrize": "mean", "scale": "standard"},
        {"method": "omp", "symmetrize": "error-union", "digits": 6},
        {"method": "kstar", "duplicates": "keep"},
        {"duplicates": "keep", "min_weight": 0.05},
        {"method": "eps"},
        {"kernel": "cosine", "method": "knn"},
    ],
    ids=str,
)
def test_a_graph_of_shards_is_that_of_one_run(x, knn, tmp_path, settings):
    settings = {"k": 7, "search": knn, **settings}
    plain = build_graph(x, **settings)
    both = merged(parts(tmp_path, "graph", x, **settings)[::-1])
    for ending in (".npz", ".graphml", ".tsv"):
        wanted = as_bytes(plain, tmp_path, ending)
        assert as_bytes(both, tmp_path, ending) == wanted
    kept = {key: both.report[key] for key in plain.report}
    assert kept == plain.report
    assert both.report["shards"] == 4


@pytest.mark.parametrize(
    "settings",
    [
        {"sigma": 0.8},
        {"sigma": "local", "method": "l1"},
        {"kernel": "laplacian", "sigma": "local", "search": "kdtree"},
        {"kernel": "polynomial"},
        {"kernel": "linear", "method": "mp"},
        {"kernel": "lle", "method": "lle"},
        {"sigma": 0.3, "method": "eps"},
        {"kernel": "test_shards:rounded", "k": 4},
    ],
    ids=str,
)
def test_what_needs_no_other_rows_is_sharded_at_once(x, tmp_path, settings):
    settings = {**SEARCHED, **settings}
    plain = build_graph(x, **settings)
    both = merged(parts(tmp_path, "graph", x, **settings))
    assert as_bytes(both, tmp_path) == as_bytes(plain, tmp_path)


@pytest.mark.parametrize("kind", ["search", "graph"])
def test_all_rows_in_one_shard_are_one_run(x, tmp_path, kind):
    settings = {**SEARCHED, "sigma": 0.8}
    if kind == "search":
        (only,) = parts(tmp_path, kind, x, 1, k=7, search="exact")
        found, _ = merge_candidates(read_parts([only]), Stages())
        plain = find_candidates(x, k=7)
        assert np.array_equal(found.index, plain.index)
    else:
        both = merged(parts(tmp_path, kind, x, 1, **settings))
        assert as_bytes(both, tmp_path) == as_bytes(
            build_graph(x, **settings), tmp_path
        )


def rounded(a, b):
    """A kernel whose last digits depend on how many rows are asked about."""
    return np.exp(-np.square(a[:, None] - b).sum(-1)) * (1 + 1e-15 * len(a))


@pytest.mark.parametrize("sparse", [False, True])
def test_a_matrix_of_similarities_is_sharded_by_its_rows(x, tmp_path, sparse):
    gram = np.exp(-np.square(x[:, None] - x).sum(-1))
    name = tmp_path / ("gram.npz" if sparse else "gram.npy")
    if sparse:
        scipy.sparse.save_npz(
            name, scipy.sparse.csr_array(np.where(gram > 0.1, gram, 0))
        )
    else:
        np.save(name, gram)
    features = formats.read_features(name, sparse="similarities")
    settings = {**SEARCHED, "kernel": "precomputed"}
    plain = build_graph(features, **settings)
    both = merged(parts(tmp_path, "graph", features, **settings))
    assert as_bytes(both, tmp_path) == as_bytes(plain, tmp_path)


@pytest.mark.parametrize("workers", [1, 2])
def test_neither_workers_nor_a_checkpoint_change_a_shard(x, knn, tmp_path, workers):
    settings = {"k": 7, "search": knn, "resume": tmp_path / "c"}
    plain, _ = build_shard(x, Shard(2, 3), k=7, search=knn)
    how = {"executor": "threads", "workers": workers}
    for blocks_were_there in ("0 of 1", "1 of 1"):
        part, report = build_shard(x, Shard(2, 3), **settings, **how)
        write_part(tmp_path / "a.npz", plain)
        write_part(tmp_path / "b.npz", part)
        one, other = (tmp_path / f"{name}.npz" for name in "ab")
        assert one.read_bytes() == other.read_bytes()
        assert f"{blocks_were_there} blocks were there" in report["notes"][-1]
    with pytest.raises(InputError, match='shard was "2/3", now it is "3/3"'):
        build_shard(x, Shard(3, 3), **settings)


@pytest.mark.parametrize("search", ["exact", "kdtree"])
def test_a_search_shard_that_was_ended_goes_on(x, tmp_path, search):
    settings = {"k": 7, "search": search, "resume": tmp_path / "c"}
    first = search_shard(x, Shard(2, 3), **settings)
    again = search_shard(x, Shard(2, 3), **settings)
    assert "0 of" in first.notes[-1]
    assert "1 of 1" in again.notes[-1]
    write_part(tmp_path / "first.npz", first)
    write_part(tmp_path / "again.npz", again)
    one, other = (tmp_path / f"{name}.npz" for name in ("first", "again"))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"preset": "paper"},
            "needs the candidates of all rows.*merge shards of candidates first",
        ),
        ({"method": "aew", "sigma": 1.0}, "method 'aew' looks at all rows at once"),
        (
            {"sigma": 1.0, "search": "pynndescent"},
            "'pynndescent' finds .* use .search=",
        ),
    ],
)
def test_what_needs_all_rows_is_refused(x, settings, words):
    with pytest.raises(ParameterError, match=words):
        build_shard(x, Shard(1, 2), **{**SEARCHED, **settings})


def test_searches_of_all_rows_at_once_are_refused(x, knn):
    for search in ("pynndescent", knn):
        with pytest.raises(ParameterError, match="`search='exact'`"):
            search_shard(x, Shard(1, 2), search=search)


SLURM = {"MIN": "10", "MAX": "24", "STEP": "7", "COUNT": "3"}


def slurm(task, **others):
    values = {"ID": str(task), **SLURM, **others}
    return {f"SLURM_ARRAY_TASK_{k}": v for k, v in values.items() if v is not None}


@pytest.mark.parametrize(
    ("text", "environment", "wanted"),
    [
        ("3/7", {}, "3/7"),
        ("auto", slurm(10), "1/3"),
        ("auto", slurm(24), "3/3"),
        ("auto", slurm(2, MIN="0", MAX="4", STEP="1", COUNT="5"), "3/5"),
        ("auto", slurm(17, COUNT=None), "2/3"),
        ("auto/30", slurm(17), "17/30"),
        ("auto/8", {"PBS_ARRAY_INDEX": "8"}, "8/8"),
        ("auto/8", {"PBS_ARRAYID": "1"}, "1/8"),
    ],
)
def test_a_task_of_a_job_array_knows_its_shard(text, environment, wanted):
    assert str(Shard.of(text, environment)) == wanted


@pytest.mark.parametrize(
    ("text", "environment", "words"),
    [
        ("auto", {}, "neither SLURM_ARRAY_TASK_ID nor PBS_ARRAY_INDEX"),
        ("auto/8", {}, "neither SLURM_ARRAY_TASK_ID nor PBS_ARRAY_INDEX"),
        ("auto", {"PBS_ARRAY_INDEX": "3"}, "not of how many: write auto/N"),
        ("auto", slurm(9, COUNT="2"), "have gaps: write auto/N"),
        ("auto", slurm(11), "have gaps"),
        ("auto", slurm(31), "have gaps"),
        ("auto", slurm(10, MAX=None), "write auto/N"),
        ("auto", slurm("x"), "SLURM_ARRAY_TASK_ID is 'x', which is no number"),
        (
            "auto/8",
            {"PBS_ARRAY_INDEX": "0"},
            "no shard 0 of 8: they are counted from 1",
        ),
    ],
)
def test_a_task_that_cannot_know_its_shard_says_so(text, environment, words):
    with pytest.raises(ParameterError, match=words):
        Shard.of(text, environment)


@pytest.mark.parametrize("command", ["search", "build"])
@pytest.mark.parametrize(
    "shard", ["0/0", "5/4", "-1/4", "a/b", "0/3", "1/2/3", "2", ""]
)
def test_b12_a_shard_that_cannot_be_is_refused(run, points, tmp_path, command, shard):
    before = content(tmp_path)
    result = run(command, points, "-o", tmp_path / "s.npz", "--shard", shard)
    assert result.code == 2
    assert_one_line(result.err, "'--shard'")
    assert content(tmp_path) == before


def test_b13_more_shards_than_rows_are_valid_and_some_are_empty(run, x, tmp_path):
    np.save(tmp_path / "x.npy", x[:5])
    for kind, other in (("search", "knn.h5"), ("build", "g.tsv")):
        options = ["--search", f"precomputed:path={tmp_path / 'knn.h5'}"]
        options = ["--search", "exact"] if kind == "search" else options
        shards = [tmp_path / f"{kind}{i}.npz" for i in range(1, 10)]
        for i, shard in enumerate(shards, 1):
            line = (kind, tmp_path / "x.npy", "-o", shard, "--shard", f"{i}/9", "-q")
            assert run(*line, *options).code == 0
        sizes = [len(read_part(shard).rows) for shard in shards]
        assert sum(sizes) == 5
        assert sizes.count(0) == 4
        result = run("merge", *shards, "-o", tmp_path / other)
        assert result.code == 0, result.err
        plain = tmp_path / f"plain-{other}"
        assert run(kind, tmp_path / "x.npy", "-o", plain, *options).code == 0
        assert (tmp_path / other).read_bytes() == plain.read_bytes()


def test_f04_seven_shards_in_two_phases_in_any_order_give_one_runs_bytes(
    case, run, x, monkeypatch
):
    """As tasks of an array would: processes of their own, several at a time."""
    here = case.here
    monkeypatch.chdir(here)
    np.save(here / "x.npy", x)
    order = random.Random(0).sample(range(7), 7)

    def tasks(*line):
        waiting = list(order)
        while waiting:
            some, waiting = waiting[:3], waiting[3:]
            jobs = [
                case.start(*line, "-o", f"{line[0]}-{task}.npz", env=slurm_of(task))
                for task in some
            ]
            for job in jobs:
                _, err = job.communicate(timeout=100)
                assert job.returncode == 0, err
        return sorted(path.name for path in here.glob(f"{line[0]}-*.npz"))

    def slurm_of(task):
        return slurm(task, MIN="0", MAX="6", STEP="1", COUNT="7")

    found = tasks("search", "x.npy", "-k", 8, "-j", 1, "-q", "--shard", "auto")
    assert run("merge", *found, "-o", "knn.h5").code == 0
    assert run("search", "x.npy", "-k", 8, "-q", "-o", "plain.h5").code == 0
    assert (here / "knn.h5").read_bytes() == (here / "plain.h5").read_bytes()
    line = ("build", "x.npy", "-k", 8, "-q", "--search", "precomputed:path=knn.h5")
    solved = tasks(*line, "-j", 2, "--shard", "auto")
    for ending in ("npz", "graphml", "tsv"):
        assert run("merge", *solved, "-o", f"g.{ending}", "-q").code == 0
        assert run(*line, "-o", f"plain.{ending}").code == 0
        wanted = (here / f"plain.{ending}").read_bytes()
        assert (here / f"g.{ending}").read_bytes() == wanted
    assert not list(here.glob(".nnkgraph*"))


@pytest.fixture
def refused(run, tmp_path, monkeypatch):
    """Merge what has to be refused, and look that nothing is left."""
    monkeypatch.chdir(tmp_path)

    def call(words, *shards, code=3):
        before = content(tmp_path)
        result = run("merge", *shards, "-o", tmp_path / "out.npz")
        assert result.code == code, result.err
        assert_one_line(result.err, words)
        assert content(tmp_path) == before

    return call


def test_f05_missing_shards_are_named(refused, x, tmp_path):
    paths = parts(tmp_path, "search", x, count=13, **SEARCHED)
    refused("2 shards are missing of 13: 2, 5", *paths[:1], *paths[2:4], *paths[5:])
    refused("12 shards are missing of 13: 1, 2, .* and 2 more", paths[12])
    refused("search-4.npz: no such file", paths[0], tmp_path / "no" / "search-4.npz")


def test_f05_a_shard_that_is_there_twice_is_named(refused, x, tmp_path):
    paths = parts(tmp_path, "search", x, count=2, **SEARCHED)
    shutil.copy(paths[1], tmp_path / "again.npz")
    refused("search-2.npz and .*again.npz are both shard 2/2", *paths, "again.npz")
    refused("search-1.npz and .*search-1.npz are both shard 1/2", *paths, paths[0])


def test_f05_overlapping_shards_are_named(refused, x, tmp_path):
    paths = parts(tmp_path, "search", x, count=2, **SEARCHED)
    write_part(tmp_path / "third.npz", search_shard(x, Shard(2, 3), **SEARCHED))
    refused("they are shards 1/2 and 2/3", paths[0], "third.npz", paths[1])
    other = search_shard(x, Shard(2, 2), **SEARCHED)
    known = other.candidates.arrays
    arrays = {key: np.resize(one, (119, 8)) for key, one in known.items()}
    longer = replace(other.candidates, rows=range(90, 209), arrays=arrays)
    write_part(tmp_path / "over.npz", replace(other, candidates=longer))
    refused("over.npz: rows 90 to 103 are in two shards", paths[0], "over.npz")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"k": 7}, "k is 8 and 7"),
        ({"seed": 1}, "seed is 0 and 1"),
        ({"search": "kdtree"}, 'search is "exact" and "kdtree"'),
        ({"duplicates": "keep"}, 'duplicates is "merge" and "keep"'),
    ],
)
def test_f05_a_foreign_shard_is_named_with_its_difference(
    refused, x, tmp_path, changed, words
):
    paths = parts(tmp_path, "search", x, count=2, **SEARCHED)
    foreign = search_shard(x, Shard(2, 2), **{**SEARCHED, **changed})
    write_part(tmp_path / "foreign.npz", foreign)
    refused(f"foreign.npz do not belong together: {words}", paths[0], "foreign.npz")


def test_f05_shards_of_other_rows_rules_candidates_and_kinds_are_named(
    refused, x, knn, tmp_path
):
    settings = {"k": 7, "search": knn, "preset": "paper"}
    one = parts(tmp_path, "graph", x, count=2, **settings)[0]
    number = Shard(2, 2)
    write_part(
        tmp_path / "rule.npz", build_shard(x, number, symmetrize="max", **settings)[0]
    )
    refused('rule is "error" and "max"', one, "rule.npz")
    write_part(tmp_path / "rows.npz", build_shard(2 * x, number, **settings)[0])
    refused("sha256 of the features is", one, "rows.npz")
    write_part(tmp_path / "kind.npz", search_shard(x, number, **SEARCHED))
    refused("a graph shard and a search shard", one, "kind.npz")
    found = find_candidates(x, k=9, search="exact")
    formats.write_candidates(tmp_path / "knn.npz", found, provenance={})
    write_part(tmp_path / "other.npz", build_shard(x, number, **settings)[0])
    refused("search is .precomputed, sha256", one, "other.npz")


def flip(data):
    at = data.index(b"distance.npy") + 1000  # among the numbers
    return data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-7], lambda d: d[: len(d) // 2], flip, lambda _: b""]
)
def test_a_damaged_shard_is_refused(refused, x, tmp_path, damage):
    paths = parts(tmp_path, "search", x, count=2, **SEARCHED)
    paths[1].write_bytes(damage(paths[1].read_bytes()))
    refused("search-2.npz: ", *paths)


def rewritten(path, **changed):
    """Replace members of a shard."""
    with open_archive(open_source(str(path))) as archive:
        members = {key: archive.read(key) for key in archive.headers}
    with path.open("wb") as stream:
        write_archive(stream, {**members, **changed})


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("index", 10**6, "its candidates are damaged"),
        ("index", -2, "its candidates are damaged"),
        ("index", 0, "its candidates are damaged"),
        ("first", 300, "what it says about copies is damaged"),
        ("first", -1, "what it says about copies is damaged"),
        ("weights", np.nan, "'weights' has values that are no number"),
        ("weights", -1.0, "has weights below zero"),
        ("errors", np.inf, "'errors' has values that are no number"),
    ],
)
def test_numbers_that_compiled_code_would_trust_are_looked_at(
    refused, x, tmp_path, key, value, words
):
    paths = parts(tmp_path, "graph", x, count=2, **SEARCHED, sigma=1.0)
    with open_archive(open_source(str(paths[1]))) as archive:
        (member,) = (one for one in archive.headers if one.endswith(f"/{key}"))
        values = archive.read(member).copy()
    values[1] = value
    rewritten(paths[1], **{member: values})
    refused(f"graph-2.npz: {words}|graph-1.npz: {words}", *paths)
    rewritten(paths[1], **{member: values[1:]})
    refused("graph-2.npz: is not the block it should be", *paths)


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("facts", lambda a: a | {"schema": 2}),
        ("facts", lambda a: a | {"nnkgraph": "0.0.0"}),
        ("facts", lambda a: a | {"shard": "3/2"}),
        ("facts", lambda a: a | {"shard": "auto"}),
        ("facts", lambda a: a | {"shard": [1, 2]}),
        ("facts", lambda a: a | {"shape": [10**15, 4]}),
        ("facts", lambda a: a | {"shape": "all"}),
        ("facts", lambda a: a | {"k": float("nan")}),
        ("facts", lambda _: {}),
        ("facts", lambda _: []),
        ("candidates", lambda a: a | {"exact": "yes"}),
        ("candidates", lambda a: a | {"notes": 3}),
        ("candidates", lambda _: {}),
        ("candidates", lambda _: []),
        ("solve", lambda a: a | {"settings": []}),
        ("solve", lambda a: a | {"settings": a["settings"] | {"rule": "pie"}}),
        ("solve", lambda _: {}),
        ("input", lambda a: a | {"ids": ["a"]}),
        ("input", lambda a: a | {"ids": list(range(115))}),
        ("input", lambda _: {}),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(
    refused, x, tmp_path, place, change
):
    paths = parts(tmp_path, "graph", x, count=2, **SEARCHED, sigma=1.0)
    with open_archive(open_source(str(paths[1]))) as archive:
        (member,) = (
            one
            for one in archive.headers
            if one == place or (one.startswith(f"{place}-") and one.endswith("/about"))
        )
        about = json.loads(archive.text(member))
    rewritten(paths[1], **{member: np.array(json.dumps(change(about)))})
    refused("graph-2.npz: |graph-2.npz do not belong together", *paths)


@pytest.mark.parametrize(
    "change",
    [
        {"rule": "pie"},
        {"method": "no such"},
        {"method": None},
        {"method": "knn"},
        {"min_degree": -1},
        {"min_degree": None},
        {"min_weight": -1e-9},
        {"min_weight": 1e999},
        {"sigma": "local"},
        {"digits": -3},
        {"weights": "heavy"},
    ],
    ids=str,
)
def test_settings_that_no_build_has_are_refused(x, tmp_path, change):
    (path,) = parts(tmp_path, "graph", x, count=1, **SEARCHED, sigma=1.0)
    part = read_part(path)
    about = part.solve.about | {"settings": part.settings | change}
    part = replace(part, solve=replace(part.solve, about=about))
    with pytest.raises(InputError, match="its settings are damaged"):
        merge_graph([part], Stages())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("solve-", "evil-"),
        ("solve-", "solve-0"),
        ("/weights", "/evil"),
        ("/index", "/evil"),
        ("input-", "input-0"),
        ("candidates-104-209", "candidates-104-10000000000000"),
        ("candidates-104-209", "candidates-209-104"),
    ],
)
def test_blocks_that_are_no_shard_are_refused(refused, x, tmp_path, old, new):
    paths = parts(tmp_path, "graph", x, count=2, **SEARCHED, sigma=1.0)
    with open_archive(open_source(str(paths[1]))) as archive:
        members = {key: archive.read(key) for key in archive.headers}
    renamed = {key.replace(old, new): one for key, one in members.items()}
    assert renamed.keys() != members.keys()
    with paths[1].open("wb") as stream:
        write_archive(stream, renamed)
    refused("graph-2.npz: ", *paths)


@pytest.mark.parametrize(
    ("row", "index", "good"),
    [
        ([0, 4], [[1, 2], [3, -1]], True),
        ([], np.empty((0, 2)), True),
        ([-1, 4], [[1, 2], [3, 0]], False),
        ([0, 5], [[1, 2], [3, 0]], False),
        ([4, 0], [[1, 2], [3, 2]], False),
        ([4, 4], [[1, 2], [3, 2]], False),
        ([0, 4], [[1, 5], [3, 0]], False),
        ([0, 4], [[1, 2], [3, -2]], False),
        ([0, 4], [[1, 0], [3, 2]], False),
    ],
)
def test_lists_of_groups_are_of_rows_that_there_are(row, index, good):
    arrays = {"row": np.array(row, int), "index": np.array(index, int)}
    block = Block("groups", range(len(row)), arrays, name="part.npz")
    refused = pytest.raises(InputError, match=r"part\.npz: its candidates are damaged")
    with nullcontext() if good else refused:
        _check_groups(block, 5)


def test_an_empty_shard_can_be_read(x, tmp_path):
    for path in parts(tmp_path, "search", x[:3], count=4, k=2, search="exact"):
        part = read_part(path)
        assert len(part.rows) in {0, 1}


def test_h01_a_pickle_in_a_shard_is_never_loaded(refused, x, tmp_path):
    class Canary:
        def __reduce__(self):
            return Path.touch, (tmp_path / "canary",)

    paths = parts(tmp_path, "search", x, count=2, **SEARCHED)
    np.savez(paths[1], run=np.array([Canary()], dtype=object))
    refused("holds Python objects, which are never loaded", *paths)
    assert not (tmp_path / "canary").exists()


def test_what_is_no_shard_is_refused(refused, x, tmp_path):
    formats.write_graph(tmp_path / "graph.npz", build_graph(x, k=4))
    refused("graph.npz: is no shard of", tmp_path / "graph.npz")
    (tmp_path / "text.npz").write_text("hello")
    refused("text.npz: ", tmp_path / "text.npz")


def test_f06_a_shard_that_is_being_written_is_not_taken(refused, run, x, tmp_path):
    from nnkgraph.runtime.files import Outputs

    paths = parts(tmp_path, "search", x, count=3, **SEARCHED)
    whole = paths[2].read_bytes()
    paths[2].unlink()
    shards = lambda: sorted(str(path) for path in tmp_path.glob("*.npz"))  # noqa: E731
    with Outputs(str(paths[2])) as outputs:
        stream = outputs.open(str(paths[2]))
        stream.write(whole)  # complete, and still without its name
        stream.flush()
        (temporary,) = tmp_path.glob(".nnkgraph-*.tmp")
        refused("1 shard is missing of 3: 3", *shards())
        refused("is being written; wait for the shard itself", *shards(), temporary)
    assert run("merge", *shards(), "-o", tmp_path / "knn.npz").code == 0


def test_f06_merging_again_and_again_sees_whole_shards_only(x, tmp_path):
    paths = parts(tmp_path, "search", x, count=2, **SEARCHED)
    part = search_shard(x, Shard(2, 2), **SEARCHED)
    wanted = find_candidates(x, **SEARCHED).index
    done = threading.Event()

    def write():
        for _ in range(40):
            write_part(paths[1], part)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        found, _ = merge_candidates(
            read_parts(sorted(tmp_path.glob("*.npz"))), Stages()
        )
        assert np.array_equal(found.index, wanted)
    writer.join()


def test_merge_writes_like_the_others(run, x, knn, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = parts(tmp_path, "graph", x, count=2, k=7, search=knn)
    result = run("merge", *paths, "-o", "-", "--format", "tsv", "--report", "r.json")
    assert result.code == 0
    assert result.out.startswith("# nnkgraph graph")
    report = json.loads(Path("r.json").read_text())
    assert report["nodes"] == len(x)
    assert report["certificate"]["nodes_failed"] == 0
    assert {"timings", "versions", "peak_memory_bytes", "command"} <= report.keys()
    assert run("merge", *paths, "-o", paths[0]).code == 2
    assert run("merge", *paths, "-o", "knn.npz", "--no-clobber").code == 4
    assert run("merge", *paths, "-o", "no/g.npz").code == 4
    assert run("merge", *paths, "-o", "g.h5").code == 2
    assert run("merge", *paths, "-o", "g.npz", "--report", "g.npz").code == 2
    found = parts(tmp_path, "search", x, count=2, **SEARCHED)
    assert run("merge", *found, "-o", "knn.h5", "--report", "k.json").code == 0
    assert json.loads(Path("k.json").read_text())["shards"] == 2
    assert run("merge", *found, "-o", "knn.tsv").code == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--connect", "mst"], "--connect needs all rows"),
        (["--grow", "0.1"], "--grow needs all rows"),
        (["--k-check"], "--k-check needs all rows"),
        (["--max-k", "20"], "--max-k needs all rows"),
        (["--sigma", "auto"], "--search precomputed:path=FILE"),
        (["--method", "kalofolias"], "looks at all rows at once"),
        (
            ["--dry-run", "--preset", "paper"],
            "sigma 'auto' needs the candidates of all rows",
        ),
    ],
)
def test_options_that_need_all_rows_are_refused(run, points, tmp_path, options, words):
    line = ["build", points, "-o", tmp_path / "s.npz", "--shard", "1/2", *options]
    result = run(*line)
    assert result.code == 2
    assert_one_line(result.err, words)


def test_a_shard_has_the_name_of_an_archive(run, points, tmp_path):
    for command in ("search", "build"):
        line = (
            [command, points, "--sigma", "1"]
            if command == "build"
            else [command, points]
        )
        for name in ("s.h5", "s.tsv", "-"):
            result = run(*line, "-o", name, "--shard", "1/2")
            assert result.code == 2
            assert_one_line(result.err, "a shard is an npz file")


def test_ids_and_a_report_go_through_shards(run, x, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"é{i}," + ",".join(map(repr, map(float, row))) for i, row in enumerate(x)]
    Path("x.csv").write_text("\n".join(["name,a,b,c,d", *lines]))
    line = ["build", "x.csv", "--id-column", "name", "--sigma", "1", "-k", 6]
    line += ["--search", "exact", "-q"]
    for number in (1, 2, 3):
        shard = ["-o", f"s{number}.npz", "--shard", f"{number}/3"]
        result = run(*line, *shard, "--report", "-", "--resume", "c")
        assert result.code == 0, result.err
        report = json.loads(result.out)
        assert report["shard"] == f"{number}/3"
        assert report["certificate"]["nodes_failed"] == 0
    assert not Path("c").exists()
    assert run("merge", "s3.npz", "s1.npz", "s2.npz", "-o", "g.graphml").code == 0
    assert run(*line, "-o", "plain.graphml").code == 0
    assert Path("g.graphml").read_bytes() == Path("plain.graphml").read_bytes()


def test_groups_of_a_partition_are_shards(run, tmp_path):
    """Rows of many columns: few of them are worth groups."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(9000, 4)) @ rng.normal(size=(4, 400))
    np.save(tmp_path / "x.npy", np.tanh(z).astype(np.float32))
    how = ("--search", "partition:recall=0.8", "-k", "8", "-q")
    parts = [tmp_path / f"part-{i}.npz" for i in (1, 2, 3)]
    for i, part in enumerate(parts, 1):
        done = run("search", tmp_path / "x.npy", *how, "--shard", f"{i}/3", "-o", part)
        assert done.code == 0, done.err
    out = tmp_path / "merged.npz"
    refused = run("merge", *parts, "-o", out)
    assert refused.code == 3
    assert "--features" in refused.err
    np.save(tmp_path / "other.npy", np.tanh(z[:, ::-1]).astype(np.float32))
    other = run("merge", *parts, "--features", tmp_path / "other.npy", "-o", out)
    assert other.code == 3
    assert "sha256" in other.err
    assert not out.exists()
    missing = run("merge", *parts[1:], "--features", tmp_path / "x.npy", "-o", out)
    assert missing.code == 3
    done = run("merge", *parts[::-1], "--features", tmp_path / "x.npy", "-o", out, "-q")
    assert done.code == 0, done.err
    assert run("search", tmp_path / "x.npy", *how, "-o", tmp_path / "w.npz").code == 0
    assert out.read_bytes() == (tmp_path / "w.npz").read_bytes()
    with np.load(parts[0]) as file:
        assert any(name.startswith("groups-") for name in file.files)
