"""The page about a graph: what it holds, and what a real browser makes of it."""

import base64
import itertools
import json
import re
from dataclasses import replace
from urllib.parse import urlsplit

import numpy as np
import pytest
from conftest import SAMPLES, requests, wait_for
from scipy.sparse import coo_array, csr_array

from nnkgraph import formats
from nnkgraph.build.graph import build_graph
from nnkgraph.data import Features, Graph
from nnkgraph.data.labels import Labels
from nnkgraph.errors import InputError
from nnkgraph.tasks import page as pages
from nnkgraph.tasks.findings import Findings
from nnkgraph.tasks.page import drawing, report

X = np.random.default_rng(8).normal(size=(60, 3))
OWN = {"data", "chrome"}
"""Addresses that a browser asks itself for."""

EVIL = "</script><img src=x onerror=alert(1)>{{style}}\u2028 & \"'"
KINDS = {"f4": "<f4", "u2": "<u2", "u4": "<u4", "i4": "<i4"}


def held(text):
    """What the page carries."""
    found = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL
    )
    assert len(found) == 1
    return json.loads(found[0])


def numbers(packed):
    found = np.frombuffer(base64.b64decode(packed["data"]), KINDS[packed["kind"]])
    if "low" not in packed:
        return found
    step = (packed["high"] - packed["low"]) / 65534
    sizes = np.exp(packed["low"] + (found.astype(float) - 1) * step)
    return np.where(found, sizes, 0.0)


def places(drawn):
    found = np.stack([numbers(drawn[axis]) for axis in "xy"], axis=1).astype(float)
    return np.where(found == 65535, np.nan, found / 65534 - 0.5)


def ring(n, **more):
    """A graph in a circle."""
    at = np.arange(n)
    edges = coo_array((np.ones(n), (at, (at + 1) % n)), (n, n)).tocsr()
    return Graph(csr_array(edges + edges.T), **more)


# What it holds


def test_the_page_holds_the_whole_graph():
    graph = build_graph(X, k=8)
    found = held(report(graph, name="folder/g.npz"))
    drawn = found["graph"]
    lower = graph.adjacency.tocoo()
    keep = lower.row < lower.col
    ends = zip(numbers(drawn["source"]), numbers(drawn["target"]), strict=True)
    weights = dict(zip(ends, numbers(drawn["weight"]), strict=True))
    wanted = zip(lower.row[keep], lower.col[keep], lower.data[keep], strict=True)
    assert weights == pytest.approx({(i, j): w for i, j, w in wanted}, rel=3e-4)
    apart = dict(zip(weights, numbers(drawn["distance"]), strict=True))
    for i, j in weights:
        assert apart[i, j] == pytest.approx(np.linalg.norm(X[i] - X[j]), rel=3e-4)
    assert (np.diff(numbers(drawn["weight"])) <= 0).all()
    assert np.array_equal(numbers(drawn["error"]), graph.errors.astype("f4"))
    tiles = dict(found["tiles"])
    assert tiles["nodes"] == 60
    assert tiles["edges"] == graph.n_edges
    assert found["proof"]["state"] == "good"
    titles = [chart["title"] for chart in found["charts"]]
    assert titles == ["Degrees", "Weights", "Support", "Errors"]
    assert [sum(chart["counts"]) for chart in found["charts"]] == [
        *(60, graph.n_edges, 60, 60)
    ]
    assert ["method", "nnk"] in found["parameters"]
    assert found["checks"] is None


def test_the_page_is_one_file_and_the_same_for_the_same_graph():
    text = report(build_graph(X, k=8), name="g.npz")
    assert text == report(build_graph(X, k=8), name="g.npz")
    assert re.findall(r"https?://[^\"')\s]*", text) == ["http://www.w3.org/2000/svg"]
    assert re.findall(r'(?:src|href)="([^"]*)"', text) == ["data:,"]
    assert "default-src 'none'" in text
    assert "@import" not in text


