"""What is odd in a data set, against brute force, scikit-learn and plain loops."""

import csv
import html.parser
import json
from collections import Counter

import numpy as np
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

import nnkgraph
from nnkgraph import Labels
from nnkgraph.errors import InputError, ParameterError, ResourceError
from nnkgraph.tasks.audit.table import COLUMNS, content
from nnkgraph.tasks.audit.votes import ALONE, PRIOR


def points(n=300, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def pairs_of(near):
    return {tuple(sorted(pair)) for pair in zip(near.row, near.other, strict=True)}


def brute_pairs(x, limit):
    """Return all pairs by their definition; of copies only those with the first."""
    apart = cdist(x, x)
    first = [int(np.flatnonzero((x == row).all(axis=1))[0]) for row in x]
    own = {i for i, one in enumerate(first) if i == one}
    found = {
        (i, j)
        for i, j in np.argwhere(np.triu(apart <= limit, 1)).tolist()
        if i in own and j in own
    }
    return found | {(one, i) for i, one in enumerate(first) if i != one}


@pytest.mark.parametrize("search", ["exact", "kdtree", "auto"])
@pytest.mark.parametrize("limit", [0.0, 0.1, 0.4])
def test_all_pairs_are_found_that_there_are(limit, search):
    x = points()
    x[50:80] = x[3] + 0.01 * points(30)  # more near rows than candidates
    x[100:115] = x[7]
    found = nnkgraph.audit(x, k=6, duplicate=limit, search=search)
    assert pairs_of(found.near) == brute_pairs(x, limit)
    assert found.facts["near_duplicates"]["complete"]
    apart = np.linalg.norm(x[found.near.row] - x[found.near.other], axis=1)
    assert np.allclose(found.near.distance, apart, atol=1e-12)
    assert (np.diff(found.near.distance) >= 0).all()


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.05, 0.6), st.integers(2, 9))
def test_kept_rows_are_apart_and_every_other_is_near_one(seed, limit, k):
    draw = np.random.default_rng(seed)
    x = np.round(draw.normal(size=(80, 2)), 1)  # copies, ties, chains
    try:
        near = nnkgraph.audit(x, k=k, duplicate=limit).near
    except ResourceError:
        return
    kept = near.keeper == np.arange(len(x))
    apart = cdist(x, x)
    np.fill_diagonal(apart, np.inf)
    assert (apart[np.ix_(kept, kept)] > limit).all()
    away = np.flatnonzero(~kept)
    assert (apart[away, near.keeper[away]] <= limit + 1e-12).all()
    assert kept[near.keeper].all()
    assert near.spare == len(away)
    # A row that is told to go goes, and the groups are the connected ones.
    assert not kept[near.row].any()
    _, part = connected_components(sp.csr_array(apart <= limit), directed=False)
    size = np.bincount(part)
    assert ((near.group >= 0) == (size[part] > 1)).all()
    for i, j in zip(near.row, near.other, strict=True):
        assert near.group[i] == near.group[j]
    assert near.groups == (size > 1).sum()


def test_copies_hang_on_the_first_of_them_and_pairs_stay_few():
    x = points()
    x[100:200] = x[5]
    x[201] = x[5] + 1e-6
    found = nnkgraph.audit(x, k=8)
    facts = found.facts["near_duplicates"]
    assert (facts["pairs"], facts["identical"], facts["groups"]) == (101, 100, 1)
    assert set(found.near.other[found.near.distance == 0]) == {5}
    assert found.facts["distinct"] == 200
    assert (found.near.keeper[100:200] == 5).all()
    assert found.near.keeper[201] == 5


