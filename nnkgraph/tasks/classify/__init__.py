"""Local classifiers: the weights of a point's neighbors are votes for their classes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from nnkgraph.build import report, settings
from nnkgraph.build.query import check_columns
from nnkgraph.build.run import open_run
from nnkgraph.build.settings import DEFAULT_K, Running, RunningOptions, features_of
from nnkgraph.build.solve import row_seconds
from nnkgraph.data import Features, Neighborhoods
from nnkgraph.data.labels import Labels, folds_of, shuffled_by_class
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime.arrays import within_memory
from nnkgraph.search.auto import Costs
from nnkgraph.tasks.classify._trials import (
    Found,
    Trial,
    best_of,
    make_trials,
    run_split,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.methods import Method


@dataclass(frozen=True)
class LabeledRows:
    """Rows to learn from, rows to be tested on, and their classes."""

    train: Features
    codes: IndexArray  # (n,) the class of every training row
    classes: tuple[str, ...]  # of training rows, then those that only test rows have
    learned: int  # how many of the classes training rows have
    test: Features | None = None
    truth: IndexArray | None = None  # (q,) classes of test rows, -1 unknown
    rows: IndexArray | None = None  # (q,) row numbers of the test rows in their file
    origin: IndexArray | None = None  # (n,) those of training rows, where some are out
    left_out: int = 0  # training rows without a label


def labeled_rows(
    train: Features,
    labels: Labels | ArrayLike,
    test: Features | None,
    test_labels: Labels | ArrayLike | None,
    split: Labels | ArrayLike | None,
    test_size: float | None,
    seed: int,
) -> LabeledRows:
    """Divide the rows as asked and check what is known about them."""
    given = sum(one is not None for one in (test, split, test_size))
    if given > 1:
        raise ParameterError("test, split and test_size exclude each other: give one")
    if test is None and test_labels is not None:
        raise ParameterError("there are labels of a test part, but no test part")
    n = len(train.x)
    origin = np.arange(n)
    known = _as_labels(labels, "labels").for_rows(n, train.ids, train.name, "rows")
    asked: Labels | None = None
    rows: IndexArray | None = None
    if split is not None or test_size is not None:
        if split is not None:
            out = _test_rows(split, train)
        else:
            out = draw_test_rows(known, test_size, seed)
        rows, origin = np.flatnonzero(out), np.flatnonzero(~out)
        if not 0 < len(rows) < n:
            raise InputError(
                f"{train.name}: {len(rows)} of {n} rows are to be tested: both parts "
                "need some"
            )
        asked = replace(known, codes=known.codes[rows], ids=None)
        test, train = _some_rows(train, rows), _some_rows(train, origin)
        known = replace(known, codes=known.codes[~out], ids=None)
    elif test is not None:
        check_columns(train, test)
        rows = np.arange(len(test.x))
        if test_labels is not None:
            asked = _as_labels(test_labels, "test labels")
            asked = asked.for_rows(len(test.x), test.ids, test.name, "rows")
    if not known.known.any():
        raise InputError(
            f"{known.name}: all {len(known.codes)} training rows lack a label: there "
            "is nothing to learn"
        )
    left_out = int((~known.known).sum())
    if left_out:
        kept = np.flatnonzero(known.known)
        train, origin = _some_rows(train, kept), origin[kept]
        known = replace(known, codes=known.codes[kept], ids=None)
    labeled = _coded(train, known, test, asked, rows)
    return replace(labeled, origin=origin, left_out=left_out)


def _coded(
    train: Features,
    known: Labels,
    test: Features | None,
    asked: Labels | None,
    rows: IndexArray | None,
) -> LabeledRows:
    """Give numbers to the classes that occur."""
    present, codes = np.unique(known.codes, return_inverse=True)
    classes = tuple(known.classes[one] for one in present)
    if len(classes) < 2:
        raise InputError(
            f"{known.name}: all training rows are of class {classes[0]!r}: there is "
            "nothing to tell apart"
        )
    truth, strange = None, ()
    if asked is not None:
        there = set(asked.codes[asked.known].tolist())
        names = (asked.classes[one] for one in sorted(there))
        strange = tuple(one for one in names if one not in set(classes))
        truth = asked.in_terms_of(classes + strange)
    return LabeledRows(train, codes, classes + strange, len(classes), test, truth, rows)


def draw_test_rows(labels: Labels, share: float | None, seed: int) -> NDArray[np.bool_]:
    """Draw a share of the rows at random, of every class as evenly as can be."""
    if share is None or not 0 < share < 1:
        raise ParameterError(f"test_size must lie between 0 and 1, not {share}")
    n = len(labels.codes)
    # The whole numbers that a growing count passes are evenly spread.
    steps = np.floor(np.arange(n + 1) * share + 1e-9)
    out = np.empty(n, np.bool_)
    out[shuffled_by_class(labels.codes, seed, 0)] = np.diff(steps) > 0
    return out


def _test_rows(split: Labels | ArrayLike, train: Features) -> NDArray[np.bool_]:
    """Return the rows that are marked 1, where 0 is for training."""
    marks = _as_labels(split, "split")
    marks = marks.for_rows(len(train.x), train.ids, train.name, "rows")
    wrong = set(marks.classes) - {"0", "1"}
    if wrong or not marks.known.all():
        what = repr(min(wrong)) if wrong else "nothing"
        raise InputError(
            f"{marks.name}: a split is 0 (training) or 1 (test) for every row, but "
            f"there is {what}"
        )
    return np.asarray(marks.in_terms_of(("0", "1")) == 1)


def _as_labels(values: Labels | ArrayLike | Any, name: str) -> Labels:
    return values if isinstance(values, Labels) else Labels.of(values, name=name)


def _some_rows(features: Features, rows: IndexArray) -> Features:
    ids = None if features.ids is None else tuple(features.ids[i] for i in rows)
    return Features(features.x[rows], ids, features.name, features.dtype)


@dataclass(frozen=True)
class Predictions:
    """What every method says about every test row, or in cross-validation about all."""

    methods: tuple[str, ...]
    rows: IndexArray  # (q,) row numbers in the file of the test rows
    ids: tuple[str, ...] | None
    truth: IndexArray | None  # (q,) places in the classes, -1 where none is known
    predicted: IndexArray  # (q, methods) places in the classes
    weights: FloatArray  # (q, methods, classes) shares of the neighbors' weights
    errors: FloatArray  # (q, methods) J, NaN where a method has none
    neighbors: IndexArray  # (q, methods) rows with a weight; with 0 the nearest decides


@dataclass(frozen=True)
class Classified:
    """One line per method, and what they are about."""

    lines: list[dict[str, Any]]
    best: dict[str, Any]  # the line with the least error in validation, else the last
    classes: tuple[str, ...]  # of training rows, then those that only test rows have
    about: dict[str, Any]
    predictions: Predictions | None = None
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def facts(self) -> dict[str, Any]:
        """Everything but the predictions, as plain JSON values."""
        return {
            "schema": 1,
            **self.best,
            **self.about,
            "classes": list(self.classes),
            "methods": self.lines,
        }


def confusion(truth: IndexArray, predicted: IndexArray, classes: int) -> IndexArray:
    """Count predictions: a row for every true class, a column for every predicted."""
    known = truth >= 0
    place = truth[known] * classes + predicted[known]
    return np.bincount(place, minlength=classes**2).reshape(classes, classes)


def line_of(trial: Trial, sigma: float | None) -> dict[str, Any]:
    """Return what was chosen."""
    line: dict[str, Any] = {"method": trial.name, "k": trial.k}
    if trial.lc is not None:
        return {**line, "lc": trial.lc}
    rule = trial.sigma if isinstance(trial.sigma, str) else None
    return {**line, "sigma": sigma, **({"rule": rule} if rule else {})}


def validated(
    trials: list[Trial], wrong: list[int], n: int, name: str
) -> dict[str, Any]:
    """Return the error of a method's trials in cross-validation."""
    tried = []
    for trial, count in zip(trials, wrong, strict=True):
        if trial.name == name:
            own: dict[str, Any] = {"k": trial.k}
            own |= {"sigma": trial.sigma} if trial.sigma is not None else {}
            own |= {"lc": trial.lc} if trial.lc is not None else {}
            tried.append({**own, "error": count / n})
    return {"cv_error": min(one["error"] for one in tried), "tried": tried}


