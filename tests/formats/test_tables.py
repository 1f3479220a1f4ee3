"""Tables with text among the numbers: what every command makes of their columns."""

import json
import re
import shlex

import numpy as np
import pytest

from nnkgraph import formats
from nnkgraph.cli.files import Files, label_columns
from nnkgraph.errors import InputError, MissingValuesError, ParameterError

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


def read(path, text, **options):
    """Return features of a table, and what is said about it."""
    said = []
    path.write_text(text)
    return formats.read_features(path, note=said.append, **options), "\n".join(said)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.csv", "1;2\n3;4\n", "split at ';', as found"),
        ("x.csv", "a;b\n1;2\n3;4\n", "split at ';', as found"),
        ("x.csv", "1\t2\n3\t4\n", "split at tabs, as found"),
        ("x.tsv", "1,2\n3,4\n", "split at ',', as found"),
        ("x.csv", '"a;1","b"\n1,2\n3,4\n', ""),
        (
            "x.csv",
            "sep=;\r\na;b\r\n1;2\r\n3;4\r\n",
            "line 1 says that fields are split at ';'",
        ),
        ("x.csv", '"SEP=,"\n1,2\n3,4\n', "line 1 says that fields are split at ','"),
        ("x.txt", "sep=\t\n1\t2\n3\t4\n", "line 1 says that fields are split at tabs"),
    ],
)
def test_a20_delimiters_are_found_and_said(tmp_path, name, text, said):
    found, notes = read(tmp_path / name, text)
    assert found.x.tolist() == [[1, 2], [3, 4]]
    assert said in notes
    assert ("split at" in notes) == bool(said)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "a;b\n1,5;-2\n1e1;+,5e1\n".replace("+,", "0,")),
        ("x.csv", "1,5;-2\n10;5,0\n"),
        ("x.csv", '"1,5","-2"\n"10","5"\n'),
        ("x.tsv", "1,5\t-2\n10\t5\n"),
        ("x.txt", "1,5 -2\n10  5,0\n"),
        ("x.csv", "id;a;b\nq;1,5;-2\nr,s;10;5,00\n"),
    ],
)
def test_a20_decimal_commas_are_read_where_it_is_said(tmp_path, name, text):
    found, _ = read(tmp_path / name, text, decimal=",")
    assert found.x.tolist() == [[1.5, -2], [10, 5]]
    assert found.ids == (("q", "r,s") if "id" in text else None)
    with pytest.raises(InputError, match=r"line 2, column 1 .* decimal point"):
        read(tmp_path / name, "a;b\n1.5;2\n", decimal=",", delimiter=";")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (
            "key;name;x;y;z;on\nA1;b;1,5;2;;2020-01-02\nA2;c;3;4;5;2020-01-03\n",
            (
                "name the rows by it with `id_column='key'`, and leave others out with "
                "`drop='name,on'`; numbers have decimal commas here: say `decimal=','`"
            ),
        ),
        (
            "key;x\nA1;1,5\nA2;2,5\n",
            (
                "name the rows by it with `id_column='key'`, or leave it out with "
                "`drop='key'`; numbers have decimal commas here: say `decimal=','`"
            ),
        ),
        (
            "key;x;y\nA1;1,5;2.5\nA2;2,5;3.5\n",
            (
                "name the rows by it with `id_column='key'`, or leave it out with "
                "`drop='key'`; write all numbers alike: there are '1,5' and '2.5'"
            ),
        ),
        (  # thousands, perhaps: nothing is said of them
            'key,x\nA1,"1,500"\nA2,"2,500"\n',
            (
                "name the rows by it with `id_column='key'`, and leave others out with "
                "`drop='x'`"
            ),
        ),
    ],
)
def test_no_column_with_decimal_commas_is_advised_to_be_left_out(
    tmp_path, text, advice
):
    with pytest.raises(InputError) as found:
        read(tmp_path / "x.csv", text)
    assert str(found.value).partition("; ")[2] == advice