def test_names_of_users_never_become_html():
    ids = tuple(f"{EVIL}{number}" for number in range(60))
    graph = build_graph(Features.of(X, ids=ids), k=8)
    labels = Labels.of([EVIL, "b"] * 30)
    text = report(graph, name=f"{EVIL.replace('/', '')}.npz", labels=labels)
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert held(text)["graph"]["ids"] == list(ids)
    (coloring,) = held(text)["graph"]["colorings"]
    assert EVIL in coloring["classes"]


def test_features_are_compared_with_the_graph():
    graph = build_graph(X, k=8)
    found = held(report(graph, features=Features.of(X)))
    assert {row[1] for row in found["checks"]} == {"ok"}
    assert "60 of 60 nodes" in found["checked"]
    assert found["checked"].startswith("array: 3 columns. 60 of")
    told = replace(
        Features.of(X, name="a/t.csv"),
        columns=("age", "<b>", "lat"),
        warnings=("a/t.csv: 72 values are missing",),
    )
    found = held(report(graph, features=told))["checked"]
    assert found.startswith(
        "t.csv: 3 columns (age, <b>, lat); 72 values are missing. 60 of"
    )
    other = held(report(graph, features=Features.of(X + 1e-3)))
    assert other["proof"]["state"] == "bad"
    assert "FAILED" in {row[1] for row in other["checks"]}


def test_a_graph_that_does_not_say_how_it_was_made_is_shown_all_the_same():
    found = held(report(ring(9), features=Features.of(X[:9])))
    assert found["parameters"] == []
    assert found["proof"]["state"] == "unknown"
    assert found["checks"][0][1] == "not checked"
    assert [chart["title"] for chart in found["charts"]] == ["Degrees", "Weights"]


@pytest.mark.parametrize(
    ("scale", "said"),
    [("standard", "standard, by the numbers of 3 columns"), ("none",) * 2],
)
def test_scaling_is_said_in_words(inside, scale, said):
    graph = build_graph(X, k=8, scale=scale)
    found = dict(held(report(graph))["parameters"])
    assert found["scale"] == said
    assert "scaling" not in found
    formats.write_graph("g.npz", graph)
    told = " ".join(inside("info", "g.npz").out.split())
    assert f"scale {said}," in told
    assert "{" not in told
    rows = "the rows" if scale == "none" else "the scaled rows"
    assert f"metric euclidean, between {rows} error" in told
    known = json.loads(inside("info", "g.npz", "--json").out)["provenance"]
    assert ("scaling" in known) == (scale != "none")  # the numbers are not lost


def test_failed_nodes_are_shown():
    graph = ring(9, errors=np.zeros(9), provenance={"nodes_failed": 2})
    proof = held(report(graph))["proof"]
    assert proof["state"] == "bad"
    assert "2 nodes" in proof["text"]


def test_labels_say_how_pure_edges_are():
    graph = ring(8, errors=np.arange(8.0))
    labels = Labels.of(["a"] * 4 + ["b"] * 3 + [""])
    _, classes = held(report(graph, labels=labels))["groups"]
    assert classes["rows"] == [["a", 4, "85.7 %", 1.5], ["b", 3, "80.0 %", 5.0]]
    assert "83.3 %" in classes["text"]


def test_components_lie_beside_each_other():
    parts = [ring(30).adjacency, ring(5).adjacency, csr_array((2, 2))]
    from scipy.sparse import block_diag

    graph = Graph(csr_array(block_diag(parts)))
    found = held(report(graph))
    at = places(found["graph"])
    assert np.abs(at).max() <= 0.5
    boxes = [at[:30], at[30:35], at[35:36], at[36:]]
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart = (one.min(0) > other.max(0)) | (other.min(0) > one.max(0))
            assert apart.any()
    sizes, count, share = zip(*found["groups"][0]["rows"], strict=True)
    assert (sizes, count) == ((30, 5, 1), (1, 1, 2))
    assert share == ("81.1 %", "13.5 %", "5.4 %")


