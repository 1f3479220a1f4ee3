"""What determines a graph, and how the work is done."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from nnkgraph import __version__
from nnkgraph.build import report
from nnkgraph.build.presets import preset_of, with_sigma
from nnkgraph.build.symmetrize import check_rule
from nnkgraph.data import SCHEMA, Features, SparseRows
from nnkgraph.data.checks import check_ids
from nnkgraph.data.duplicates import POLICIES
from nnkgraph.data.pairs import DISTANCES, MATRICES
from nnkgraph.data.scaling import SCALES, Scaling
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime import registry
from nnkgraph.runtime.executors import BLOCK_TIMEOUT
from nnkgraph.runtime.progress import Stages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike

    from nnkgraph import kernels, methods
    from nnkgraph.data import Graph
    from nnkgraph.search import Search

DEFAULT_K = 30

_NEEDED = ("schema", "k", "method", "kernel", "sigma", "rule", "search", "scale")
"""What graphs say that were built here."""

MOST_DIGITS = 15
"""Significant digits that every decimal number keeps in float64."""


class RunningOptions(TypedDict, total=False):
    """How the work is done: the fields of ``Running``."""

    workers: int | str
    executor: Any
    memory: int | None
    resume: str | Path | None
    block_timeout: float
    shared_dir: str | None
    progress: Stages


class SearchCall(RunningOptions, total=False):
    """Keywords of functions that search, as ``build_graph`` explains them."""

    k: int | None
    kernel: Any
    search: Any
    scale: str
    pca: int | None
    duplicates: str
    seed: int


class SolveCall(SearchCall, total=False):
    """Keywords of functions that search and solve."""

    method: Any
    sigma: str | float | None
    preset: str | None


class GraphCall(SolveCall, total=False):
    """Keywords of functions that build a graph."""

    symmetrize: str | None
    min_weight: float
    min_degree: int | None
    weights: str | None
    connect: str
    grow: float | None
    max_k: int | None
    digits: int
    like: Graph | None


@dataclass(frozen=True)
class Settings:
    """All that determines a graph, checked against each other and the data.

    Make them with :meth:`of`. Graphs store them, checkpoints and shards compare them,
    and :meth:`read` makes them again from what a graph stores.
    """

    k: int
    method: methods.Method
    kernel: kernels.Kernel
    search: Search
    rule: str
    min_weight: float = 1e-8
    min_degree: int = 0
    weights: str = "regression"
    scale: str = "none"
    pca: int | None = None
    duplicates: str = "merge"
    seed: int = 0
    connect: str = "none"
    grow: float | None = None
    max_k: int = 0
    digits: int = 0
    sigma_rule: str = ""
    """The rule that a bandwidth came from which now is a number."""

    scaling: Scaling | None = field(default=None, compare=False)
    """The numbers of scaling and components; None takes them from the features."""

    @classmethod
    def of(
        cls,
        features: Features,
        *,
        k: int | None = None,
        method: Any = "nnk",
        kernel: Any = "gaussian",
        sigma: str | float | None = None,
        search: Any = "auto",
        symmetrize: str | None = None,
        min_degree: int | None = None,
        weights: str | None = None,
        max_k: int | None = None,
        preset: str | None = None,
        **others: Any,
    ) -> Settings:
        """Check everything that can be checked before the work begins.

        Plug-ins are names such as ``"nnk"`` or ``"l1:eta=0.1"``, or objects; the other
        keywords are fields. What is None is as the preset says. What does not go
        together is a `ParameterError`, data with too few rows an `InputError`.
        """
        weigher: methods.Method = plugin_of("methods", method)
        similarity, finder = kernel_of(kernel, sigma), plugin_of("search", search)
        usual = preset_of(preset, weigher)
        if sigma is None:
            fixed = others.get("grow") is not None  # more candidates, the same sigma
            similarity = with_sigma(similarity, kernel, usual, fixed=fixed)
        rule = symmetrize or usual.symmetrize or weigher.rule
        if min_degree is None:
            min_degree = usual.min_degree if rule.startswith("error") else 0
        others |= {
            "min_degree": min_degree,
            "weights": weights or usual.weights_for(similarity, rule),
        }
        made = cls(0, weigher, similarity, finder, rule, **others)
        made._check_names()
        number = _checked_k(k, features)
        made = replace(made, k=number, max_k=max_k or 8 * number)
        if made.pca is not None and made.scaling is None:
            from nnkgraph.data.pca import check_count

            check_count(made.pca, features.x.shape, features.name)
        seen = made.seen(features)
        if made.connect != "none":
            from nnkgraph.build.connect import check_connect

            check_connect(made.connect, similarity, made.rule, seen)
        if made.grow is not None:
            from nnkgraph.build.grow import check_grow

            check_grow(weigher, similarity, made.grow, number, max_k)
        if isinstance(seen, SparseRows):
            made._check_sparse()
        return made

    def seen(self, features: Features) -> Any:
        """Return rows of the form that is searched; of components without values."""
        if self.pca is None:
            return features.x
        return np.broadcast_to(np.float64(0), (len(features.x), self.pca))

    def _check_names(self) -> None:
        """Refuse what does not go together, whatever the data."""
        name = registry.spec(self.method)
        check_rule(self.rule, has_error=self.method.has_error, method=name)
        if not (0 <= self.min_weight < np.inf and self.min_degree >= 0):
            raise ParameterError("min_weight and min_degree must not be negative")
        _check_choice("scale", self.scale, SCALES)
        _check_choice("policy for duplicates", self.duplicates, POLICIES)
        if self.weights != "regression":
            from nnkgraph.build.weights import check_weights

            check_weights(self.weights, self.method, self.kernel)
        self.method.check(self.kernel)
        if self.kernel.base in MATRICES and self.scale != "none":
            raise ParameterError(
                "similarities and distances cannot be scaled: leave scale out"
            )
        if self.kernel.base in MATRICES and self.pca is not None:
            raise ParameterError(
                "similarities and distances have no components: leave pca out"
            )
        if self.pca is not None and self.pca < 1:
            raise ParameterError(f"pca must be at least 1, not {self.pca}")
        if not self.method.local and self.duplicates == "keep":
            raise ParameterError(
                f"method {name!r} needs distinct rows: use duplicates merge or error"
            )
        self.check_digits(self.digits)

    @staticmethod
    def check_digits(digits: int) -> None:
        """Refuse more digits than numbers have."""
        if not 0 <= digits <= MOST_DIGITS:
            raise ParameterError(
                f"digits must be from 1 to {MOST_DIGITS}, not {digits}"
            )

    @classmethod
    def read(cls, stored: Mapping[str, Any], features: Features) -> Settings:
        """Return what a graph was built with, from its provenance.

        A bandwidth that was taken from the data is the number that it was, and so is
        a scaling. What is not stored is as it was before there were presets.
        """
        names = {one.name for one in fields(cls)} - {"rule", "scaling"}
        known = {name: value for name, value in stored.items() if name in names}
        known["scaling"] = Scaling.read(stored)
        made = cls.of(features, **known, symmetrize=stored["rule"], preset="paper")
        kernel: Any = made.kernel
        if kernel.needs_all_rows:
            number = replace(kernel, sigma=stored["sigma"])
            made = replace(made, kernel=number, sigma_rule=kernel.sigma)
        return made

    @classmethod
    def like(
        cls,
        graph: Graph,
        features: Features,
        name: str = "the graph",
        search: str | None = None,
    ) -> Settings:
        """Return what a graph was built with, for other rows of the same kind.

        Another search may be named.

        Raises
        ------
        InputError
            Where the graph does not say all of it, or its candidates were given.
        """
        known = graph.provenance
        missing = [one for one in _NEEDED if one not in known]
        if known.get("scale") in {"standard", "minmax"} and "scaling" not in known:
            missing.append("the numbers of the scaling")
        if known.get("pca") is not None and "projection" not in known:
            missing.append("the principal components")
        if missing or known["schema"] != SCHEMA:
            what = ", ".join(missing) or f"schema {known['schema']}"
            raise InputError(
                f"{name}: does not say how it was built as this version does ({what}): "
                "build it again"
            )
        if search is None:
            search = str(known["search"])
            # Neighbors within a radius need no candidates.
            search = "exact" if search == "radius" else search
        if search.partition(":")[0] == "precomputed":
            raise InputError(
                f"{name}: its candidates were given, and other rows have none: name "
                "all options instead"
            )
        try:
            made = cls.read({**known, "search": search}, features)
        except InputError:
            raise
        except (ParameterError, LookupError, TypeError, ValueError) as error:
            said = f"cannot be built with its settings: {error}"
            raise InputError(f"{name}: {said}") from error
        d = features.x.shape[1]
        other = made.scaling.columns if made.scaling else None
        if other is not None and other != d:
            one = features.name
            raise InputError(f"{one}: {d} columns, and {name} is of {other}")
        return made

    def stored(
        self, *, sigma: float | None, search: str, scaling: Scaling
    ) -> dict[str, Any]:
        """Return them as graphs store them.

        That is with the bandwidth, the search and the numbers of the scaling used.
        """
        values = {
            "k": self.k,
            "method": registry.spec(self.method),
            "kernel": registry.spec(self.kernel),
            "metric": metric_of(self.kernel, self.scale, self.pca),
            "sigma": sigma,
            "rule": self.rule,
            "search": search,
            "min_weight": self.min_weight,
            "min_degree": self.min_degree,
            "scale": self.scale,
            "duplicates": self.duplicates,
            "seed": self.seed,
        }
        if self.pca is not None:
            values["pca"] = self.pca
        if self.connect != "none":
            values["connect"] = self.connect
        if self.grow is not None:
            values |= {"grow": self.grow, "max_k": self.max_k}
        if self.digits:
            values["digits"] = self.digits
        if self.weights != "regression":
            values["weights"] = self.weights
        if self.sigma_rule:
            values["sigma_rule"] = self.sigma_rule
        return values | scaling.stored()

    def facts(self, features: Features) -> dict[str, Any]:
        """Return all that determines candidates and solutions, to be compared.

        How directions are joined, what is written and by how many workers plays no
        part: such options may change from one run to the next.
        """
        numbers = self.scaling.stored() if self.scaling else {}
        if "projection" in numbers:  # long, and only to be compared
            text = "".join(numbers["projection"].values()).encode()
            numbers["projection"] = hashlib.sha256(text).hexdigest()
        return {
            "schema": SCHEMA,
            "nnkgraph": __version__,
            **{f"version of {name}": v for name, v in report.versions().items()},
            "sha256 of the features": features.sha256,
            "shape": list(features.x.shape),
            "k": self.k,
            "method": registry.spec(self.method),
            "kernel": registry.spec(self.kernel),
            "metric": metric_of(self.kernel, self.scale, self.pca),
            "source of the kernel": getattr(self.kernel, "source", ""),
            "search": self.search.identity(),
            "scale": self.scale,
            **({} if self.pca is None else {"pca": self.pca}),
            "duplicates": self.duplicates,
            "seed": self.seed,
            **numbers,
        }

    def _check_sparse(self) -> None:
        """Refuse what would need all the zeros of sparse features."""
        if self.kernel.base in MATRICES:
            raise ParameterError(
                "a sparse matrix is taken for features: make one of similarities or "
                "distances `Features(nnkgraph.data.SparseGram.of(matrix))`"
            )
        if self.kernel.dense:
            raise ParameterError(
                "sparse features work with kernels cosine, gaussian, jaccard and "
                "linear; others need a dense matrix, or principal components (`pca`)"
            )
        if self.method.dense:
            name = registry.spec(self.method).partition(":")[0]
            raise ParameterError(
                f"method {name!r} needs a dense matrix of features, or "
                "principal components (`pca`)"
            )
        if self.scale not in {"none", "unit"}:
            raise ParameterError(
                f"scale {self.scale!r} would fill the zeros of sparse features: use "
                "none or unit, or principal components (`pca`)"
            )
        if not self.search.takes_sparse:
            raise ParameterError("sparse features are searched by 'exact' only")

    @property
    def width(self) -> int:
        """Candidates that the method chooses from."""
        return self.method.width(self.k)


@dataclass(frozen=True)
class Running:
    """How the work is done, as ``build_graph`` explains it: no byte depends on it."""

    workers: int | str = 1
    executor: Any = "processes"
    memory: int | None = None
    resume: str | Path | None = None
    block_timeout: float = BLOCK_TIMEOUT
    shared_dir: str | None = None
    progress: Stages = field(default_factory=Stages)


def settings_of(features: Features, chosen: Mapping[str, Any]) -> Settings:
    """Return the settings that keywords say, or those of a graph to be like."""
    others = {name: one for name, one in chosen.items() if name != "like"}
    like = chosen.get("like")
    if like is None:
        return Settings.of(features, **others)
    for name in others:
        raise ParameterError(f"`{name}` is what the graph says that this is to be like")
    return Settings.like(like, features)


def split(options: Mapping[str, Any], known: Any) -> tuple[dict[str, Any], Running]:
    """Return the settings and the running among the keywords of a function.

    ``known`` is the TypedDict of its keywords.
    """
    for name in options:
        if name not in known.__annotations__:
            raise TypeError(f"there is no keyword {name!r}")
    how = RunningOptions.__annotations__
    chosen = dict(options)
    given = {name: chosen.pop(name) for name in options if name in how}
    return chosen, Running(**given)


def features_of(
    x: Features | ArrayLike, *, ids: Sequence[str] | None = None, name: str = "array"
) -> Features:
    """Return features as they are, or arrays and data frames once they are checked."""
    if not isinstance(x, Features):
        return Features.of(x, ids=ids, name=name)
    return x if ids is None else replace(x, ids=check_ids(ids, x.x, x.name))


def plugin_of(folder: str, given: Any) -> Any:
    """Return a plug-in: made from its name and parameters, or the object itself."""
    if isinstance(given, str):
        return registry.create(folder, given)
    return given() if isinstance(given, type) else given


def kernel_of(given: Any, sigma: str | float | None = None) -> kernels.Kernel:
    """Return a kernel: a name, an object, or a function of two sets of rows."""
    if callable(given) and not isinstance(given, type) and not hasattr(given, "fit"):
        from nnkgraph.kernels.function import Function

        given = Function.of(given)
    kernel: Any = plugin_of("kernels", given)
    if sigma is None:
        return kernel  # type: ignore[no-any-return]
    name = registry.spec(kernel)
    if "sigma" not in registry.parameter_types(type(kernel)):
        raise ParameterError(f"kernel {name!r} has no bandwidth: leave sigma out")
    if kernel != type(kernel)():
        raise ParameterError(
            f"the bandwidth is given twice, by sigma and in kernel {name!r}: leave "
            "one out"
        )
    if isinstance(sigma, str):
        with suppress(ValueError):  # it is the name of a rule, which the kernel checks
            sigma = float(sigma)
    return replace(kernel, sigma=sigma)  # type: ignore[no-any-return]


def metric_of(kernel: kernels.Kernel, scale: str, pca: int | None = None) -> str | None:
    """Return what distances are; None without any.

    "euclidean", "manhattan", "jaccard", "precomputed" or "chord". A chord c joins rows
    of length 1: their cosine is 1 - c ** 2 / 2, or their correlation. Components of
    such rows have other lengths.
    """
    metric = DISTANCES.get(kernel.nearness)
    angles = registry.spec(kernel).partition(":")[0] in {"cosine", "correlation"}
    unit = (scale == "unit" and pca is None) or angles
    return "chord" if unit and metric == "euclidean" else metric


def _check_choice(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ParameterError(
            f"unknown {what} {value!r}; choose from {', '.join(choices)}"
        )


def _checked_k(k: int | None, features: Features) -> int:
    """Return the number of candidates, or refuse one that cannot be."""
    n = len(features.x)
    if k is None:
        return min(DEFAULT_K, n - 1)
    if k < 1:
        raise ParameterError(f"k must be at least 1, not {k}")
    if k >= n:
        raise InputError(
            f"{features.name}: k is {k}, but a node of {n} can have at most {n - 1} "
            "candidates: use a smaller k"
        )
    return k