@pytest.mark.parametrize("how", [{"scale": "unit"}, {"kernel": "cosine"}])
def test_a_cosine_is_one_between_rows(how):
    x = points(d=8)
    x[40] = 3.0 * x[9] + 0.02 * points(1, 8, seed=1)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = unit @ unit.T
    wanted = {tuple(p) for p in np.argwhere(np.triu(cosine >= 0.93, 1)).tolist()}
    found = nnkgraph.audit(x, k=5, duplicate="cosine=0.93", **how)
    assert pairs_of(found.near) == wanted
    assert found.facts["near_duplicates"]["cosine"] == pytest.approx(0.93)
    first = found.near.row[0], found.near.other[0]
    assert found.columns["score"][0] == pytest.approx(cosine[first])


def test_planted_near_copies_are_found_by_default_and_others_are_not():
    x = points(2000, 12)
    noise = points(50, 12, seed=1)
    copies = x[:50] + 0.02 * noise
    found = nnkgraph.audit(np.concatenate([x, copies]), k=10)
    assert pairs_of(found.near) == {(i, 2000 + i) for i in range(50)}


def test_evenly_spread_points_are_hardly_ever_near_duplicates():
    for d in (1, 2, 5, 20):
        x = np.random.default_rng(d).uniform(size=(3000, d))
        assert len(nnkgraph.audit(x, k=5).near.row) <= 12, d


def test_sparse_rows_have_the_same_findings_as_dense_ones():
    draw = np.random.default_rng(2)
    x = np.where(draw.random((200, 40)) < 0.2, draw.normal(size=(200, 40)), 0)
    x[50:70] = x[1]
    x[50:70, 0] = np.linspace(0, 0.1, 20)
    y = (x[:, 1] > 0).astype(int)
    dense = nnkgraph.audit(x, y, k=6, search="exact")
    sparse = nnkgraph.audit(sp.csr_array(x), y, k=6, search="exact")
    assert pairs_of(dense.near) == pairs_of(sparse.near)
    assert np.allclose(dense.outlier_score, sparse.outlier_score)
    assert dense.columns["id"] == sparse.columns["id"]


def test_an_approximate_search_says_what_it_may_have_missed():
    x = points(500, 3)
    wrong = np.random.default_rng(0).integers(0, 500, size=(500, 6))
    search = nnkgraph.find_candidates(x, k=6)
    half = np.where(np.arange(500)[:, None] % 2, wrong, search.index)
    search = f"precomputed:path={save(half)}"
    with pytest.warns(nnkgraph.errors.QualityWarning, match="share"):
        found = nnkgraph.audit(x, k=6, search=search)
    near = found.facts["near_duplicates"]
    assert not near["complete"]
    assert found.facts["search"]["recall"] < 0.7
    low, high = near["missed"]["interval"]
    assert 0 < low < near["missed"]["share"] < high < 0.5
    # An odd row is found only where it is in the list of its nearest one.
    nearest = np.argsort(cdist(x, x), axis=1)[:, 1]
    hit = [j in half[i] or i in half[j] for i, j in enumerate(nearest)]
    assert near["missed"]["share"] == pytest.approx(1 - np.mean(hit), abs=0.02)


def save(index, folder=[]):  # noqa: B006 - one directory for all
    import tempfile

    folder or folder.append(tempfile.mkdtemp())
    path = f"{folder[0]}/near.npz"
    np.savez(path, neighbors=index)
    return path


def test_the_local_outlier_factor_is_that_of_scikit_learn():
    x = points(400, 3)
    found = nnkgraph.audit(x, k=12)
    known = -LocalOutlierFactor(12).fit(x).negative_outlier_factor_
    assert np.allclose(found.outliers.lof, known, rtol=1e-8)
    apart = np.sort(cdist(x, x), axis=1)[:, 1:13].mean(axis=1)
    assert np.allclose(found.outliers.far, apart / np.median(apart))
    wanted = np.sqrt(known * apart / np.median(apart))
    assert np.allclose(found.outlier_score, wanted)


