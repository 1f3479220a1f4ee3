"""The house: who may import whom, and how large it may grow."""

import ast
from pathlib import Path

import pytest

import nnkgraph

pytestmark = pytest.mark.quick
HOME = Path(nnkgraph.__file__).parent
# A module imports only from its own room and from those before it.
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
DOORS = {"__init__", "__main__"}
"""What stands at the top for all rooms."""

FILES = {path: path.read_text() for path in sorted(HOME.rglob("*.py"))}
TREES = {path: ast.parse(text) for path, text in FILES.items()}


def statements(tree):
    return [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]


def imported(path):
    """Yield the full names that a module imports, for type checkers as well."""
    here = ("nnkgraph", *path.relative_to(HOME).parent.parts)
    for node in statements(TREES[path]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            base = here[: len(here) - node.level + 1] if node.level else ()
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def room(path):
    return path.relative_to(HOME).parts[0].removesuffix(".py")


def edges():
    """Yield each module with each name of ours or others that it imports."""
    for path in FILES:
        yield from ((path, (*name.split("."), "")) for name in imported(path))


def test_a_module_imports_only_from_rooms_before_its_own():
    assert {room(path) for path in FILES} - DOORS <= set(ROOMS)
    upward = [
        f"{path.relative_to(HOME)} imports {'.'.join(parts[:-1])}"
        for path, parts in edges()
        if room(path) not in DOORS
        and parts[0] == "nnkgraph"
        and parts[1] in ROOMS
        and ROOMS.index(parts[1]) > ROOMS.index(room(path))
    ]
    assert not upward, "\n".join(upward)


def test_what_is_private_is_imported_only_within_its_folder():
    foreign = []
    for path, parts in edges():
        for depth, part in enumerate(parts):
            private = part.startswith("_") and not part.startswith("__")
            if parts[0] == "nnkgraph" and private:
                folder = HOME.joinpath(*parts[1:depth])
                # of a name in a module, the folder is the module's
                folder = folder if folder.is_dir() else folder.parent
                if not path.is_relative_to(folder):
                    name = ".".join(parts[:-1])
                    foreign.append(f"{path.relative_to(HOME)} imports {name}")
    assert not foreign, "\n".join(foreign)


def test_only_the_command_line_knows_click():
    assert {room(path) for path, parts in edges() if parts[0] == "click"} == {"cli"}


def test_the_house_stays_small():
    lines = sum(len(text.splitlines()) for text in FILES.values())
    imports = sum(
        node.end_lineno - node.lineno + 1
        for tree in TREES.values()
        for node in statements(tree)
    )
    sizes = {
        "entries at the top": sum(p.name != "__pycache__" for p in HOME.iterdir()),
        "files": len(FILES),
        "lines": lines,
        "percent of lines that import": 100 * imports / lines,
    }
    most = dict(zip(sizes, (14, 196, 47_000, 6.1), strict=True))
    assert not {what: size for what, size in sizes.items() if size > most[what]}
