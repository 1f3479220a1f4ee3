"""Which format a file has: by the longest known ending of its name, or as told."""

from __future__ import annotations

import dataclasses
import os
from functools import cache
from typing import Any

from nnkgraph.errors import NnkGraphError, ParameterError
from nnkgraph.formats._base import MADE, Format
from nnkgraph.runtime import registry
from nnkgraph.runtime.files import Source, is_stdout, open_source, show

_SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
"""Endings of files that are not read; every program that makes them writes CSV."""

_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".svg", ".pdf")

_ARROW = (".feather", ".arrow", ".ipc", ".orc")
_OF_R = (".rds", ".rda", ".rdata")
_PICKLES = (".pkl", ".pickle", ".joblib")
"""The same of what pandas and polars write, which write Parquet as well."""


FOLDER = "/"
"""What stands for the suffix of a folder."""


def matrix_of(folder: str) -> str | None:
    """Return the matrix in a folder of 10x Genomics, or None for anything else."""
    paths = (os.path.join(folder, one) for one in ("matrix.mtx", "matrix.mtx.gz"))  # noqa: PTH118 - any string
    return next(filter(os.path.isfile, paths), None) if folder else None


def split_item(spec: str) -> tuple[str, str | None]:
    """Split ``FILE::ITEM``; a path that exists as a whole wins."""
    path, item = spec, ""
    while not (path == "-" or os.path.exists(path)):  # noqa: PTH110 - any string
        path, mark, tail = path.rpartition("::")
        if not mark:
            # Nothing exists: the last mark is the likeliest to be ours.
            path, _, item = spec.rpartition("::") if "::" in spec else (spec, "", "")
            break
        item = f"{tail}::{item}" if item else tail
    return path, item or None


@cache
def suffixes(role: str) -> dict[str, str]:
    """Return every suffix of ours that serves a role, and the name of its format."""
    return {
        suffix: name
        for name in registry.names("formats")
        if registry.load("formats", name).can(role)
        for suffix in registry.load("formats", name).suffixes
    }


def all_suffixes(role: str) -> tuple[dict[str, str], list[str]]:
    """Return also those of other packages, and what is wrong with broken ones."""
    found, broken = dict(suffixes(role)), []
    for name in registry.foreign("formats"):
        try:
            plugin = registry.load("formats", name)
        except NnkGraphError as error:
            broken.append(str(error))
            continue
        if plugin.can(role):
            for suffix in plugin.suffixes:
                found.setdefault(suffix.lower(), name)
    return found, broken


def _namesake(path: str, role: str) -> Any:
    """Return the format called like the ending of x.npy: no other need be loaded."""
    stem, dot, ending = os.path.basename(path).lower().partition(".")  # noqa: PTH119
    if stem and dot and ending in registry.names("formats"):
        found = registry.load("formats", ending)
        return found if f".{ending}" in found.suffixes and found.can(role) else None
    return None


def is_known(path: str | os.PathLike[str], role: str) -> bool:
    """Return whether a name says which format a file has, for a role."""
    given = split_item(os.fspath(path))[0]
    if role == "read_features" and matrix_of(given):
        return True
    name = given.lower()
    if _namesake(name, role) is not None:
        return True
    ours = name.endswith(tuple(suffixes(role)))
    return ours or name.endswith(tuple(all_suffixes(role)[0]))


def choose(role: str, path: str, wanted: str | Format | None) -> tuple[Format, str]:
    """Return the format for a path, and the suffix that stands for it."""
    lower = os.path.basename(path).lower()  # noqa: PTH119 - any string
    if isinstance(wanted, Format):
        own = wanted.suffixes
        return wanted, max((s for s in own if lower.endswith(s)), key=len, default="")
    if wanted is None and (found := _namesake(path, role)):
        return found(), lower[lower.index(".") :]
    known, broken = suffixes(role), list[str]()
    suffix = _suffix(known, lower, wanted)
    if not suffix:  # only now are other packages looked at
        known, broken = all_suffixes(role)
        suffix = _suffix(known, lower, wanted)
    if suffix:
        return registry.load("formats", known[suffix])(), suffix
    if wanted in registry.foreign("formats"):
        registry.load("formats", wanted)  # raises what is wrong with a broken one
    choices = "; ".join([", ".join(known), *broken])
    if wanted is not None:
        raise ParameterError(f"unknown format {wanted!r}; choose from {choices}")
    if is_stdout(path):
        which = "input" if role.startswith("read") else "output"
        raise ParameterError(f"{show(path)}: standard {which}: name its `format`")
    _refuse_others(role, path, lower)
    raise ParameterError(
        f"{show(path)}: the file name ends in none of {choices}; rename it or name "
        "its `format`"
    )


def _suffix(known: dict[str, str], lower: str, wanted: str | None) -> str:
    """Return the suffix that a format's name or a file's name stands for, if any."""
    if wanted is None:
        return max((s for s in known if lower.endswith(s)), key=len, default="")
    suffix = "." + wanted.lower().removeprefix(".")
    if suffix not in known:
        suffix = next((s for s in known if known[s].lower() == suffix[1:]), "")
    # A name such as graph.txt.gz asks for compression whatever the format is.
    if suffix + ".gz" in known and lower.endswith(".gz"):
        suffix += ".gz"
    return suffix


def _refuse_others(role: str, path: str, lower: str) -> None:
    """Say what helps where a name belongs to a kind of file that is no use here."""
    what = ""
    done = "read" if role.startswith("read") else "written"
    if lower.endswith(_SPREADSHEETS) and done == "read":
        what = "spreadsheets are not read: save it as CSV (or Parquet)"
    elif lower.endswith(_OF_R):
        what = f"R's own files are not {done}: take write.csv(x, FILE) or Parquet"
    elif lower.endswith(_PICKLES):
        what = f"pickles are never {done}: take numpy.save(FILE, x) or Parquet"
    elif lower.endswith(_ARROW):
        what = f"Arrow files are not {done}: take Parquet, which holds the same table"
    elif lower.endswith(_PICTURES) and role == "read_features":
        what = "pictures are no features: save numbers, a row each, as .npy or .csv"
    elif lower.endswith(_PICTURES):
        what = "pictures are no graphs; nnkgraph plot draws them of one"
    elif lower.endswith(_SPREADSHEETS):
        what = "spreadsheets are not written: write .csv, which they open"
    elif role == "read_graph" and is_known(lower, "read_features"):
        what = f"such files hold features, not a graph: {MADE}"
    if what:
        raise ParameterError(f"{show(path)}: {what}")


def reader(role: str, spec: str, wanted: str | None) -> tuple[Format, Source]:
    """Open ``FILE::ITEM`` and return the format that reads it, and the source."""
    path, item = split_item(spec)
    if path == "-":
        choose(role, path, wanted)  # before anything is waited for
    inside = matrix_of(path) if role == "read_features" else None
    if inside is not None and item is None:
        source = open_source(inside, name=spec)
        mtx: Format = registry.load("formats", "mtx")()
        return mtx, dataclasses.replace(source, suffix=FOLDER)
    source = open_source(path, item=item, name=spec)
    if role == "read_features":
        from nnkgraph.formats._graphs import refuse_graph

        refuse_graph(source, by_name=wanted is None)
    plugin, suffix = choose(role, path, wanted)
    columns = role == "read_column" and not plugin.binary  # of a table of text
    if source.item is not None and not (plugin.has_items or columns):
        raise ParameterError(
            f"{source.name}: this format holds a single array; leave out "
            f"'::{show(source.item)}'"
        )
    return plugin, dataclasses.replace(source, suffix=suffix)
