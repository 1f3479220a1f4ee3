"""The page about a graph: what it holds, and what a real browser makes of it."""

import base64
import json
import re
import shutil
import time
from urllib.parse import urlsplit

import numpy as np
import pytest
from conftest import SAMPLES
from scipy.sparse import coo_array, csr_array

from nnkgraph import formats
from nnkgraph.build.graph import build_graph
from nnkgraph.data import Features, Graph
from nnkgraph.data.labels import Labels
from nnkgraph.tasks.page import MOST_NODES, page

X = np.random.default_rng(8).normal(size=(60, 3))
OWN = {"data", "chrome"}
"""Addresses that a browser asks itself for."""

EVIL = "</script><img src=x onerror=alert(1)>{{style}}\u2028 & \"'"
KINDS = {"f4": "<f4", "u2": "<u2", "i4": "<i4"}


def held(text):
    """What the page carries."""
    found = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL
    )
    assert len(found) == 1
    return json.loads(found[0])


def numbers(packed):
    return np.frombuffer(base64.b64decode(packed["data"]), KINDS[packed["kind"]])


def ring(n, **more):
    """A graph in a circle."""
    at = np.arange(n)
    edges = coo_array((np.ones(n), (at, (at + 1) % n)), (n, n)).tocsr()
    return Graph(csr_array(edges + edges.T), **more)


# What it holds


def test_the_page_holds_the_whole_graph():
    graph = build_graph(X, k=8)
    found = held(page(graph, name="folder/g.npz"))
    drawn = found["graph"]
    lower = graph.adjacency.tocoo()
    keep = lower.row < lower.col
    ends = zip(numbers(drawn["source"]), numbers(drawn["target"]), strict=True)
    weights = dict(zip(ends, numbers(drawn["weight"]), strict=True))
    wanted = zip(lower.row[keep], lower.col[keep], lower.data[keep], strict=True)
    assert weights == {(i, j): np.float32(w) for i, j, w in wanted}
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
    text = page(build_graph(X, k=8), name="g.npz")
    assert text == page(build_graph(X, k=8), name="g.npz")
    assert re.findall(r"https?://[^\"')\s]*", text) == ["http://www.w3.org/2000/svg"]
    assert re.findall(r'(?:src|href)="([^"]*)"', text) == ["data:,"]
    assert "default-src 'none'" in text
    assert "@import" not in text


def test_names_of_users_never_become_html():
    ids = tuple(f"{EVIL}{number}" for number in range(60))
    graph = build_graph(Features.of(X, ids=ids), k=8)
    labels = Labels.of([EVIL, "b"] * 30)
    text = page(graph, name=f"{EVIL.replace('/', '')}.npz", labels=labels)
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert held(text)["graph"]["ids"] == list(ids)
    assert EVIL in held(text)["graph"]["classes"]


def test_features_are_compared_with_the_graph():
    graph = build_graph(X, k=8)
    found = held(page(graph, features=Features.of(X)))
    assert {row[1] for row in found["checks"]} == {"ok"}
    assert "60 of 60 nodes" in found["checked"]
    other = held(page(graph, features=Features.of(X + 1e-3)))
    assert other["proof"]["state"] == "bad"
    assert "FAILED" in {row[1] for row in other["checks"]}


def test_a_graph_that_does_not_say_how_it_was_made_is_shown_all_the_same():
    found = held(page(ring(9), features=Features.of(X[:9])))
    assert found["parameters"] == []
    assert found["proof"]["state"] == "unknown"
    assert found["checks"][0][1] == "not checked"
    assert [chart["title"] for chart in found["charts"]] == ["Degrees", "Weights"]


def test_failed_nodes_are_shown():
    graph = ring(9, errors=np.zeros(9), provenance={"nodes_failed": 2})
    proof = held(page(graph))["proof"]
    assert proof["state"] == "bad"
    assert "2 nodes" in proof["text"]


def test_labels_say_how_pure_edges_are():
    graph = ring(8, errors=np.arange(8.0))
    labels = Labels.of(["a"] * 4 + ["b"] * 3 + [""])
    _, classes = held(page(graph, labels=labels))["groups"]
    assert classes["rows"] == [["a", 4, "85.7 %", 1.5], ["b", 3, "80.0 %", 5.0]]
    assert "83.3 %" in classes["text"]


def test_components_lie_beside_each_other():
    parts = [ring(30).adjacency, ring(5).adjacency, csr_array((2, 2))]
    from scipy.sparse import block_diag

    graph = Graph(csr_array(block_diag(parts)))
    found = held(page(graph))
    at = np.stack([numbers(found["graph"][axis]) for axis in "xy"], axis=1)
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
    found = held(page(build_graph(strip, k=10)))["graph"]
    at = np.stack([numbers(found[axis]) for axis in "xy"], axis=1)
    # Of a curve, places across the strip would hardly differ.
    across = [at[abs(strip[:, 0] - here) < 0.25, 1] for here in np.arange(1, 8)]
    assert np.mean([one.std() for one in across]) > 0.3 * at[:, 1].std()


