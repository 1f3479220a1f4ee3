"""docs/claims.md: all claims, as they stand in the code, and the figures of a run."""

from __future__ import annotations

import platform
import re

from claims.claim import ALL, Claim, Verdict
from claims.parts import PARTS
from claims.runs import HOME

PAGE = HOME / "docs" / "claims.md"
_BEGIN, _END = "<!-- measured -->\n", "<!-- end -->\n"

_HEAD = """# Claims, and what proves them

Every claim of README and of these pages that can be measured, with the command that does it.
`make claims` measures all but those that take long, prints claim, figure and verdict, and ends
with exit code 1 where one does not hold.

```text
make claims                          # some six minutes on two quiet cores
make claims CLAIMS="memory kills"    # parts, by the names in brackets, or single claims
make claims DATA=DIR                 # those on real data as well: .npz files with X and y, glove.npy
make claims CLAIMS=fault-rows        # one that takes long runs where it is named
```

*must be* is the limit for the figure: ratios, counts and shares, that hold on other machines, too;
figures on the pages are of one machine. A figure that is beyond its limit, that is no number, or
whose measurement breaks, gives the verdict FAILS. What cannot be measured here is *not run*, with
the reason, and counts for nothing; *needs data* is what is about sets that do not come with
nnkgraph. The code is in `claims/`, a test compares it with this page, and looks that the words of
every claim stand on the page that it names.
"""


def listing() -> str:
    """Return the page but for the figures."""
    parts = [_HEAD]
    for part, title in PARTS.items():
        some = [one for one in ALL.values() if one.part == part]
        parts.append(
            f"\n## {title} (`{part}`)\n\n| claim | must be | command |\n|---|---|---|\n"
        )
        parts.append("".join(map(_row, some)))
    return "".join(parts)


def _row(one: Claim) -> str:
    pages = dict.fromkeys(page for page, _ in one.said)
    links = ", ".join(
        f"[{page.removeprefix('docs/')}]({_link(page)})" for page in pages
    )
    limit = f"{_sign(one.limit)} {one.unit}".strip() if one.limit else "*not run here*"
    command = f"`{one.line()}`"
    if one.measure is not None and one.command:
        command += f"; `{one.command}`"
    if one.long:
        command += f" ({one.long}; only by name)"
    if one.why:
        command += f": {one.why}"
    return f"| {one.text} ({links}) | {limit} | {command} |\n"


def _sign(limit: str) -> str:
    return limit.replace("<=", "≤").replace(">=", "≥").replace("== ", "")


def _link(page: str) -> str:
    return page.removeprefix("docs/") if page.startswith("docs/") else f"../{page}"


def write(found: list[Verdict] | None = None) -> None:
    """Write the page; claims that were not measured this time keep their figures."""
    head, lines = recorded()
    if found:
        head = (
            f"Measured on {platform.machine()} with Python {platform.python_version()}"
        )
        head += ", on two cores that others used, too; not all in one run.\n"
        lines |= {
            one.claim.key: (one.figure, one.verdict)
            for one in found
            if one.claim.key not in lines or one.claim.measure is None or one.seconds
        }
    rows = [
        f"| {key} | {_cell(lines[key][0])} | {_cell(lines[key][1])} |\n"
        for key in ALL
        if key in lines
    ]
    table = "| claim | figure | verdict |\n|---|---|---|\n" + "".join(rows)
    text = f"{_BEGIN}{head}\n{table}{_END}"
    PAGE.write_text(f"{listing()}\n## Figures last seen\n\n{text}")


def recorded() -> tuple[str, dict[str, tuple[str, str]]]:
    """Return what the page says of a run, and figure and verdict by key."""
    if not PAGE.exists() or _BEGIN not in PAGE.read_text():
        return "", {}
    text = PAGE.read_text().partition(_BEGIN)[2].partition(_END)[0]
    head, _, table = text.partition("\n| claim")
    rows = re.findall(r"^\| ([\w-]+) \| (.*?) \| (.*?) \|$", table, re.MULTILINE)
    found = {key: (figure, verdict) for key, figure, verdict in rows if key in ALL}
    return head, found


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("**", "")
