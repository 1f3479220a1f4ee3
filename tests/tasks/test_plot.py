"""Pictures: what is in them, and what is said where none can be drawn."""

import json

import networkx as nx
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex
from scipy.sparse import csr_array

from nnkgraph.data import Features, Graph
from nnkgraph.data.labels import Labels
from nnkgraph.errors import InputError
from nnkgraph.formats import read_features, read_values, write_graph
from nnkgraph.tasks import plot
from nnkgraph.tasks.findings import Findings
from nnkgraph.tasks.layout import lay_out
from nnkgraph.tasks.plot import _adjacency, _network
from nnkgraph.tasks.plot._adjacency import matrix_cells

N = 40
PLACES = np.random.default_rng(3).normal(size=(N, 3))


def some_graph(seed=0, n=N, directed=False, **more) -> Graph:
    net = nx.gnp_random_graph(n, min(1, 6 / n), seed=seed, directed=directed)
    rng = np.random.default_rng(seed)
    for _, _, edge in net.edges(data=True):
        edge["weight"] = rng.uniform(0.01, 1)
    matrix = csr_array(nx.to_scipy_sparse_array(net, format="csr", dtype=float))
    matrix.sort_indices()
    return Graph(matrix, directed=directed, **more)


def draw(*graphs, places=PLACES[:, :2], ids=None, **options):
    named = [(f"g{at}.npz", graph) for at, graph in enumerate(graphs)]
    where = Features.of(places, ids=ids, name="places", gaps=True)
    return plot.draw(named, where, **options)


def lines_of(panel):
    return next(c for c in panel.collections if isinstance(c, LineCollection))


def dots_of(panel):
    return [
        c
        for c in panel.collections
        if isinstance(c, PathCollection) and not isinstance(c, LineCollection)
    ]


def test_each_edge_is_one_line_between_its_nodes_and_heavy_ones_lie_on_top():
    graph = some_graph()
    segments = np.array(lines_of(draw(graph).axes[0]).get_segments())
    net = nx.from_scipy_sparse_array(graph.adjacency)
    in_order = sorted(net.edges(data="weight"), key=lambda edge: edge[2])
    wanted = [[PLACES[a, :2], PLACES[b, :2]] for a, b, _ in in_order]
    assert np.array_equal(segments, wanted)


def test_a_directed_edge_is_drawn_in_each_direction_it_has():
    graph = some_graph(directed=True)
    assert len(lines_of(draw(graph).axes[0]).get_segments()) == graph.adjacency.nnz


@pytest.mark.parametrize(
    ("edges", "faint", "thin"),
    [
        ("alpha", True, False),
        ("width", False, True),
        ("both", True, True),
        ("none", False, False),
    ],
)
def test_weight_shows_as_asked(edges, faint, thin):
    lines = lines_of(draw(some_graph(), edges=edges).axes[0])
    alpha, width = lines.get_colors()[:, 3], np.array(lines.get_linewidths())
    for shown, values in ((faint, alpha), (thin, width)):
        assert (np.diff(values) >= 0).all()
        assert (np.ptp(values) > 0) == shown


@pytest.mark.parametrize("edges", ["alpha", "width"])
def test_of_many_edges_each_is_faint_and_nodes_are_seen(monkeypatch, edges):
    def drawn(crowd):
        monkeypatch.setattr(_network, "_CROWD", crowd)
        figure = draw(graph, edges=edges)
        key = [m.get_alpha() or m.get_color()[3] for m in figure.legends[0].get_lines()]
        dots = dots_of(figure.axes[0])[0].get_sizes()
        return lines_of(figure.axes[0]).get_colors()[:, 3], key, dots

    graph = some_graph()
    whole, _, dots = drawn(graph.n_edges + 1)
    faint, key, _ = drawn(graph.n_edges / 9)
    assert whole.max() == 1
    assert np.allclose(faint, whole * 0.19245, rtol=0.02)
    assert max(key) >= 0.6  # what the legend shows is seen
    assert dots[0] == 14


def test_two_graphs_share_limits_and_the_scale_of_weights():
    heavy = some_graph(0)
    light = Graph(heavy.adjacency * 0.25)
    left, right = draw(heavy, light).axes
    assert left.get_xlim() == right.get_xlim()
    assert left.get_ylim() == right.get_ylim()
    strong, weak = (lines_of(one).get_colors()[-1, 3] for one in (left, right))
    assert strong == pytest.approx(1)
    assert weak == pytest.approx(0.25 + 0.75 * 0.5)


