"""What a graph says about how it was built, for ``verify`` and ``explain``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nnkgraph.data.checks import mismatch
from nnkgraph.data.scaling import Scaling
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime import registry

if TYPE_CHECKING:
    from nnkgraph.data import Features, Graph

_NEEDED = (
    *("k", "method", "kernel", "sigma", "rule", "min_weight", "min_degree", "scale"),
    *("duplicates", "search", "shape", "sha256"),
)

# What the candidates of a kernel are ordered by.
_NEARNESS = {
    "gaussian": "squared-distance",
    "correlation": "squared-distance",
    "cosine": "squared-distance",
    "lle": "squared-distance",
    "laplacian": "l1-distance",
    "linear": "inner-product",
    "jaccard": "jaccard-distance",
    "distance": "distance-matrix",
    "precomputed": "gram",
    "function": "similarity",
}
# What ``_slow`` derives, or knows that it cannot.
KNOWN = {
    "methods": {
        *("aew", "eps", "kalofolias", "knn", "kstar", "l1", "lle", "mp", "nnk", "omp")
    },
    "kernels": {*_NEARNESS, "polynomial"},
}


_FOLDERS = {"method": "methods", "kernel": "kernels", "search": "search"}
_STORED = {"symmetrize": "rule"}
_USUAL = {"digits": 0, "weights": "regression"}
"""Values of what graphs store only where it is something else."""


@dataclass(frozen=True)
class Check:
    """One thing that was compared."""

    name: str
    status: str  # ``ok``, ``FAILED`` or ``not checked``
    text: str
    figures: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, good: bool, text: str, **figures: Any) -> Check:
        """Return a check that is ok where all is good, and has FAILED otherwise."""
        return cls(name, "ok" if good else "FAILED", text, figures)


@dataclass(frozen=True)
class Recipe:
    """The parameters of a graph."""

    k: int
    method: str
    weigher: Any  # the method's plug-in: only its parameters are read
    kernel: str
    plugin: Any  # its plug-in: parameters, and a user's own function
    sigma: float | None
    rule: str
    min_weight: float
    min_degree: int
    scale: str
    duplicates: str
    search: str
    shape: tuple[int, ...]
    sha256: str
    digits: int = 0
    grow: bool = False
    bridged: bool = False
    weights: str = "regression"
    scaling: Scaling | None = None  # the numbers, where the graph stores them
    pca: int | None = None
    foreign: bool = False  # of another program: the parameters were given
    bare: bool = False  # neighbors whose weights, 1 or lengths, are of no kernel

    @property
    def nearness(self) -> str:
        """What candidates are ordered by."""
        if self.kernel == "polynomial":
            return "inner-product" if self.plugin.degree % 2 else "absolute-product"
        return _NEARNESS[self.kernel]

    @property
    def squared(self) -> bool:
        """Whether that is the square of a distance."""
        return self.nearness in {"squared-distance", "distance-matrix"}

    @property
    def matrix(self) -> bool:
        """Whether the input is a matrix of all pairs of rows."""
        return self.kernel in {"precomputed", "distance"}

    @property
    def shift(self) -> float:
        """What is added to an inner product before its sign is forgotten."""
        return self.plugin.c / self.plugin.gamma if self.kernel == "polynomial" else 0.0

    @property
    def plain(self) -> bool:
        """Whether integers stay integers: gamma and c may bring in fractions."""
        if self.kernel != "polynomial":
            return self.kernel != "function"
        return self.plugin.gamma == 1.0 and self.plugin.c in {0.0, 1.0}

    @property
    def rounding(self) -> float:
        """Share by which stored numbers may differ, where they were rounded."""
        return 10.0 ** (1 - self.digits) if self.digits else 0.0

    @property
    def tolerance(self) -> float:
        """Relative difference of weights that counts as equal."""
        return max(1e-7, self.rounding)

    @property
    def exact(self) -> bool:
        """Whether the candidates are the nearest ones by definition."""
        return self.search.partition(":")[0] in {"exact", "kdtree", "radius"}

    @property
    def has_error(self) -> bool:
        """Whether the method has an error J."""
        return self.method in {"nnk", "omp", "mp", "l1"}

    @property
    def solvable(self) -> bool:
        """Whether a node's weights follow from its own candidates."""
        return self.method not in {"aew", "kalofolias"}

    @property
    def width(self) -> int:
        """Candidates that the method chooses from."""
        return 2 * self.k if self.method == "kalofolias" else self.k

    @property
    def free(self) -> bool:
        """Whether no weight depends on the kernel."""
        return self.bare or not self.weigher.uses_kernel

    @property
    def sigma_rule(self) -> float | str | None:
        """The bandwidth that was asked for: a number or the name of a rule."""
        rule: float | str | None = getattr(self.plugin, "sigma", None)
        return rule


