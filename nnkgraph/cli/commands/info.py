"""nnkgraph info: what a graph is like, or another result."""

from typing import Any

import click

from nnkgraph.cli import options, outcome, talk
from nnkgraph.cli.files import Files, read_result

_LONGEST = 63
"""Characters of a fact that fit a line; --json has all of it."""


@options.command
@click.argument("graph", type=click.Path(), required=False)
@click.option("--schema", is_flag=True, help="Print what files and reports hold.")
@options.for_graph
@options.shared("json")
def command(graph: str | None, schema: bool, files: Files, json: bool) -> None:
    """Print nodes, edges, degrees, components and weights of GRAPH.

    And its provenance: the parameters that it was built with. GRAPH may also be what
    search or query wrote. --json prints long values in full. --schema needs no
    GRAPH: it says what every format and every report holds, with --json as JSON Schema.

    \b
    Examples:
      nnkgraph info graph.npz
      nnkgraph info graph.graphml --json
      nnkgraph info --schema
    """
    if schema:
        if graph is not None:
            raise click.UsageError("--schema is about all files: leave GRAPH out")
        known = _schema()
        talk.data(talk.json_text(known) if json else "\n".join(_told(known)))
        return
    if graph is None:
        raise click.MissingParameter(param_hint="'GRAPH'", param_type="argument")
    from nnkgraph.build.report import description_of, readable

    known = description_of(*read_result(graph, files.format))
    if json:
        talk.data(talk.json_text(known))
        return
    facts = known["provenance"]
    known["metric"] = outcome.metric_text(known["metric"], facts.get("scale"))
    known["provenance"] = readable(facts)
    for name, value in known.items():
        text = _short(value)
        if isinstance(value, dict):
            inside = (_cut(f"{key} {_short(one)}") for key, one in value.items())
            text = ", ".join(map(talk.glued, inside)) or "-"
        talk.data(talk.hanging(f"{name:<15} ", text))


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return talk.printable(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _schema() -> dict[str, Any]:
    """Return what files and reports hold, as JSON Schema."""
    from json import loads
    from pkgutil import get_data

    from nnkgraph.runtime import registry

    known: dict[str, Any] = loads(get_data("nnkgraph.formats", "schema.json") or b"")
    for name, layout in known["graph"].items():
        if name != "sidecar":
            plugin = registry.load("formats", name)
            layout["suffixes"] = list(plugin.suffixes)
            layout["beside"] = list(plugin.sidecar)
    return known


def _told(known: dict[str, Any]) -> list[str]:
    """Return the lines of a schema."""
    lines = [f"schema {known['schema']}", talk.hanging("", known["description"])]
    for name, layout in known["$defs"].items():
        lines += [f"\n{name}", talk.hanging("  ", layout["description"])]
        lines += _fields(layout["properties"], layout["required"])
    for kind in ("graph", "candidates", "answers"):
        for name, layout in known[kind].items():
            ends = ", ".join(layout.get("suffixes", []))
            lines.append(f"\n{kind}: {name}" + (f" ({ends})" if ends else ""))
            lines.append(talk.hanging("  ", layout["description"]))
            if beside := layout.get("beside"):
                lines.append(talk.hanging("  ", f"beside it: {', '.join(beside)}"))
            for part, fields in layout.items():
                if isinstance(fields, dict):
                    needed = [one for one in fields if not fields[one].get("optional")]
                    lines += [f"  {part}:", *_fields(fields, needed)]
    return lines


def _fields(fields: dict[str, Any], needed: list[str], inside: str = "") -> list[str]:
    """Return a line for each field: name, type, whether it may be absent, meaning."""
    lines = []
    for name, field in fields.items():
        types = field["type"]
        kind = " or ".join(types) if isinstance(types, list) else types
        kind = " ".join(filter(None, [kind, field.get("shape", "")]))
        kind = ", ".join(filter(None, [kind, "" if name in needed else "optional"]))
        text = ": ".join(filter(None, [kind, field.get("description", "")]))
        lines.append(talk.hanging(f"    {inside + name:<19} ", text))
        if "properties" in field:
            lines += _fields(field["properties"], field["required"], f"{name}.")
    return lines