def test_the_advice_for_decimal_commas_reads_all_numbers(inside, tmp_path):
    lines = [f"A{i};b;{i},5;{i * i % 7},25;{i % 5}" for i in range(12)]
    (tmp_path / "x.csv").write_text("\n".join(["key;name;x;y;z", *lines]))
    call = ["build", "x.csv", "-k", "5", "--report", "-", "-o", "g.npz"]
    said = inside(*call).err
    words = re.findall(r"--(?:id-column|drop) [\w,]*\w|--decimal ,", said)
    assert len(words) == 3
    done = inside(*call, *" ".join(words).split())
    assert done.code == 0, done.err
    assert json.loads(done.out)["input"]["shape"] == [12, 3]


def test_a20_a_column_of_decimal_commas_is_one_column(tmp_path):
    assert read(tmp_path / "x.csv", "1,5\n2\n", decimal=",")[0].x.tolist() == [
        [1.5],
        [2],
    ]
    (tmp_path / "v.csv").write_text("id;v\na;1,5\nb;2,25\n")
    found = formats.read_values(f"{tmp_path}/v.csv::v", decimal=",")
    assert (found.x.tolist(), found.ids) == ([[1.5], [2.25]], ("a", "b"))
    (tmp_path / "y.csv").write_text("id;y\na;1,0\nb;2,0\nc;NA\n")
    labels = formats.read_labels(f"{tmp_path}/y.csv::y", decimal=",")
    assert labels.names() == ["1", "2", ""]
    (tmp_path / "y.csv").write_text("id;y\na;1.234\nb;2.345\n")  # thousands
    with pytest.raises(InputError, match="no number"):
        formats.read_values(f"{tmp_path}/y.csv::y", decimal=",")
    with pytest.raises(ParameterError, match="decimal mark"):
        formats.read_features(tmp_path / "v.csv", decimal=";")


R = {
    "table.txt": '"a" "b"\n"p" 1 2\n"q" 3 4\n',
    "table.tsv": "a\tb\np\t1\t2\nq\t3\t4\n",
    "csv.csv": '"","a","b"\n"p",1,2\n"q",3,4\n',
    "csv2.csv": '"";"a";"b"\n"p";1;2\n"q";3;4\n',
    "bare.csv": ",a,b\np,1,2\nq,3,4\n",
}


@pytest.mark.parametrize("name", R)
def test_the_names_of_rows_that_r_writes_are_names(tmp_path, name):
    found, said = read(tmp_path / name, R[name])
    assert (found.ids, found.columns) == (("p", "q"), ("a", "b"))
    assert found.x.tolist() == [[1, 2], [3, 4]]
    assert "the first column, unnamed, names the rows" in said
    bare, _ = read(tmp_path / name, R[name], drop=["0"])
    assert (bare.ids, bare.x.tolist()) == (None, [[1, 2], [3, 4]])
    numbers = R[name].replace("p", "1").replace("q", "2")
    found, _ = read(tmp_path / name, numbers)
    assert found.ids == (None if name == "bare.csv" else ("1", "2"))
    twice = R[name].replace("q", "p")
    with pytest.raises(InputError, match=r"'p' stands in the first .* `drop='0'`"):
        read(tmp_path / name, twice)


def test_the_names_of_rows_that_r_writes_match_labels(tmp_path):
    for text in ('"kind"\n"p" "u"\n"q" "v"\n', '"" "kind"\n"p" "u"\n"q" "v"\n'):
        (tmp_path / "y.txt").write_text(text)
        labels = formats.read_labels(tmp_path / "y.txt")
        assert (labels.ids, labels.names()) == (("p", "q"), ["u", "v"])
    (tmp_path / "y.csv").write_text('"","kind"\n"1","u"\n"2","v"\n')
    assert formats.read_labels(tmp_path / "y.csv::kind").ids is None
    assert formats.read_labels(f"{tmp_path}/y.csv::kind", known=["1", "2"]).ids


