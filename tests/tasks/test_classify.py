"""Local classifiers: votes of neighbors, folds, files and mistakes."""

import csv
import json

import h5py
import numpy as np
import pytest
from conftest import SAMPLES
from scipy.optimize import nnls
from sklearn.neighbors import KNeighborsClassifier

from nnkgraph.build.query import query
from nnkgraph.data.labels import Labels, folds_of
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.tasks.classify import classify, draw_test_rows
from nnkgraph.tasks.classify._trials import winners


@pytest.fixture(scope="module")
def digits():
    with h5py.File(SAMPLES / "digits.h5") as file:
        return file["features"][:600].astype(float), file["labels"][:600]


def clouds(n=150, seed=0):
    """Three clouds that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 4)) + 1.2 * np.eye(3, 4)[y], y


def standardized(x, *others):
    low, width = x.mean(0), x.std(0)
    width[width == 0] = np.inf
    return [(one - low) / width for one in (x, *others)]


def by_definition(x, y, points, k, sigma, classes):
    """The class weights of methods nnk and knn, point by point."""
    nnk, knn = np.zeros((2, len(points), classes))
    for i, point in enumerate(points):
        square = np.square(x - point).sum(1)
        near = np.argsort(square, kind="stable")[:k]
        cross = np.exp(-square[near] / (2 * sigma**2))
        pairs = np.square(x[near][:, None] - x[near]).sum(-1)
        root = np.linalg.cholesky(np.exp(-pairs / (2 * sigma**2))).T
        theta, _ = nnls(root, np.linalg.solve(root.T, cross))
        np.add.at(nnk[i], y[near], theta)
        np.add.at(knn[i], y[near], cross)
    return [one / one.sum(1, keepdims=True) for one in (nnk, knn)]


def test_votes_are_those_of_the_definition(digits):
    x, y = digits
    train, test = standardized(x[:400], x[400:])
    found = classify(
        x[:400],
        y[:400],
        x[400:],
        y[400:],
        methods=["nnk", "knn"],
        k=12,
        sigma=4.0,
        scale="standard",
    )
    truth = by_definition(train, y[:400], test, 12, 4.0, 10)
    for at, votes in enumerate(truth):
        own = found.predictions
        assert own.weights[:, at] == pytest.approx(votes, abs=1e-8)
        assert np.array_equal(own.predicted[:, at], votes.argmax(1))
        error = (votes.argmax(1) != y[400:]).mean()
        assert found.lines[at]["error"] == pytest.approx(error, abs=1e-15)


@pytest.mark.parametrize(("k", "sigma"), [(5, 0.7), (30, 2.0), (100, 0.3)])
def test_knn_is_the_weighted_classifier_of_scikit_learn(k, sigma):
    x, y = clouds()
    found = classify(x[:100], y[:100], x[100:], methods=["knn"], k=k, sigma=sigma)
    peer = KNeighborsClassifier(
        k, weights=lambda d: np.exp(-(d**2) / (2 * sigma**2)), algorithm="brute"
    ).fit(x[:100], y[:100])
    votes = peer.predict_proba(x[100:])
    assert found.predictions.weights[:, 0] == pytest.approx(votes, abs=1e-12)
    assert np.array_equal(found.predictions.predicted[:, 0], peer.predict(x[100:]))


@pytest.mark.parametrize(
    "method", ["nnk", "knn", "mp", "omp", "l1:eta=0.2", "lle", "kstar:lc=0.5"]
)
@pytest.mark.parametrize("kernel", ["gaussian", "cosine"])
def test_weights_are_those_of_a_query(method, kernel):
    x, y = clouds()
    options = {"k": 9, "kernel": kernel, "scale": "standard"}
    found = classify(x[:100], y[:100], x[100:], methods=[method], **options)
    answers = query(x[:100], x[100:], method=method, **options)
    votes = answers.weights @ np.eye(3)[y[:100]]
    own, some = found.predictions, votes.sum(1) > 0
    assert some.sum() > 30
    votes = votes[some] / votes[some].sum(1, keepdims=True)
    assert own.weights[some, 0] == pytest.approx(votes, abs=1e-12)
    assert np.array_equal(own.neighbors[:, 0], np.diff(answers.weights.indptr))
    if answers.errors is not None:
        assert np.array_equal(own.errors[:, 0], answers.errors)


def test_a_method_without_a_kernel_changes_nothing_for_the_others():
    x, y = clouds(200)
    alone, beside = (
        classify(x[:150], y[:150], x[150:], y[150:], methods=methods, k=10)
        for methods in (["nnk"], ["nnk", "kstar"])
    )
    assert alone.lines[0] == beside.lines[0]
    for name in ("weights", "errors"):
        one, two = (getattr(found.predictions, name) for found in (alone, beside))
        assert np.array_equal(one[:, 0], two[:, 0])


def test_copies_vote_with_the_mean_of_their_labels():
    x = [[0.0], [0.0], [0.0], [1.0]]
    found = classify(x, ["a", "b", "b", "a"], [[0.0], [0.2]], k=2, sigma=1.0)
    at = found.predictions.methods.index("nnk")
    assert found.predictions.weights[0, at] == pytest.approx([1 / 3, 2 / 3])
    assert found.predictions.errors[0, at] == 0.0
    assert found.predictions.predicted[0, at] == 1
    near, far = np.exp(-np.square([0.2, 0.8]) / 2)
    at = found.predictions.methods.index("knn")
    votes = np.array([near / 3 + far, 2 * near / 3]) / (near + far)
    assert found.predictions.weights[1, at] == pytest.approx(votes)


def test_the_first_class_wins_where_votes_are_equal():
    x, y = [[-1.0], [1.0], [-3.0], [3.0]], ["b", "a", "b", "a"]
    found = classify(x, y, [[0.0]], methods=["knn", "nnk"], k=4, sigma=1.0)
    assert found.predictions.predicted.tolist() == [[0, 0]]
    assert found.classes[0] == "a"
    assert winners(np.array([[0.3, 0.1 + 0.2], [0.3, 0.301]])).tolist() == [0, 1]


def test_of_equal_trials_the_smallest_values_are_chosen():
    x, y = clouds()
    found = classify(x, y, methods=["nnk", "knn"], k=[15, 5], sigma=[1e-3, 1e-4])
    for line in found.lines:
        assert len({one["error"] for one in line["tried"]}) == 1
        assert (line["k"], line["sigma"]) == (5, 1e-4)
    assert found.best["method"] == "knn"  # the last of equals


@pytest.mark.parametrize("method", ["knn", "nnk"])
def test_a_tiny_bandwidth_leaves_the_nearest_neighbor(method):
    x, y = clouds()
    found = classify(
        x[:100], y[:100], x[100:], y[100:], methods=[method], k=9, sigma=1e-5
    )
    square = np.square(x[:100] - x[100:, None]).sum(-1)
    assert np.array_equal(
        found.predictions.predicted[:, 0], y[:100][square.argmin(axis=1)]
    )
    assert found.lines[0]["without_neighbors"] == 50
    assert "the nearest row decides" in found.warnings[0]


def test_cross_validation_is_what_folds_by_hand_give():
    x, y = clouds()
    numbers, sigmas = [5, 15], [0.3, 3.0]
    found = classify(
        x, y, methods=["nnk", "knn"], k=numbers, sigma=sigmas, cv=4, scale="standard"
    )
    fold = folds_of(y, 4, 0)
    wrong = {}
    for one in range(4):
        out = fold == one
        train, test = standardized(x[~out], x[out])
        for k in numbers:
            for sigma in sigmas:
                both = by_definition(train, y[~out], test, k, sigma, 3)
                for name, votes in zip(("nnk", "knn"), both, strict=True):
                    count = (votes.argmax(1) != y[out]).sum()
                    key = name, k, sigma
                    wrong[key] = wrong.get(key, 0) + count
    for line in found.lines:
        own = {key: count for key, count in wrong.items() if key[0] == line["method"]}
        assert [one["error"] for one in line["tried"]] == [
            own[line["method"], one["k"], one["sigma"]] / 150 for one in line["tried"]
        ]
        first = min(own, key=lambda key: (own[key], key[1], key[2]))
        assert (line["k"], line["sigma"]) == first[1:]
        assert line["error"] == line["cv_error"] == own[first] / 150
        assert np.sum(line["confusion"]) == 150


def test_test_rows_have_no_part_in_what_is_learned():
    x, y = clouds()
    options = {"k": [5, 9], "sigma": ["auto", 2.0], "scale": "standard", "lc": [0.5, 1]}
    a = classify(x[:100], y[:100], x[100:], y[100:], **options)
    b = classify(x[:100], y[:100], x[100:] * 5 + 3, y[100:], **options)
    keys = "k", "sigma", "lc", "cv_error", "tried"
    for one, two in zip(a.lines, b.lines, strict=True):
        assert {k: one.get(k) for k in keys} == {k: two.get(k) for k in keys}
    assert not np.array_equal(a.predictions.predicted, b.predictions.predicted)


def test_a_split_of_one_file_is_the_same_as_two_files():
    x, y = clouds()
    mask = np.arange(150) % 3 == 0
    a = classify(x, y, split=mask, k=9, scale="standard")
    b = classify(x[~mask], y[~mask], x[mask], y[mask], k=9, scale="standard")
    assert a.lines == b.lines
    assert a.predictions.rows.tolist() == np.flatnonzero(mask).tolist()


@pytest.mark.parametrize("executor", ["processes", "threads"])
def test_workers_cannot_be_seen(executor):
    x, y = clouds()
    options = {"k": [5, 9], "sigma": [0.5, 2.0], "test_size": 0.4, "seed": 3}
    a = classify(x, y, **options)
    b = classify(x, y, workers=2, executor=executor, **options)
    assert a.facts == b.facts
    for name in ("predicted", "weights", "neighbors"):
        one, two = (getattr(f.predictions, name) for f in (a, b))
        assert np.array_equal(one, two)
    assert np.array_equal(a.predictions.errors, b.predictions.errors, equal_nan=True)


def test_folds_and_parts_hold_every_class_alike():
    y = np.repeat([0, 1, 2, 3], [100, 37, 10, 2])
    for seed in range(3):
        fold = folds_of(y, 5, seed)
        for counts in (np.bincount(fold[y == one], minlength=5) for one in range(4)):
            assert np.ptp(counts) <= 1
        out = draw_test_rows(Labels.of(y), 0.3, seed)
        assert out.sum() == int(149 * 0.3)
        for one in range(4):
            assert abs(out[y == one].sum() - 0.3 * (y == one).sum()) < 1
    assert not np.array_equal(folds_of(y, 5, 0), folds_of(y, 5, 1))
    assert np.array_equal(folds_of(y, 5, 1), folds_of(y, 5, 1))


def test_strange_and_missing_classes_of_test_rows_are_said():
    x, y = clouds()
    truth = np.array(["0", "1", "2"])[y[100:]]
    truth[:4], truth[4:6] = "9", ""
    found = classify(x[:100], y[:100], x[100:], truth, methods=["nnk"], k=9)
    line = found.lines[0]
    assert found.classes == ("0", "1", "2", "9")
    assert line["tested"] == 48
    right = (found.predictions.predicted[6:, 0] == y[106:]).sum()
    assert line["error"] == (48 - right) / 48
    assert np.array(line["confusion"])[3].sum() == 4
    assert "4 test rows are of classes that no training row has" in found.warnings[0]
    assert "2 test rows have no label" in found.warnings[1]


def test_rows_without_a_label_are_left_out_and_counted():
    x, y = clouds()
    known = np.random.default_rng(1).random(150) < 0.8
    labels = np.where(known, y, np.nan)
    own = {"k": 9, "methods": ["nnk"], "scale": "standard"}
    a = classify(x, labels, x[:30], y[:30], **own)
    b = classify(x[known], y[known], x[:30], y[:30], **own)
    assert a.lines == b.lines
    assert a.about["left_out"] == (~known).sum()
    assert f"{(~known).sum()} of 150 training rows have no label" in a.notes[0]
    split = np.arange(150) % 4 == 0
    a = classify(x, labels, split=split, **own)
    there = known | split
    b = classify(x[there], labels[there], split=split[there], **own)
    assert a.lines == b.lines
    assert a.predictions.rows.tolist() == np.flatnonzero(split).tolist()


@pytest.mark.parametrize("k", [9, [5, 9]])
def test_cross_validation_predicts_every_row_by_the_other_folds(k):
    x, y = clouds()
    labels = np.where(np.arange(150) % 7 == 3, np.nan, y)
    rows = np.flatnonzero(np.arange(150) % 7 != 3)
    found = classify(x, labels, k=k, sigma=1.0, cv=3, predict=True)
    own = found.predictions
    assert own.rows.tolist() == rows.tolist()
    fold = folds_of(y[rows], 3, 0)
    for one in range(3):
        out, rest = rows[fold == one], rows[fold != one]
        for at, line in enumerate(found.lines):
            hand = {"k": line["k"], "sigma": 1.0, "methods": [line["method"]]}
            by_hand = classify(x[rest], y[rest], x[out], y[out], **hand).predictions
            got = own.weights[fold == one, at]
            np.testing.assert_array_equal(got, by_hand.weights[:, 0])
    for at, line in enumerate(found.lines):
        assert (own.predicted[:, at] != own.truth).sum() == line["wrong"]
    assert classify(x, labels, k=k, sigma=1.0, cv=3).predictions is None


def test_cross_validated_predictions_go_to_a_table(run, tmp_path):
    x, y = clouds()
    names = [f"r{at}" for at in range(150)]
    lines = [f"{n},{a},{b}" for n, (a, b) in zip(names, x[:, :2], strict=True)]
    (tmp_path / "x.csv").write_text("id,u,v\n" + "\n".join(lines) + "\n")
    kinds = ["NA" if at % 10 == 0 else "abc"[one] for at, one in enumerate(y)]
    (tmp_path / "y.csv").write_text("label\n" + "\n".join(kinds) + "\n")
    call = ("classify", tmp_path / "x.csv", "--labels", tmp_path / "y.csv")
    result = run(*call, "--method", "nnk", "--json", "-o", tmp_path / "p.csv")
    assert result.code == 0, result.err
    assert "15 of 150 training rows have no label: left out" in result.err
    assert "p.csv: 135 rows predicted" in result.err
    with (tmp_path / "p.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [one["id"] for one in table] == [n for n in names if int(n[1:]) % 10]
    assert [one["class"] for one in table] == [k for k in kinds if k != "NA"]
    wrong = sum(one["class"] != one["predicted"] for one in table)
    facts = json.loads(result.out)
    assert (wrong, facts["left_out"]) == (facts["wrong"], 15)


def test_a_rare_class_does_not_stop_cross_validation():
    x, y = clouds()
    y = y.copy()
    y[0] = 7
    found = classify(x, y, k=5, methods=["nnk"])
    assert np.array(found.lines[0]["confusion"])[3, 3] == 0
    assert any("'7' only 1" in note for note in found.notes)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"methods": ["eps"]}, ParameterError, "whole graph"),
        ({"methods": ["kalofolias"]}, ParameterError, "whole graph"),
        ({"methods": ["nnk", "nnk"]}, ParameterError, "twice"),
        ({"methods": []}, ParameterError, "no method"),
        ({"methods": ["nnk"], "lc": 1}, ParameterError, "lc is for method kstar"),
        ({"methods": ["kstar:lc=2"], "lc": 1}, ParameterError, "given twice"),
        ({"kernel": "cosine", "sigma": 1}, ParameterError, "no bandwidth"),
        ({"kernel": "precomputed"}, ParameterError, "own rows only"),
        ({"search": "kdtree"}, ParameterError, "use exact"),
        ({"search": "precomputed:path=a.npz"}, ParameterError, "use search exact"),
        ({"sigma": [1.0, -1.0]}, ParameterError, "positive"),
        ({"cv": 1}, ParameterError, "at least 2"),
        ({"cv": 200}, InputError, "cannot be 200 folds"),
        ({"k": 121}, InputError, "only 120 training rows beside a fold"),
        ({"k": 0}, ParameterError, "at least 1"),
        ({"test_size": 1.5}, ParameterError, "between 0 and 1"),
        ({"test_size": 0.001}, InputError, "both parts"),
        ({"split": np.arange(150)}, InputError, "0 .training. or 1 .test."),
        ({"split": [0, 1]}, InputError, "2 labels"),
        ({"split": np.arange(150) % 2, "test_size": 0.5}, ParameterError, "give one"),
    ],
)
def test_what_cannot_be_asked(options, error, message):
    with pytest.raises(error, match=message):
        classify(*clouds(), **options)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], "2 labels, but train has 150 rows"),
        (np.zeros(150, int), "nothing to tell apart"),
        (np.full(150, np.nan), "all 150 training rows lack a label"),
        (np.where(np.arange(150) < 9, np.nan, 1.0), "nothing to tell apart"),
    ],
)
def test_labels_that_teach_nothing_are_refused(labels, message):
    with pytest.raises(InputError, match=message):
        classify(clouds()[0], labels)


@pytest.fixture
def files(tmp_path):
    x, y = clouds()
    names = np.array(["ant", "bee", "cat"])[y]
    np.savez(tmp_path / "data.npz", X=x, y=names, split=np.arange(150) % 3 // 2)
    return tmp_path / "data.npz"


def test_the_command_says_what_it_chose_and_how_it_did(run, files):
    grid = ("-k", "5,9", "--sigma", "0.5,2", "--lc", "0.5,1", "--scale", "standard")
    parts = (f"{files}::X", "--labels", f"{files}::y", "--split", files)
    result = run("classify", *parts, *grid)
    assert result.code == 0, result.err
    head, *lines = result.out.splitlines()
    assert head.split() == [
        "method",
        "k",
        "sigma",
        "lc",
        "cv",
        "error",
        "test",
        "error",
    ]
    assert [line.split()[0] for line in lines[:3]] == ["knn", "kstar", "nnk"]
    assert lines[4].startswith("confusion of ")
    assert "cross-validation with 5 folds" in result.err
    assert "100 training rows, 50 test rows" in result.err
    report = json.loads(run("classify", *parts, *grid, "--json", "-q").out)
    with np.load(files) as data:
        x, y, split = data["X"], data["y"], data["split"]
    found = classify(
        x, y, split=split, k=[5, 9], sigma=[0.5, 2], lc=[0.5, 1], scale="standard"
    )
    del report["seconds"]
    assert report == json.loads(json.dumps(found.facts))
    assert report["method"] in {"knn", "kstar", "nnk"}
    assert {"k", "error", "confusion"} <= set(report)
    assert report["classes"] == ["ant", "bee", "cat"]


def test_predictions_go_to_a_table_and_to_arrays(run, files):
    parts = (f"{files}::X", "--labels", f"{files}::y", "--test-size", "0.2")
    for name in ("p.csv", "p.npz"):
        result = run("classify", *parts, "-o", files.with_name(name), "--json")
        assert result.code == 0, result.err
        assert f"{files.with_name(name)}: 30 rows predicted" in result.err
    report = json.loads(result.out)
    with files.with_name("p.csv").open() as file:
        lines = list(csv.DictReader(file))
    own = [line for line in lines if line["method"] == "nnk"]
    assert len(lines) == 90
    wrong = sum(line["class"] != line["predicted"] for line in own)
    assert wrong / 30 == report["methods"][2]["error"]
    votes = np.array(
        [[float(one[f"weight_{c}"]) for c in ("ant", "bee", "cat")] for one in own]
    )
    assert votes.sum(1) == pytest.approx(1)
    assert all(line["J"] == "" for line in lines if line["method"] == "knn")
    with np.load(files.with_name("p.npz")) as arrays, np.load(files) as data:
        assert np.array_equal(arrays["weights"][2], votes)
        assert np.array_equal(arrays["errors"][2], [float(one["J"]) for one in own])
        assert arrays["rows"].tolist() == [int(one["row"]) for one in own]
        assert np.array_equal(
            arrays["classes"][arrays["true"]], data["y"][arrays["rows"]]
        )
        assert np.isnan(arrays["errors"][0]).all()


def test_ids_go_through_and_match_labels(run, tmp_path):
    (tmp_path / "x.csv").write_text("id,u\np,0\nq,1\nr,10\ns,11\n")
    (tmp_path / "y.csv").write_text("id,label\ns,b\nr,b\nq,a\np,a\n")
    (tmp_path / "t.csv").write_text("id,u\nn1,0.4\nn2,10.2\n")
    result = run(
        *("classify", tmp_path / "x.csv", "--labels", tmp_path / "y.csv"),
        *("--test", tmp_path / "t.csv", "--id-column", "id", "-k", 2, "--json"),
        *("--method", "nnk", "-o", tmp_path / "out.csv"),
    )
    assert result.code == 0, result.err
    assert json.loads(result.out)["error"] is None
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert [line.split(",")[:4] for line in lines[1:]] == [
        ["n1", "nnk", "", "a"],
        ["n2", "nnk", "", "b"],
    ]


@pytest.mark.parametrize(
    ("extra", "code", "message"),
    [
        (("--test-size", "0.5", "-o", "p.txt"), 2, "ends in none of"),
        (("--test-size", "1"), 2, "--test-size"),
        (("--sigma", "1,zero"), 2, "neither a positive number nor a rule"),
        (("--lc", "1,-1"), 2, "above 0"),
        (("-k", "0"), 2, "at least 1"),
        (("--cv", "1"), 2, "--cv"),
        (("--method", "aew"), 2, "whole graph"),
        (("--test-labels", "{files}::y"), 2, "no test part"),
        (("--split", "{files}::y"), 3, "0 (training) or 1 (test)"),
        (("--split", "{files}::nothing"), 3, "nothing"),
        (("-k", "200"), 3, "use a smaller k"),
    ],
)
def test_mistakes_exit_with_one_line_and_no_file(run, files, extra, code, message):
    before = sorted(files.parent.iterdir())
    parts = (f"{files}::X", "--labels", f"{files}::y", "--json")
    extra = [
        files.with_name(one) if one.startswith("p.") else one.format(files=files)
        for one in extra
    ]
    result = run("classify", *parts, *extra)
    assert result.code == code, result.err
    assert message in result.lines[-1]
    assert result.out == ""
    assert sorted(files.parent.iterdir()) == before
