"""Options for reading tables, handed to commands as one value."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorator = Callable[[Any], Any]

_format_opt = click.option(
    "--format",
    metavar="NAME",
    help="Format of '-' or of a file whose name does not say; IN,OUT for both.",
)
_drop_opt = click.option(
    "--drop",
    multiple=True,
    metavar="NAME|NUMBER,...",
    help="Columns of a table that are left out; repeatable.",
)
_column_opts = (
    click.option("--delimiter", help="Between the fields of a text table."),
    click.option(
        "--header/--no-header",
        default=None,
        show_default="look",
        help="Whether a text table has a header row.",
    ),
    click.option(
        "--id-column",
        metavar="NAME|NUMBER",
        show_default="'id', where it holds words",
        help="Column of a table with row names.",
    ),
)


def for_features(function: Any) -> Any:
    """Add the options for reading tables with features, and other inputs."""
    return _format_opt(_gathered(function, _drop_opt, *_column_opts))


def for_labels(function: Any) -> Any:
    """Add the options for reading tables with one value per row, and other inputs."""
    return _format_opt(for_labels_only(function))


def for_labels_only(function: Any) -> Any:
    """Add these options where the format of another file is given by itself."""
    return _gathered(function, *_column_opts)


def _gathered(function: Any, *options: Decorator) -> Any:
    """Add options whose values the function takes as one, called table."""

    @functools.wraps(function)
    def call(**given: Any) -> Any:
        names = ("delimiter", "header", "id_column", "drop")
        table = {name: given.pop(name) for name in names if name in given}
        return function(table=table, **given)

    for option in options:
        option(call)
    return call
