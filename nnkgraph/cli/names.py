"""Where the results of several inputs go."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from nnkgraph import formats
from nnkgraph.errors import InputError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Files:
    """What one input is read from and where its results go."""

    features: str
    output: str
    report: str | None
    resume: str | None


def names_of(
    features: tuple[str, ...], output: str, report: str | None, resume: str | None
) -> list[Files]:
    """Put each input's name into the names of its results."""
    if len(features) > 1:
        asked = {"--output": output, "--report": report, "--resume": resume}
        for option, value in asked.items():
            if value is not None and "{name}" not in value:
                _check_there(features)
                raise ParameterError(
                    f"{option}: several inputs need {{name}} in the file name, as in "
                    "'graphs/{name}.npz'"
                )
    named = []
    for spec in features:
        path, item = formats.split_item(spec)
        name = PurePath(path).name.removesuffix(".gz")
        name = PurePath(name).stem + (f"-{item.replace('/', '-')}" if item else "")
        names = (one and one.replace("{name}", name) for one in (report, resume))
        named.append(Files(spec, output.replace("{name}", name), *names))
    seen: dict[str, str] = {}
    for files in named:
        if files.output in seen:
            raise ParameterError(
                f"{seen[files.output]} and {files.features} would both be written to "
                f"{files.output}"
            )
        seen[files.output] = files.features
    return named


def _check_there(features: tuple[str, ...]) -> None:
    """Refuse words that are no files: they may belong to the option before them."""
    for spec in features:
        path = formats.split_item(spec)[0]
        if path != "-" and not os.path.lexists(path):
            raise InputError(
                f"{spec}: no such file; several columns of an option have "
                "commas between them, and no blanks: --drop city,segment"
            )


def check_resume(files: Files) -> None:
    """Refuse to write results into a directory that is removed in the end."""
    for name in (files.output, files.report):
        if files.resume and name and not formats.is_stream(name):
            parents = Path(name).resolve().parents
            if Path(files.resume).resolve() in parents:
                raise ParameterError(
                    f"{name}: is in the directory of --resume, which is removed once "
                    "the graph is written; name another"
                )


def check_shard_file(
    output: str, format_: str | None, *, no_clobber: bool, inputs: Sequence[str]
) -> None:
    """Check before any computing that a shard can be written."""
    if format_ not in {None, "npz"} or not output.lower().endswith(".npz"):
        raise ParameterError(
            f"{output}: a shard is an npz file, whatever it is merged to: give it a "
            "name such as part-1.npz, and merge the format"
        )
    formats.check_file(output, no_clobber=no_clobber, inputs=inputs)
