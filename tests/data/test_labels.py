"""Labels: classes of rows, from every kind of file."""

import h5py
import numpy as np
import pytest

from nnkgraph.data.labels import Labels
from nnkgraph.errors import InputError
from nnkgraph.formats import read_features, read_labels, read_values


def test_numbers_are_ordered_by_value_and_text_by_letters():
    assert Labels.of([10, 9, -3]).classes == ("-3", "9", "10")
    assert Labels.of(["b", "a10", "a9"]).classes == ("a10", "a9", "b")


@pytest.mark.parametrize(
    "values", [[1, 0, 1], [1.0, 0.0, 1.0], [True, False, True], ["1", "0", " 1"]]
)
def test_equal_labels_are_equal_whatever_their_type(values):
    labels = Labels.of(np.array(values))
    assert labels.classes == ("0", "1")
    assert labels.codes.tolist() == [1, 0, 1]


def test_what_stands_for_no_label():
    assert Labels.of([1.0, np.nan, 2.0]).codes.tolist() == [0, -1, 1]
    assert Labels.of(["a", "", "NA", "b"]).codes.tolist() == [0, -1, -1, 1]
    assert Labels.of(["a", "x", "b"], missing="x").codes.tolist() == [0, -1, 1]
    assert Labels.of([0, -1, 1], missing="0").codes.tolist() == [-1, 0, 1]


@pytest.mark.parametrize(
    "text", ["", " NA", "n/a", "NaN", "null", "nil", "?", "Missing"]
)
def test_what_is_missing_is_the_same_for_labels_values_and_features(tmp_path, text):
    assert Labels.of(["a", text, "b"]).codes.tolist() == [0, -1, 1]
    path = tmp_path / "v.csv"
    path.write_text(f"v,w\n1,2\n{text},3\n")
    assert np.isnan(read_values(f"{path}::v").x[1, 0])
    assert np.isnan(read_features(path, gaps=True).x[1, 0])
    with pytest.raises(InputError, match=r"line 3, column 1 is (an empty|missing|NaN)"):
        read_features(path)


def test_a_dash_is_a_class_among_labels_and_missing_among_numbers(tmp_path):
    assert Labels.of(["+", "-", "+"]).classes == ("+", "-")
    path = tmp_path / "v.csv"
    path.write_text("v\n1\n-\n")
    assert np.isnan(read_values(f"{path}::v").x[1, 0])


def test_minus_one_is_no_label_only_where_it_can_be_no_class():
    assert Labels.of([0, -1, 1], minus_one=True).codes.tolist() == [0, -1, 1]
    assert Labels.of([0, -1, 1]).codes.tolist() == [1, 0, 2]
    assert Labels.of([1, -1, 1], minus_one=True).codes.tolist() == [1, 0, 1]
    assert Labels.of([-2, -1, 1], minus_one=True).codes.tolist() == [0, 1, 2]
    assert not Labels.of([-1, -1, -1], minus_one=True).known.any()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1, 2]], "one value per row"),
        ([0.5, 1.0], "whole numbers or text"),
        ([1j, 2j], "dtype complex"),
    ],
)
def test_what_is_no_label_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        Labels.of(values)


FILES = {
    "y.csv": "a\nb\na\n",
    "header.csv": "label\na\nb\na\n",
    "some.csv": "id,size,label\np,1,a\nq,2,b\nr,3,a\n",
    "named.csv::kind": "id,size,kind\np,1,a\nq,2,b\nr,3,a\n",
    "numbered.csv::2": "p,1,a\nq,2,b\nr,3,a\n",
    "blanks.txt": "# by hand\na\nb\na",
    "tabs.tsv::kind": 'size\tkind\n1\t"a"\n2\tb\n3\ta\n',
}


@pytest.mark.parametrize("spec", FILES)
def test_labels_are_found_in_tables(tmp_path, spec):
    name, _, item = spec.partition("::")
    (tmp_path / name).write_text(FILES[spec])
    labels = read_labels(f"{tmp_path / name}::{item}" if item else tmp_path / name)
    assert labels.classes == ("a", "b")
    assert labels.codes.tolist() == [0, 1, 0]


