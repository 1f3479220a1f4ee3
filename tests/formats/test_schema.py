"""What ``info --schema`` says, beside real files of every format and real reports."""

import gzip
import json
import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from conftest import SAMPLES
from scipy.io import loadmat

import nnkgraph
from nnkgraph.data import SCHEMA
from nnkgraph.data.labels import Labels
from nnkgraph.formats._base import EXTRAS
from nnkgraph.runtime import registry

MOONS = SAMPLES / "two_moons.csv"
PLAIN = {"method": "knn", "kernel": "linear", "duplicates": "keep"}
"""Settings of graphs that carry as little as there is."""


@pytest.fixture(scope="module")
def schema():
    from nnkgraph.cli.commands import info

    return info._schema()


@pytest.fixture(scope="module")
def graphs():
    """One graph that has all that graphs may have, and one that has nothing."""
    x = np.random.default_rng(3).normal(size=(40, 3))
    x[7] = x[2]
    full = nnkgraph.build_graph(
        x, k=6, updatable=True, ids=[f"row{i}" for i in range(40)]
    )
    near = np.full((40, 7), -1, np.int32)
    bridges = np.array([[0, 1], [2, 3]])
    kept = replace(full.updatable, searched=np.array(39))
    full = replace(full, candidates=near, bridges=bridges, updatable=kept)
    return {"full": full, "bare": nnkgraph.build_graph(x, k=6, **PLAIN)}


# What is in a file, as other readers see it: parts, and in them names and arrays.


def arrays(path):
    with np.load(path) as archive:
        return {"members": dict(archive)}


def text(path, mark="#"):
    raw = path.read_bytes()
    content = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    lines = [one[2:] for one in content.splitlines() if one.startswith(f"{mark} ")]
    *facts, names = lines if mark == "#" else [*lines, "row column value"]
    header = {one.partition(":")[0]: one.partition(": ")[2] for one in facts}
    return {"header": header, "columns": dict.fromkeys(re.split("[\t, ]", names))}


def graphml(path):
    space = "{http://graphml.graphdrawing.org/xmlns}"
    found = {"graph": {}, "node": {}, "edge": {}}
    for key in ET.parse(path).iter(f"{space}key"):
        found[key.get("for")][key.get("attr.name")] = key.get("attr.type")
    return found


def gexf(path):
    space, root = "{http://www.gexf.net/1.2draft}", ET.parse(path).getroot()
    meta = {one.tag.removeprefix(space): "string" for one in root.find(f"{space}meta")}
    found = {"meta": meta, "node": {}, "edge": {}}
    for group in root.iter(f"{space}attributes"):
        for one in group:
            found[group.get("class")][one.get("title")] = one.get("type")
    return found


def parquet(path):
    table = pytest.importorskip("pyarrow.parquet").read_table(path)
    lines = table.schema.metadata[b"nnkgraph graph"].decode().splitlines()
    assert lines[0] == "nnkgraph graph"
    return {"columns": {name: table[name].to_numpy() for name in table.column_names}}


def mat(path):
    found = loadmat(path, spmatrix=False)
    return {"variables": {k: v for k, v in found.items() if not k.startswith("__")}}


def h5(path):
    with h5py.File(path) as file:
        assert json.loads(file.attrs["provenance"])["schema"] == SCHEMA
        return {"datasets": {name: values[()] for name, values in file.items()}}


READERS = {
    "npz": arrays,
    "pyg": arrays,
    "edgelist": text,
    "mtx": lambda path: text(path, "%"),
    "graphml": graphml,
    "gexf": gexf,
    "parquet": parquet,
    "mat": mat,
    "h5": h5,
}


def layout_of(known, kind, name):
    """Return the parts of a format; some say that they go on as another does."""
    parts = {k: dict(v) for k, v in known[kind][name].items() if isinstance(v, dict)}
    if name == "pyg":
        members = list(known["graph"]["npz"]["members"].items())
        first = next(i for i, (key, _) in enumerate(members) if key == "directed")
        parts["members"] |= dict(members[first:])
    if name == "mtx":
        parts["header"] = known["graph"]["edgelist"]["header"]
    return parts


