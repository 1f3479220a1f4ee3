"""Two readers of text: pyarrow's for large tables gives what the plain one gives."""

import dataclasses
import gzip
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnkgraph import formats
from nnkgraph.data import Features
from nnkgraph.errors import NnkGraphError
from nnkgraph.formats import _fast, _layout
from nnkgraph.formats._base import TextOptions
from nnkgraph.runtime.files import open_source

pytest.importorskip("pyarrow")

ODD = [
    *(
        "1e400",
        "-1e400",
        "1e-400",
        "0x10",
        "1_0",
        "+1",
        "1.",
        ".5",
        "-.5",
        ".",
        "-",
        "",
    ),
    *(
        "inf",
        "-inf",
        "infinity",
        "nan",
        "NaN",
        "nan(1)",
        "NA",
        "null",
        "1d5",
        "1e",
        "e5",
    ),
    *("1 ", " 1", "\t1", "1\t", "1 2", " ", "1\x0b", "\xa01", "\u0661", "#1"),
    *("1,5", "1;5"),
    *('"1"', '" 1"', '"1" ', '1"2', '""', '"1""2"', '"1"2', '"', '"1,5"', '"a', "x"),
    *("-0", "00012", "1e05", "1E+5", "1.e5", "5e-324", "4.9e-324", "2.4703e-324"),
    *("1.7976931348623157e308", "1.7976931348623159e308", "9007199254740993", "1\0"),
    *(
        "0.1",
        "123456789012345678901234567890",
        "2.2250738585072011e-308",
        "1\r",
        "\ufeff1",
    ),
    "0.500000000000000166533453693773481063544750213623046875",
    "3." + "1415926535" * 30,
]


def outcome(path, options):
    try:
        found = formats.read_features(path, **options)
    except NnkGraphError as error:
        return type(error), str(error)
    return found.x.tobytes(), found.x.shape, found.ids, found.columns, found.warnings


