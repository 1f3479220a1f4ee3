"""Which files are pages of the site: those of the project, under their own paths.

A hook of mkdocs. Links between files are the same here, in a clone and on a forge.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

_HOME = Path(__file__).parents[2]
_SHOWN = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("CITATION.cff", "LICENSE", "docs/*.md", "docs/*.png", "examples/*"),
    *("paper/README.md", "nnkgraph/formats/schema.json"),
)
_BAR = re.compile(r"`[^`\n]*\\\|[^`\n]*`")
_VALUES = re.compile(r"<code>[^<]*\|[^<]*</code>")
_OTHERS = "How to"
"""Where pages stand that mkdocs.yml does not name."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add pages to the navigation that it has not."""
    nav: list[Any] = config.nav or []
    named = set(_leaves(nav))
    pages = [name for name in _names() if name.endswith(".md") and name not in named]
    for entry in nav:
        entry.get(_OTHERS, []).extend(pages)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the project's files beside the theme's."""
    for name in _names():
        files.append(File.generated(config, name, abs_src_path=str(_HOME / name)))
    return files


def _names() -> list[str]:
    """Return the paths of pages and what they show or link to."""
    found = (path for pattern in _SHOWN for path in sorted(_HOME.glob(pattern)))
    return [path.relative_to(_HOME).as_posix() for path in found if path.is_file()]


def _leaves(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from _leaves(entry)


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Return a page as this dialect of Markdown wants it."""
    if page.file.src_uri == "README.md":
        page.meta["hide"] = ["navigation"]  # a single page: nothing to list beside it
    # On forges a bar in a table needs its backslash within code, too; here it is shown.
    return _BAR.sub(lambda code: code[0].replace("\\|", "|"), markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Let the values of an option go on in the next line of a narrow cell."""
    return _VALUES.sub(lambda code: code[0].replace("|", "|<wbr>"), html)