def test_given_coordinates_keep_their_shape_and_gaps():
    coordinates = np.array([[0, 0], [4, 0], [4, 2], [np.nan, 1]])
    found = held(
        page(ring(4), coordinates=Features.of(coordinates, name="c", gaps=True))
    )
    at = np.stack([numbers(found["graph"][axis]) for axis in "xy"], axis=1)
    assert np.allclose(at[:3], [[-0.5, -0.25], [0.5, -0.25], [0.5, 0.25]])
    assert np.isnan(at[3]).all()
    assert "1 nodes have none" in found["caption"]


@pytest.mark.parametrize("kind", ["empty", "directed", "single"])
def test_unusual_graphs_have_a_page(kind):
    graph = {
        "empty": lambda: Graph(csr_array((3, 3))),
        "directed": lambda: build_graph(X, k=5, symmetrize="none"),
        "single": lambda: Graph(csr_array((1, 1))),
    }[kind]()
    found = held(page(graph))
    assert len(numbers(found["graph"]["weight"])) == graph.n_edges
    assert np.isfinite(numbers(found["graph"]["x"])).all()


def test_a_large_graph_is_described_but_not_drawn():
    found = held(page(ring(MOST_NODES + 1)))
    assert found["graph"] is None
    assert "20,001 nodes are too many" in found["caption"]
    assert len(found["charts"]) == 2


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
    assert found["graph"]["classes"] == ["0", "1", "2"]
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


@pytest.mark.parametrize(
    ("options", "code", "what"),
    [
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

ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-dev-shm-usage", "--window-size=1280,1000"),
)
HAS_BROWSER = shutil.which("chromium") and shutil.which("chromedriver")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A Chromium that notes what the console says and what is requested."""
    webdriver = pytest.importorskip("selenium.webdriver")
    if not HAS_BROWSER:
        pytest.skip("there is no chromium here: make browser installs it")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for one in ARGUMENTS:
        options.add_argument(one)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('browser')}")
    logs = {"browser": "ALL", "performance": "ALL"}
    options.set_capability("goog:loggingPrefs", logs)
    service = Service(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The report of the digits, with labels of all kinds of letters."""
    graph = build_graph(formats.read_features(f"{SAMPLES}/digits.h5::features"), k=15)
    digits = formats.read_labels(f"{SAMPLES}/digits.h5::labels")
    names = [EVIL, *"bcdefghij"]
    labels = Labels.of([names[code] for code in digits.codes])
    path = tmp_path_factory.mktemp("page") / "digits.html"
    path.write_text(page(graph, name="digits.npz", labels=labels), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser, digits):
    """The report in the browser, just opened."""
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(digits.as_uri())
    return browser


def requests(browser):
    """The addresses that were asked for since the last time."""
    entries = (json.loads(one["message"]) for one in browser.get_log("performance"))
    sent = "Network.requestWillBeSent"
    messages = [one["message"] for one in entries]
    return [
        one["params"]["request"]["url"] for one in messages if one["method"] == sent
    ]


def hover(browser, x, y):
    from selenium.webdriver import ActionChains

    canvas = browser.find_element("id", "graph")
    box = canvas.rect
    actions = ActionChains(browser, duration=20)
    actions.move_to_element_with_offset(
        canvas, round(x - box["width"] / 2), round(y - box["height"] / 2)
    )
    actions.perform()


def wait_for(condition):
    """Wait until something is true; drawing is up to the browser's clock."""
    until = time.monotonic() + 20
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


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
    assert len(opened.find_elements("css selector", "#legend button")) == 10
    assert opened.find_elements("css selector", "img") == []
    texts = [one.text for one in opened.find_elements("css selector", "#legend button")]
    assert any("onerror=alert(1)" in one for one in texts)


def test_pointing_at_a_node_tells_about_it(opened):
    tip = opened.find_element("id", "tip")
    assert not tip.is_displayed()
    opened.execute_script("byId('drawing').scrollIntoView()")
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
    edge, other, weight = opened.execute_script(
        f"const e = view.links[{node}][0];"
        f"return [e, view.other(e, {node}), shown(view.graph.weight[e])]"
    )
    assert edge >= 0
    assert f"node {other} {weight}" in tip.text
    hover(opened, 3, 3)
    wait_for(lambda: not tip.is_displayed())


def test_zooming_and_moving_change_the_view(opened):
    from selenium.webdriver import ActionChains, Keys
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    opened.execute_script("byId('drawing').scrollIntoView()")
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
    field.send_keys("1234\n")
    tip = opened.find_element("id", "tip")
    wait_for(tip.is_displayed)
    assert tip.text.startswith("node 1234")
    field.clear()
    field.send_keys("none such\n")
    problem = wait_for(lambda: field.get_property("validationMessage"))
    assert problem == "There is no such node"
    color = Select(opened.find_element("id", "color"))
    for name in ("error J", "degree", "nothing", "label"):
        color.select_by_value(name)
        seen = opened.find_elements("css selector", "#legend > *")
        assert len(seen) == {"label": 10, "nothing": 0}.get(name, 3)
    opened.find_element("css selector", "#legend button").click()
    assert opened.execute_script("return view.only") == 0
    assert opened.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
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
        assert opened.get_log("browser") == []
    finally:
        command("Emulation.clearDeviceMetricsOverride", {})
        command("Emulation.setEmulatedMedia", {"features": []})
