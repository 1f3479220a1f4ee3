"""The house: who may import whom, and how long a file may be."""

import ast
from pathlib import Path

import pytest

import nnkgraph

HOME = Path(nnkgraph.__file__).parent
# A module imports only from rooms above its own.
ROOMS = [
    "errors",
    "shard",
    "resources",
    "memory",
    "scratch",
    "pages",
    "bounded",
    "blockwise",
    "registry",
    "stages",
    "checks",
    "gram",
    "objects",
    "sparse_rows",
    "data",
    "edges",
    "labels",
    "compiled",
    "lanes",
    "sparse_lanes",
    "exponential",
    "pairs",
    "scaling",
    "sparse_pairs",
    "components",
    "similarity",
    "qp",
    "duplicates",
    "formats",
    "fingerprint",
    "checkpoint",
    "executors",
    "blocks",
    "shared_rows",
    "search",
    "radius",
    "kernel",
    "problem",
    "kernels",
    "methods",
    "neighborhoods",
    "grow",
    "connect",
    "rounding",
    "symmetrize",
    "report",
    "describe",
    "prepare",
    "advice",
    "resume",
    "budget",
    "find",
    "assemble",
    "build",
    "into",
    "shards",
    "query",
    "catalog",
    "tasks",
    "sklearn",
    "cli",
]
MODULES = sorted(
    p.relative_to(HOME) for p in HOME.rglob("*.py") if p.name != "__main__.py"
)


def room(path: Path) -> str:
    return path.parts[0].removesuffix(".py")


def imports(path: Path):
    for node in ast.walk(ast.parse((HOME / path).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(
    "path", [p for p in MODULES if len(p.parts) > 1 or p.stem != "__init__"], ids=str
)
def test_a_module_imports_only_from_above(path):
    above = ROOMS[: ROOMS.index(room(path)) + 1]
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "nnkgraph" and len(parts) > 1 and parts[1] in ROOMS:
            assert parts[1] in above, f"{path} imports {name}"
        if parts[0] == "click":
            assert room(path) == "cli", f"{path} imports click"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_files_stay_short(path):
    assert len((HOME / path).read_text().splitlines()) <= 250


def test_every_room_is_in_the_plan():
    assert {room(p) for p in MODULES} - {"__init__"} == set(ROOMS)