def both(path, options, chunk=1 << 21):
    """Return what the plain reader makes of a table, and what both make."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_fast, "read", lambda source, layout: None)
        plain = outcome(path, options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_fast, "LEAST", 0)
        patch.setattr(_fast, "_CHUNK", chunk)
        patch.setattr(_fast, "_ROWS", 0)
        return plain, outcome(path, options)


usual = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e3, 1e3).map("{:.6g}".format),
    st.floats(allow_nan=False, allow_infinity=False).map("{:.17e}".format),
    st.integers(-(10**20), 10**20).map(str),
)


@st.composite
def tables(draw):
    """Return the text of a table, most of which are in order."""
    width, height = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    delimiter = draw(st.sampled_from([",", ";", "\t", " "]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    fields = [[draw(usual) for _ in range(width)] for _ in range(height)]
    if draw(st.booleans()):
        names = st.sampled_from(["a", "b c", '"q"', '"x,y"', "é", "#n", "", '""', "7"])
        for row in fields:
            row.insert(0, draw(names) if draw(st.booleans()) else f"n{id(row)}")
    if draw(st.booleans()):
        fields.insert(0, [f"c{at}" for at in range(len(fields[0]))])
    for _ in range(draw(st.integers(0, 2))):
        row = draw(st.sampled_from(fields))
        row[draw(st.integers(0, len(row) - 1))] = draw(st.sampled_from(ODD))
    if draw(st.integers(0, 9)) == 0:
        draw(st.sampled_from(fields)).append("1")
    lines = [delimiter.join(row) for row in fields]
    for _ in range(draw(st.integers(0, 9)) // 8):
        place = draw(st.integers(0, len(lines)))
        lines.insert(place, draw(st.sampled_from(["", " ", "# note", "\r", '""', ","])))
    text = end.join(lines) + draw(st.sampled_from(["", end, end * 3, " " + end]))
    return draw(st.sampled_from(["", "", "", "\ufeff"])) + text, delimiter


@settings(max_examples=200)
@given(
    tables(),
    st.sampled_from([1 << 21, 1 << 21, 1, 7, 40]),
    st.sampled_from([".csv", ".txt", ".tsv", ".csv.gz"]),
    st.sampled_from([{}, {}, {"decimal": ","}, {"id_column": "0"}, {"drop": ["0"]}]),
)
def test_both_readers_give_the_same_values_or_the_same_message(
    tmp_path, made, chunk, suffix, options
):
    text, delimiter = made
    data = text.encode()
    path = tmp_path / f"x{suffix}"
    path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    plain, fast = both(path, {"delimiter": delimiter, **options}, chunk)
    assert fast == plain


@pytest.mark.parametrize("field", ODD)
def test_an_odd_field_means_the_same_to_both_readers(tmp_path, field):
    for text in (f"1,2\n{field},3\n4,5\n", f"a,b\n1,{field}\n4,5\n", f"{field}\n2\n"):
        path = tmp_path / "x.csv"
        path.write_bytes(text.encode())
        for options in ({}, {"decimal": ","}, {"missing": "mean"}):
            plain, fast = both(path, options)
            assert fast == plain


GOOD = {
    "plain.csv": "1,2.5\n3,4\n",
    "head.csv": "a,b\n1,2.5\n3,4\n",
    "note.csv": "# one\n# two\na,b\n1,2.5\n3,4\n",
    "bom.csv": "\ufeff1,2.5\n3,4\n",
    "dos.csv": "a,b\r\n1,2.5\r\n3,4\r\n\r\n\r\n",
    "bare.csv": "1,2.5\n3,4",
    "quoted.csv": '"a","b"\n"1","2.5"\n"3","4"\n',
    "sep.csv": "sep=;\n1;2.5\n3;4\n",
    "tab.tsv": "1\t2.5\n3\t4\n",
    "blank.txt": "1 2.5\n3 4\n",
    "ids.csv": 'n,a,b\n"x,y",1,2.5\nü,3,4\n',
    "r.txt": '"a" "b"\nx 1 2.5\ny 3 4\n',
    "comma.csv": "1;2,5\n3;4\n",
    "mixed.csv": " 1 ,2.5\n3,\t4\n",
}


@pytest.mark.parametrize("name", GOOD)
def test_the_fast_reader_reads_what_is_in_order(tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.write_bytes(GOOD[name].encode())
    monkeypatch.setattr(_fast, "LEAST", 0)
    decimal = "," if name == "comma.csv" else "."
    id_column = "n" if name == "ids.csv" else None
    options = TextOptions(id_column=id_column, decimal=decimal)
    source = dataclasses.replace(open_source(str(path)), suffix=path.suffix)
    found = _fast.read(source, _layout.find_layout(source, options))
    assert found is not None
    assert found[0].tolist() == [[1, 2.5], [3, 4]]
    ids = {"ids.csv": ["x,y", "ü"], "r.txt": ["x", "y"]}
    assert found[1] == ids.get(name)


def test_a_large_table_is_read_in_parts_with_its_line_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(_fast, "LEAST", 1000)
    x = np.random.default_rng(0).normal(size=(900, 5))
    lines = ["a,b,c,d,e", *(",".join(map(repr, row)) for row in x.tolist())]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(lines))
    plain, fast = both(path, {}, 999)
    assert plain == fast
    assert formats.read_features(path).sha256 == Features.of(x).sha256
    for bad, words in (
        ("1,2", "line 700 has 2 field"),
        ("1,2,x,4,5", "line 700, column 3"),
    ):
        path.write_text("\n".join([*lines[:699], bad, *lines[700:]]))
        plain, fast = both(path, {}, 999)
        assert plain == fast
        assert words in fast[1]


def test_small_tables_do_not_wait_for_pyarrow(tmp_path):
    (tmp_path / "x.csv").write_text("1,2\n3,4\n")
    line = (
        "import sys, nnkgraph; nnkgraph.read_features('x.csv'); "
        "sys.exit('pyarrow' in sys.modules)"
    )
    assert not subprocess.run(
        [sys.executable, "-c", line], cwd=tmp_path, check=False
    ).returncode


def test_large_tables_are_read_without_pyarrow(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    monkeypatch.setattr(_fast, "LEAST", 0)
    assert formats.read_features(path).x.tolist() == [[1, 2], [3, 4]]


def test_lines_that_end_as_on_old_machines_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(_fast, "LEAST", 0)
    (tmp_path / "x.csv").write_bytes(b"1,2\r3,4\r5,7\r")
    assert formats.read_features(tmp_path / "x.csv").x.tolist() == [
        [1, 2],
        [3, 4],
        [5, 7],
    ]