def refuse_unknown(graph: Graph, name: str) -> None:
    """Refuse a graph of a method or a kernel that ``verify`` has no form of its own of.

    All that is known of those is the code that built the graph, which agrees with
    itself.
    """
    for folder, known in KNOWN.items():
        key = registry.noun(folder)
        spec = registry.full_spec(folder, str(graph.provenance.get(key, "")))
        plugin = spec.partition(":")[0]
        if plugin and plugin not in known:
            ours = plugin in registry.names(folder)
            entries = () if ours else registry.foreign(folder).get(plugin, ())
            packages = " and ".join(map(registry.package_of, entries))
            where = f" of package {packages}" if packages else ""
            raise InputError(
                f"{name}: was built with {key} {plugin!r}{where}, which cannot be "
                f"derived again here: there is a second, independent form of {folder} "
                f"{', '.join(sorted(known))} only"
            )


def is_foreign(graph: Graph) -> bool:
    """Return whether a graph says nothing of how it was built."""
    return not any(key in graph.provenance for key in _NEEDED)


def recipe_of(graph: Graph, name: str) -> Recipe:
    """Read the parameters that a graph carries."""
    known = graph.provenance
    missing = [key for key in _NEEDED if key not in known]
    if missing:
        raise InputError(
            f"{name}: the graph does not say how it was built ({', '.join(missing)} "
            "missing): only graphs that nnkgraph wrote do"
        )
    return made_of(known, name)


def made_of(known: dict[str, Any], name: str) -> Recipe:
    """Return parameters that are stored, or given, as a recipe."""
    try:
        return Recipe(
            k=int(known["k"]),
            method=known["method"].partition(":")[0],
            weigher=registry.create("methods", known["method"]),
            kernel=registry.full_spec("kernels", known["kernel"]).partition(":")[0],
            plugin=registry.create("kernels", known["kernel"]),
            sigma=None if known["sigma"] is None else float(known["sigma"]),
            rule=str(known["rule"]),
            min_weight=float(known["min_weight"]),
            min_degree=int(known["min_degree"]),
            scale=str(known["scale"]),
            duplicates=str(known["duplicates"]),
            search=str(known["search"]),
            shape=tuple(int(size) for size in known["shape"]),
            sha256=str(known["sha256"]),
            digits=int(known.get("digits", known.get("round", 0))),
            grow=known.get("grow") is not None,
            bridged=known.get("connect", "none") != "none",
            weights=str(known.get("weights", "regression")),
            scaling=Scaling.read(known),
            pca=known.get("pca"),
        )
    except (
        ParameterError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        said = f"the graph's provenance is damaged: {error}"
        raise InputError(f"{name}: {said}") from None


def features_check(features: Features, graph: Graph) -> Check:
    """Compare the features with those that the graph was built from."""
    shape, wrong = tuple(features.x.shape), mismatch(graph, features)
    if is_foreign(graph):
        text = f"shape {shape[0]} x {shape[1]}, the graph has {graph.n_nodes} nodes"
        if shape[0] != graph.n_nodes:
            return Check("features", "FAILED", text)
        return Check("features", "not checked", f"{text} and knows no sha256 of them")
    if wrong:
        return Check("features", "FAILED", wrong)
    return Check("features", "ok", f"shape {shape[0]} x {shape[1]}, sha256 agrees")


def contradictions(
    given: dict[str, Any], graph: Graph, name: str
) -> list[tuple[str, object, object]]:
    """Return which parameters are not those of a graph, with both values."""
    recipe, known = recipe_of(graph, name), graph.provenance
    found: list[tuple[str, object, object]] = []
    for option, value in given.items():
        theirs = known.get(_STORED.get(option, option), _USUAL.get(option))
        if option == "sigma":
            theirs = recipe.sigma_rule
            agree = _number(value) in {_number(theirs), recipe.sigma}
        elif option in _FOLDERS:
            agree = _same_plugin(_FOLDERS[option], value, str(theirs))
        else:
            agree = value == theirs
        if not agree:
            found.append((option, value, theirs))
    return found


def _number(value: object) -> object:
    """Return a bandwidth as a number, or the name of its rule."""
    try:
        return float(str(value))
    except ValueError:
        return value


def _same_plugin(folder: str, ours: str, theirs: str) -> bool:
    """Return whether a plug-in is the other; the name alone agrees with any such."""
    ours = registry.full_spec(folder, ours)
    if ours.partition(":")[0] != theirs.partition(":")[0]:
        return folder == "search" and ours == "auto"
    # A graph does not say which file its candidates came from.
    if ":" not in ours or theirs == "precomputed":
        return True
    return registry.spec(registry.create(folder, ours)) == theirs
