"""One node of real embeddings, by name: most alike, and what it adds."""

from __future__ import annotations

from typing import Any

import numpy as np

import nnkgraph
from paper import figures
from paper.setting import Setting, say

SET = "deb_minilm_4k"
"""Sentence embeddings of package descriptions, with the packages' names."""

NODE = "libfcitx-core0"
_SHOWN = 18


def run(setting: Setting) -> None:
    """Draw similarity and weight of the nearest candidates of a node."""
    path = None if setting.data is None else setting.data / f"{SET}.npz"
    if path is None or not path.exists():
        say(f"node: the data folder has no {SET}")
        return
    with np.load(path) as file:
        names, x = file["names"], file["X"]
    at = int(np.flatnonzero(names == NODE)[0])
    found = nnkgraph.explain(
        nnkgraph.Features.of(x, ids=[str(one) for one in names]), at, scale="unit"
    )
    figures.save(setting.out / "node.png", _figure(found, names))


def _figure(found: Any, names: Any) -> Any:
    """Draw two bars for every candidate, the most alike above."""
    some = found.candidates[:_SHOWN]
    figure, axes = figures.panels(1, 1, width=7.0, height=5.2)
    panel, at = axes[0, 0], np.arange(len(some))
    panel.barh(at, [one["similarity"] for one in some], color="#d0d0d0", label="alike")
    weights = [one["weight"] for one in some]
    panel.barh(at, weights, height=0.45, color="#d55e00", label="weight")
    panel.set_yticks(at, [str(names[one["node"]]) for one in some], fontsize=8)
    panel.invert_yaxis()
    figures.finish(panel, f"{NODE}: alike, and what it adds", "", "")
    panel.legend(loc="lower right", frameon=False)
    return figure