def check(parts, found, *, full):
    """Compare the parts of a file with what the schema says of them."""
    assert set(found) == set(parts)
    sizes = {}
    for part, fields in parts.items():
        needed = {name for name in fields if not fields[name].get("optional")}
        assert set(found[part]) == (set(fields) if full else needed), part
        for name, value in found[part].items():
            if isinstance(value, str) and part != "header":
                assert value == fields[name]["type"]
            elif hasattr(value, "dtype"):
                kind = {"U": "text", "O": "text", "S": "bytes", "u": "bool"}
                own = kind.get(value.dtype.kind, str(value.dtype))
                own = "sparse" if hasattr(value, "tocsr") else own
                assert own in fields[name]["type"].split(" or "), name
                bind(fields[name].get("shape"), value.shape, sizes, name)


def bind(said, shape, sizes, name):
    """Check that a letter is the same number wherever it stands."""
    if said is None:
        return
    letters = [one for one in said.strip("()").split(", ") if one]
    assert len(letters) == len(shape), name
    for letter, size in zip(letters, shape, strict=True):
        known = letter.removesuffix("+1")
        own = size - 1 if letter.endswith("+1") else size
        expected = int(known) if known.isdigit() else sizes.setdefault(known, own)
        assert own == expected, name


WRITERS = {
    role: [
        name
        for name in registry.names("formats")
        if registry.load("formats", name).can(f"write_{role}") and name != "h5ad"
    ]
    for role in ("graph", "candidates", "answers")
}


def test_the_schema_has_every_format_that_is_written(schema):
    for role, names in WRITERS.items():
        assert set(schema[role]) - {"sidecar"} == set(names), role
    assert schema["schema"] == SCHEMA


@pytest.mark.parametrize("which", ["full", "bare"])
@pytest.mark.parametrize("name", WRITERS["graph"])
def test_graph_files_hold_what_the_schema_says(schema, graphs, name, which, tmp_path):
    graph, parts = graphs[which], layout_of(schema, "graph", name)
    plugin = registry.load("formats", name)
    labels = Labels.of(["a", "b"] * 20) if plugin.has_classes else None
    for suffix in schema["graph"][name]["suffixes"]:
        path = tmp_path / f"graph{suffix}"
        wanted = labels if which == "full" else None
        nnkgraph.write_graph(path, graph, labels=wanted)
        if suffix.endswith(".gz") and name in {"graphml", "gexf"}:
            continue
        check(parts, READERS[name](path), full=which == "full")
        beside = path.with_name(f"{path.name}.nnk.npz")
        carried = schema["graph"][name]["beside"] if which == "full" else []
        assert beside.exists() == bool(carried)
        if carried:
            members = dict(schema["graph"]["sidecar"]["members"])
            members |= {one: schema["graph"]["npz"]["members"][one] for one in carried}
            check({"members": members}, arrays(beside), full=True)


def test_what_graphs_carry_is_all_in_the_schema(schema):
    assert set(EXTRAS) <= set(schema["graph"]["npz"]["members"])


@pytest.mark.parametrize("name", WRITERS["candidates"])
def test_candidates_hold_what_the_schema_says(inside, schema, name, tmp_path):
    parts = layout_of(schema, "candidates", name)
    path = tmp_path / f"near.{name}"
    assert inside("search", MOONS, "--id-column", "id", "-k", 5, "-o", path).code == 0
    check(parts, READERS[name](path), full=True)
    bare = inside("search", MOONS, "--drop", "id", "-k", 5, "-o", path)
    assert bare.code == 0, bare.err
    check(parts, READERS[name](path), full=False)


@pytest.mark.parametrize("suffix", ["npz", "tsv"])
def test_answers_hold_what_the_schema_says(inside, schema, suffix, tmp_path):
    name = {"tsv": "edgelist"}.get(suffix, suffix)
    parts = layout_of(schema, "answers", name)
    path = tmp_path / f"near.{suffix}"
    line = ("query", MOONS, MOONS, "-k", 5, "-o", path)
    named = ("--id-column", "id", "--kernel", "cosine")
    bare = ("--drop", "id", "--kernel", "linear", "--method", "knn")
    for options, full in ((named, True), (bare, False)):
        done = inside(*line, *options, "--json")
        assert done.code == 0, done.err
        found = READERS[name](path)
        found.pop("header") if name == "edgelist" else None
        check(parts, found, full=full)
    if suffix == "npz":
        told = json.loads(str(found["members"]["provenance"]))
        assert not faults_of(told, schema["$defs"]["provenance"])


# JSON: provenance and reports.

_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