def test_planted_outliers_come_first_and_usual_rows_are_none():
    x = points(500, 3)
    x[[7, 70]] = [[6, 6, 6], [-5, 5, 0]]
    found = nnkgraph.audit(x, k=15)
    rows = [at for at, kind in enumerate(found.columns["finding"]) if kind == "outlier"]
    assert [found.columns["id"][at] for at in rows[:2]] == [7, 70]
    assert len(rows) < 15
    known = np.isin(np.arange(500), [7, 70])
    assert roc_auc_score(known, found.outlier_score) == 1.0


def test_a_clump_of_near_copies_makes_no_outliers_around_it():
    x = points(400, 3)
    before = nnkgraph.audit(x, k=10)
    clump = x[5] + 1e-7 * points(40, 3, seed=1)
    after = nnkgraph.audit(np.concatenate([x, clump]), k=10)
    near = np.argsort(cdist(x, x[5:6])[:, 0])[1:20]
    assert (after.outlier_score[near] < 3 * before.outlier_score[near]).all()
    assert after.outlier_score.max() < 2 * before.outlier_score.max()


def slow_votes(x, labels, k):
    """Return the votes by loops over the rows and their regressions."""
    codes, n = labels.codes, len(x)
    first = [int(np.flatnonzero((x == row).all(axis=1))[0]) for row in x]
    own = sorted(set(first))
    members = {r: [i for i in range(n) if first[i] == r] for r in own}
    graph = nnkgraph.build_graph(
        x[own], k=k, symmetrize="none", min_degree=0, weights="regression"
    )
    theta = graph.adjacency.toarray()
    theta = theta + theta.T
    found = np.zeros((n, len(labels.classes)))
    for i in range(n):
        me = own.index(first[i])
        for at, r in enumerate(own):
            told = [codes[j] for j in members[r] if codes[j] >= 0]
            for code in told:
                found[i, code] += theta[me, at] / len(told)
        found[i] /= found[i].sum() or 1.0
        for j in members[first[i]]:
            if j != i and codes[j] >= 0:
                found[i, codes[j]] += 1.0
        found[i] /= found[i].sum() or 1.0
    return found


def noisy(n=160, seed=4, missing=10):
    """Return three blobs with copies, their labels with some flipped, and where."""
    draw = np.random.default_rng(seed)
    y = np.arange(n) % 3
    x = 3.0 * np.eye(3, 4)[y] + draw.normal(size=(n, 4))
    x[10:14] = x[1]
    x[20:22] = x[2]
    flipped = draw.choice(np.arange(30, n), 8, replace=False)
    names = np.array(["a", "b", "c"])[y]
    names[flipped] = np.array(["a", "b", "c"])[(y[flipped] + 1) % 3]
    names[10:14], names[20:22] = names[1], names[2]
    names[10] = "c"
    names[-missing:] = ""
    return x, names, flipped


def test_votes_are_those_of_the_definition():
    x, names, _ = noisy()
    labels = Labels.of(names)
    found = nnkgraph.audit(x, labels, k=9)
    slow = slow_votes(x, labels, 9)
    codes = labels.codes
    every = np.arange(len(x))
    own = np.where(codes >= 0, slow[every, codes], np.nan)
    rest = slow.copy()
    rest[every[codes >= 0], codes[codes >= 0]] = 0.0
    assert np.allclose(found.votes.own, own, equal_nan=True)
    assert np.allclose(found.votes.other, rest.max(axis=1))
    wanted = np.flatnonzero(rest.max(axis=1) > own)
    assert set(found.votes.suspicious) == set(wanted)
    prior = found.votes.prior
    score = (rest.max(axis=1) + prior) / (own + rest.max(axis=1) + 2 * prior)
    assert np.allclose(found.votes.score[wanted], score[wanted])
    assert (found.votes.suggested[wanted] == rest[wanted].argmax(axis=1)).all()


