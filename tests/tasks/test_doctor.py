"""Diagnoses: what data is like, and a line that works."""

import json
import re
import shlex

import numpy as np
import pytest
import scipy.sparse
from conftest import SAMPLES, brute_force

from nnkgraph import find_candidates, formats
from nnkgraph.build.graph import build_graph
from nnkgraph.tasks.columns import column_facts
from nnkgraph.tasks.compare import compare
from nnkgraph.tasks.doctor import doctor

ROLL = SAMPLES / "swiss_roll.npy"
DIGITS = f"{SAMPLES / 'digits.h5'}::features"


def rng():
    return np.random.default_rng(11)


def with_copies():
    x = rng().normal(size=(300, 4))
    return np.concatenate([x, x[:40], x[:3]])


def uneven():
    """Clusters whose distances differ by a factor of a hundred."""
    center = 50.0 * np.arange(4)[:, np.newaxis, np.newaxis]
    width = np.array([0.01, 0.1, 1.0, 3.0])[:, np.newaxis, np.newaxis]
    return (center + width * rng().normal(size=(4, 100, 3))).reshape(-1, 3)


def wide_column():
    x = rng().normal(size=(300, 5))
    return x * [1, 2000, 1, 2, 1]


def far_away():
    """A cloud and a few points that nobody has as a candidate."""
    x = rng().normal(size=(400, 3))
    x[:3] = [[40, 0, 0], [0, 50, 0], [0, 0, 60]]
    return x


DATA = {
    "roll": (lambda: np.load(ROLL), {}),
    "copies": (with_copies, {}),
    "noise": (
        lambda: rng().normal(size=(400, 200)),
        {"symmetrize": "mean", "scale": "unit"},
    ),
    "uneven": (uneven, {"kernel": "gaussian", "sigma": "local"}),
    "scales": (wide_column, {"scale": "standard"}),
    "far": (far_away, {"min_degree": 3, "kernel": "gaussian", "sigma": "local"}),
}


def edges(graph):
    return set(zip(*graph.adjacency.nonzero(), strict=True))


@pytest.mark.parametrize("name", ["roll", "copies", "far"])
def test_graphs_are_what_build_gives(name):
    x = DATA[name][0]()
    found = doctor(x, k=20)
    for line in found.figures["graphs"]:
        names = ("method", "symmetrize", "min_degree")
        graph = build_graph(x, k=20, **{key: line[key] for key in names})
        for key in ("edges", "edges_per_node", "components", "isolated"):
            assert line[key] == graph.report[key], (line, key)
    nnk = edges(build_graph(x, k=20))
    mutual = edges(build_graph(x, k=20, method="knn", symmetrize="mutual"))
    overlap = found.figures["overlap"]
    assert overlap["jaccard"] == len(nnk & mutual) / len(nnk | mutual)
    assert overlap["covered"] == len(nnk & mutual) / len(mutual)


def test_figures_are_what_compare_and_the_definitions_give():
    x = np.load(ROLL)
    figures = doctor(x, k=30, preset="paper").figures
    lines = compare(x, methods=["nnk", "knn"], k=[30], preset="paper").lines
    ours = {(g["method"], g["symmetrize"]): g for g in figures["graphs"][::-1]}
    for line in lines:
        assert ours[line["method"], line["rule"]]["edges"] == line["edges"]
    how = {"symmetrize": "none", "min_weight": 0.0, "preset": "paper"}
    directed = build_graph(x, k=30, **how)
    size = np.diff(directed.adjacency.indptr)
    support = figures["support"]
    assert support["mean"] == size.mean()
    assert support["kept_over_k"] == pytest.approx(size.mean() / 30)
    assert (support["min"], support["max"]) == (size.min(), size.max())
    for bar in support["histogram"]:
        assert bar["count"] == ((size >= bar["from"]) & (size <= bar["to"])).sum()
    index, squares = brute_force(x, 30)
    chosen = np.bincount(index.ravel(), minlength=len(x))
    assert figures["hubs"]["largest"] == chosen.max()
    assert chosen[figures["hubs"]["largest_row"]] == chosen.max()
    assert figures["hubs"]["unchosen"] == (chosen == 0).sum()
    assert sum(bar["count"] for bar in figures["hubs"]["histogram"]) == len(x)
    kth = np.sqrt(squares[:, -1])
    sigma = kth.mean() / 3
    assert figures["distances"]["sigma"] == pytest.approx(sigma)
    assert figures["distances"]["kth"]["q95"] == pytest.approx(np.percentile(kth, 95))
    bound = np.exp(-(kth**2) / (2 * sigma**2))
    assert figures["outside"]["nodes_above"] == (bound > 0.01).sum()
    assert figures["outside"]["max"] == pytest.approx(bound.max())