def test_a_long_strip_is_drawn_as_a_strip_and_not_as_a_curve():
    strip = np.random.default_rng(1).random((600, 2)) * [8, 1]
    found = held(report(build_graph(strip, k=10)))["graph"]
    at = places(found)
    # Of a curve, places across the strip would hardly differ.
    across = [at[abs(strip[:, 0] - here) < 0.25, 1] for here in np.arange(1, 8)]
    assert np.mean([one.std() for one in across]) > 0.3 * at[:, 1].std()


def test_given_coordinates_keep_their_shape_and_gaps():
    coordinates = np.array([[0, 0], [4, 0], [4, 2], [np.nan, 1]])
    found = held(
        report(ring(4), coordinates=Features.of(coordinates, name="c", gaps=True))
    )
    at = places(found["graph"])
    assert np.allclose(at[:3], [[-0.5, -0.25], [0.5, -0.25], [0.5, 0.25]], atol=1e-5)
    assert found["graph"]["n"] == 3
    assert numbers(found["graph"]["number"]).tolist() == [0, 1, 2]
    assert "1 nodes have none" in found["caption"]


@pytest.mark.parametrize("kind", ["empty", "directed", "single"])
def test_unusual_graphs_have_a_page(kind):
    graph = {
        "empty": lambda: Graph(csr_array((3, 3))),
        "directed": lambda: build_graph(X, k=5, symmetrize="none"),
        "single": lambda: Graph(csr_array((1, 1))),
    }[kind]()
    found = held(report(graph))
    assert len(numbers(found["graph"]["weight"])) == graph.n_edges
    assert np.isfinite(places(found["graph"])).all()


def clustered(n=900, k=8, **more):
    """A graph of three groups of rows, and the number of the group of each node."""
    draw = np.random.default_rng(2)
    group = np.sort(draw.integers(0, 3, n))
    x = draw.normal(size=(n, 5)) + 12 * np.eye(5)[group]
    return build_graph(Features.of(x, **more), k=k), group


def test_of_a_large_graph_a_sample_is_drawn_that_keeps_clusters():
    graph, group = clustered()
    clusters = Labels.of(group)
    found = held(report(graph, clusters=clusters, most=300, seed=3))
    drawn = found["graph"]
    number = numbers(drawn["number"])
    assert drawn["n"] == len(number) == 300
    shares = np.bincount(group[number]) / np.bincount(group)
    assert np.ptp(shares) < 0.05
    assert "300 of 900 nodes" in found["caption"]
    assert "seed 3" in found["caption"]
    # The edges between them, and all edges in the number of each.
    inner = graph.adjacency[number][:, number]
    assert len(numbers(drawn["source"])) == inner.nnz // 2 > 450
    assert inner.nnz > 1.5 * graph.adjacency.nnz / 9  # of nodes drawn one by one
    assert np.array_equal(
        numbers(drawn["degree"]), np.diff(graph.adjacency.indptr)[number]
    )
    (coloring,) = drawn["colorings"][:1]
    assert sorted(coloring["counts"]) == sorted(np.bincount(group).tolist())
    assert dict(found["tiles"])["nodes"] == 900
    again = held(report(graph, clusters=clusters, most=300, seed=3))
    assert again == found
    other = held(report(graph, clusters=clusters, most=300, seed=4))
    assert not np.array_equal(numbers(other["graph"]["number"]), number)


def test_nodes_keep_their_heaviest_edges_where_there_are_too_many(monkeypatch):
    graph, _ = clustered()
    monkeypatch.setattr(drawing, "MOST_EDGES", 1000)
    found = held(report(graph))
    drawn = found["graph"]
    ends = np.append(numbers(drawn["source"]), numbers(drawn["target"]))
    assert len(ends) == 2000
    assert len(np.unique(ends)) == 900
    assert f"Of {graph.n_edges:,} edges the 1,000 are drawn" in found["caption"]