def tested(
    labeled: LabeledRows, found: Found, at: int, method: Method
) -> dict[str, Any]:
    """Return what a method got right and wrong among the test rows."""
    facts: dict[str, Any] = {"error": None}
    if labeled.truth is not None and (labeled.truth >= 0).any():
        table = confusion(labeled.truth, found.predicted[:, at], len(labeled.classes))
        total, right = int(table.sum()), int(np.trace(table))
        facts = {
            "error": (total - right) / total,
            "wrong": total - right,
            "tested": total,
            "confusion": table.tolist(),
        }
    counts = found.neighbors[:, at]
    facts["neighbors"] = float(counts.mean())
    facts["without_neighbors"] = int((counts == 0).sum())
    if method.has_certificate:
        proof = Neighborhoods(np.empty((0, 0)), None, found.certificate[:, at])
        summed = report.certificate(proof, None)
        facts["certificate"] = summed.as_dict() if summed else None
    if method.has_error:
        facts["mean_J"] = float(found.errors[:, at].mean())
    return facts


_LARGE = 1 << 25  # values of a matrix whose parts get a pool each


def _open(
    labeled: LabeledRows, trials: list[Trial], points: int, running: Running
) -> Any:
    """Open a run for so many points."""
    n, d = labeled.train.x.shape
    most = max(trial.k for trial in trials)
    chosen = replace(trials[0].settings, k=max(1, min(most, n - 1)))
    seconds = 0.5e-9 * Costs(n, d, most, "squared-distance").exact
    seconds += points * sum(row_seconds(trial.k, d) for trial in trials)
    methods = [trial.settings.method for trial in trials]
    return open_run(labeled.train, chosen, running, methods=methods, seconds=seconds)