def test_flipped_labels_are_found_and_missing_ones_get_a_suggestion():
    x, names, flipped = noisy(400)
    found = nnkgraph.audit(x, names, k=12)
    labels = found.facts["labels"]
    assert labels["missing"] == 10
    assert labels["labeled"] == 390
    assert len(set(flipped) & set(found.votes.suspicious[:12])) >= 7
    assert labels["suggested_for_missing"] == 10
    truth = np.array(["a", "b", "c"])[np.arange(400) % 3]
    lines = [
        dict(zip(COLUMNS, line, strict=True))
        for line in zip(*found.columns.values(), strict=True)
    ]
    hints = {line["id"]: line for line in lines if not line["label"]}
    right = [truth[at] == line["suggested"] for at, line in hints.items()]
    assert np.mean(right) > 0.8
    assert found.count == len(lines) - len(
        [line for line in lines if line["finding"] == "label" and not line["label"]]
    )


def test_a_single_voter_counts_for_less_than_many_that_agree():
    draw = np.random.default_rng(0)
    x = np.concatenate([draw.normal(size=(100, 3)), 9 + draw.normal(size=(100, 3))])
    names = np.repeat(["a", "b"], 100)
    x = np.concatenate([x, x[:1] + 1e-6])
    names = np.append(names, "b")  # a near-duplicate with the label of far rows
    names[50] = "b"  # many neighbors say a
    found = nnkgraph.audit(x, names, k=10)
    prior = found.votes.prior
    assert prior[50] < PRIOR + ALONE / 4 < prior[0] <= PRIOR + ALONE
    assert found.votes.suspicious[0] == 50
    assert found.votes.score[50] > found.votes.score[0]


def test_witnesses_are_the_heaviest_voters_for_the_suggestion():
    x, names, _ = noisy()
    found = nnkgraph.audit(x, names, k=9)
    labels = Labels.of(names)
    for row, told in found.votes.witnesses.items():
        shares = [share for _, share in told]
        assert shares == sorted(shares, reverse=True)
        assert all(labels.codes[at] == found.votes.suggested[row] for at, _ in told)
        assert row not in dict(told)
        assert sum(shares) <= found.votes.other[row] + 1e-12
    assert set(found.votes.witnesses) == {
        *found.votes.suspicious,
        *found.votes.unlabeled,
    }


def test_a_copy_with_another_label_is_outvoted_by_its_copies():
    x, names, _ = noisy()
    found = nnkgraph.audit(x, names, k=9)
    assert 10 in found.votes.suspicious  # four copies of it say something else
    at = found.columns["id"].index(10)
    assert found.columns["finding"][at] == "near-duplicate"
    assert "the other's label is b" in found.columns["detail"][at]


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (np.arange(99) % 2, "99 labels, but"),
        ([""] * 100, "no row has a label"),
        ([1] * 100, "one class"),
        ([1] * 99 + [np.nan], "one class"),
        (np.linspace(0, 1, 100), "not measurements"),
    ],
)
def test_labels_that_decide_nothing_are_refused(labels, says):
    with pytest.raises(InputError, match=says):
        nnkgraph.audit(points(100), labels)


@pytest.mark.parametrize("duplicate", [-1, np.nan, np.inf, "cosine=2", "0,5", "x=1"])
def test_a_threshold_is_a_distance_or_a_cosine(duplicate):
    with pytest.raises(ParameterError, match="duplicate must be"):
        nnkgraph.audit(points(50), duplicate=duplicate)


def test_a_cosine_without_angles_is_refused():
    with pytest.raises(ParameterError, match="scale='unit'"):
        nnkgraph.audit(points(50), duplicate="cosine=0.95")


@pytest.mark.parametrize(("n", "k"), [(4, None), (20, None), (300, 5), (3000, 30)])
def test_a_threshold_that_joins_every_pair_is_refused(n, k):
    with pytest.raises(ResourceError, match=r"duplicate.*median distance"):
        nnkgraph.audit(points(n), k=k, duplicate=1e6)