def test_clusters_are_listed_by_size_and_named_by_what_is_in_them():
    graph, group = clustered(ids=[f"n{at}" for at in range(900)])
    clusters = Labels.of(np.where(np.arange(900) < 5, -1, group), missing="-1")
    (first, *_) = held(report(graph, clusters=clusters))["graph"]["colorings"]
    assert first["name"] == "cluster"
    assert first["counts"] == sorted(clusters.counts().tolist(), reverse=True)
    assert first["none"] == ["no cluster", 5]
    inside = graph.adjacency.toarray() * (clusters.codes[:, None] == clusters.codes)
    for code, title in enumerate(first["classes"]):
        members = clusters.codes == int(title.split(" · ")[0])
        assert members.sum() == first["counts"][code]
        best = np.where(members, inside.sum(axis=1), -1).argmax()
        assert title.endswith(f" · n{best}")
    labels = Labels.of(np.array(["a", "b", "c"])[group])
    found = held(report(graph, clusters=clusters, labels=labels))["graph"]
    assert set(found["colorings"][0]["classes"]) == {"0 · a", "1 · b", "2 · c"}


def test_only_nodes_without_edges_are_called_isolated():
    pair = csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], float))
    for codes, said in ([0, 0, -1], "isolated"), ([0, -1, -1], "no cluster"):
        clusters = Labels.of(np.array(codes), missing="-1")
        (first, *_) = held(report(Graph(pair), clusters=clusters))["graph"]["colorings"]
        assert first["none"] == [said, codes.count(-1)]


AUDIT = {
    "id": ["3", "7", "1", "2"],
    "finding": ["near-duplicate", "near-duplicate", "outlier", "label"],
    "score": ["0.99", 0.98, "2.5", ""],
    "other": ["4", "8", "", EVIL],
    "label": ["a"] * 4,
    "suggested": ["drop", "drop", "", "b"],
    "detail": ["", "", EVIL, ""],
}


def test_findings_of_an_audit_are_layers():
    graph = ring(12)
    found = Findings.of(AUDIT, 12, None)
    text = report(graph, findings=found, most=8)
    assert "<img" not in text
    near, odd, label = held(text)["findings"]
    number = numbers(held(text)["graph"]["number"])
    assert [(one["name"], one["count"]) for one in (near, odd, label)] == [
        *(("near-duplicate", 2), ("outlier", 1), ("label", 1))
    ]
    assert [one["id"] for one in near["rows"]] == ["3", "7"]
    # Nodes of the first findings are in the sample.
    assert number[near["rows"][0]["node"]] == 3
    assert number[near["rows"][0]["other"]] == 4
    assert odd["rows"][0]["detail"] == EVIL
    assert label["rows"][0]["score"] is None
    assert label["rows"][0]["other"] == -1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"id": ["3", "7", "1", "99"]}, "no id of the graph: '99'"),
        ({"finding": ["label"] * 3 + ["odd"]}, "no kind of finding: 'odd'"),
        ({"score": ["1", "2", "x", "3"]}, "row 3: no score: 'x'"),
    ],
)
def test_findings_of_something_else_are_refused(change, what):
    with pytest.raises(InputError, match=what):
        Findings.of(AUDIT | change, 12, None, "a.csv")
    with pytest.raises(InputError, match="no column 'score'"):
        Findings.of({k: v for k, v in AUDIT.items() if k != "score"}, 12, None)


def contrast_of_colors(colors, matrix):
    """The smallest distance of two colors in CIELAB, for one kind of eyes."""
    rgb = np.array(
        [[int(one[at : at + 2], 16) / 255 for at in (1, 3, 5)] for one in colors]
    )
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = [
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9505],
    ]
    xyz = np.clip(linear @ np.transpose(matrix), 0, 1) @ np.transpose(to_xyz)
    xyz = xyz / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    lab = np.stack(
        [116 * f[:, 1], 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])]
    )
    apart = np.linalg.norm(lab[:, :, None] - lab[:, None], axis=0)
    return apart[np.triu_indices(len(colors), 1)].min()


PROTAN = [
    [0.1523, 1.0526, -0.2049],
    [0.1145, 0.7863, 0.0992],
    [-0.0039, -0.0481, 1.052],
]
DEUTAN = [[0.3673, 0.8606, -0.228], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.969]]