def test_nodes_without_coordinates_are_left_out_with_their_edges():
    graph, places = some_graph(), PLACES[:, :2].copy()
    places[[3, 7], [0, 1]] = np.nan
    (panel,) = draw(graph, places=places).axes
    assert sum(len(one.get_offsets()) for one in dots_of(panel)) == N - 2
    left = nx.from_scipy_sparse_array(graph.adjacency)
    left.remove_nodes_from([3, 7])
    assert len(lines_of(panel).get_segments()) == left.number_of_edges()
    with pytest.raises(InputError, match="no node has coordinates"):
        draw(graph, places=np.full((N, 2), np.nan))


def test_ids_decide_where_nodes_are():
    names = tuple(f"n{at}" for at in range(N))
    graph = some_graph(ids=names)
    order = np.random.default_rng(1).permutation(N)
    mixed = draw(graph, places=PLACES[order, :2], ids=[names[at] for at in order])
    plain = draw(graph)
    offsets = [dots_of(one.axes[0])[0].get_offsets() for one in (mixed, plain)]
    assert np.array_equal(*offsets)
    with pytest.raises(InputError, match=r"1 id is not in g0\.npz: 'other'"):
        draw(graph, ids=[*names[:-1], "other"])


def test_columns_are_chosen_and_three_make_a_3d_picture():
    graph = some_graph()
    chosen = dots_of(draw(graph, places=PLACES, axes=(2, 0)).axes[0])[0]
    assert np.array_equal(chosen.get_offsets(), PLACES[:, [2, 0]])
    (panel,) = draw(graph, places=PLACES, view=(10, 20)).axes
    assert (panel.elev, panel.azim) == (10, 20)
    sides = [np.ptp(getattr(panel, f"get_{name}lim")()) for name in "xyz"]
    ratio = np.array(panel.get_box_aspect()) / sides
    assert np.ptp(ratio) < 1e-9 * ratio.max()  # equal in all directions


def test_places_that_are_all_the_same_are_drawn():
    assert plot.rendered(draw(some_graph(), places=np.zeros((N, 2))), "a.png")
    assert plot.rendered(draw(some_graph(), places=np.zeros((N, 3))), "a.png")


def test_a_graph_without_edges_is_drawn():
    empty = Graph(csr_array((N, N)))
    assert plot.rendered(draw(empty), "a.png")
    for what in ("degrees", "weights"):
        assert plot.rendered(plot.draw_histograms([("e", empty)], what), "a.png")
    assert plot.rendered(plot.draw_adjacency([("e", empty)]), "a.png")


def test_nodes_have_the_color_of_their_class_and_the_legend_names_it():
    labels = Labels.of(["b", "a", "", "c"] * 10)
    figure = draw(some_graph(), labels=labels)
    colors = [to_hex(one) for one in dots_of(figure.axes[0])[0].get_facecolors()]
    shown = {m.get_label(): m.get_color() for m in figure.legends[0].legend_handles}
    assert list(shown) == ["a", "b", "c", "no label"]
    wanted = [shown[one] for one in ("b", "a", "no label", "c")] * 10
    assert colors == wanted
    assert len(set(colors)) == 4


@pytest.mark.parametrize("count", [2, 7, 8, 12, 13, 24])
def test_every_class_of_up_to_24_looks_different(count):
    labels = Labels.of(np.arange(N) % count)
    figure = draw(some_graph(), labels=labels)
    marks = figure.legends[0].legend_handles
    assert len({(m.get_color(), m.get_marker()) for m in marks}) == len(marks) == count
    shapes = [np.arange(N) % count < 12, np.arange(N) % count >= 12]
    drawn = [one.get_offsets() for one in dots_of(figure.axes[0])]
    wanted = [PLACES[one, :2] for one in shapes if one.any()]
    assert all(map(np.array_equal, drawn, wanted))
    assert len(drawn) == len({m.get_marker() for m in marks}) == len(wanted)


