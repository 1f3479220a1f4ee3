"""Tables with text among the numbers: what every command makes of their columns."""

import json
import shlex

import numpy as np
import pytest

from nnkgraph import formats
from nnkgraph.cli.files import Files, label_columns
from nnkgraph.errors import ParameterError

N = 40
KINDS = np.repeat(["gold", "basic"], N // 2)
X = np.random.default_rng(8).normal(size=(N, 3)) + 4 * (KINDS == "gold")[:, np.newaxis]
NAMES = [f"c{at}" for at in range(N)]
SKIPPED = ("--id-column", "who", "--drop", "city,kind", "--drop", "spare")


def table(header, *columns):
    rows = zip(*columns, strict=True)
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with one table of everything, and tables of parts of it."""
    monkeypatch.chdir(tmp_path)
    city = ["Rome", "Oslo"] * (N // 2)
    everything = (NAMES, city, *X.T, KINDS, range(N))
    back = slice(None, None, -1)
    files = {
        "mine.csv": table("who,city,a,b,c,kind,spare", *everything),
        "bare.csv": table("a,b,c", *X.T),
        "places.csv": table("id,e1,e2", NAMES[back], *X.T[:2, back]),
        "kinds.csv": table("who,kind", NAMES[back], KINDS[back]),
        "ids.csv": table("id,kind", NAMES[back], KINDS[back]),
        "order.csv": table("kind,n", KINDS, range(N)),
        "plain.csv": "\n".join(KINDS),
        "some.csv": table("id,kind", NAMES[2:], KINDS[2:]),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    return tmp_path


def test_columns_that_are_dropped_leave_no_trace(run, folder):
    assert run("build", "mine.csv", *SKIPPED, "-k", 9, "-o", "a.npz").code == 0
    assert run("build", "bare.csv", "-k", 9, "-o", "b.npz").code == 0
    ours, bare = formats.read_graph("a.npz"), formats.read_graph("b.npz")
    assert ours.ids == tuple(NAMES)
    assert ours.provenance == bare.provenance
    assert (ours.adjacency != bare.adjacency).nnz == 0


@pytest.mark.parametrize(
    "call",
    [
        "search mine.csv -k 5 -o knn.npz",
        "compare mine.csv -k 5 --method knn",
        "explain mine.csv --node c3 -k 5",
        "query mine.csv bare.csv -k 5 -o near.npz",
        "query mine.csv mine.csv -k 5 -o near.npz",
        "doctor mine.csv -k 5 --json",
        "verify mine.csv g.npz",
        "report g.npz --features mine.csv --coords places.csv -o g.html",
        "classify mine.csv --labels kinds.csv --test bare.csv -k 5",
    ],
)
def test_every_command_with_features_can_do_without_columns(run, folder, call):
    command, *words = call.split()
    if "g.npz" in words:
        assert run("build", "mine.csv", *SKIPPED, "-k", 9, "-o", "g.npz").code == 0
    result = run(command, *words, *SKIPPED)
    assert result.code == 0, result.err
    wrong = run(command, *words, "--id-column", "who", "--drop", "cit,kind")
    assert wrong.code == 3
    assert "'cit' to drop" in wrong.err
    assert "did you mean 'city'?" in wrong.err
    assert "Traceback" not in wrong.err


def test_the_line_that_doctor_suggests_drops_the_same(run, folder):
    told = json.loads(run("doctor", "mine.csv", *SKIPPED, "-k", 9, "--json").out)
    words = shlex.split(told["suggestion"]["command"])
    assert run(*words[1:], "-q").code == 0
    assert formats.read_graph("mine-graph.npz").n_edges == told["suggestion"]["edges"]


def test_arrays_have_no_columns_to_drop(run, folder):
    np.save("x.npy", X)
    result = run("build", "x.npy", "--drop", "0", "-o", "g.npz")
    assert result.code == 2
    assert "columns to drop" in result.err


@pytest.mark.parametrize(
    "call",
    [
        "--labels kinds.csv::kind --id-column who",
        "--labels ids.csv",
        "--labels order.csv::kind",
        "--labels plain.csv",
        "--labels mine.csv::kind --id-column who",
    ],
)
def test_every_file_is_matched_by_the_names_it_has(run, folder, call):
    assert run("build", "mine.csv", *SKIPPED, "-k", 9, "-o", "g.npz").code == 0
    result = run(
        "plot", "g.npz", "--coords", "places.csv", *call.split(), "-o", "a.svg"
    )
    assert result.code == 0, result.err
    assert "the column 'id' names the rows" in result.err
    wanted = ("plot", "g.npz", "--coords", "bare.csv", "--drop", "c", "-o", "b.svg")
    assert run(*wanted, "--labels", "plain.csv").code == 0
    assert (folder / "a.svg").read_bytes() == (folder / "b.svg").read_bytes()


def test_an_id_column_that_no_file_has_is_refused(run, folder):
    assert run("build", "mine.csv", *SKIPPED, "-k", 9, "-o", "g.npz").code == 0
    call = ("plot", "g.npz", "--coords", "places.csv", "--labels", "kinds.csv::kind")
    result = run(*call, "--id-column", "hwo", "-o", "a.svg")
    assert result.code == 3
    assert "no single column 'hwo'" in result.err
    assert not (folder / "a.svg").exists()
    result = run(
        "propagate", "g.npz", "--labels", "ids.csv", "--id-column", "hwo", "-o-"
    )
    assert result.code == 3


@pytest.mark.parametrize("labels", ["mine.csv::kind", "kinds.csv", "ids.csv"])
def test_labels_are_matched_by_name_and_are_no_feature(run, folder, labels):
    call = ("--id-column", "who", "--drop", "city,spare", "-k", 5, "--json")
    drop = () if labels.startswith("mine") else ("--drop", "kind")
    result = run("classify", "mine.csv", "--labels", labels, *call, *drop)
    assert result.code == 0, result.err
    assert json.loads(result.out)["error"] == 0
    wrong = run("classify", "mine.csv", "--labels", "some.csv", *call, "--drop", "kind")
    assert wrong.code == 0
    assert "2 of 40 training rows have no label: left out" in wrong.err


def test_nodes_without_a_label_are_predicted(run, folder):
    assert run("build", "mine.csv", *SKIPPED, "-k", 9, "-o", "g.npz").code == 0
    result = run("propagate", "g.npz", "--labels", "some.csv", "-o", "all.csv")
    assert result.code == 0, result.err
    again = formats.read_labels("all.csv")
    assert again.ids == tuple(NAMES)
    assert [again.classes[code] for code in again.codes] == KINDS.tolist()


def test_labels_in_the_table_of_features_have_to_be_named():
    assert label_columns("a.csv", "a.csv::y", "b.csv::z", None) == ["y"]
    assert label_columns("a.npz::X", "a.npz::y") == []
    with pytest.raises(ParameterError, match="as FILE::NAME"):
        label_columns("a.csv", "a.csv")


def test_what_is_said_of_tables_goes_to_tables():
    said = {"delimiter": ";", "header": True, "id_column": "who", "drop": ("a",)}
    files = Files(**said)
    files.expect("x.parquet", "y.csv", "z.npy")
    first = files.told("x.parquet", strict=True)
    assert (first["delimiter"], first["id_column"]) == (None, "who")
    assert first["absent"] is None
    second = files.told("y.csv")
    assert second["delimiter"] == ";"
    assert second["absent"] is not None
    third = files.told("z.npy")
    assert (third["header"], third["id_column"], third["drop"]) == (None, None, ())
    files.expect("z.npy")
    alone = files.told("z.npy", strict=True)
    assert alone["drop"] == ("a",)  # to be refused by name


def test_names_that_no_node_has_are_said(run, folder):
    assert run("build", "bare.csv", "-k", 9, "-o", "g.npz").code == 0
    said = (
        "ids.csv: g.npz has no names of nodes: rows are taken in order; a graph that "
        "is built with --id-column has names"
    )
    for call in ("propagate g.npz", "report g.npz", "plot g.npz --coords bare.csv"):
        words = ["--drop", "c"] if "plot" in call else []
        target = {"pr": "y.csv", "re": "g.html", "pl": "g.svg"}[call[:2]]
        result = run(*call.split(), *words, "--labels", "ids.csv", "-o", target)
        assert result.code == 0, result.err
        assert said in result.err
    result = run("convert", "g.npz", "g.gexf", "--labels", "some.csv")
    assert result.code == 3
    assert "some.csv: g.npz has no names of nodes" in result.err
    assert f"{N - 2} labels, but the graph has {N} nodes" in result.err
    assert run("embed", "g.npz", "-o", "e.csv").code == 0
    result = run("plot", "g.npz", "--coords", "e.csv", "-o", "e.svg")
    assert result.code == 0
    assert "no names of nodes" not in result.err


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_of_known_ids_matches_rows(run, folder, kind):
    """Rows in another order would get the labels and places of others."""
    mixed = np.random.default_rng(1).permutation(N)
    names = np.array(NAMES)[mixed]
    columns = {"who": names, "kind": KINDS[mixed], "a": X[mixed, 0], "b": X[mixed, 1]}
    if kind == "csv":
        text = table(",".join(columns), *columns.values())
        (folder / "mixed.csv").write_text(text + "\n")
    else:
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table(columns), folder / "mixed.parquet")
    assert run("build", "mine.csv", *SKIPPED, "-k", 9, "-o", "g.npz").code == 0
    said = "the column 'who' names the rows: all that it holds are ids of nodes"
    labels = ("--labels", f"mixed.{kind}::kind")
    result = run("propagate", "g.npz", *labels, "-o", "y.csv", "--quiet")
    assert result.code == 0, result.err
    assert formats.read_labels("y.csv::label").names() == KINDS.tolist()
    values = ("--values", f"mixed.{kind}::a")
    for call in (
        ("report", "g.npz", *labels, "-o", "g.html"),
        ("convert", "g.npz", "g.graphml", *labels),
        ("plot", "g.npz", *values, "-o", "g.svg"),
        ("plot", "g.npz", "--coords", f"mixed.{kind}", "--drop", "kind", "-o", "h.svg"),
    ):
        result = run(*call)
        assert result.code == 0, result.err
        assert said in result.err


def test_a_column_with_other_words_is_no_id_column(tmp_path):
    path = tmp_path / "y.csv"
    path.write_text("who,kind\nb,u\na,v\n")
    assert formats.read_labels(path, known=["a", "b", "c"]).ids == ("b", "a")
    assert formats.read_labels(f"{path}::kind", known=["a", "z"]).ids is None
    assert formats.read_labels(f"{path}::who", known=["a", "b"]).ids is None
    path.write_text("who,kind\nb,u\nb,v\n")
    assert formats.read_labels(f"{path}::kind", known=["a", "b"]).ids is None
    path.write_text("size,kind\n1,u\n0,v\n")  # numbers match by chance
    assert formats.read_labels(f"{path}::kind", known=["0", "1"]).ids is None
    path.write_text("b,2.5\na,7\n")
    found = formats.read_features(path, header=False, known=["a", "b"])
    assert (found.ids, found.x.tolist()) == (("b", "a"), [[2.5], [7]])