def validate(
    labeled: LabeledRows, trials: list[Trial], found: Found
) -> tuple[list[Trial], list[dict[str, Any]]]:
    """Choose a trial for every method, and say how it did in cross-validation."""
    n, predicted = len(labeled.codes), found.predicted
    wrong: list[int] = (predicted != labeled.codes[:, np.newaxis]).sum(axis=0).tolist()
    best, lines = best_of(trials, wrong), []
    for name, place in best.items():
        line = line_of(trials[place], found.sigma[place])
        line |= validated(trials, wrong, n, name)
        if labeled.test is None:
            table = confusion(labeled.codes, predicted[:, place], len(labeled.classes))
            line |= {"error": line["cv_error"], "wrong": wrong[place], "tested": n}
            line["confusion"] = table.tolist()
        lines.append(line)
    return [trials[place] for place in best.values()], lines


def across_folds(
    labeled: LabeledRows,
    trials: list[Trial],
    count: int,
    running: Running,
    *,
    full: bool,
) -> Found:
    """Classify every training row by those of the other folds; sigma is their mean."""
    parts, places = [], []
    for out, found in _folds(labeled, trials, count, running, full=full):
        parts.append(found)
        places.append(np.flatnonzero(out))
    order = np.argsort(np.concatenate(places))
    names = ["predicted", "neighbors"]
    names += ["weights", "errors", "certificate"] if full else []
    whole = {
        name: np.concatenate([getattr(one, name) for one in parts])[order]
        for name in names
    }
    sigma: list[float | None] = []
    for some in zip(*(one.sigma for one in parts), strict=True):
        values = [value for value in some if value is not None]
        sigma.append(float(np.mean(values)) if values else None)
    return Found(sigma=sigma, **whole)


def _folds(
    labeled: LabeledRows,
    trials: list[Trial],
    count: int,
    running: Running,
    *,
    full: bool,
) -> Iterator[tuple[NDArray[np.bool_], Found]]:
    """Classify every fold by what the others teach."""
    x, codes = labeled.train.x, labeled.codes
    names = (labeled.train.name,) * 2
    fold = folds_of(codes, count, trials[0].settings.seed)
    # Files for the workers stay until a pool closes: large ones get a pool each.
    whole = [list(range(count))]
    groups = whole if x.size < _LARGE else [[one] for one in range(count)]
    for group in groups:
        size = int(np.isin(fold, group).sum())
        with (
            _open(labeled, trials, size, running) as run,
            run.progress("validate", size) as on_rows,
        ):
            learn = partial(run_split, run, trials, names=names, on_rows=on_rows)
            for one in group:
                out = fold == one
                rows = x[~out], codes[~out], labeled.learned, x[out]
                yield out, learn(*rows, full=full)


