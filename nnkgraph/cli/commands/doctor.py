"""nnkgraph doctor: what data is like, and which options suit it."""

from __future__ import annotations

import shlex
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import nnkgraph
from nnkgraph import formats
from nnkgraph.cli import options, progress, talk

if TYPE_CHECKING:
    from nnkgraph.cli.files import Files
    from nnkgraph.tasks.doctor import Diagnosis

_WIDTH = 30
"""Characters of the longest bar."""

_BLOCKS = " ▏▎▍▌▋▊▉█"
"""Eighths of a character."""

_DEFAULTS = {"kernel": "gaussian", "search": "auto", "scale": "none", "seed": 0}
"""What ``build`` takes anyway and need not be written out."""


@options.command
@options.features_arg
@options.shared("preset k kernel sigma search scale pca workers executor seed")
@options.for_features
@options.shared("json")
def command(features: str, files: Files, json: bool, **settings: Any) -> None:
    """Say what FEATURES are like and what to run on them.

    Reports copies and near-copies, whether rows look like embeddings, scales, hubs,
    how much NNK prunes, whether all similarities are alike, how its graph differs from
    mutual kNN, isolated nodes under each rule, whether k was enough and how the
    bandwidth fits; then suggests a line that was tried out: its graph has no isolated
    node. '!' marks what asks for something to be done. Of more than 20,000 rows it
    looks at a sample, says so, and says how hard the data is for approximate search.

    \b
    Examples:
      nnkgraph doctor points.npy
      nnkgraph doctor table.csv --id-column id -k 15
      nnkgraph doctor data.h5::features --scale unit --json
    """
    given = {**settings, "format": files.format, "ids": files.ids, **files.table}
    matrix = files.features(features, kernel=settings["kernel"])
    shown = progress.Progress()
    found = nnkgraph.doctor(matrix, progress=shown, **settings)
    talk.summary(*shown.unsaid(found.notes))
    line = _line(features, given, found)
    text = _text(features, found, line)
    talk.data(talk.json_text(_figures(found, line)) if json else text)


def _line(features: str, given: dict[str, Any], found: Diagnosis) -> str | None:
    """Return the suggested command, ready for a shell."""
    if found.suggestion is None:
        return None
    name = "" if features == "-" else PurePath(formats.split_item(features)[0]).name
    stem = PurePath(name.removesuffix(".gz")).stem
    safe = f"./{features}" if features.startswith("-") and name else features
    words = ["nnkgraph", "build", safe, "-o"]
    target = f"{stem}-graph.npz" if stem else "graph.npz"
    words.append(f"./{target}" if target.startswith("-") else target)
    for option, value in {**given, **found.suggestion.settings}.items():
        if option in {"workers", "executor"} or value is None:
            continue
        flag = f"--{option.replace('_', '-')}"
        if option == "header":
            words.append(flag if value else "--no-header")
        elif option == "drop":
            words += [word for one in value for word in (flag, one)]
        elif value != _DEFAULTS.get(option):
            words += ["-k" if option == "k" else flag, str(value)]
    return shlex.join(words)


def _figures(found: Diagnosis, line: str | None) -> dict[str, Any]:
    """Return all figures, the findings and the suggestion as JSON values."""
    told = found.suggestion
    return {
        **found.figures,
        "findings": [
            {
                "section": one.section,
                "text": talk.as_options(one.text),
                "advice": one.advice,
            }
            for one in found.findings
        ],
        "suggestion": told
        and {
            "command": line,
            "settings": told.settings,
            "reasons": [talk.as_options(one) for one in told.reasons],
            **told.facts,
        },
    }


def _text(features: str, found: Diagnosis, line: str | None) -> str:
    """Return the findings, section by section."""
    lines = [talk.printable(features)]
    section = ""
    for one in found.findings:
        if one.section != section:
            section = one.section
            lines += ["", section]
        text = talk.printable(talk.as_options(one.text))
        lines.append(talk.hanging("! " if one.advice else "  ", text, indent=4))
        lines += _bars(one.bars)
    lines += ["", "suggested"]
    if found.suggestion is None or line is None:
        lines.append("! nothing: every graph tried has isolated nodes")
    else:
        facts = found.suggestion.facts
        lines.append(talk.shell_line("  ", talk.printable(line)))
        lines += [
            talk.hanging("  ", f"because {talk.as_options(reason)}", indent=4)
            for reason in found.suggestion.reasons
        ]
        if found.figures["columns"].get("keys"):
            lines.append("! this takes what looks like a key for a feature: see above")
        tried = f"tried{_tried(facts, found.figures['sample'])}"
        lines.append(talk.hanging("  ", tried, indent=4))
        if (facts["components"] or 1) > 1:
            lines.append("  --connect mst would join the components")
    return _encodable("\n".join(lines))


def _tried(facts: dict[str, Any], sample: dict[str, int] | None) -> str:
    """Return what became of the suggestion: of all rows, or of a sample."""
    each = f"{facts['edges_per_node']:.2f} per node"
    if sample:
        nodes = sample["nodes"]  # by the rule of three, at a level of 95 %
        most = f"none of {nodes} nodes isolated, so below {300 / nodes:.1f} % of all"
        return f" on the sample: about {facts['edges']} edges, {each}, {most}"
    edges, alone = facts["edges"], facts["isolated"]
    parts = f"components: {facts['components']}, isolated: {alone}"
    return f": {edges} edges, {each}, {parts}"


def _bars(bars: list[tuple[str, int]]) -> list[str]:
    """Draw a histogram, in ASCII where the terminal or pipe has no block characters."""
    if not bars:
        return []
    most = max(1, *(count for _, count in bars))
    label = max(len(name) for name, _ in bars)
    digits = len(str(most))
    return [
        f"    {name:>{label}} {count:>{digits}} {_bar(count / most)}".rstrip()
        for name, count in bars
    ]


def _bar(share: float) -> str:
    """Return a bar; what is above zero shows."""
    if _encodable(_BLOCKS) != _BLOCKS:
        return "#" * max(round(share * _WIDTH), share > 0)
    eighths = max(round(share * _WIDTH * 8), int(share > 0))
    return _BLOCKS[8] * (eighths // 8) + _BLOCKS[eighths % 8].strip()


def _encodable(text: str) -> str:
    """Escape what standard output cannot write, instead of failing on it."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return text.encode(encoding, "backslashreplace").decode(encoding)
