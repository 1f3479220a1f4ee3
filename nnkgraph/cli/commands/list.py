"""nnkgraph list: the plug-ins."""

import click

from nnkgraph.cli import options, talk, types
from nnkgraph.cli.command import Command

_LISTED = [*types.FOLDERS, "rules", "presets"]


@click.command(cls=Command)
@click.argument("what", type=types.Word(_LISTED), required=False)
@options.shared("json")
@options.config_opt
def command(what: str | None, json: bool) -> None:
    """List what there is: plug-ins, rules and presets.

    With parameters and their defaults, written as they are typed:
    name:parameter=value,...  A package that adds some is named with them.

    \b
    Examples:
      nnkgraph list
      nnkgraph list methods
    """
    from nnkgraph.build.catalog import catalog

    listed = catalog([what] if what else _LISTED)
    if json:
        from json import dumps

        talk.data(dumps(listed, indent=2))  # what others add may have infinite defaults
        return
    lines = []
    for folder, entries in listed.items():
        lines.append(f"{folder}:")
        width = max(len(entry["name"]) for entry in entries)
        for entry in entries:
            about = entry.get("about", "").replace("``", "")
            if "broken" in entry:
                about = f"broken: {entry['broken']}"
            elif "package" in entry:
                about += f" ({entry['package']})"
            lines.append(talk.hanging(f"  {entry['name']:<{width}}  ", about))
            lines += [
                f"  {'':<{width}}  :{name}={value}"
                for name, value in entry["parameters"].items()
            ]
    talk.data("\n".join(lines))