@pytest.mark.parametrize("theme", ["LIGHT_TEN", "DARK_TEN"])
def test_ten_colors_are_told_apart_by_all_eyes(theme):
    text = pages.part("colors.js")
    colors = re.findall(r'"(#\w+)"', re.search(rf"{theme} = \[(.*?)\]", text)[1])
    assert len(colors) == 10
    for eyes, least in ((np.eye(3), 25), (PROTAN, 15), (DEUTAN, 15)):
        assert contrast_of_colors(colors, eyes) > least


# The command


def test_the_command_writes_a_page(run, tmp_path, points):
    assert run("build", points, "-o", tmp_path / "g.npz", "-k", 8).code == 0
    np.savetxt(tmp_path / "y.csv", np.arange(60) % 3, "%d")
    done = run(
        *("report", tmp_path / "g.npz", "-o", tmp_path / "g.html"),
        *("--features", points, "--labels", tmp_path / "y.csv", "--no-header"),
    )
    assert done.code == 0, done.err
    assert "60 nodes drawn" in done.err
    found = held((tmp_path / "g.html").read_text("utf-8"))
    assert found["graph"]["colorings"][0]["classes"] == ["0", "1", "2"]
    assert {row[1] for row in found["checks"]} == {"ok"}


def test_the_command_says_where_features_do_not_give_the_graph(run, tmp_path, points):
    graph, page_ = tmp_path / "g.npz", tmp_path / "g.html"
    assert run("build", points, "-o", graph, "-k", 8).code == 0
    np.save(tmp_path / "x.npy", np.load(points)[::-1])
    done = run("report", graph, "--features", tmp_path / "x.npy", "-o", page_)
    assert done.code == 6
    assert "not what its features and parameters give" in done.lines[-1]
    assert held(page_.read_text("utf-8"))["proof"]["state"] == "bad"
    formats.write_graph(tmp_path / "ring.npz", ring(60))
    done = run("report", tmp_path / "ring.npz", "--features", points, "-o", page_)
    assert done.code == 0
    assert "warning" in done.err
    assert "not checked" in done.err


def test_the_command_takes_clusters_and_an_audit(run, tmp_path, points):
    graph = tmp_path / "g.npz"
    assert run("build", points, "-o", graph, "-k", 8).code == 0
    rows = "".join(f"{at},{-1 if at == 9 else at % 2}\n" for at in range(60))
    (tmp_path / "c.csv").write_text(f"id,cluster\n{rows}")
    (tmp_path / "a.csv").write_text(
        'id,finding,score,other,label,suggested,detail\n5,outlier,2.5,7,,,"far, far"\n'
    )
    given = ("--clusters", tmp_path / "c.csv", "--audit", tmp_path / "a.csv")
    call = ("report", graph, "-o", tmp_path / "g.html", *given, "--sample", 30)
    done = run(*call)
    assert done.code == 0, done.err
    assert "30 of 60 nodes drawn, a sample" in done.err
    found = held((tmp_path / "g.html").read_text("utf-8"))
    assert found["graph"]["colorings"][0]["counts"] == [30, 29]
    assert found["findings"][1]["rows"][0]["detail"] == "far, far"
    first = (tmp_path / "g.html").read_bytes()
    assert run(*call).code == 0
    assert (tmp_path / "g.html").read_bytes() == first
    assert run("plot", graph, "-o", tmp_path / "g.png", *given).code == 0
    (tmp_path / "a.csv").write_text("id,finding,score,other\n5,outlier\n")
    done = run(*call)
    assert done.code == 3
    assert "row 1 has not 4 fields" in done.lines[-1]


