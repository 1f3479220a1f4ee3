"""nnkgraph list: the plug-ins."""

from __future__ import annotations

from typing import Any

import click

from nnkgraph.cli import options, talk
from nnkgraph.cli.command import Command

_FOLDERS = ("methods", "kernels", "search", "executors", "formats")


class _Folder(click.Choice):  # type: ignore[type-arg,unused-ignore]
    """A folder of plug-ins, by its name or by the word for one of them or for many."""

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Take the word for one or for many, too."""
        words = (value, f"{value}s", value.removesuffix("es"))
        known = next((word for word in words if word in self.choices), value)
        folder: str = super().convert(known, param, ctx)
        return folder


@click.command(cls=Command)
@click.argument("what", type=_Folder([*_FOLDERS, "rules"]), required=False)
@options.json_opt
@options.config_opt
def command(what: str | None, json: bool) -> None:
    """List methods, kernels, searches, executors, formats or rules.

    With parameters and their defaults, written as they are typed:
    name:parameter=value,...  A package that adds some is named with them.

    \b
    Examples:
      nnkgraph list
      nnkgraph list methods
    """
    from nnkgraph.build.catalog import catalog

    listed = catalog([what] if what else [*_FOLDERS, "rules"])
    if json:
        from json import dumps

        talk.data(dumps(listed, indent=2))
        return
    lines = []
    for folder, entries in listed.items():
        lines.append(f"{folder}:")
        width = max(len(entry["name"]) for entry in entries)
        for entry in entries:
            about = _about(entry)
            lines.append(talk.hanging(f"  {entry['name']:<{width}}  ", about))
            lines += [
                f"  {'':<{width}}  :{name}={value}"
                for name, value in entry["parameters"].items()
            ]
    talk.data("\n".join(lines))


def _about(entry: dict[str, Any]) -> str:
    if "broken" in entry:
        return f"broken: {entry['broken']}"
    about: str = entry["about"].replace("``", "")
    return f"{about} ({entry['package']})" if "package" in entry else about