@pytest.mark.parametrize("name", DATA)
def test_the_suggested_line_runs_and_isolates_nobody(run, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    make, wanted = DATA[name]
    file = f"it's {name}.npy"
    np.save(file, make())
    line = ("doctor", file, "--json", "-q", "--preset", "paper")
    told = json.loads(run(*line).out)["suggestion"]
    assert told["settings"].items() >= wanted.items(), told["settings"]
    program, *words = shlex.split(told["command"])
    assert program == "nnkgraph"
    assert run(*words).code == 0
    graph = formats.read_graph(words[words.index("-o") + 1])
    assert np.diff(graph.adjacency.indptr).min() > 0
    assert graph.n_edges == told["edges"]


def test_the_line_repeats_what_was_asked(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = rng().normal(size=(80, 3))
    lines = ["name;a;b;c", *(f"n{i};{';'.join(map(str, r))}" for i, r in enumerate(x))]
    (tmp_path / "-t.txt").write_text("\n".join(lines))
    asked = "-k 9 --kernel laplacian --sigma kth-max --scale minmax --search exact"
    table = "--id-column name --delimiter ; --header"
    call = shlex.split(f"{asked} {table} --seed 4 --json -q")
    told = json.loads(run("doctor", "./-t.txt", *call).out)["suggestion"]
    words = shlex.split(told["command"])
    for option in shlex.split(f"{asked} {table}"):
        assert option in words
    assert run(*words[1:], "-q").code == 0
    assert formats.read_graph("./-t-graph.npz").n_edges == told["edges"]


def test_saturation_is_said_plainly(run, tmp_path):
    noise = tmp_path / "noise.npy"
    np.save(noise, rng().normal(size=(300, 150)))
    assert "NNK prunes little" in run("doctor", noise, "--preset", "paper").out
    roll = run("doctor", ROLL, "--preset", "paper").out
    assert "not saturated" in roll
    assert "NNK drops" in roll


def test_oddities_of_rows_are_counted():
    x = np.concatenate([rng().normal(size=(200, 4)), np.zeros((1, 4))])
    x = np.column_stack([np.concatenate([x, x[:7], x[:1], x[20:25] + 1e-7])])
    x = np.column_stack([x, np.full(len(x), 0.1)])
    figures = doctor(x).figures
    assert figures["rows"]["copies"] == 8
    assert figures["rows"]["largest_group"] == 3
    assert figures["rows"]["near_duplicates"] == 10
    assert figures["columns"]["constant"] == 1
    assert figures["columns"]["zero_rows"] == 0
    assert column_facts(x[:, :4])["zero_rows"] == 1


def test_rows_without_direction_do_not_stop_it(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = rng().normal(size=(60, 3))
    x[[4, 9]] = 0.0
    np.save("x.npy", x)
    result = run("doctor", "x.npy", "--kernel", "cosine", "--json")
    found = json.loads(result.out)
    assert found["kernel"].partition(":")[0] == "gaussian"
    assert "2 rows are all zeros" in found["replaced"][0]
    assert "cosine" not in found["suggestion"]["command"]
    assert run(*shlex.split(found["suggestion"]["command"])[1:]).code == 0


def test_scales_are_advised_only_where_they_are_no_principal_components():
    x = wide_column()
    facts = column_facts(x)
    assert facts["scale_apart"]
    assert not facts["principal"]
    assert facts["largest"] == 1
    assert facts["largest_share"] == pytest.approx(x[:, 1].var() / x.var(axis=0).sum())
    u, _, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    components = (u - u.mean(axis=0)) * [5000, 30, 20, 10, 5]
    assert column_facts(components)["principal"]
    assert "scale" not in doctor(components).suggestion.settings
    assert not column_facts(np.load(ROLL))["scale_apart"]


def test_scales_of_a_small_table_are_advised_where_many_columns_are_wide_too():
    x = rng().normal(size=(300, 5)) * [900, 1, 400, 700, 2]
    facts = column_facts(x)
    assert (facts["scale_apart"], facts["narrow"]) == (True, [1, 4])
    assert doctor(x, k=9).suggestion.settings["scale"] == "standard"
    pixels = rng().normal(size=(300, 60)) * np.repeat([900, 1], 30)
    assert not column_facts(pixels)["scale_apart"]


def test_columns_and_hubs_have_their_names(run, tmp_path):
    x = wide_column()
    rows = [f"n{at},{','.join(map(str, row))}" for at, row in enumerate(x)]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["who,a,income,b,c,d", *rows]))
    call = ("doctor", path, "--id-column", "who", "-k", 9)
    found = json.loads(run(*call, "--json").out)
    assert found["columns"]["largest_name"] == "income"
    assert found["columns"]["names"][found["columns"]["narrow"][0]] in "abcd"
    hub = found["hubs"]
    assert hub["largest_id"] == f"n{hub['largest_row']}"
    text = " ".join(run(*call).out.replace("\\\n", " ").split())
    assert "the widest column, 'income', is" in text
    assert re.search(r" ! 4 of 5 .*hardly count \('\w', .*--scale standard", text)
    assert f"'{hub['largest_id']}' (row {hub['largest_row']}) most often" in text
    assert re.search(r" nnkgraph build .* --scale standard --id-column who", text)
    built = ("build", path, "--id-column", "who", "-k", 9, "-o", tmp_path / "g.npz")
    said = r"column 'income' holds [\d.]+ % of the variance and 4 of 5 hardly count; "
    assert re.search(said, run(*built).err)
    assert "hardly count" not in run(*built, "--scale", "standard").err
    np.save(tmp_path / "x.npy", x)
    bare = run("build", tmp_path / "x.npy", "-k", 9, "-o", tmp_path / "h.npz")
    assert "hardly count" not in bare.err


def test_a_constant_column_is_named(run, tmp_path):
    x = rng().normal(size=(60, 3))
    x[0] = 0
    x[:, 2] = 0
    path = tmp_path / "x.csv"
    rows = [",".join(map(str, row)) for row in x.tolist()]
    path.write_text("\n".join(["a,b,flat", *rows]))
    text = " ".join(run("doctor", path, "-k", 9).out.split())
    assert "1 of 3 (33.3 %) columns is constant: 'flat'" in text
    assert "1 row is all zeros" in text


def test_columns_that_look_like_keys_are_said(run, tmp_path):
    n = 50
    mixed = rng().permutation(n)
    columns = {
        "nr": range(1, n + 1),
        "day": np.cumsum(rng().integers(1, 9, n)),
        "rank": mixed,
        "cust_id": 7 * mixed,
        "shopId": mixed % 3,
        "paid": mixed % 7,
        "grid": 7 * mixed,
        "half": np.arange(n) / 2,
    }
    x = np.column_stack(list(columns.values()))
    path = tmp_path / "x.csv"
    rows = [",".join(map(str, row)) for row in x.tolist()]
    path.write_text("\n".join([",".join(columns), *rows]))
    result = run("doctor", path, "-k", 9, "--json")
    keys = json.loads(result.out)["columns"]["keys"]
    assert {key["name"]: key["why"].split()[0] for key in keys} == {
        "nr": "counts",
        "day": "grows",
        "rank": "is",
        "cust_id": "is",
        "shopId": "has",
    }
    said = run("build", path, "-k", 9, "-o", tmp_path / "g.npz").err
    assert "column 'nr' counts the rows: it looks like a key, no feature" in said
    assert "leave it out with --drop nr; doctor says more" in said
    text = run("doctor", path, "-k", 9).out
    assert "\n! column 'nr' counts the rows" in text
    assert "--id-column nr, or leave it out with --drop nr, and look again" in text
    assert "\n! this takes what looks like a key for a feature" in text
    dropped = ("--drop", "nr,day,rank,shopId", "--id-column", "cust_id")
    assert "looks like a key" not in run("doctor", path, "-k", 9, *dropped).out
    bare = doctor(x, k=9).figures["columns"]
    assert [key["column"] for key in bare["keys"]] == [0, 1, 2]


@pytest.mark.parametrize(
    ("encoding", "drawn", "other"), [("ascii", "###", "█"), ("utf-8", "███", "#")]
)
def test_bars_survive_a_plain_terminal(program, encoding, drawn, other):
    result = program("doctor", ROLL, "-q", env={"PYTHONIOENCODING": encoding})
    assert result.code == 0, result.err
    assert result.err == ""
    assert drawn in result.out
    assert other not in result.out
    assert result.out.isascii() == (encoding == "ascii")


def embeddings(n=500, d=60):
    """Groups of directions with a common part; the lengths differ."""
    group = rng().normal(size=(10, d))[rng().integers(0, 10, n)]
    x = 0.5 + group + 1.5 * rng().normal(size=(n, d))
    return x * rng().uniform(1.0, 3.0, size=(n, 1))


def units(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_similarities_are_those_of_the_formula():
    x = embeddings()
    cosines = units(x) @ units(x).T
    np.fill_diagonal(cosines, -2)
    near = np.sort((1 + cosines) / 2, axis=1)[:, -9:]
    found = doctor(x, k=9, kernel="cosine").figures["similarities"]
    assert found["last_median"] == pytest.approx(np.median(near[:, 0]))
    told = [found["candidates"][name] for name in ("q05", "median", "q95")]
    assert told == pytest.approx(np.percentile(near, [5, 50, 95]))
    others = (1 + cosines[~np.eye(len(x), dtype=bool)]) / 2
    told = [found["random"][name] for name in ("q05", "median", "q95")]
    assert told == pytest.approx(np.percentile(others, [5, 50, 95]), abs=0.02)


@pytest.mark.parametrize(
    ("options", "alike"),
    [
        ({"kernel": "cosine"}, True),
        ({"sigma": 3.0}, True),
        ({"sigma": 3.0, "kernel": "laplacian"}, True),
        ({"sigma": 3.0, "scale": "unit"}, True),
        ({}, False),
        ({"kernel": "laplacian"}, False),
        ({"scale": "unit"}, False),
        ({"sigma": "local"}, False),
        ({"sigma": 1.0}, False),
    ],
)
def test_it_says_where_all_similarities_are_alike(options, alike):
    x = embeddings()
    if isinstance(sigma := options.get("sigma"), float):
        ways = {name: value for name, value in options.items() if name != "sigma"}
        width = doctor(x, k=9, **ways).figures["distances"]["sigma"]
        options = {**ways, "sigma": sigma * 3 * width}  # times the mean last distance
    found = doctor(x, k=9, **options)
    assert found.figures["similarities"]["alike"] == alike
    advised = [one for one in found.findings if "all alike" in one.text]
    assert [one.advice for one in advised] == [True] * alike
    settings = found.suggestion.settings
    better = doctor(x, k=9, **{**options, **_names(settings, "kernel sigma scale")})
    assert not better.figures["similarities"]["alike"]
    assert not alike or "grow" not in " ".join(one.text for one in found.findings)


def _names(settings, names):
    return {name: settings[name] for name in names.split() if name in settings}


def test_embeddings_get_angles_with_a_bandwidth(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", embeddings())
    text = run("doctor", "x.npy", "--kernel", "cosine").out
    assert "--grow" not in text
    assert "try --scale unit with --kernel gaussian: by angle" in " ".join(text.split())
    line = shlex.split(text.split("\nsuggested\n")[1].split("because")[0])
    assert "--kernel" not in line
    assert line[line.index("--scale") + 1] == "unit"
    assert run(*(word for word in line[1:] if word.strip())).code == 0
    plain = " ".join(run("doctor", "x.npy").out.split())
    assert "! rows look like embeddings: 60 dense columns, both signs" in plain
    assert " --scale unit" in plain.partition(" suggested ")[2]
    scaled = run("doctor", "x.npy", "--scale", "unit").out
    assert "  rows look like embeddings" in scaled
    assert "! rows look like embeddings" not in scaled


def test_rows_that_look_like_embeddings():
    x = embeddings()
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    gaps = np.where(rng().random(x.shape) < 0.05, 0.0, x)
    for rows, like in (
        (x, True),
        (units(np.abs(x)), True),
        (np.abs(x), False),
        (x[:, :40], False),
        (standard, False),
        (gaps, False),
        (x * [1000.0, *[1.0] * 59], False),
        (x + 20.0, False),
        (scipy.sparse.csr_array(x), False),
    ):
        found = doctor(rows, k=9).figures["columns"]["embeddings"]
        assert (found is not None) == like
        assert not like or found["one_length"] == (rows is not x)


def test_near_duplicates_by_angle_and_by_distance(run, tmp_path):
    x = embeddings()
    x[:20] = 2 * x[20:40] + 0.01 * rng().normal(size=(20, 60))
    cosines = units(x) @ units(x).T
    np.fill_diagonal(cosines, -2)
    near = int((cosines.max(axis=1) > 0.95).sum())
    assert near == 40
    for rows, options in (
        (x, {"kernel": "cosine"}),
        (x, {"scale": "unit"}),
        (7 * units(x), {}),
    ):
        told = doctor(rows, k=9, **options).figures["rows"]
        assert (told["near_duplicates"], told["near_cosine"]) == (near, 0.95)
    np.save(tmp_path / "x.npy", x)
    text = " ".join(run("doctor", tmp_path / "x.npy", "--scale", "unit").out.split())
    said = "40 of 500 (8.0 %) rows are near-duplicates: they have another row with a"
    assert f"{said} cosine above 0.95" in text
    narrow = run("doctor", tmp_path / "x.npy").out
    assert "no near-duplicates: no row has another row closer than" in narrow
    positive = doctor(100 + x, k=9, kernel="cosine").findings
    assert any("need not mean copies" in one.text for one in positive)


def test_what_depends_on_the_scale_says_so_where_another_is_suggested():
    def texts(**options):
        found = doctor(wide_column(), k=20, **options)
        near = [one.text for one in found.findings if "near-duplicates" in one.text]
        first = next(one.text for one in found.findings if one.section[:6] == "graphs")
        assert len(near) == 1
        return near[0], first

    near, first = texts()
    assert near.endswith(
        "; that is without scaling: look again with `scale='standard'`, as suggested "
        "below"
    )
    assert first == "with the options as given; the suggested line has others"
    near, first = texts(scale="standard")
    assert "look again" not in near
    assert first.startswith("method, rule")


def test_near_duplicates_are_not_what_chance_gives():
    for d in (1, 2, 3, 10):
        x = rng().uniform(size=(2000, d))
        assert doctor(x, k=20).figures["rows"]["near_duplicates"] <= 20
        x[:50] = x[50:100] + 1e-9
        facts = doctor(x, k=20).figures["rows"]
        squares = brute_force(x, 20)[1]
        last = np.median(np.sqrt(squares[:, -1]))
        assert facts["near_distance"] == pytest.approx(facts["near_share"] * last)
        assert facts["near_share"] <= 0.05
        assert 100 <= facts["near_duplicates"] <= 120


def words(n=300, d=40):
    """Counts of words as a sparse matrix: most are 0, some words are frequent."""
    often = np.linspace(0.02, 0.5, d)
    counts = rng().poisson(3.0, size=(n, d)) * (rng().random((n, d)) < often)
    counts[:, 7] = 0
    counts[counts.sum(axis=1) == 0, 3] = 1
    counts[5] = 0
    return scipy.sparse.csr_array(counts.astype(float))


@pytest.mark.parametrize("kernel", ["cosine", "gaussian", "linear"])
def test_sparse_rows_have_the_diagnosis_of_the_same_dense_rows(kernel):
    x = words()
    found, same = (doctor(rows, k=9, kernel=kernel) for rows in (x, x.toarray()))
    columns, dense = found.figures["columns"], same.figures["columns"]
    for name in ("constant_columns", "zero_rows", "largest", "narrow", "columns_90"):
        assert columns[name] == dense[name], name
    for name in ("largest_share", "scale_ratio"):
        assert columns[name] == pytest.approx(dense[name])
    assert columns["zero_rows"] == 1
    assert 7 in columns["constant_columns"]
    assert found.figures["graphs"] == same.figures["graphs"]
    assert found.suggestion == same.suggestion


def test_a_scale_that_would_fill_zeros_is_not_advised():
    x = words()
    x.data *= 1.0 + 1000 * (x.indices == 4)
    assert column_facts(x.toarray())["scale_apart"]
    found = doctor(x, k=9)
    assert "standard" not in " ".join(one.text for one in found.findings)
    assert found.suggestion.settings.get("scale", "none") in {"none", "unit"}


@pytest.mark.parametrize(
    "kernel", ["cosine", "laplacian", "linear", "lle", "polynomial", "precomputed"]
)
def test_every_kernel_has_a_diagnosis(run, tmp_path, kernel):
    x = rng().uniform(0.1, 1.0, size=(70, 3))
    if kernel == "precomputed":
        x = np.exp(-((x[:, np.newaxis] - x) ** 2).sum(axis=2))
    np.save(tmp_path / "x.npy", x)
    result = run("doctor", tmp_path / "x.npy", "--kernel", kernel, "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert (found["outside"] is not None) == (kernel == "laplacian")
    assert (found["similarities"] is not None) == (kernel in {"cosine", "laplacian"})
    assert found["suggestion"]["isolated"] == 0


def test_tiny_inputs():
    one = doctor(np.ones((1, 2)))
    assert one.suggestion is None
    assert one.figures["graphs"][0]["isolated"] == 1
    same = doctor(np.ones((9, 2)))
    assert same.figures["rows"]["copies"] == 8
    assert same.suggestion.facts["isolated"] == 0
    two = doctor(np.array([[0.0], [1.0]]))
    assert two.suggestion.facts["edges"] == 1


def test_an_approximate_search_says_its_recall():
    knn = {"search": "pynndescent:threads=1"}
    found = doctor(np.load(ROLL), k=10, **knn)
    assert 0.5 < found.figures["search"]["recall"] <= 1
    assert any("recall" in one.text for one in found.findings)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("-k", "0"), 2, "at least 1"),
        (("-k", "5000"), 3, "at most"),
        (("--kernel", "cosine", "--sigma", "2"), 2, "no bandwidth"),
        (("--search", "forest"), 2, "forest"),
        (("--scale", "log"), 2, "log"),
    ],
)
def test_mistakes(run, options, code, words):
    result = run("doctor", ROLL, *options)
    assert result.code == code
    assert words in result.err
    assert len(result.lines) == 1
    assert not result.out


def test_a_missing_file_is_one_line(run):
    result = run("doctor", "nothing.npy")
    assert result.code == 3
    assert len(result.lines) == 1


def test_the_text_has_every_section(run):
    text = run("doctor", DIGITS, "-q", "--preset", "paper").out
    for title in (
        "data",
        "search",
        "support: ",
        "does NNK matter here?",
        "graphs: ",
        "hubs: ",
        "was k enough?",
        "bandwidth and distances",
        "suggested",
    ):
        assert f"\n{title}" in text
    assert "--grow" in text
    assert "3 of 64 (4.7 %) columns are constant" in text


def many_rows(n=20_500, d=12):
    """More rows than all are looked at; some are copies, some are far from all."""
    x = rng().normal(size=(n, d))
    x[:400] *= 3.0
    return np.concatenate([x, x[1000:1300]]).astype(np.float32)


def test_a_sample_tells_what_all_rows_would():
    x, k = many_rows(), 10
    figures = doctor(x, k=k, sigma="auto").figures
    assert figures["sample"]["rows"] == 10_000
    assert figures["sample"]["nodes"] == 1000
    assert figures["rows"]["copies"] == 300
    for line in figures["graphs"]:
        names = ("method", "symmetrize", "min_degree")
        how = {"sigma": "auto", **{key: line[key] for key in names}}
        truth = build_graph(x, k=k, **how).report
        assert line["components"] is None
        assert line["edges_per_node"] == pytest.approx(
            truth["edges_per_node"], rel=0.04
        )
        share = truth["isolated"] / len(x)
        error = 4 * np.sqrt(max(share, 1e-3) / 1000)
        assert line["isolated"] / len(x) == pytest.approx(share, abs=error)
    nnk = edges(build_graph(x, k=k, sigma="auto"))
    mutual = edges(build_graph(x, k=k, method="knn", symmetrize="mutual"))
    overlap = len(nnk & mutual) / len(nnk | mutual)
    assert figures["overlap"]["jaccard"] == pytest.approx(overlap, abs=0.02)
    found = find_candidates(x[:20_500], k=k)
    kth, chosen = found.distance[:, -1], np.bincount(found.index.ravel())
    assert figures["distances"]["sigma"] == pytest.approx(kth.mean() / 3, rel=0.01)
    dimension = (k - 2) / np.log(kth[:, np.newaxis] / found.distance[:, :-1]).sum(
        axis=1
    )
    assert figures["search"]["dimension"] == pytest.approx(
        np.median(dimension), rel=0.02
    )
    skewness = ((chosen - k) ** 3).mean() / chosen.std() ** 3
    assert figures["hubs"]["skewness"] == pytest.approx(skewness, rel=0.15)
    hub = figures["hubs"]
    assert hub["largest"] == pytest.approx(chosen[hub["largest_row"]], rel=0.35)
    assert hub["unchosen"] is None


def test_the_skewness_of_all_rows_needs_no_estimate():
    x = rng().normal(size=(600, 20))
    chosen = np.bincount(brute_force(x, 10)[0].ravel(), minlength=600)
    skewness = ((chosen - 10) ** 3).mean() / chosen.std() ** 3
    assert doctor(x, k=10).figures["hubs"]["skewness"] == pytest.approx(skewness)


def test_a_sample_is_said_and_does_not_depend_on_workers(run, tmp_path):
    np.save(tmp_path / "x.npy", many_rows(d=4))
    call = ("doctor", tmp_path / "x.npy", "-k", 6)
    one = run(*call, "--json", "-j", 1).out
    assert run(*call, "--json", "-j", 2, "--executor", "threads").out == one
    told = json.loads(one)
    assert {"graphs", "suggestion"} <= set(told["sample"]["estimated_from_nodes"])
    result = run(*call)
    text = " ".join(result.out.split())
    for said in (
        "10000 rows, drawn by the seed",
        "components need all rows: they are not counted",
        "hubs: how often nodes are candidates of others (estimated from 10000 rows)",
        "graphs: what build would give (estimated from 1000 rows)",
        "easy for approximate search: about 3 dimensions around a row",
        "--search auto takes exact (less than a second)",
        " for all of the sample",
        "near-duplicates in the sample: ",
        "similarities (estimated from 10000 rows)",
        "none of 1000 nodes isolated, so below 0.3 % of all",
    ):
        assert said in text
    lines = [one for one in result.out.splitlines() if str(tmp_path) not in one]
    assert max(map(len, lines)) <= 80
    assert " -k 6 " in f"{told['suggestion']['command']} "


@pytest.mark.parametrize("kernel", ["cosine", "laplacian", "linear", "lle"])
def test_every_kernel_has_a_sample(kernel):
    x = many_rows(d=3) + 0.01
    found = doctor(x, k=4, kernel=kernel)
    assert found.figures["sample"]["rows"] == 10_000
    edges = found.figures["graphs"][0]["edges_per_node"]
    truth = build_graph(x, k=4, kernel=kernel).report["edges_per_node"]
    assert edges == pytest.approx(truth, rel=0.1)


def test_candidates_of_a_file_are_not_searched_again(tmp_path):
    x = many_rows(d=3)[:20_400]
    found = find_candidates(x, k=5)
    path = tmp_path / "knn.npz"
    np.savez(path, neighbors=found.index, distances=found.distance)
    told = doctor(x, k=5, search=f"precomputed:path={path}")
    assert told.figures["sample"]
    assert not told.figures["search"]["exact"]
    same = doctor(x, k=5).figures
    assert told.figures["graphs"] == same["graphs"]