@pytest.mark.parametrize("start", [0, 1])
def test_a_column_that_counts_the_rows_is_a_warning(run, folder, start):
    lines = [f"{at},{a},{b}" for at, (a, b, _) in enumerate(X.tolist(), start)]
    (folder / "x.csv").write_text("\n".join(["Unnamed: 0,a,b", *lines]))
    call = ("build", "x.csv", "-k", 5, "-o", "g.npz", "-q")
    result = run(*call)
    assert result.code == 0
    assert result.err.count("just counts the rows") == 1
    assert f"from {start}, " in result.err
    assert "--id-column 0" in result.err
    assert "--drop 0" in result.err
    for command in ("doctor x.csv", "explain x.csv --node 1", "verify x.csv g.npz"):
        result = run(*command.split(), "-q")
        assert (result.code, result.err.count("just counts the rows")) == (0, 1)
    for more in (("--id-column", 0), ("--drop", 0)):
        result = run(*call, *more)
        assert (result.code, result.err) == (0, "")
    # Where another column names them already, it can only be left out.
    named = [f"{one},r{at}" for at, one in enumerate(lines)]
    (folder / "y.csv").write_text("\n".join([",a,b,who", *named]))
    said = run("build", "y.csv", *call[2:], "--id-column", "who").err
    assert said.endswith("is taken for a feature: leave it out with --drop 0\n")
    (folder / "x.csv").write_text("\n".join(lines[1:]))  # from 1 or 2: no mere count
    assert ("counts" in run(*call).err) == (start == 0)


def test_trailing_fields_without_anything_are_named_at_once(run, folder):
    (folder / "x.csv").write_text("a,b,,\n1,2,,\n3,4,,\n5,7,,\n,,,\n,,,\n")
    result = run("build", "x.csv", "-o", "g.npz")
    assert result.code == 3
    assert "14 such values in all" in result.err
    assert "without any value: column 3, column 4, left out by --drop 2,3" in result.err
    assert "without any value at the end: lines 5 to 6" in result.err
    mended = ("--drop", "2,3", "--missing", "drop-rows")
    result = run("build", "x.csv", *mended, "-k", 2, "-o", "g.npz")
    assert result.code == 0, result.err
    assert formats.read_graph("g.npz").n_nodes == 3
    (folder / "y.csv").write_text("id,a\np,1\nq,2\nr,4\n,\n,\n")
    result = run("build", "y.csv", "--missing", "drop-rows", "-k", 2, "-o", "g.npz")
    assert formats.read_graph("g.npz").ids == ("p", "q", "r")


def test_a_lone_field_that_is_empty_is_no_blank_line(tmp_path):
    for text in ("n,a\n1,5\n2,\n3,7\n", "n,a\n1,5\n2, \n3,7\n"):
        with pytest.raises(MissingValuesError, match="line 3, column 2 is an empty"):
            read(tmp_path / "x.csv", text, drop=["n"])
        found, _ = read(tmp_path / "x.csv", text, id_column="n", missing="drop-rows")
        assert (found.ids, found.x.tolist()) == (("1", "3"), [[5], [7]])


GAPS = "a,b,c\n1,NA,3\n4,5,\n7,8,9\n2,?,1\nnull,2,2\n3,n/a,1\n6,NaN,2\n6,,7\n"


def test_missing_values_are_reported_all_at_once(run, folder):
    (folder / "x.csv").write_text(GAPS)
    result = run("build", "x.csv", "-o", "g.npz")
    assert result.code == 3
    assert len(result.lines) == 1
    assert "line 2, column 2 is missing ('NA'); 7 such values" in result.err
    assert "in 7 of 8 rows" in result.err
    assert "'a' (1: line 6), 'b' (5: lines 2, 5, 7, ...), 'c' (1: line 3)" in result.err
    ways = "--missing drop-rows, --missing drop-columns or --missing mean"
    assert ways in result.err
    assert not (folder / "g.npz").exists()


