"""Defaults of the regressions, by what a graph is for: one table, and who may use it.

What is given explicitly goes before a preset. Methods without an error keep the values
of ``paper`` whatever the preset: the radius of eps is made from sigma, and mutual kNN
is to stay mutual kNN.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nnkgraph.data.pairs import DISTANCES
from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method


@dataclass(frozen=True)
class Preset:
    """Values of what is not given."""

    sigma: str | float = "auto"
    min_degree: int = 0
    weights: str = "regression"
    symmetrize: str | None = None
    """A rule; None takes the method's own."""

    about: str = ""

    def weights_for(self, kernel: Kernel, rule: str) -> str:
        """Return the weights, where kernel and rule have them.

        Rules other than those of the errors say themselves what edges weigh.
        """
        able = kernel.form and kernel.nearness in DISTANCES
        able = (able or self.weights != "kernel") and rule.startswith("error")
        return self.weights if able else PAPER.weights

    def in_words(self) -> str:
        """Return what it is for and its values."""
        rule = f", rule {self.symmetrize}" if self.symmetrize else ""
        values = f"sigma {self.sigma}, min_degree {self.min_degree}, {self.weights}"
        return f"{self.about}: {values} weights{rule}"


PAPER = Preset(about="as the paper says, to the letter")

DEFAULT = Preset("local", 3, "kernel", about="what serves most")
"""Where no preset is named: better than the paper's at every task of docs/study.md."""

PRESETS = {
    "paper": PAPER,
    "classify": Preset("kth-mean", 3, "kernel", about="classes of new points"),
    "cluster": Preset("kth-mean", symmetrize="mean", about="communities"),
    "propagate": Preset("local", 3, "kernel", about="labels of all from a few"),
}


def preset_of(name: str | None, method: Method) -> Preset:
    """Return the values that a method takes where nothing else is said."""
    if name is not None and name not in PRESETS:
        known = ", ".join(PRESETS)
        raise ParameterError(f"unknown preset {name!r}; choose from {known}")
    if not method.has_error:
        return PAPER
    return DEFAULT if name is None else PRESETS[name]


def with_sigma(
    kernel: Kernel, given: Any, preset: Preset, *, fixed: bool = False
) -> Kernel:
    """Return a kernel with the bandwidth of a preset, unless it has its own.

    It was given as a name or a class then: objects and parameters say what they want.
    A fixed bandwidth is one for all nodes.
    """
    from nnkgraph.kernels import WithBandwidth

    named = isinstance(given, type) or (isinstance(given, str) and ":" not in given)
    if named and isinstance(kernel, WithBandwidth):
        local = fixed and preset.sigma == "local"
        made: Kernel = replace(kernel, sigma=PAPER.sigma if local else preset.sigma)
        return made
    return kernel