def test_labels_are_found_in_arrays(tmp_path):
    codes, names = np.array([0, 1, 0]), np.array(["a", "b", "a"])
    np.save(tmp_path / "y.npy", names)
    np.savez(tmp_path / "y.npz", X=np.eye(3), y=names, split=codes)
    with h5py.File(tmp_path / "y.h5", "w") as file:
        file["x"], file["y"], file["kind"] = np.eye(3), codes, ["a", "b", "a"]
    for spec in ("y.npy", "y.npz", "y.npz::y", "y.h5::kind"):
        assert read_labels(str(tmp_path / spec)).classes == ("a", "b"), spec
    assert read_labels(str(tmp_path / "y.h5")).classes == ("0", "1")
    assert read_labels(str(tmp_path / "y.npz::split")).classes == ("0", "1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p,a\nq,b\n", "which column holds the labels"),
        ("a\nb,c\n", "line 2 has 2 field"),
        ("label\n", "no labels"),
        ('"a\nb\n', "quotation mark"),
    ],
)
def test_a_table_that_does_not_say_its_labels_is_refused(tmp_path, text, message):
    (tmp_path / "y.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_labels(tmp_path / "y.csv")


def test_names_decide_where_both_sides_have_them():
    labels = Labels.of(["a", "b"], ids=["q", "p"])
    assert labels.for_rows(3, ("p", "q", "r"), "graph").codes.tolist() == [1, 0, -1]
    with pytest.raises(InputError, match="1 id is not in graph: 'q'"):
        labels.for_rows(1, ("p",), "graph")
    with pytest.raises(InputError, match="2 labels, but graph has 3 nodes"):
        labels.for_rows(3, None, "graph")


def test_codes_in_other_terms_leave_unknown_classes_out():
    labels = Labels.of(["b", "c", "", "a"])
    assert labels.in_terms_of(("c", "b")).tolist() == [1, 0, -1, -1]


def test_whole_numbers_in_text_may_have_a_point():
    labels = Labels.of(["0.0", "1.0", "", "-1.0"], minus_one=True)
    assert (labels.classes, labels.codes.tolist()) == (("0", "1"), [0, 1, -1, -1])
    assert Labels.of(["0.0", "v.5"]).classes == ("0.0", "v.5")
    assert Labels.of(["0.0", "9.0", "1.0"], missing="9").codes.tolist() == [0, -1, 1]


def test_a_missing_value_does_not_make_minus_one_a_class():
    labels = Labels.of([0, 1, -1, 99], missing="99", minus_one=True)
    assert labels.codes.tolist() == [0, 1, -1, -1]


def test_equal_numbers_have_a_fixed_order():
    assert Labels.of(["1", "01", "2"]).classes == ("01", "1", "2")


@pytest.mark.parametrize("text", ["y\nn\ny\n", "cat\n\n\n"])
def test_a_label_in_the_first_line_is_no_header(tmp_path, text):
    (tmp_path / "y.csv").write_text(text)
    assert len(read_labels(tmp_path / "y.csv").codes) == 3


def test_ids_that_are_not_used_are_remarked_on(tmp_path):
    (tmp_path / "y.csv").write_text("who,kind\nb,1\na,2\n")
    said = []
    read_labels(f"{tmp_path / 'y.csv'}::kind", note=said.append)
    assert "`id_column='who'` would match them" in said[-1]
    for ids, remarks in ((["a", "z"], 2), (["y", "z"], 1)):
        said.clear()
        read_labels(f"{tmp_path / 'y.csv'}::kind", known=ids, note=said.append)
        assert len(said) == remarks


def test_ids_of_parquet_of_which_some_are_known_are_remarked_on(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"kind": [1, 2], "place": ["u", "v"], "who": ["b", "a"]}
    parquet.write_table(arrow.table(columns), tmp_path / "y.parquet")
    for ids, remarks in ((["a", "z"], 1), (["y", "z"], 0), (None, 0)):
        said = []
        found = read_labels(
            f"{tmp_path / 'y.parquet'}::kind", known=ids, note=said.append
        )
        assert found.ids is None
        assert len(said) == remarks
        assert all("`id_column='who'` would match them" in one for one in said)


def test_a_column_called_id_matches_rows_unless_it_is_wanted_or_repeats(tmp_path):
    path = tmp_path / "y.csv"
    path.write_text("id,kind\nb,u\na,v\n")
    assert read_labels(path).ids == ("b", "a")
    assert read_labels(path).classes == ("u", "v")
    assert read_labels(f"{path}::id").ids is None
    path.write_text("id,kind\n2,u\n2,v\n")
    assert read_labels(f"{path}::kind").ids is None


def test_the_example_of_a_column_is_one_that_could_hold_labels(tmp_path):
    path = tmp_path / "y.csv"
    rows = [f"c{at},{at / 7},{'uvw'[at % 3]},{at % 2}" for at in range(12)]
    path.write_text("\n".join(["who,size,kind,flag", *rows]))
    message = "y.csv::kind; there are who, size, kind, flag"
    with pytest.raises(InputError, match=message):
        read_labels(path)
    with pytest.raises(InputError, match=r"'knid'; .*did you mean 'kind'"):
        read_labels(f"{path}::knid")
    path.write_text("who,kind\na,u\nb,v\nc,u\nd,v\n")
    with pytest.raises(InputError, match=r"y.csv::1, or as .*y.csv::kind where"):
        read_labels(path)


@pytest.mark.parametrize("more", ["", "NA", "7", "1e3"])
def test_decimals_are_no_classes(tmp_path, more):
    path = tmp_path / "y.csv"
    path.write_text(f"city,eur\nOslo,12\nBad Homburg,872.65\nRome,{more}\n")
    with pytest.raises(InputError, match=r"::eur: .*such as 872\.65; plot .*`values`"):
        read_labels(f"{path}::eur")
    with pytest.raises(InputError, match="'Oslo' is no number"):
        read_values(f"{path}::city")
    with pytest.raises(InputError, match=r"such as 0\.5;"):
        Labels.of([1, 0.5])
    assert Labels.of(["1.5", "v2"]).classes == ("1.5", "v2")
    assert Labels.of(["1.5", "2"], missing="1.5").classes == ("2",)


def test_one_label_too_many_may_be_a_header():
    with pytest.raises(
        InputError, match="3 labels, but x has 2 nodes; say `header=True`"
    ):
        Labels.of(["kind", "a", "b"]).for_rows(2, None, "x")