@pytest.mark.parametrize("kind", ["csv", "npy", "npz", "h5", "parquet"])
def test_missing_values_are_mended_in_every_format(folder, kind):
    x = np.array([[1, 2, 3], [4, np.nan, 6], [7, 8, 10], [np.nan, 1, 1.0]])
    path = folder / f"gaps.{kind}"
    if kind == "csv":
        path.write_text("1,2,3\n4,,6\n7,8,10\nNA,1,1\n")
    elif kind == "npy":
        np.save(path, x)
    elif kind == "npz":
        np.savez(path, x)
    elif kind == "h5":
        with pytest.importorskip("h5py").File(path, "w") as file:
            file["x"] = x
    else:
        arrow = pytest.importorskip("pyarrow")
        columns = {
            f"f{at}": arrow.array(one, from_pandas=True) for at, one in enumerate(x.T)
        }
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path)
    with pytest.raises(
        MissingValuesError, match="2 such values in all, in 2 of 4 rows"
    ):
        formats.read_features(path)
    found = formats.read_features(path, missing="drop-rows")
    assert (found.x.tolist(), found.ids) == ([[1, 2, 3], [7, 8, 10]], ("0", "2"))
    assert "2 of 4 rows lack values and were left out: 1, 3" in found.warnings[-1]
    found = formats.read_features(path, missing="drop-columns")
    assert found.x.tolist() == [[3], [6], [10], [1]]
    found = formats.read_features(path, missing="mean")
    filled = [[1, 2, 3], [4, 11 / 3, 6], [7, 8, 10], [4, 1, 1]]
    assert np.allclose(found.x, filled, rtol=1e-15)
    assert found.ids is None
    with pytest.raises(ParameterError, match="none of drop-rows, drop-columns, mean"):
        formats.read_features(path, missing="zero")


@pytest.mark.parametrize(
    ("text", "missing", "match"),
    [
        ("1,\n,2\n", "drop-rows", "some in every row: no row is left"),
        ("1,\n,2\n", "drop-columns", "some in every column: no column is left"),
        ("1,\n2,\n", "mean", "no value to take the mean of: number 1 from 0"),
        (
            "1,2\n,\n3,4\n",
            "mean",
            "1 rows have no value at all: .*`missing='drop-rows'`",
        ),
        ("1,2\n,\n3,4\n", "drop-columns", "1 rows have no value at all"),
        ("1,inf\n2,\n", "mean", "line 1, column 2 is infinity"),
        ("1,2\n3,x\n4,\n", "mean", "line 2, column 2 is not a number: 'x'"),
    ],
)
def test_what_cannot_be_mended_is_refused(tmp_path, text, missing, match):
    with pytest.raises(InputError, match=match):
        read(tmp_path / "x.csv", text, missing=missing)


def test_rows_of_several_files_are_mended_together(tmp_path):
    (tmp_path / "1.csv").write_text("id,a,b\np,1,2\nq,,4\n")
    (tmp_path / "2.csv").write_text("id,a,b\nr,5,6\ns,6,8\n")
    found = formats.read_features(f"{tmp_path}/*.csv", missing="mean")
    assert found.x[1].tolist() == [4, 4]
    found = formats.read_features(f"{tmp_path}/*.csv", missing="drop-rows")
    assert found.ids == ("p", "r", "s")
    with pytest.raises(MissingValuesError) as told:
        formats.read_features(f"{tmp_path}/*.csv")
    assert str(told.value).count("or say") == 1