@pytest.mark.parametrize(
    ("options", "code", "what"),
    [
        (["-o", "g.html", "--audit", "few.csv"], 3, "no such file"),
        (["-o", "g.html", "--clusters", "few.npy"], 3, "3 labels"),
        (["-o", "g.pdf"], 2, ".html"),
        (["-o", "old.html", "--no-clobber"], 4, "exists already"),
        (["-o", "g.html", "--labels", "few.npy"], 3, "3 labels"),
        (["-o", "g.html", "--coords", "few.npy"], 3, "1-dimensional"),
        (["-o", "g.html", "--features", "none.npy"], 3, "no such file"),
    ],
)
def test_what_cannot_be_is_refused(
    run, tmp_path, monkeypatch, points, options, code, what
):
    monkeypatch.chdir(tmp_path)
    formats.write_graph("g.npz", ring(9))
    np.save("few.npy", np.arange(3))
    (tmp_path / "old.html").touch()
    done = run("report", "g.npz", *options)
    assert done.code == code
    assert what in done.lines[-1]
    assert not (tmp_path / "g.html").exists()


# In a browser


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The report of the digits, with labels of all kinds of letters."""
    graph = build_graph(formats.read_features(f"{SAMPLES}/digits.h5::features"), k=15)
    digits = formats.read_labels(f"{SAMPLES}/digits.h5::labels")
    names = [EVIL, *"bcdefghij"]
    labels = Labels.of([names[code] for code in digits.codes])
    path = tmp_path_factory.mktemp("page") / "digits.html"
    clusters = Labels.of(np.arange(graph.n_nodes) % 58)
    table = {name: [] for name in AUDIT}
    for at, kind in enumerate(("near-duplicate", "outlier", "label")):
        row = [str(at), kind, "1.5", "9", EVIL, "b", EVIL]
        for name, value in zip(table, row, strict=True):
            table[name].append(value)
    more = {"findings": Findings.of(table, graph.n_nodes, None), "labels": labels}
    text = report(graph, name="digits.npz", clusters=clusters, **more)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def opened(browser, digits):
    """The report in the browser, just opened."""
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(digits.as_uri())
    return browser


def hover(browser, x, y):
    from selenium.webdriver import ActionChains

    canvas = browser.find_element("id", "graph")
    box = canvas.rect
    actions = ActionChains(browser, duration=20)
    actions.move_to_element_with_offset(
        canvas, round(x - box["width"] / 2), round(y - box["height"] / 2)
    )
    actions.perform()


def pixels(browser):
    """How many dots of the drawing are not empty."""
    return browser.execute_script(
        "const c = byId('graph'), copy = new OffscreenCanvas(c.width, c.height);"
        "const ink = copy.getContext('2d', {willReadFrequently: true});"
        "ink.drawImage(c, 0, 0); let n = 0;"
        "const d = ink.getImageData(0, 0, c.width, c.height).data;"
        "for (let at = 3; at < d.length; at += 4) n += d[at] > 0; return n"
    )


def test_nothing_is_requested_and_nothing_fails(opened, digits):
    wait_for(lambda: pixels(opened) > 5000)
    assert opened.get_log("browser") == []
    asked = [one for one in requests(opened) if urlsplit(one).scheme not in OWN]
    assert asked == [digits.as_uri()]
    assert opened.title == "digits.npz"
    assert len(opened.find_elements("css selector", "#charts figure svg .bar")) > 50
    assert len(opened.find_elements("css selector", "#legend button")) == 11
    assert opened.find_elements("css selector", "img") == []
    opened.execute_script("byId('color').value = 'class'; paint()")
    texts = [one.text for one in opened.find_elements("css selector", "#legend button")]
    assert any("onerror=alert(1)" in one for one in texts)
    assert "onerror=alert(1)" in opened.find_element("id", "found").text


def test_pointing_at_a_node_tells_about_it(opened):
    tip = opened.find_element("id", "tip")
    assert not tip.is_displayed()
    # One that no other lies on, so that it is the nearest for sure.
    node, x, y = opened.execute_script(
        "for (let i = 0; i < view.n; i++) {"
        "const [x, y] = view.where(i).map(Math.round);"
        "if (view.nearest(x, y) === i && view.links[i].length > 3) return [i, x, y]; }"
    )
    hover(opened, x, y)
    wait_for(tip.is_displayed)
    assert f"node {node}\n" in tip.text
    assert "error J" in tip.text
    edge, other, weight, apart = opened.execute_script(
        f"const e = view.links[{node}][0], g = view.graph;"
        f"return [e, view.other(e, {node}), ...[g.weight, g.distance].map("
        "(one) => shown(+one[e].toPrecision(3)))]"
    )
    assert edge >= 0
    assert f"node {other} {weight} {apart}" in tip.text
    hover(opened, 3, 3)
    wait_for(lambda: not tip.is_displayed())


def test_zooming_and_moving_change_the_view(opened):
    from selenium.webdriver import ActionChains, Keys
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    canvas, zoom = (opened.find_element("id", one) for one in ("graph", "zoom"))
    assert zoom.text == "100 %"
    place = "return [view.x, view.y, view.scale]"
    first = opened.execute_script(place)
    origin = ScrollOrigin.from_element(canvas)
    ActionChains(opened).scroll_from_origin(origin, 0, -300).perform()
    wait_for(lambda: int(zoom.text.split()[0]) > 120)
    assert opened.execute_script(place)[2] > first[2]
    ActionChains(opened, duration=20).drag_and_drop_by_offset(canvas, 60, 30).perform()
    wait_for(lambda: opened.execute_script(place)[0] < first[0])
    opened.find_element("id", "whole").click()
    wait_for(lambda: zoom.text == "100 %")
    assert opened.execute_script(place) == first
    opened.execute_script("byId('graph').focus()")
    ActionChains(opened).send_keys("+", Keys.ARROW_LEFT).perform()
    wait_for(lambda: zoom.text == "140 %")
    opened.find_element("id", "farther").click()
    wait_for(lambda: zoom.text == "93 %")
    assert opened.get_log("browser") == []


def test_nodes_are_found_and_colored(opened):
    from selenium.webdriver.support.select import Select

    field = opened.find_element("id", "wanted")
    field.send_keys("1234")
    hits = wait_for(lambda: opened.find_elements("css selector", "#hits button"))
    assert [one.text for one in hits] == ["node 1234"]
    field.send_keys("\n")
    chosen = opened.find_element("id", "node")
    wait_for(chosen.is_displayed)
    assert chosen.text.startswith("node 1234")
    neighbor = chosen.find_element("css selector", "td .link, th .link")
    name = neighbor.text
    neighbor.click()
    wait_for(lambda: chosen.text.startswith(name))
    field.clear()
    field.send_keys("none such\n")
    problem = wait_for(lambda: field.get_property("validationMessage"))
    assert problem == "There is no such node"
    color = Select(opened.find_element("id", "color"))
    for name in ("error J", "degree", "nothing", "class"):
        color.select_by_value(name)
        seen = opened.find_elements("css selector", "#legend > *")
        assert len(seen) == {"class": 10, "nothing": 0}.get(name, 2)
    opened.find_element("css selector", "#legend button").click()
    assert opened.execute_script("return [...view.chosen]") == [0]
    assert opened.get_log("browser") == []


def test_a_legend_of_many_classes_is_searched(opened):
    def entries():
        found = opened.find_elements("css selector", "#legend button")
        return [one.find_element("css selector", ".text").text for one in found]

    assert opened.find_element("id", "key-title").text == "58 clusters"
    assert len(entries()) == 11
    assert entries()[-1] == "48 others"
    opened.find_element("id", "filter").send_keys("57 ·")
    (last,) = entries()
    assert last.startswith("57 · ")
    opened.find_element("css selector", "#legend button").click()
    lit = "return [...view.lit].map((one, at) => one * at).filter((one) => one)"
    assert {at % 58 for at in opened.execute_script(lit)} == {57}
    opened.find_element("css selector", "#legend button").click()
    everything = "return view.lit.every((one) => one === 1)"
    assert opened.execute_script(everything)
    assert opened.get_log("browser") == []


def test_layers_are_switched_and_findings_lead_to_nodes(opened):
    boxes = opened.find_elements("css selector", "#layers input")
    assert [one.is_selected() for one in boxes] == [True] * 4
    boxes[2].click()
    layers = "return view.layers.map((one) => one.on)"
    assert opened.execute_script(layers) == [True, False, True]
    link = opened.find_element("css selector", "#found .link")
    opened.execute_script("arguments[0].click()", link)
    assert opened.execute_script("return view.pinned") == 0
    assert opened.get_log("browser") == []


LAID_OUT = """
const [cards, cut, tall] = [[...byId('found').children], [], []];
for (const card of cards) {
  const wide = card.querySelector('.scroll');
  if (wide && wide.scrollWidth > wide.clientWidth) cut.push(card.textContent);
  for (const name of card.querySelectorAll('.name')) {
    if (name.offsetHeight > 24) tall.push(name.textContent);
  }
}
const ends = [...cards[0].querySelectorAll('thead th')].map((one) => {
  const range = document.createRange();
  range.selectNodeContents(one);
  const {left, right} = range.getBoundingClientRect();
  return [left, right];
});
return {cut, tall, ends, heights: cards.map((one) => one.offsetHeight)};
"""


@pytest.mark.parametrize("width", [1280, 400])
def test_findings_have_room_and_empty_cards_are_small(browser, tmp_path, width):
    graph = ring(60, ids=tuple(f"lib/pigpio-d-{at}/if{at}" for at in range(60)))
    ids = [graph.ids[at] for at in range(30)]
    table = {
        "id": ids * 2,
        "finding": ["near-duplicate"] * 30 + ["label"] * 30,
        "score": [0.0] + [0.9971] * 59,
        "other": [graph.ids[-1]] * 60,
        "label": ["a"] * 60,
        "suggested": ["b"] * 60,
        "detail": ["identical; group 11, 2 rows; keep lib/pigpio-d-3/if3"] * 60,
    }
    findings = Findings.of(table, graph.n_nodes, graph.ids)
    path = tmp_path / "page.html"
    path.write_text(report(graph, findings=findings), encoding="utf-8")
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.get(path.as_uri())
        wait_for(lambda: browser.find_elements("css selector", "#found table"))
        found = browser.execute_script(LAID_OUT)
        title = browser.find_element("css selector", "#found .name").get_attribute
        assert title("title") == ids[0]
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert (found["cut"], found["tall"]) == ([], [])
    shown = [one for one in found["ends"] if one[1] > one[0]]
    gaps = [two[0] - one[1] for one, two in itertools.pairwise(shown)]
    assert min(gaps) >= 8  # heads do not run together
    near, empty, label = found["heights"]
    assert empty < 80 < min(near, label)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (400, 860)])
def test_it_fits_screens_by_day_and_night(opened, scheme, width, height):
    size = {"width": width, "height": height, "deviceScaleFactor": 2}
    mobile = {"mobile": width < 500}
    command = opened.execute_cdp_cmd
    command("Emulation.setDeviceMetricsOverride", size | mobile)
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    command("Emulation.setEmulatedMedia", {"features": media})
    try:
        opened.refresh()
        wait_for(lambda: pixels(opened) > 5000)
        wide = "return document.documentElement.scrollWidth"
        assert opened.execute_script(wide) <= width
        ground = "return getComputedStyle(document.body).backgroundColor"
        shade = int(re.findall(r"\d+", opened.execute_script(ground))[0])
        assert (shade < 60) == (scheme == "dark")
        box = "return byId('stage').getBoundingClientRect().toJSON()"
        stage = opened.execute_script(box)
        assert stage["bottom"] <= height  # without scrolling
        assert stage["height"] > height / 2
        opened.find_element("id", "theme").click()
        shade = int(re.findall(r"\d+", opened.execute_script(ground))[0])
        assert (shade < 60) == (scheme == "light")
        assert opened.get_log("browser") == []
    finally:
        command("Emulation.clearDeviceMetricsOverride", {})
        command("Emulation.setEmulatedMedia", {"features": []})
