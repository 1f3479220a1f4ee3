"""How to cite the paper and this program; CITATION.cff says the same."""

from __future__ import annotations

from nnkgraph import __version__

_ENTRIES = """\
@article{{shekkizhar2023neighborhood,
  title = {{Neighborhood and Graph Constructions using Non-Negative Kernel Regression}},
  author = {{Shekkizhar, Sarath and Ortega, Antonio}},
  journal = {{arXiv preprint arXiv:1910.09383}},
  year = {{2023}}
}}

@software{{nnkgraph,
  title = {{nnkgraph}},
  author = {{{{The nnkgraph developers}}}},
  version = {{{version}}},
  license = {{MIT}}
}}"""


def bibtex() -> str:
    """Return the entries of the paper and of the program."""
    return _ENTRIES.format(version=__version__)