def test_of_more_classes_the_ten_largest_are_named():
    codes = np.sort(np.append(np.arange(26), np.arange(14)))  # 0 to 13 have two nodes
    labels = Labels.of(np.where(np.arange(N) == 39, np.nan, codes))
    figure = draw(some_graph(), labels=labels)
    marks = {m.get_label(): m.get_color() for m in figure.legends[0].legend_handles}
    assert list(marks) == [
        *(f"{at} (2)" for at in range(10)),
        *("15 others (19)", "no label"),
    ]
    colors = [to_hex(one) for one in dots_of(figure.axes[0])[0].get_facecolors()]
    assert colors[:20:2] == colors[1:20:2] == list(marks.values())[:10]
    assert set(colors[20:39]) == {marks["15 others (19)"]}


def test_of_many_nodes_a_sample_is_drawn_that_keeps_clusters():
    clusters = Labels.of(np.arange(N) // 20)
    figure = draw(some_graph(), clusters=clusters, most=20, seed=1)
    offsets = np.concatenate([c.get_offsets() for c in dots_of(figure.axes[0])])
    there = [at for at in range(N) if (PLACES[at, :2] == offsets).all(axis=1).any()]
    assert len(there) == 20
    assert np.bincount(np.array(there) // 20).tolist() == [10, 10]
    net = nx.from_scipy_sparse_array(some_graph().adjacency).subgraph(there)
    assert len(lines_of(figure.axes[0]).get_segments()) == net.number_of_edges()
    two = draw(some_graph(), some_graph(1), clusters=clusters, most=20, seed=1)
    for panel in two.axes[:2]:
        assert np.array_equal(dots_of(panel)[0].get_offsets(), offsets)


def test_findings_are_ringed():
    rows = {"id": ["4", "4", "9"], "other": ["5", "", ""], "score": [1, 2, 3]}
    kinds = {"finding": ["near-duplicate", "outlier", "outlier"]}
    found = Findings.of(rows | kinds, N, None)
    figure = draw(some_graph(), findings=found)
    _, near, odd = dots_of(figure.axes[0])
    assert np.array_equal(near.get_offsets(), PLACES[[4, 5], :2])
    assert np.array_equal(odd.get_offsets(), PLACES[[4, 9], :2])
    named = {m.get_label() for m in figure.legends[0].legend_handles}
    assert {"near-duplicate (1)", "outlier (2)"} <= named


def test_values_are_colored_on_one_scale_for_both_panels():
    first, second = some_graph(0), some_graph(1)
    figure = draw(first, second, values="degree")
    degrees = [np.diff(one.adjacency.indptr) for one in (first, second)]
    bar = figure.axes[-1]
    assert bar.get_ylim() == (min(map(np.min, degrees)), max(map(np.max, degrees)))
    equal = [
        {
            tuple(c)
            for c, d in zip(dots_of(p)[0].get_facecolors(), own, strict=True)
            if d == 6
        }
        for p, own in zip(figure.axes, degrees, strict=False)
    ]
    assert equal[0] == equal[1]
    assert len(equal[0]) == 1


def test_the_color_bar_names_the_column_or_else_the_file():
    for name, title in {
        "folder/customers.csv::revenue_eur": "revenue_eur",
        "cells.h5ad::obs/counts": "obs/counts",
        "folder/values.npy": "values.npy",
    }.items():
        values = Features.of(np.arange(float(N))[:, np.newaxis], name=name)
        assert draw(some_graph(), values=values).axes[-1].get_ylabel() == title


def test_a_graph_without_errors_says_so():
    for call in (
        lambda: draw(some_graph(), values="error"),
        lambda: plot.draw_histograms([("g.npz", some_graph())], "errors"),
    ):
        with pytest.raises(InputError, match="no error J per node"):
            call()
    with pytest.raises(InputError, match="how many candidates"):
        plot.draw_histograms([("g.npz", some_graph())], "support")


def bars(panel):
    return [
        (one.get_x() + one.get_width() / 2, one.get_height()) for one in panel.patches
    ]


def test_histograms_count_every_node_and_every_edge_once():
    graph = some_graph(
        errors=np.linspace(0, 0.5, N), provenance={"support_sizes": [0, 10, 25, 5]}
    )
    for what, total in (
        ("degrees", N),
        ("weights", graph.n_edges),
        ("support", N),
        ("errors", N),
    ):
        (panel,) = plot.draw_histograms([("g", graph)], what).axes
        assert sum(height for _, height in bars(panel)) == total, what
    (panel,) = plot.draw_histograms([("g", graph)], "support").axes
    assert bars(panel) == [(1, 10), (2, 25), (3, 5)]
    (panel,) = plot.draw_histograms([("g", graph)], "degrees").axes
    of = dict(
        enumerate(nx.degree_histogram(nx.from_scipy_sparse_array(graph.adjacency)))
    )
    assert {place: height for place, height in bars(panel) if height} == {
        degree: count for degree, count in of.items() if count
    }


def test_wide_ranges_of_degrees_share_bars():
    star = nx.star_graph(300)
    graph = Graph(csr_array(nx.to_scipy_sparse_array(star, format="csr", dtype=float)))
    (panel,) = plot.draw_histograms([("g", graph)], "degrees").axes
    assert len(panel.patches) <= 51
    heights = [height for _, height in bars(panel)]
    assert (heights[0], heights[-1], sum(heights)) == (300, 1, 301)


def test_histograms_beside_each_other_share_axes_and_bars():
    left, right = plot.draw_histograms(
        [("a", some_graph(0)), ("b", some_graph(1, n=80))], "weights"
    ).axes
    assert left.get_xlim() == right.get_xlim()
    assert left.get_ylim() == right.get_ylim()
    assert [x for x, _ in bars(left)] == [x for x, _ in bars(right)]


def test_a_small_matrix_is_shown_as_it_is():
    graph = some_graph()
    panel, _ = plot.draw_adjacency([("g", graph)]).axes
    image = panel.images[0].get_array().filled(0)
    assert np.array_equal(image, graph.adjacency.toarray())


@pytest.mark.parametrize("cells", [7, 8, 40, 100])
def test_cells_of_a_matrix_sum_up_blocks(monkeypatch, cells):
    monkeypatch.setattr(_adjacency, "CELLS", cells)
    graph = some_graph()
    codes = np.random.default_rng(2).integers(-1, 3, N)
    order = np.lexsort((np.arange(N), np.where(codes < 0, 9, codes)))
    dense = graph.adjacency.toarray()[np.ix_(order, order)]
    block = -(-N // cells)
    cuts = range(0, N, block)
    for counted, matrix in ((False, dense), (True, dense != 0)):
        wanted = [
            [matrix[a : a + block, b : b + block].sum() for b in cuts] for a in cuts
        ]
        found = matrix_cells(graph, codes, counted=counted)
        assert np.allclose(found, wanted, rtol=1e-12, atol=0)


def test_a_matrix_ordered_by_class_has_lines_and_names_between_them():
    labels = Labels.of(["x"] * 10 + ["y"] * 25 + [""] * 5)
    panel, _ = plot.draw_adjacency([("g", some_graph())], labels=labels).axes
    assert [t.get_text() for t in panel.get_yticklabels()] == ["x", "y", "no label"]
    assert list(panel.get_yticks()) == [5, 22.5, 37.5]
    assert sorted(line.get_ydata()[0] for line in panel.lines[::2]) == [10, 35]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_equal_pictures_are_equal_bytes(ending):
    labels = Labels.of(np.arange(N) % 3)
    made = [
        plot.rendered(draw(some_graph(), labels=labels, title="$x"), f"a.{ending}")
        for _ in range(2)
    ]
    assert made[0] == made[1]


def test_many_edges_make_a_small_vector_graphic(monkeypatch):
    fine = plot.rendered(draw(some_graph(n=N)), "a.svg")
    monkeypatch.setattr(_network, "RASTERIZED", 10)
    coarse = plot.rendered(draw(some_graph(n=N)), "a.svg")
    assert b"<image" not in fine
    assert b"<image" in coarse


def test_titles_say_how_graphs_were_made_or_which_files_they_are():
    made = {"method": "nnk", "k": 5}
    one, two = some_graph(0, provenance=made), some_graph(1, provenance=made)
    assert draw(one).axes[0].get_title().startswith("nnk, k = 5: ")
    both = [panel.get_title() for panel in draw(one, two).axes]
    assert [text.split(":")[0] for text in both] == ["g0.npz", "g1.npz"]
    odd = some_graph(provenance={"method": "of another program"})
    assert draw(odd).axes[0].get_title().startswith("g0.npz: ")


@pytest.mark.parametrize("name", ["e.csv", "e.npy", "e.npz"])
def test_coordinates_may_have_gaps_but_features_may_not(tmp_path, name):
    x = np.array([[0.5, 1.0], [np.nan, np.nan], [2.0, 3.0]])
    path = tmp_path / name
    if name == "e.csv":
        path.write_text('id,e1,e2\np,0.5,1\nq,,NA\nr,"2",3\n')
    elif name == "e.npy":
        np.save(path, x)
    else:
        np.savez(path, coords=x)
    told = {"id_column": "id"} if name == "e.csv" else {}
    found = read_features(path, gaps=True, **told)
    assert np.array_equal(found.x, x, equal_nan=True)
    with pytest.raises(InputError):
        read_features(path, **told)


def test_infinity_is_no_gap(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[np.nan, 1.0], [np.inf, 2.0]]))
    with pytest.raises(InputError, match="infinity"):
        read_features(tmp_path / "x.npy", gaps=True)


def test_values_are_read_from_tables_and_arrays(tmp_path):
    (tmp_path / "v.csv").write_text("id,v\np,0.5\nq,\nr,-2e3\n")
    found = read_values(f"{tmp_path / 'v.csv'}::v", id_column="id")
    assert found.ids == ("p", "q", "r")
    assert np.array_equal(found.x[:, 0], [0.5, np.nan, -2000], equal_nan=True)
    np.save(tmp_path / "v.npy", np.arange(3))
    assert read_values(tmp_path / "v.npy").x[:, 0].tolist() == [0, 1, 2]
    np.save(tmp_path / "t.npy", np.array(["1", "a"]))
    with pytest.raises(InputError, match="'a' is no number"):
        read_values(tmp_path / "t.npy")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Work in a folder with a graph, coordinates, labels and values."""
    monkeypatch.chdir(tmp_path)
    write_graph("g.npz", some_graph())
    np.save("xyz.npy", PLACES)
    np.save("six.npy", np.zeros((N, 6)))
    np.save("few.npy", np.zeros(5))
    write_graph("few.tsv", some_graph(n=5))
    np.save("y.npy", np.arange(N) % 3)
    gaps = PLACES[:, :2].copy()
    gaps[:4] = np.nan
    np.save("gaps.npy", gaps)
    return tmp_path


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        ("--axes 0,1", 2, "--axes is of use with --coords FILE only"),
        ("--beside few.tsv", 3, "the layout of g.npz: 40 rows, but few.tsv has 5"),
        ("--what degrees --coords xyz.npy", 2, "--coords has no effect"),
        ("--what degrees --labels y.npy", 2, "--what graph or adjacency"),
        ("--coords xyz.npy --labels y.npy --values degree", 2, "not both"),
        ("--coords xyz.npy --axes 0,5", 2, "columns 0 to 2"),
        ("--coords xyz.npy --axes 0", 2, "I,J[,K]"),
        ("--coords xyz.npy --view a,b", 2, "ELEVATION,AZIMUTH"),
        ("--coords xyz.npy --view nan,0", 2, "ELEVATION,AZIMUTH"),
        ("--coords six.npy", 3, "--axes 0,1"),
        ("--coords xyz.npy --labels few.npy", 3, "5 labels, but g.npz has 40"),
        ("--coords xyz.npy --values few.npy", 3, "5 rows, but g.npz has 40"),
        ("--coords xyz.npy --values none.npy", 3, "none.npy"),
        ("--what errors", 3, "no error J"),
        ("--what error", 3, "no error J"),
        ("--coords xyz.npy --values errors", 3, "no error J"),
        ("--what support", 3, "how many candidates"),
    ],
)
def test_mistakes_exit_with_one_line_and_no_file(run, files, call, code, message):
    result = run("plot", "g.npz", "-o", "fig.png", *call.split())
    assert result.code == code, result.err
    assert message in result.err
    assert len([x for x in result.lines if "error" in x.lower()]) == 1
    assert result.out == ""
    assert not (files / "fig.png").exists()


@pytest.mark.parametrize(
    "call",
    [
        "--labels y.npy --beside g.npz",
        "--coords xyz.npy --labels y.npy --view 10,20",
        "--coords xyz.npy --axes 0,2 --values y.npy --edges both",
        "--what degrees --beside g.npz --title Degrees",
        "--what weights",
        "--what adjacency --labels y.npy --beside g.npz",
    ],
)
def test_pictures_are_drawn_by_command(run, files, call):
    result = run("plot", "g.npz", "-o", "fig.png", *call.split())
    assert result.code == 0, result.err
    assert (files / "fig.png").read_bytes().startswith(b"\x89PNG")


def test_a_page_is_what_report_writes(run, files):
    result = run("plot", "g.npz", "-o", "fig.html")
    assert result.code == 2
    assert "nnkgraph report g.npz -o fig.html" in result.err
    assert not (files / "fig.html").exists()


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["ant", "bee", "cow"], ["ant", "bee", "cow"]),
        (["ant", "bee"], ["0", "1", "2"]),  # a list of something else
        (["ant", "ant", "cow"], ["0", "1", "2"]),
        ([["ant", "bee", "cow"]], ["0", "1", "2"]),
        (["ant", "", "cow"], ["0", "1", "2"]),
    ],
)
def test_an_npz_may_name_its_classes(run, files, names, shown):
    np.savez(files / "y.npz", y=np.arange(N) % 3, class_names=names)
    call = ["--labels", "y.npz::y"]
    page, figure = files / "g.html", files / "g.svg"
    assert run("report", "g.npz", "-o", page, *call).code == 0
    assert json.dumps(shown, separators=(",", ":")) in page.read_text()
    said = run("plot", "g.npz", "-o", figure, *call)
    assert said.code == 0
    assert ("class_names" in said.err) == (shown[0] == "ant")


def test_nodes_that_are_left_out_are_said(run, files):
    result = run("plot", "g.npz", "-o", "fig.png", "--coords", "gaps.npy", "-q")
    assert result.code == 0
    assert "4 nodes have no coordinates and are left out" in result.err
    places = np.load("xyz.npy")[:, :2].astype(float)
    places[3] = np.nan
    np.save("gap.npy", places)
    result = run("plot", "g.npz", "-o", "fig.png", "--coords", "gap.npy", "-q")
    assert "1 node has no coordinates and is left out" in result.err


def test_a_graph_without_coordinates_is_laid_out_and_that_is_said(run, files):
    result = run("plot", "g.npz", "-o", "fig.png")
    assert "g.npz: laid out by the edges between nodes" in result.err
    assert "40 nodes drawn" in result.err


def as_graph(net) -> Graph:
    return Graph(csr_array(nx.to_scipy_sparse_array(net, format="csr", dtype=float)))


def test_distances_of_a_layout_follow_the_edges():
    net = nx.grid_2d_graph(12, 12)
    at = lay_out(as_graph(net))
    hops = dict(nx.all_pairs_shortest_path_length(net))
    hops = np.array([[hops[a][b] for b in net] for a in net])
    apart = np.linalg.norm(at[:, np.newaxis] - at, axis=2)
    assert np.corrcoef(hops.ravel(), apart.ravel())[0, 1] > 0.9
    edges = apart[hops == 1]
    assert edges.max() < 3 * edges.min()


def test_components_and_isolated_nodes_have_rooms_of_their_own():
    nets = [nx.grid_2d_graph(9, 9), nx.path_graph(60), nx.cycle_graph(20)]
    nets += [nx.star_graph(5), nx.path_graph(2), *[nx.empty_graph(1)] * 7]
    at = lay_out(as_graph(nx.disjoint_union_all(nets)))
    sizes = [len(net) for net in nets]
    boxes = [
        (a.min(axis=0), a.max(axis=0)) for a in np.split(at, np.cumsum(sizes)[:-1])
    ]
    for one, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:one]:
            assert (low > other_high).any() or (high < other_low).any()
    assert np.abs(at).max() == 0.5
    assert len(np.unique(at.round(6), axis=0)) == len(at)


def test_groups_of_a_graph_that_no_plane_holds_lie_apart():
    sizes = [60] * 30  # more nodes than the smallest level has
    net = nx.random_partition_graph(sizes, 0.25, 0.002, seed=4)
    at = lay_out(as_graph(net))
    group = np.repeat(np.arange(30), 60)
    near = np.argsort(((at[:, np.newaxis] - at) ** 2).sum(axis=2), axis=1)[:, 1:6]
    assert (group[near] == group[:, np.newaxis]).mean() > 0.9
    assert np.array_equal(at, lay_out(as_graph(net)))
    width, height = np.ptp(at, axis=0)
    assert width >= 0.95 * height


def test_equal_graphs_have_equal_layouts_whatever_weights_and_directions():
    graph = some_graph(directed=True)
    at = lay_out(graph)
    assert np.array_equal(at, lay_out(graph))
    both = graph.adjacency.maximum(graph.adjacency.T)
    assert np.array_equal(at, lay_out(Graph(csr_array(-both))))
    assert lay_out(Graph(csr_array((1, 1)))).tolist() == [[0, 0]]
