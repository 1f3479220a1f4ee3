"""Damage to text: its words, its lines, and what only XML has."""

from __future__ import annotations

import gzip
import re
import zlib
from random import Random

from fuzz import blind

_WORDS = [
    *("nan", "inf", "-inf", "1e400", "-1e-400", "1e151", "5e-324", "0", "-0", "-1", ""),
    *(
        "1" * 25,
        "9" * 5000,
        "-" + "9" * 5000,
        "1_000",
        "0x1p3",
        "1e5",
        "١٢",
        "²",
        "1,5",
    ),
    *("NA", "none", "?", "true", "\0", "\x1b[31m", "\u2028", "\ufeff", "'", '"', '""'),
    *('"a\nb"', '"' + "7" * 140_000 + '"', "z" * 200_000, ",", "\t", ";", "#", "%"),
    *(
        "a" * 70,
        "é",
        "\U0001f600",
        "=cmd()",
        "<b>",
        "&amp;",
        "&#0;",
        "&x;",
        "]]>",
        "//",
    ),
    *("1000000000", "3000000000", "4611686018427387904", "18446744073709551616"),
    *("[" * 3000, '{"a":' * 3000, "NaN", "1e999", '"\\ud800"', "{}", "[]", "null"),
]
_LINES = [
    *(
        "",
        "#",
        "# nodes: 1000000000",
        "# nodes: -1",
        "# directed: maybe",
        "# ids: true",
    ),
    *("# provenance: {}", "# provenance: []", "%% x", "% nodes: 7", "1 1 1", "1,2,3"),
    *("\ufeff", "\r", "0\t0\t1", "0\t1\tnan", '"', "source,target", "# nnkgraph graph"),
    "# provenance: " + "[" * 5000,
]
_LAUGHS = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
_XML = [
    _LAUGHS,
    '<!DOCTYPE a SYSTEM "file:///etc/hostname">',
    '<!DOCTYPE a [<!ENTITY % p SYSTEM "file:///etc/hostname">%p;]>',
    "<default>7</default>",
    '<key id="weight" for="node" attr.name="error"/>',
    '<key id="error"><default>x</default></key>',
    '<graph edgedefault="directed">',
    '<node id="0"/>',
    '<node id=""/>',
    '<edge source="0" target="0"/>',
    '<edge source="0" target="nobody" directed="true"/>',
    '<data key="ids">true</data>',
    '<data key="provenance">[1</data>',
    "<data/>",
    "<hyperedge/>",
    "<a>" * 20_000,
    "</graph>",
    "<![CDATA[" + "x" * 1000 + "]]>",
    "<!-- -- -->",
    "&b;" * 100,
]
_CODECS = [
    *("utf-7", "utf-16", "utf-32", "idna", "zlib", "rot13", "cp037", "shift_jis"),
    *(
        "unicode_escape",
        "punycode",
        "undefined",
        "latin-1",
        "base64",
        "no-such",
        "mbcs",
    ),
]


def mutate(data: bytes, other: bytes, chance: Random) -> bytes:
    """Damage text in one to four places; compressed text is unpacked before."""
    try:
        packed = data[:2] == b"\x1f\x8b"
        content = gzip.decompress(data) if packed else data
    except (OSError, EOFError, zlib.error):
        return blind.mutate(data, other, chance)
    ways = [_word, _word, _line, _order, _ends]
    ways += [_xml, _xml, _codec] if content.lstrip().startswith(b"<") else []
    for _ in range(chance.choice([1, 1, 2, 4])):
        content = chance.choice(ways)(content, chance)
    return gzip.compress(content, 1, mtime=0) if packed else content


def _put(content: bytes, start: int, stop: int, text: str) -> bytes:
    return content[:start] + text.encode("utf-8", "surrogatepass") + content[stop:]


def _word(content: bytes, chance: Random) -> bytes:
    found = list(re.finditer(rb"[^\s,;<>\"]+", content))
    if not found:
        return content
    one = chance.choice(found)
    return _put(content, one.start(), one.end(), chance.choice(_WORDS))


def _line(content: bytes, chance: Random) -> bytes:
    lines = content.split(b"\n")
    at = chance.randrange(len(lines) + 1)
    lines.insert(chance.choice([0, 1, at]), chance.choice(_LINES).encode())
    return b"\n".join(lines)


def _order(content: bytes, chance: Random) -> bytes:
    lines = content.split(b"\n")
    at = chance.randrange(len(lines))
    if chance.random() < 0.3:
        chance.shuffle(lines)
    elif chance.random() < 0.5:
        lines[at:at] = [lines[at]] * chance.choice([1, 1000])
    else:
        del lines[at]
    return b"\n".join(lines)


def _ends(content: bytes, chance: Random) -> bytes:
    ends = [b"\r\n", b"\r", b"\n\n", b"\x0b", b"\x0c", "\u2028".encode(), b" "]
    return content.replace(b"\n", chance.choice(ends), chance.choice([1, -1]))


def _xml(content: bytes, chance: Random) -> bytes:
    found = list(re.finditer(rb">\s*", content))
    at = chance.choice([found[0].end(), chance.choice(found).end()]) if found else 0
    return _put(content, at, at, chance.choice(_XML))


def _codec(content: bytes, chance: Random) -> bytes:
    return re.sub(rb"UTF-8", chance.choice(_CODECS).encode(), content, count=1)