def faults_of(value, rule, place="$", *, known=True):
    """Return where a value is not what a JSON Schema says, or says nothing about."""
    kinds = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    good = any(isinstance(value, _TYPES[one]) for one in kinds)
    if not good or (isinstance(value, bool) and "boolean" not in kinds):
        return [f"{place}: {value!r} is no {kinds}"]
    found = []
    if isinstance(value, list):
        for one in value:
            found += faults_of(one, rule["items"], f"{place}[]")
    if isinstance(value, dict):
        lacking = set(rule.get("required", ())) - set(value) if known else ()
        found += [f"{place}: lacks {one}" for one in lacking]
        other = rule.get("additionalProperties")
        for key, one in value.items():
            own = rule.get("properties", {}).get(key, other)
            if own:
                found += faults_of(one, own, f"{place}.{key}")
            elif "properties" in rule:
                found.append(f"{place}: {key} is not in the schema")
    return found


def report():
    return json.loads(Path("r.json").read_text())


RUNS = {
    "plain": [],
    "all that may be": [
        "--connect",
        "mst",
        "--scale",
        "standard",
        "--round",
        "6",
        "--grow",
        "0.1",
        "--min-degree",
        "2",
        "--sigma",
        "kth-max",
        "--weights",
        "one",
    ],
    "components": ["--pca", "1"],
    "no certificate": ["--method", "knn", "--kernel", "linear"],
    "mean degree": ["--method", "kalofolias"],
}


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_reports_and_provenance_are_what_the_schema_says(inside, schema, options):
    done = inside(
        "build", MOONS, "--id-column", "id", "-k", 10, "-j", 1, "-o", "g.npz",
        "--report", "r.json", *options,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert not faults_of(report(), schema["$defs"]["report"])
    graph = nnkgraph.read_graph("g.npz")
    rule = schema["$defs"]["provenance"]
    assert not faults_of(graph.provenance, rule)
    assert graph.provenance["schema"] == SCHEMA


def test_reports_of_search_and_of_shards_have_no_other_members(inside, schema):
    defs = schema["$defs"]
    every = defs["provenance"]["properties"] | defs["report"]["properties"]
    rule = {"type": "object", "properties": every}
    line = (MOONS, "--drop", "id", "-j", 1, "--report", "r.json")
    for command in (
        ("search", *line, "-o", "near.npz"),
        ("search", *line, "-o", "part.npz", "--shard", "1/2"),
        ("build", *line, "-o", "p.npz", "--shard", "1/2", "--search",
         "precomputed:path=near.npz"),
    ):  # fmt: skip
        done = inside(*command)
        assert done.code == 0, done.err
        assert not faults_of(report(), rule, known=False)
        assert report()["schema"] == SCHEMA


# The command, and files of other versions.


def test_the_schema_is_printed_as_text_and_as_json(run, schema):
    told = run("info", "--schema")
    assert told.code == 0
    assert max(map(len, told.out.splitlines())) <= 80
    for name in ("update_searched", "kkt_max", "edge_weight", ".edgelist.gz"):
        assert name in told.out
    assert json.loads(run("info", "--schema", "--json").out) == schema


def test_a_graph_is_needed_unless_the_schema_is_asked_for(run):
    for line in (["info"], ["info", "--schema", "graph.npz"]):
        done = run(*line)
        assert done.code == 2
        assert "GRAPH" in done.lines[0]


@pytest.mark.parametrize("suffix", ["npz", "tsv", "mtx", "graphml", "gexf", "mat"])
def test_a_file_of_a_later_schema_is_refused(inside, graphs, suffix, tmp_path):
    about = graphs["bare"].provenance | {"schema": SCHEMA + 1}
    path = tmp_path / f"later.{suffix}"
    nnkgraph.write_graph(path, replace(graphs["bare"], provenance=about))
    done = inside("info", path)
    assert done.code == 3
    (line,) = done.lines
    assert f"schema {SCHEMA + 1}" in line
    assert "update nnkgraph" in line


def test_a_member_that_only_a_later_version_knows_does_no_harm(graphs, tmp_path):
    path = tmp_path / "graph.npz"
    nnkgraph.write_graph(path, graphs["full"])
    shutil.copy(path, tmp_path / "later.npz")
    with np.load(path) as archive:
        np.savez(tmp_path / "later.npz", news=np.arange(3), **archive)
    later = nnkgraph.read_graph(tmp_path / "later.npz")
    assert (later.adjacency != graphs["full"].adjacency).nnz == 0
    assert later.ids == graphs["full"].ids