@pytest.mark.parametrize("kernel", ["linear", "precomputed", "polynomial"])
def test_similarities_have_no_distances(kernel):
    x = np.eye(30) if kernel == "precomputed" else points(30)
    with pytest.raises(ParameterError, match="distances"):
        nnkgraph.audit(x, kernel=kernel)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_are_no_trouble(n):
    x = points(n)
    assert nnkgraph.audit(x).count == 0
    y = np.arange(n)
    if n > 1:
        assert nnkgraph.audit(x, y).facts["labels"]["labeled"] == n
    twice = nnkgraph.audit(np.repeat(x, 3, axis=0))
    assert twice.facts["near_duplicates"]["identical"] == 2 * n


def test_a_grid_has_neither_near_duplicates_nor_outliers():
    x = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), -1).reshape(-1, 2)
    assert nnkgraph.audit(x, k=8).count == 0


@pytest.fixture
def files(tmp_path):
    x, names, _ = noisy()
    ids = [f"r{i}" for i in range(len(x))]
    with (tmp_path / "t.csv").open("w") as file:
        table = csv.writer(file)
        table.writerow(["id", "p", "q", "r", "s", "kind"])
        table.writerows(
            [one, *row.tolist(), name]
            for one, row, name in zip(ids, x, names, strict=True)
        )
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", names)
    return tmp_path


