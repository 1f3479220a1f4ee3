"""The house: who may import whom, and how long a file may be."""

import ast
from pathlib import Path

import pytest

import nnkgraph

HOME = Path(nnkgraph.__file__).parent
# A module imports only from rooms above its own.
ROOMS = [
    "errors",
    "runtime",
    "data",
    "formats",
    "kernels",
    "search",
    "methods",
    "build",
    "tasks",
    "sklearn",
    "testing",
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


def test_every_room_is_in_the_plan():
    assert {room(p) for p in MODULES} - {"__init__"} <= set(ROOMS)