def test_a_verified_graph_needs_the_same_way_to_mend(run, folder):
    holes = X.copy()
    holes[[3, 8], [0, 2]] = np.nan
    np.save("holes.npy", holes)
    for way, others in (("mean", "drop-rows"), ("drop-rows", "mean")):
        told = ("holes.npy", "--missing", way)
        assert run("build", *told, "-k", 6, "-o", "g.npz").code == 0
        assert run("verify", "holes.npy", "g.npz", "--missing", way).code == 0
        assert run("verify", "holes.npy", "g.npz", "--missing", others).code == 6
        result = run("verify", "holes.npy", "g.npz")
        assert (result.code, "--missing mean" in result.err) == (3, True)
    full = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    mended = formats.read_features("holes.npy", missing="mean").x
    assert np.allclose(mended, full, rtol=1e-14)


def test_labels_stay_with_their_rows_where_some_are_left_out(run, folder):
    x = X.copy()
    x[[0, N - 1, 5], [0, 1, 2]] = np.nan
    rows = [",".join("" if np.isnan(v) else repr(v) for v in row) for row in x.tolist()]
    texts = {
        "named.csv": table("id,v", NAMES, rows).replace("id,v", "id,a,b,c"),
        "bare2.csv": "\n".join(["a,b,c", *rows]),
        "all.csv": table("a,b,c,kind", rows, KINDS),
        "far.csv": "\n".join(KINDS),
    }
    for name, text in texts.items():
        (folder / name).write_text(text + "\n")
    way = ("--missing", "drop-rows", "-k", 5, "--json")
    for features, labels in (
        ("named.csv", "ids.csv"),  # by name, in another order
        ("named.csv", "order.csv::kind"),  # by position, for all rows
        ("bare2.csv", "far.csv"),
        ("all.csv", "all.csv::kind"),
    ):
        result = run("classify", features, "--labels", labels, *way)
        assert result.code == 0, result.err
        told = json.loads(result.out)
        assert (told["error"], told["rows"]) == (0, N - 3)
        assert "3 of 40 rows lack values and were left out" in result.err
    (folder / "short.csv").write_text("\n".join(KINDS[:-1]))
    result = run("classify", "named.csv", "--labels", "short.csv", *way)
    assert result.code == 3
    assert "39 labels, but named.csv has 37 rows" in result.err
    assert run("build", "named.csv", *way[:2], "-k", 5, "-o", "g.npz").code == 0
    result = run("propagate", "g.npz", "--labels", "plain.csv", "-o", "y.csv")
    assert result.code == 3
    assert "40 labels, but g.npz has 37 nodes" in result.err


def test_further_rows_can_only_be_left_out(run, folder):
    x = X.copy()
    x[4, 1] = np.nan
    np.save("x.npy", X)
    np.save("q.npy", x)
    call = ("query", "x.npy", "q.npy", "-k", 5, "-o", "q.npz", "--missing")
    result = run(*call, "mean")
    assert result.code == 3
    assert (
        "--missing mean is for the first file, rows can be left out here" in result.err
    )
    assert run(*call, "drop-rows").code == 0
    assert formats.read_answers("q.npz").query_ids[3:5] == ("3", "5")


def test_what_stands_for_no_label_goes_by_another_name(run, folder):
    assert run("build", "mine.csv", *SKIPPED, "-k", 9, "-o", "g.npz").code == 0
    (folder / "part.csv").write_text(table("id,kind", NAMES, ["?!", *KINDS[1:]]) + "\n")
    contents = set()
    for flag in ("--unlabeled", "--missing"):
        call = ("propagate", "g.npz", "--labels", "part.csv", "-o", "y.csv")
        assert run(*call, flag, "?!").code == 0
        contents.add((folder / "y.csv").read_bytes())
    assert len(contents) == 1
    assert formats.read_labels("y.csv::label").names() == KINDS.tolist()
    call = ("audit", "mine.csv", *SKIPPED, "--labels", "part.csv", "-k", 5, "--json")
    result = run(*call, "--unlabeled", "?!")
    assert json.loads(result.out)["labels"]["missing"] == 1


