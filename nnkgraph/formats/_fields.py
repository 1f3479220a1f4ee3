"""What a field of a table of text can be: a number, nothing, or a word."""

from __future__ import annotations

import re

NUMBER = re.compile(
    # Digits can be cut into parts in one way only: otherwise long ones take for ever.
    r"\s*[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf(inity)?)\s*",
    re.IGNORECASE,
)
MISSING = {"", "na", "n/a", "null", "none", "nil", "-", "?", "missing"}
_LETTER = re.compile(r"[^\W\d]")


def is_word(field: str) -> bool:
    """Return whether a field can only be text."""
    known = NUMBER.fullmatch(field) or field.strip().lower() in MISSING
    return not known and bool(_LETTER.search(field))
