"""Text that fits a terminal of 80 columns, the same there and in a pipe."""

from __future__ import annotations

import shlex

WIDTH = 80
_GLUE = "\xa0"
"""A space at which no line ends; text that was made printable has none."""


def hanging(start: str, text: str, *, indent: int = 0, room: int = 0) -> str:
    """Return text behind its start, further lines below the text or at an indent.

    Words that are longer than a line stay whole: they may be names of files.
    """
    import textwrap

    return textwrap.fill(
        text.replace(" %", f"{_GLUE}%"),
        WIDTH - room,
        initial_indent=start,
        subsequent_indent=" " * (indent or len(start)),
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(_GLUE, " ")


def glued(text: str) -> str:
    """Return a text that :func:`hanging` does not take apart."""
    return text.replace(" ", _GLUE)


def shell_line(start: str, line: str) -> str:
    """Return a command in lines that a shell takes as one, with backslashes."""
    words = " ".join(glued(shlex.quote(word)) for word in shlex.split(line))
    lines = hanging(start, words, indent=len(start) + 2, room=2)
    return lines.replace("\n", " \\\n")