def test_arrays_get_names_by_another_option(run, folder):
    np.save("x.npy", X)
    result = run("build", "x.npy", "--id-column", "0", "-o", "g.npz")
    assert result.code == 2
    assert "--ids" in result.err


@pytest.mark.parametrize(
    "command",
    [
        "explain x.csv --node 1",
        "compare x.csv --method knn",
        "doctor x.csv",  # it searches again, scaled
        "audit x.csv -o a.csv",
        "classify x.csv --labels y.txt --cv 2",
    ],
)
def test_each_remark_is_made_once(run, folder, command):
    x = np.column_stack([X, 1e4 * X[:, 0] ** 2]).astype(object)
    x[3, 0] = ""
    (folder / "x.csv").write_text(table("a,b,c,d", *x.T))
    (folder / "y.txt").write_text("\n".join(KINDS))
    found = run(*command.split(), "--missing", "mean", "-k", 5)
    assert found.code == 0, found.err
    lines = [one.partition("warning: ")[2] or one for one in found.err.splitlines()]
    assert len([one for one in lines if "1 value is missing" in one]) == 1
    assert len(set(lines)) == len(lines) >= 3


def test_labels_named_by_their_column_alone_are_found(run, folder):
    call = ("audit", "mine.csv", *SKIPPED, "-k", 5, "--labels")
    found = run(*call, "kind")
    assert found.code == 3
    assert found.err.splitlines()[-1] == (
        "nnkgraph: error: kind: no such file; the column of that name is mine.csv::kind"
    )
    assert run(*call, "mine.csv::kind").code == 0
    assert run(*call, "sort").err.endswith("error: sort: no such file\n")


@pytest.mark.parametrize("command", ["report g.npz -o r.html", "plot g.npz -o p.png"])
@pytest.mark.parametrize("option", ["--clusters", "--labels"])
def test_findings_are_no_clusters(run, folder, command, option):
    run("build", "mine.csv", *SKIPPED, "-k", 5, "-o", "g.npz")
    text = (
        "id,finding,score,other,label,suggested,detail\nc1,outlier,2,c2,gold,drop,x\n"
    )
    (folder / "audit.csv").write_text(text)
    found = run(*command.split(), option, "audit.csv")
    assert found.code == 3
    assert found.err.splitlines()[-1] == (
        "nnkgraph: error: audit.csv: holds findings of audit, not one value per row: "
        "use --audit (of report and plot)"
    )
    # One of its columns can be meant all the same.
    assert formats.read_labels("audit.csv::suggested").names() == ["drop"]


@pytest.mark.parametrize(
    ("header", "row", "what"),
    [
        ("id,cluster", "c0,0", "clusters"),
        ("id,finding,score,other", "c0,outlier,1.5,c1", "findings of audit"),
        ("customer_id,segment", "c0,gold", "labels"),
        ("id,label,confidence,given", "c0,gold,0.5,yes", "labels"),
        (",class", "0,gold", "labels"),
    ],
)
@pytest.mark.parametrize("command", ["info", "cluster"])
def test_a_table_about_nodes_is_no_graph(run, folder, command, header, row, what):
    (folder / "t.csv").write_text(f"{header}\n{row}\n")
    output = [] if command == "info" else ["-o", "c.csv"]
    found = run(command, "t.csv", *output)
    said = f"t.csv: line 1 says that these are {what}, not a graph: name the graph"
    assert (found.code, found.err) == (3, f"nnkgraph: error: {said}\n")


@pytest.mark.parametrize(
    "text", ["user_id,item_id\na,b\n", "id,b,0.5\nb,c,2\n", "x,y\ny,z\n"]
)
def test_edges_between_words_stay_a_graph(tmp_path, text):
    (tmp_path / "g.csv").write_text(text)
    assert formats.read_graph(tmp_path / "g.csv").adjacency.nnz == 4
