"""Damage that knows nothing about the format."""

from __future__ import annotations

import re
from random import Random

_BYTES = [b"\0", b"\x01", b"\x7f", b"\x80", b"\xff", b"\n", b"\r", b'"', b"<", b"&"]
_COUNTS = [0, 1, 2**15 - 1, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1]
_NUMBERS = [b"0", b"-1", b"1000000000", b"999999999999999", b"1" + b"0" * 30, b"1e9"]


def mutate(data: bytes, other: bytes, chance: Random) -> bytes:
    """Damage bytes in one to four places; `other` is a file to take parts from."""
    content = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 4])):
        if content:
            chance.choice(_WAYS)(content, other, chance)
    return bytes(content)


def _span(content: bytearray, chance: Random) -> slice:
    start = chance.randrange(len(content))
    most = chance.choice([1, 4, 16, len(content)])
    return slice(start, min(len(content), start + chance.randint(1, most)))


def _flip(content: bytearray, _other: bytes, chance: Random) -> None:
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def _replace(content: bytearray, _other: bytes, chance: Random) -> None:
    content[_span(content, chance)] = chance.choice(_BYTES) * chance.choice([1, 1, 8])


def _cut(content: bytearray, _other: bytes, chance: Random) -> None:
    del content[chance.randrange(len(content)) :]


def _remove(content: bytearray, _other: bytes, chance: Random) -> None:
    del content[_span(content, chance)]


def _repeat(content: bytearray, _other: bytes, chance: Random) -> None:
    part = bytes(content[_span(content, chance)])
    at = chance.randrange(len(content) + 1)
    content[at:at] = part * chance.choice([1, 1, 3, 50])


def _insert(content: bytearray, _other: bytes, chance: Random) -> None:
    at = chance.randrange(len(content) + 1)
    content[at:at] = chance.randbytes(chance.choice([1, 2, 8, 64]))


def _splice(content: bytearray, other: bytes, chance: Random) -> None:
    if other:
        at = chance.randrange(len(content))
        content[at:] = other[chance.randrange(len(other)) :]


def _count(content: bytearray, _other: bytes, chance: Random) -> None:
    """Put an extreme number where one of 2, 4 or 8 bytes may stand."""
    width = chance.choice([2, 4, 8])
    at = chance.randrange(len(content))
    value = chance.choice(_COUNTS) % (1 << 8 * width)
    content[at : at + width] = value.to_bytes(width, "little")


def _number(content: bytearray, _other: bytes, chance: Random) -> None:
    """Put an extreme number where digits stand, as in headers and sizes."""
    found = list(re.finditer(rb"[0-9]+", content))
    if found:
        one = chance.choice(found)
        content[one.start() : one.end()] = chance.choice(_NUMBERS)


_WAYS = [_flip, _replace, _cut, _remove, _repeat, _insert, _splice, _count, _number]
