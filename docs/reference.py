"""Every command with its options, and every plug-in, as Markdown.

Prints docs/reference.md; with names of folders, the README's tables of plug-ins.
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from nnkgraph.build.catalog import catalog
from nnkgraph.cli.command import Command
from nnkgraph.cli.main import cli
from nnkgraph.runtime import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDERS = {
    "methods": "what weight an edge gets (`--method`)",
    "kernels": "the similarity of two nodes (`--kernel`)",
    "search": "how candidates are found (`--search`)",
    "executors": "where blocks of rows are computed (`--executor`)",
    "formats": "what can be read and written",
}


def reference() -> str:
    """Return the text of docs/reference.md."""
    lines = [
        "# Reference",
        "",
        "Made from the commands themselves by `make reference`. On a terminal,",
        "`nnkgraph COMMAND --help` says the same.",
        "",
    ]
    settings: Any = cli.context_settings
    with click.Context(cli, info_name="nnkgraph", **settings) as context:
        for name in registry.names("cli/commands"):
            command = cli.get_command(context, name)
            if isinstance(command, Command):
                lines += _command(command, name, context)
    for folder, about in _FOLDERS.items():
        lines += [f"## {folder.capitalize()}: {about}", "", markdown(folder), ""]
    lines += ["## Rules: which direction counts (`--symmetrize`)", "", "| name | |"]
    rules = catalog(["rules"])["rules"]
    lines += ["|---|---|", *(f"| `{one['name']}` | {one['about']} |" for one in rules)]
    return "\n".join(lines) + "\n"


def markdown(folder: str) -> str:
    """Return the plug-ins of a folder as the a table."""
    lines = ["| name | parameters | |", "|---|---|---|"]
    for entry in catalog([folder])[folder]:
        parameters = entry["parameters"].items()
        shown = ", ".join(f"`{name}={value}`" for name, value in parameters)
        lines.append(f"| `{entry['name']}` | {shown} | {entry['about']} |")
    return "\n".join(lines)


def _command(command: Command, name: str, parent: click.Context) -> Iterator[str]:
    with click.Context(command, info_name=name, parent=parent) as context:
        pieces = " ".join(command.collect_usage_pieces(context))
        yield from (f"## nnkgraph {name}", "", "```text", f"nnkgraph {name} {pieces}")
        yield from ("```", "", *_help(command), "")
        yield from ("| option | | default |", "|---|---|---|")
        groups = command.grouped(context)
        for heading, options in groups.items():
            yield from [f"| **{heading}** | | |"] if len(groups) > 1 else []
            yield from (_option(one, context) for one in options)
        yield ""


def _help(command: click.Command) -> Iterator[str]:
    """Return the help text: paragraphs as they are, examples as a block."""
    text = inspect.cleandoc(command.help or "")
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b"):
            title, _, block = paragraph.removeprefix("\b\n").partition("\n")
            yield from (title, "", "```text", inspect.cleandoc(block), "```", "")
        else:
            yield from (_plain(paragraph), "")


def _option(option: click.Option, context: click.Context) -> str:
    metavar = option.make_metavar(context)
    if option.is_flag or option.count:
        metavar = ""
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if metavar:
        bars = metavar.replace("|", "\\|")  # in a table, also within code
        names = f"{names} `{bars}`"
    return f"| {names} | {_plain(option.help or '')} | {_default(option)} |"


def _default(option: click.Option) -> str:
    """Return what holds where an option is not given."""
    shown: Any = option.show_default
    if isinstance(shown, str):
        return shown
    if option.required:
        return "required"
    value: Any = option.default
    several = value if isinstance(value, tuple) else (value,)
    plain = all(type(one) in {str, int, float} for one in several)
    if not plain or option.show_default is False:
        return ""
    return ", ".join(f"`{one}`" for one in several)


def _plain(text: str) -> str:
    """Return a text in one line that Markdown shows as it is."""
    return re.sub(r"([|*_<>])", r"\\\1", " ".join(text.split()))


if __name__ == "__main__":
    tables = [markdown(folder) for folder in sys.argv[1:]]
    print("\n\n".join(tables) if tables else reference().rstrip("\n"))