def classify_rows(
    labeled: LabeledRows, test: Features, trials: list[Trial], running: Running
) -> Found:
    """Learn from all training rows and classify the test rows."""
    rows = labeled.train.x, labeled.codes, labeled.learned, test.x
    names = (labeled.train.name, test.name)
    with (
        _open(labeled, trials, len(test.x), running) as run,
        run.progress("test", len(test.x)) as on_rows,
    ):
        return run_split(run, trials, *rows, names=names, full=True, on_rows=on_rows)


def notes(
    labeled: LabeledRows, trials: list[Trial], found: Found | None, count: int
) -> list[str]:
    """Say what could be better."""
    said, sizes = [], np.bincount(labeled.codes)
    if labeled.left_out:
        every = len(labeled.codes) + labeled.left_out
        said.append(
            f"{labeled.left_out} of {every} training rows have no label: left out"
        )
    if count > sizes.min():
        rare, name = int((sizes < count).sum()), labeled.classes[int(sizes.argmin())]
        said.append(
            f"{rare} classes have fewer training rows than the {count} folds, "
            f"{name!r} only {sizes.min()}"
        )
    for at, trial in enumerate(trials):
        if trial.lc is None or found is None or trial.k >= len(labeled.codes):
            continue
        full = int((found.neighbors[:, at] >= trial.k).sum())
        if full:
            said.append(
                f"{trial.name}: {full} test rows took all {trial.k} candidates and may "
                "want more: use a larger k or a larger lc"
            )
    return said


def warnings(labeled: LabeledRows, lines: list[dict[str, Any]]) -> list[str]:
    """Say what is not as it should be."""
    said = []
    if labeled.truth is not None:
        strange = int((labeled.truth >= labeled.learned).sum())
        if strange:
            names = ", ".join(map(repr, labeled.classes[labeled.learned :][:5]))
            more = ", ..." * (len(labeled.classes) - labeled.learned > 5)
            said.append(
                f"{strange} test rows are of classes that no training row has, and "
                f"count as wrong: {names}{more}"
            )
        unknown = int((labeled.truth < 0).sum())
        if unknown:
            said.append(f"{unknown} test rows have no label and do not count")
    for line in lines:
        if line.get("without_neighbors"):
            said.append(
                f"{line['method']}: {line['without_neighbors']} test rows have no "
                "neighbor of any weight: the nearest row decides"
            )
        proof = line.get("certificate")
        if proof and proof["nodes_failed"]:
            said.append(
                f"{line['method']}: {proof['nodes_failed']} test rows miss the optimum"
            )
    return said


METHODS = ("knn", "kstar", "nnk")
FOLDS = 5


