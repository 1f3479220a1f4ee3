"""Every public name with its docstring, as Markdown: prints docs/api.md."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import nnkgraph
from nnkgraph.runtime import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN = (str, int, float, bool, type(None))
_ENTRY = re.compile(r"^(\S.*?)(?: : (.*))?$")
_UNDERLINED = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_LISTS = {"Parameters", "Returns", "Raises", "Warns", "Attributes", "Yields"}


def api() -> str:
    """Return the text of docs/api.md."""
    names = {name: getattr(nnkgraph, name) for name in nnkgraph.__all__}
    functions = [name for name, one in names.items() if inspect.isfunction(one)]
    classes = [name for name, one in names.items() if inspect.isclass(one)]
    modules = [name for name, one in names.items() if inspect.ismodule(one)]
    sklearn = importlib.import_module("nnkgraph.sklearn")
    return "\n".join(
        [
            "# API",
            "",
            "Public names of `nnkgraph` with their docstrings, by `make reference`.",
            "Tests run every example. [In Python](python.md) is where to start.",
            "",
            "## Functions",
            "",
            *(line for name in functions for line in _function(name, names[name])),
            "## Values",
            "",
            *(line for name in classes for line in _class(name, names[name])),
            "## Estimators for scikit-learn",
            "",
            *(
                line
                for name in sklearn.__all__
                for line in _class(f"sklearn.{name}", getattr(sklearn, name))
            ),
            "## Modules",
            "",
            *(line for name in modules for line in _module(name, names[name])),
        ]
    )


def _function(name: str, function: Any) -> Iterator[str]:
    call = f"nnkgraph.{name}{_signature(function)}"
    yield from (f"### {name}", "", "```python", *_wrapped(call), "```", "")
    yield from _docstring(inspect.getdoc(function) or "")


def _class(name: str, cls: Any) -> Iterator[str]:
    yield from (f"### {name}", "")
    yield from _docstring(inspect.getdoc(cls) or "")
    about = _fields(cls)
    rows = [(one, text) for one, text in about.items() if not one.startswith("_")]
    known = {one for one, _ in rows}
    for parent in inspect.getmro(cls):
        if not parent.__module__.startswith("nnkgraph"):
            continue
        for member, value in vars(parent).items():
            if member.startswith("_") or member in known:
                continue
            known.add(member)
            rows += _member(member, value)
    if rows:
        yield from ("| | |", "|---|---|")
        yield from (f"| `{one}` | {_cell(text)} |" for one, text in rows)
        yield ""


def _member(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Return a method or a property that has a docstring of its own."""
    bare = getattr(value, "__func__", value)
    call = inspect.isfunction(bare)
    if call or isinstance(value, property) or hasattr(value, "attrname"):
        text = (bare.__doc__ or "").strip().partition("\n\n")[0]
        if text:
            yield (f"{name}()" if call else name), text


def _module(name: str, module: Any) -> Iterator[str]:
    """Return the classes and functions of a module, a line each."""
    yield from (f"### {name}", "")
    yield from _docstring((inspect.getdoc(module) or "").partition("\n\n")[0])
    public = getattr(module, "__all__", None) or [
        one
        for one, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__ and one[0] != "_"
    ]
    found = ((one, getattr(module, one)) for one in public)
    named = [pair for pair in found if callable(pair[1])]
    if name in {"kernels", "methods"}:  # classes of plug-ins, by their own names
        plugins = [registry.load(name, one) for one in registry.names(name)]
        named = [(one.__name__, one) for one in plugins] + named
    yield from ("| | |", "|---|---|")
    for one, value in named:
        text = (inspect.getdoc(value) or "").partition("\n\n")[0]
        yield f"| `{name}.{one}` | {_cell(text)} |"
    yield ""


def _signature(function: Any) -> str:
    """Return a call as one types it: names and plain defaults."""
    signature = inspect.signature(function)
    shown = []
    for one in signature.parameters.values():
        default = one.default
        if default is not one.empty and not isinstance(default, _PLAIN):
            default = "..."
        shown.append(one.replace(annotation=one.empty, default=default))
    plain = signature.replace(parameters=shown, return_annotation=signature.empty)
    return str(plain).replace("'...'", "...")


def _wrapped(call: str) -> list[str]:
    return textwrap.wrap(call, 80, subsequent_indent="    ", break_on_hyphens=False)


def _docstring(text: str) -> Iterator[str]:
    """Return a docstring in numpy's style: sections become lists and blocks."""
    head, *parts = _UNDERLINED.split(text)
    yield from (_prose(head.strip()), "")
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        yield from (f"**{title}**", "")
        if title == "Examples":
            yield from ("```pycon", body.strip(), "```")
        elif title in _LISTS:
            yield from _entries(body)
        else:
            yield _prose(body.strip())
        yield ""


def _entries(body: str) -> Iterator[str]:
    """Return a section of names with their descriptions as a list."""
    found: list[tuple[str, list[str]]] = []
    for line in body.strip("\n").splitlines():
        if line[:1].strip():
            found.append((line, []))
        elif found:
            found[-1][1].append(line.strip())
    for title, about in found:
        match = _ENTRY.match(title)
        name, kind = match.groups() if match else (title, None)
        head = f"- `{name}`" + (f", {_prose(kind)}" if kind else "")
        text = _prose(" ".join(about).strip())
        yield f"{head}: {text}" if text else head


def _fields(cls: type) -> dict[str, str]:
    """Return the fields of a dataclass with the strings that stand below them."""
    about = {one.name: "" for one in fields(cls)} if is_dataclass(cls) else {}
    tree: Any = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    for one, after in pairwise(tree.body if about else ()):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            value = after.value if isinstance(after, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                about[one.target.id] = inspect.cleandoc(value.value)
    return about


def _prose(text: str) -> str:
    """Return text of a docstring as Markdown."""
    text = re.sub(r":\w+:`([^`]*)`", r"`\1`", text)
    text = re.sub(r"``([^`]*)``", r"`\1`", text)
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(
        piece if piece.startswith("`") else re.sub(r"([*_<>\[\]])", r"\\\1", piece)
        for piece in pieces
    )


def _cell(text: str) -> str:
    return _prose(" ".join(text.split())).replace("|", "\\|")


if __name__ == "__main__":
    print(api().rstrip("\n"))