def test_tables_of_all_kinds_say_the_same(run, files):
    line = ["audit", files / "t.csv", "--labels", f"{files / 't.csv'}::kind", "-k", 9]
    tables = {}
    for ending in ("csv", "tsv", "parquet", "html"):
        done = run(*line, "-o", files / f"a.{ending}")
        assert done.code == 0, done.err
    with (files / "a.csv").open() as file:
        tables["csv"] = list(csv.DictReader(file))
    with (files / "a.tsv").open() as file:
        tables["tsv"] = list(csv.DictReader(file, delimiter="\t"))
    rows = pyarrow.parquet.read_table(files / "a.parquet").to_pylist()
    assert list(rows[0]) == list(COLUMNS)
    tables["parquet"] = [{**row, "score": repr(row["score"])} for row in rows]
    assert tables["csv"] == tables["tsv"] == tables["parquet"]
    assert {row["finding"] for row in rows} >= {"near-duplicate", "label"}
    assert all(row["id"].startswith("r") for row in rows)
    page = (files / "a.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    cells = Cells(page).found
    first = {name: one for name, one in rows[0].items() if name != "finding"}
    assert cells[:6] == [*({**first, "score": "0"}.values())]
    assert len(cells) == 6 * len(rows)
    assert "<th>finding" not in page  # the heading says it


def test_a_small_distance_is_not_shown_as_zero(run, files):
    x = np.load(files / "x.npy")
    x[7] = x[3] + 1e-5
    np.save(files / "x.npy", x)
    line = ["audit", files / "x.npy", "--duplicate", "0.001", "--top", 99]
    done = run(*line, "-o", files / "a.html")
    (row,) = [one.split() for one in done.out.splitlines() if one.startswith("7 ")]
    assert float(row[1]) == pytest.approx(np.linalg.norm(x[7] - x[3]), rel=5e-3)
    assert row[1] in Cells((files / "a.html").read_text()).found


def test_quiet_prints_findings_only_where_no_file_has_them(run, files):
    line = ["audit", files / "x.npy", "--duplicate", "0", "-q"]
    assert "near-duplicate" in run(*line).out
    assert run(*line, "-o", files / "a.csv").out == ""


class Cells(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found, self._inside = [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        del attrs
        if tag == "td":
            self._inside = True
            self.found.append("")

    def handle_endtag(self, tag):
        self._inside = self._inside and tag != "td"

    def handle_data(self, data):
        if self._inside:
            self.found[-1] += data


def test_json_has_the_table_the_thresholds_and_what_may_be_missed(run, files):
    done = run("audit", files / "x.npy", "--labels", files / "y.npy", "--json")
    found = json.loads(done.out)
    assert done.code == 0
    near = found["near_duplicates"]
    assert near["complete"]
    assert near["missed"] is None
    assert near["threshold"] > 0
    assert near["identical"] == 6
    kinds = Counter(row["finding"] for row in found["table"])
    assert kinds["label"] == found["labels"]["suspicious"] + 10
    assert found["failure"] is None
    assert isinstance(found["table"][0]["id"], int)


def test_too_many_findings_end_with_6_and_all_is_written(run, files):
    out = files / "a.csv"
    line = ["audit", files / "x.npy", "-o", out]
    done = run(*line, "--max-findings", 5)
    assert done.code == 6
    assert "more than 5" in done.lines[-1]
    assert "a.csv was written" in done.lines[-1]
    count = len(out.read_text().splitlines()) - 1
    assert count > 5
    assert run(*line, "--max-findings", count).code == 0
    done = run("audit", files / "x.npy", "--json", "--max-findings", 5)
    assert done.code == 6
    assert "more than 5" in json.loads(done.out)["failure"]
    run(*line[:-1], files / "a.html", "--max-findings", 5)
    assert 'class="bad"' in (files / "a.html").read_text()


def test_top_and_stdout(run, files):
    line = ["audit", files / "x.npy", "--labels", files / "y.npy"]
    assert len(run(*line, "--top", 2).out.split("\n\n")[0].splitlines()) == 3
    assert run(*line, "--top", 0).out == ""
    table = run(*line, "-o", "-").out.splitlines()
    assert table[0] == ",".join(COLUMNS)
    assert run(*line, "-o", "-", "--json").code == 2


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        (["--labels", "short.npy"], 3, "99 labels"),
        (["--labels", "none.npy"], 3, "no row has a label"),
        (["--labels", "one.npy"], 3, "leave --labels out"),
        (["--duplicate", "1e9"], 5, "smaller --duplicate"),
        (["--duplicate", "cosine=0.9"], 2, "--scale unit"),
        (["--duplicate", "near"], 2, "distance"),
        (["--unlabeled", "9"], 2, "--labels"),
        (["-o", "a.txt"], 2, ".parquet"),
        (["--kernel", "linear"], 2, "distances"),
    ],
)
def test_bad_input_is_one_line_with_its_code(run, files, monkeypatch, more, code, says):
    monkeypatch.chdir(files)
    np.save("short.npy", np.arange(99))
    np.save("none.npy", np.array([""] * 160))
    np.save("one.npy", np.zeros(160, int))
    before = sorted(files.iterdir())
    line = ["audit", "x.npy", *more]
    done = run(*line) if "-o" in more else run(*line, "-o", "a.csv")
    assert done.code == code
    assert says in done.lines[-1]
    assert sorted(files.iterdir()) == before


def test_names_cannot_become_html_and_tables_stay_whole(tmp_path):
    x = points(60)
    x[1] = x[0]
    ids = ['<b>"&', "a,b\n", *(f"r{i}" for i in range(58))]
    found = nnkgraph.audit(nnkgraph.Features.of(x, ids=ids))
    page = content("a.html", found).decode()
    assert "<b>" not in page
    assert '<b>"&' in Cells(page).found
    rows = list(csv.reader(content("a.csv", found).decode().splitlines(keepends=True)))
    assert [row[0] for row in rows[1:]] == found.columns["id"]


@pytest.mark.parametrize("ending", ["csv", "parquet", "html"])
def test_equal_runs_give_equal_bytes_whatever_the_workers(ending):
    x, names, _ = noisy(700)
    runs = [
        content(f"a.{ending}", nnkgraph.audit(x, names, k=9, duplicate=0.6, **how))
        for how in ({}, {"workers": 2}, {"workers": 2, "executor": "threads"})
    ]
    assert runs[0] == runs[1] == runs[2]