@within_memory
def classify(
    train: Features | ArrayLike,
    labels: Labels | ArrayLike,
    test: Features | ArrayLike | None = None,
    test_labels: Labels | ArrayLike | None = None,
    /,
    *,
    split: Labels | ArrayLike | None = None,
    test_size: float | None = None,
    methods: Sequence[str] = METHODS,
    k: int | Sequence[int] | None = None,
    sigma: str | float | Sequence[str | float] | None = None,
    lc: float | Sequence[float] | None = None,
    cv: int | None = None,
    kernel: str = "gaussian",
    search: str = "auto",
    scale: str = "none",
    seed: int = 0,
    preset: str | None = None,
    predict: bool = False,
    **options: Unpack[RunningOptions],
) -> Classified:
    """Classify test rows by their neighbors among training rows.

    A class has the weight of the neighbors that belong to it; the heaviest wins, the
    first of equals. Scaling and rules for the bandwidth look at training rows only,
    also within cross-validation, where one search serves all values. Copies of a
    training row count as one row, whose label is the mean of theirs. Training rows
    without a label are left out and counted.

    Parameters
    ----------
    split : labels, optional
        0 for training rows and 1 for test rows.
    test_size : float, optional
        Share of the rows that is drawn as test part, every class alike.
    k, sigma, lc : value or sequence
        Of several values, cross-validation chooses for every method: the fewest
        mistakes, then the smallest k, then the smallest sigma or L/C.
    preset : str, optional
        As for ``build_graph``: the rule for sigma where none is given.
    cv : int, optional
        Folds of the cross-validation. By default 5 where several values are given or
        there is no test part, else none.
    predict : bool
        Where there is no test part, also return what cross-validation predicts of every
        row; of a test part predictions are always returned.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> found = nnkgraph.classify(x[:80], x[:80, 0] > 0, x[80:], x[80:, 0] > 0)
    >>> found.best["method"]
    'nnk'
    """
    data, points = features_of(train, name="train"), None
    if test is not None:
        points = features_of(test, name="test")
    labeled = labeled_rows(data, labels, points, test_labels, split, test_size, seed)
    several = any(len(_listed(one) or ()) > 1 for one in (k, sigma, lc))
    count = cv or (FOLDS if several or labeled.test is None else 0)
    trials = make_trials(
        labeled.train,
        methods,
        _numbers(labeled, k, count),
        _listed(sigma),
        _listed(lc),
        {
            "kernel": kernel,
            "search": search,
            "scale": scale,
            "seed": seed,
            "preset": preset,
        },
    )
    _, running = settings.split(options, RunningOptions)
    best, found, shown, said = trials, None, None, []
    lines: list[dict[str, Any]] = [{} for _ in trials]
    if count:
        # One pass is enough where there is nothing to choose.
        full = predict and len(trials) == len(methods) and labeled.test is None
        across = across_folds(labeled, trials, count, running, full=full)
        best, lines = validate(labeled, trials, across)
        if predict and labeled.test is None:
            if not full:
                across = across_folds(labeled, best, count, running, full=True)
            shown = _predictions(labeled, best, across)
        if cv is None:
            said = [f"cross-validation with {count} folds: `cv` sets their number"]
    if labeled.test is not None and labeled.rows is not None:
        found = classify_rows(labeled, labeled.test, best, running)
        for at, line in enumerate(lines):
            line.update(line_of(best[at], found.sigma[at]))
            line.update(tested(labeled, found, at, best[at].settings.method))
        shown = _predictions(labeled, best, found)
    least = min(line.get("cv_error", 0.0) for line in lines)
    about = {
        "rows": len(labeled.train.x),
        "left_out": labeled.left_out,
        "test_rows": None if labeled.test is None else len(labeled.test.x),
        "features": int(labeled.train.x.shape[1]),
        "cv": count or None,
        "kernel": kernel,
        "scale": scale,
        "seed": seed,
    }
    return Classified(
        lines,
        [line for line in lines if line.get("cv_error", 0.0) == least][-1],
        labeled.classes,
        about,
        shown,
        said + notes(labeled, best, found, count),
        warnings(labeled, lines),
    )


def _predictions(
    labeled: LabeledRows, trials: list[Trial], found: Found
) -> Predictions:
    """Return what was found about test rows, or about all where there are none."""
    alone = labeled.test is None
    own = labeled.train if labeled.test is None else labeled.test
    rows = labeled.origin if alone else labeled.rows
    return Predictions(
        tuple(trial.name for trial in trials),
        np.arange(len(own.x)) if rows is None else rows,
        own.ids,
        labeled.codes if alone else labeled.truth,
        found.predicted,
        found.weights,
        found.errors,
        found.neighbors,
    )


def _numbers(
    labeled: LabeledRows, k: int | Sequence[int] | None, count: int
) -> list[int]:
    """Return the values of k; refuse more folds or candidates than there are rows."""
    n, numbers = len(labeled.codes), _listed(k)
    if count == 1 or count < 0:
        raise ParameterError(f"cv must be at least 2, not {count}")
    if count > n:
        raise InputError(f"{labeled.train.name}: {n} rows cannot be {count} folds")
    least = n - -(-n // count) if count else n
    if numbers is None:
        return [min(DEFAULT_K, least)]
    if not numbers or min(numbers) < 1:
        raise ParameterError("k must be at least 1")
    if max(numbers) > least:
        raise InputError(
            f"{labeled.train.name}: k is {max(numbers)}, but there are only {least} "
            f"training rows{' beside a fold' if count else ''}: use a smaller k"
        )
    return numbers


def _listed(values: Any) -> list[Any] | None:
    if values is None:
        return None
    one = isinstance(values, (str, int, float, np.number))
    return [values] if one else list(values)
