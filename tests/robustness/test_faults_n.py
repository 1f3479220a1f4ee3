"""Contents and options: names, labels, damaged graphs, widths, and odd numbers."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from faults import assert_one_line

from nnkgraph import formats
from nnkgraph.formats import read_graph

ENDINGS = ("npz", "tsv", "csv", "graphml", "gexf", "mtx", "parquet")
ODD = (
    *("é", "e\u0301", "日本", "\u05d0\u05d1", "a\u202eb", "\U0001f600", "\u200d", "ß"),
    *("\u2028x", "x\x85", "\ufeffx", "'", '"', "a,b", "a;b", "=1+1", "#x", "<&>"),
)


def named(names, path="ids.npz"):
    """Write names of the 60 rows, filled up with others."""
    every = [*names, *(f"n{one}" for one in range(60 - len(names)))]
    np.savez(path, ids=np.array(every))
    return tuple(every)


@pytest.mark.parametrize("ending", ENDINGS)
def test_n01_names_in_any_script_survive_every_format(kit, ending):
    """Composed and not, right to left, joined, beyond 16 bits, and marks of tables."""
    every = named(ODD)
    call = f"build x.npy --ids ids.npz::ids -j 1 -k 5 -q -o out.{ending}"
    done = kit.run(call)
    if done.code:  # then it says which, and what can hold it
        assert done.code == 4
        assert_one_line(done.err, f"out.{ending}: the id .* write .*instead")
        assert ending in {"tsv", "csv", "graphml", "gexf"}
        assert not Path(f"out.{ending}").exists()
        fitting = [one for one in ODD[:8] if one.isprintable()]
        every = named(fitting)
        assert kit.run(call).code == 0
    assert read_graph(f"out.{ending}").ids == every
    assert kit.run(f"convert out.{ending} back.npz -q").code == 0
    assert read_graph("back.npz").ids == every


def test_n02_names_that_only_look_alike_are_two_nodes(kit):
    every = named(("\u00e9", "e\u0301", "A", "\u0410", "a", " a"))
    assert kit.run("build x.npy --ids ids.npz::ids -j 1 -k 5 -q -o out.npz").code == 0
    assert read_graph("out.npz").ids == every


@pytest.mark.parametrize("ending", ["npz", "tsv", "graphml"])
def test_n03_names_of_a_million_characters_are_names(kit, ending):
    length = 250_000 if ending == "npz" else 1_000_000  # a million bytes in an array
    every = ["x" * length, "x" * (length - 1) + "y", *(f"n{one}" for one in range(58))]
    Path("ids.txt").write_text("\n".join(every))
    call = f"build x.npy --ids ids.txt -j 1 -k 5 -q -o out.{ending}"
    assert kit.run(call).code == 0
    assert read_graph(f"out.{ending}").ids == tuple(every)


def test_n04_messages_stay_short_whatever_they_quote(kit):
    long = "x" * 1_000_000
    rows = "\n".join(f"{long},{one},2" for one in range(9))
    Path("twice.csv").write_text(f"id,a,b\n{rows}\n")
    Path("other.csv").write_text(f"id,label\n{long},a\n")
    for line in (
        "build twice.csv --id-column id -q -o out.npz",
        "propagate named.npz --labels other.csv -q -o out.csv",
        "build x.npy --method " + long,
        "build x.npy -o out.npz --kernel gaussian:" + long,
    ):
        done = kit.run(line)
        assert done.code in {2, 3}
        assert_one_line(done.lines[-1], r"x\.\.\. \(\d+ of it\)")
        assert len(done.err) < 3000


def test_n05_a_nul_in_a_name_is_kept_or_refused(kit):
    every = named(["a\0b"])
    call = "build x.npy --ids ids.npz::ids -j 1 -k 5 -q -o out."
    for ending in ("npz", "mtx"):
        assert kit.run(call + ending).code == 0
        assert read_graph(f"out.{ending}").ids == every
    for ending in ("tsv", "csv", "graphml", "gexf"):
        kit.fails(4, r"the id 'a\\x00b' .* write .* instead", call + ending)
    Path("nul.csv").write_text("id,a\nx\0y,1\nz,2\n")
    kit.fails(3, "line 2 has a NUL byte", "build nul.csv --id-column id -o out.npz")


def test_n06_file_names_may_be_bytes_that_are_no_text(kit):
    name = os.fsdecode(b"\xff\xfe")
    Path(f"{name}.npy").write_bytes(Path("x.npy").read_bytes())
    call = f"build {name}.npy -j 1 -k 5 -o {name}.npz --report r.json --resume {name}d"
    done = kit.run(call)
    assert done.code == 0, done.err
    assert done.err.isprintable() or "\\udcff" in done.err
    assert Path(f"{name}.npz").read_bytes() == Path("g.npz").read_bytes()
    assert "udcff" in Path("r.json").read_text()
    for line in (
        f"cluster {name}.npz -o {name}.csv",
        f"report {name}.npz -o {name}.html",
        f"plot {name}.npz --coords e.csv --title {name} -o {name}.svg",
        f"convert {name}.npz {name}.graphml",
        f"verify x.npy {name}.npz",
    ):
        done = kit.run(line)
        assert done.code == 0, (line, done.err)


def test_n07_arrays_and_columns_may_have_any_name(kit):
    x = np.load("x.npy")
    item, column = "é日\u202e", "ï d\u0301"
    np.savez("in.npz", **{item: x, "other": x})
    more = ("-j", 1, "-k", 5, "-q", "-o", "out.npz")
    assert kit.run("build", f"in.npz::{item}", *more).code == 0
    assert Path("out.npz").read_bytes() == Path("g.npz").read_bytes()
    rows = "\n".join(
        f"r{at}," + ",".join(map(repr, row)) for at, row in enumerate(x.tolist())
    )
    Path("in.csv").write_text(f"{column},a,b,c\n{rows}\n", encoding="utf-8")
    line = "build in.csv -j 1 -k 5 -q -o out.npz --id-column"
    assert kit.run(line, column).code == 0
    assert read_graph("out.npz").ids == tuple(f"r{one}" for one in range(60))
    kit.fails(3, r"\\u202ex.*é日\\u202e", "build", f"in.npz::{item}x", "-o", "out.npz")


def test_n08_labels_may_be_any_text(kit):
    texts = ["é\u202e", "<b>&", "日本\u0301", "=cmd()"]
    rows = [f"{at},{texts[at % 4] if at < 30 else ''}" for at in range(60)]
    Path("odd.csv").write_text("\n".join(["id,label", *rows]) + "\n", encoding="utf-8")
    assert kit.run("propagate g.npz --labels odd.csv -q -o out.csv").code == 0
    assert all(one in Path("out.csv").read_text(encoding="utf-8") for one in texts)
    assert kit.run("report g.npz --labels odd.csv -q -o out.html").code == 0
    assert "<b>&" not in Path("out.html").read_text(encoding="utf-8")
    assert kit.run("audit x.npy --labels odd.csv -k 5 -q -o found.csv").code == 0


def test_n09_a_graph_that_is_cut_anywhere_is_refused(kit):
    whole = Path("g.npz").read_bytes()
    for end in [1, 3, 4, 29, 30, *range(100, len(whole), 211), len(whole) - 1]:
        Path("cut.npz").write_bytes(whole[:end])
        done = kit.run("info cut.npz")
        assert done.code == 3, end
        assert_one_line(done.err, "cut.npz: ")


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(path, every):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in every.items():
            archive.writestr(name, data)


def test_n10_members_that_are_cut_or_missing_are_named(kit):
    whole = members("named.npz")
    for name, data in whole.items():
        pack("cut.npz", {**whole, name: data[:-4]})
        kit.fails(3, f"cut.npz: .*'{name.removesuffix('.npy')}'", "info cut.npz")
    for name in ("data", "indices", "indptr", "shape", "format"):
        pack("cut.npz", {k: v for k, v in whole.items() if k != f"{name}.npy"})
        kit.fails(3, "cut.npz: .*sparse matrix", "info cut.npz")


def test_n11_indices_beyond_32_bits_do_not_wrap(kit):
    with np.load("g.npz") as archive:
        known = dict(archive)
    starts = known["indptr"].astype(np.int64)
    for change in (
        {"indptr": starts + (np.arange(61) > 30) * 2**31},
        {"indptr": starts + (np.arange(61) > 30) * 2**32},
        {"indices": known["indices"].astype(np.int64) + 2**32},
        {"indices": known["indices"].astype(np.int64) - 2**32},
        {"shape": np.array([2**31, 2**31])},
        {"shape": np.array([2**62, 2**62])},
        {"shape": np.array([60 - 2**32, 60 - 2**32])},
    ):
        np.savez("bad.npz", **{**known, **change})
        kit.fails(3, "bad.npz: ", "info bad.npz")


def hole(path, shape, dtype="<f4"):
    """Write a file that is all holes, and takes no room."""
    head = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, about)
    size = int(np.prod([*shape, np.dtype(dtype).itemsize], dtype=object))
    with Path(path).open("wb") as stream:
        stream.write(head.getvalue())
        try:
            stream.truncate(len(head.getvalue()) + size)
        except OSError:
            pytest.skip("this file system has no such large files")


@pytest.mark.parametrize(
    ("shape", "line"),
    [
        ((60, 2**35), "build big.npy -j 1 -o out.npz"),
        ((60, 2**35), "audit big.npy -o out.csv"),
        ((60, 2**35), "update u.npz --features x.npy --add big.npy -o out.npz"),
        ((60, 2**35), "query x.npy big.npy -o out.npz"),
        ((60, 2**35), "plot g.npz --coords big.npy -o out.svg"),
        ((2**39,), "propagate g.npz --labels big.npy -o out.csv"),
        ((2**39,), "build x.npy --ids big.npy -o out.npz"),
        ((2**39,), "build big.npy -o out.npz"),
    ],
)
def test_n12_files_of_holes_are_refused_before_memory_is_taken(kit, shape, line):
    hole("big.npy", shape, "<f4" if len(shape) == 2 else "<i8")
    done = kit.run(line)
    assert done.code == 3, done.err
    assert_one_line(done.lines[-1], "big.npy: ")
    Path("big.npy").unlink()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("query x.npy wide.npy -o out.npz", "wide.npy: 5 columns, but x.npy has 3"),
        ("query x.npy wide.npy --graph g.npz -o out.npz", "wide.npy: 5 columns"),
        ("query y.npy x.npy --graph g.npz -o out.npz", "y.npy: not what the graph"),
        ("classify x.npy --labels labels.csv --test wide.npy", "5 columns, but x.npy"),
        (
            "update u.npz --features x.npy --add wide.npy -o out.npz",
            "wide.npy: 5 columns, but x.npy has 3",
        ),
        (
            "update u.npz --features wide.npy --add y.npy -o out.npz",
            "wide.npy: not what u.npz was built from",
        ),
        (
            "plot g.npz --coords wide.npy -o out.png",
            "5 columns; a picture needs 2 or 3",
        ),
        ("embed x.npy -o out.csv", "such files hold features, not a graph"),
        ("build g.npz -o out.npz", "holds a graph that nnkgraph wrote, not features"),
    ],
)
def test_n13_rows_of_another_width_are_refused_everywhere(kit, line, words):
    kit.fails(2 if line.startswith("embed") else 3, words, line)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "propagate named.npz --labels other.csv -o out.csv",
            "60 ids are not in named",
        ),
        ("propagate g.npz --labels x.npy -o out.csv", "labels are one value per row"),
        ("build x.npy --ids labels.csv -o out.npz", "labels.csv: 61 names for the 60"),
        ("build x.npy --ids some.csv::label -o out.npz", "names of rows must differ"),
        ("classify names.txt --labels x.npy", "names.txt: line 2, column 1 is not a n"),
        ("cluster g.npz --labels short.csv -o out.csv", "10 labels, but g.npz has 60"),
        ("audit x.npy --labels short.csv -o out.csv", "10 labels, but x.npy has 60"),
        ("plot named.npz --coords labels.csv -o out.png", "is not a number: 'a'"),
        ("update named.npz --features x.npy --add y.npy -o out.npz", "names? .*none"),
    ],
)
def test_n14_files_that_are_swapped_are_told_apart(kit, line, words):
    rows = "\n".join(f"z{at},{'ab'[at % 2]}" for at in range(60))
    Path("other.csv").write_text(f"id,label\n{rows}\n")
    Path("short.csv").write_text("label\n" + "a\nb\n" * 5)
    kit.fails(3, words, line)


def test_n15_names_that_are_taken_for_labels_are_doubted(kit):
    done = kit.run("cluster named.npz --labels names.txt -o out.csv")
    assert done.code == 0
    assert "names.txt: no two rows have the same label: are they names?" in done.err
    done = kit.run("cluster named.npz --labels labels.csv -o out.csv")
    assert "are they names?" not in done.err


HUGE = "99999999999999999999"


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (
            "build x.npy -j 1 -o out.npz",
            (
                f"-k={HUGE} -k=-{HUGE} --min-weight=1e999 --min-weight=nan --memory=0 "
                f"--memory=1B --memory=1e30GB --block-timeout=-1 --block-timeout=nan "
                f"--seed={HUGE} --shard=1/{HUGE} --pca={HUGE} --pca=0 --min-recall=2 "
                "--grow=-1 --grow=nan --sigma=1e308 --sigma=5e-324 "
                f"--method=eps:radius=1e999 --kernel=polynomial:degree={HUGE} "
                "--search=partition:recall=nan"
            ),
        ),
        ("cluster g.npz -o out.csv", "--resolution=nan --resolution=-1 --seed=-1"),
        ("embed g.npz -o out.csv", f"--dimensions={HUGE} --dimensions=0"),
        ("classify x.npy --labels labels.csv", f"--cv={HUGE} --cv=1 --cv=-1"),
        ("explain x.npy", f"--node={HUGE} --node=-1 --node=1.5"),
        ("verify x.npy g.npz", "--sample=-1 --sample=0 --sample=x"),
        ("compare x.npy", f"-k={HUGE} -k=1:{HUGE} -k=5:1 -k=1:9:0"),
        ("audit x.npy -o out.csv", f"-k={HUGE} -k=0"),
        (
            "plot g.npz --coords e.csv -o out.svg",
            f"--axes=0,{HUGE} --axes=-1,0 --axes=1",
        ),
    ],
)
def test_n16_numbers_that_cannot_be_are_refused_at_once(kit, command, options):
    for option in options.split():
        name, _, value = option.partition("=")
        done = kit.run(f"{command} -q {name}", value)
        assert done.code in {2, 3, 5}, (option, done.err)
        assert_one_line(done.lines[-1], "nnkgraph: error: ")
        assert "bug" not in done.err, done.err
    assert not list(kit.here.glob("out.*"))
    assert not list(kit.tmp.iterdir())


def test_n17_numbers_that_are_only_large_are_met(kit):
    for option in (f"--min-degree={HUGE}", f"--grow=0.1 --max-k={HUGE}"):
        call = f"build x.npy -j 1 -k 5 -q -o out.npz {option.replace('=', ' ')}"
        assert kit.run(call).code == 0, option
    assert kit.run(f"verify x.npy g.npz --sample {HUGE}").code == 0
    assert kit.run(f"cluster g.npz --resolution {HUGE} -o out.csv").code == 0


@pytest.mark.parametrize(
    "line",
    [
        "build x.npy -o out.npz --report",
        "build x.npy -o out.npz --resume",
        "build x.npy -o out.npz --config",
        "build x.npy -o out.npz --ids",
        "build -o out.npz",
        "build x.npy -o",
        "cluster g.npz -o",
        "propagate g.npz -o out.csv --labels",
        "info",
    ],
)
def test_n18_names_that_are_empty_are_slips_of_scripts(kit, line):
    kit.fails(2, "the name of a file is empty; is a variable of a scr", line, "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5\n5\n", "the row 5 is there twice"),
        ("60\n", "the graph has no row 60"),
        ("-1\n", "the graph has no row -1"),
        ("r1\n", "line 1: 'r1' is no row number"),
        ("1e3\n", "line 1: '1e3' is no row number"),
        ("9" * 5000 + "\n", "gone.txt: "),
        ("\n".join(map(str, range(60))) + "\n", "no row would be left"),
    ],
)
def test_n19_rows_that_cannot_be_removed_are_named(kit, text, words):
    Path("gone.txt").write_text(text)
    line = "update u.npz --features x.npy --remove gone.txt -o u.npz -q"
    kit.fails(3, words, line)


def test_n20_nothing_to_remove_is_no_error(kit):
    Path("none.txt").touch()
    line = "update u.npz --features x.npy --remove none.txt -o out.npz"
    assert kit.run(line).code == 0
    assert formats.read_graph("out.npz").n_nodes == 60


def test_n21_a_graph_of_other_rows_does_not_pass_for_verified(kit):
    for features in ("wide.npy", "y.npy"):
        done = kit.run(f"verify {features} g.npz -q")
        assert done.code == 6
        assert_one_line(done.err, "g.npz: verification failed: features")
