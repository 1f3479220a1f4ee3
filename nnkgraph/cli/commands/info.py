"""nnkgraph info: what a graph is like, or another result."""

from nnkgraph.cli import options, outcome, talk
from nnkgraph.cli.files import Files, read_result

_LONGEST = 63
"""Characters of a fact that fit a line; --json has all of it."""


@options.command
@options.graph_arg
@options.for_graph
@options.shared("json")
def command(graph: str, files: Files, json: bool) -> None:
    """Print nodes, edges, degrees, components and weights of GRAPH.

    And its provenance: the parameters that it was built with. GRAPH may also be what
    search or query wrote. --json prints long values in full.

    \b
    Examples:
      nnkgraph info graph.npz
      nnkgraph info graph.graphml --json
    """
    from nnkgraph.build.report import description_of

    known = description_of(*read_result(graph, files.format))
    if json:
        talk.data(talk.json_text(known))
        return
    known["metric"] = outcome.METRICS.get(known["metric"], "-")
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
