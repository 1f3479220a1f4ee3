"""The command line: mistakes get one line and the right code, results are whole."""

import errno
import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from conftest import PROGRAM, SAMPLES

from nnkgraph.build.graph import build_graph
from nnkgraph.cli import main
from nnkgraph.formats import read_graph
from nnkgraph.runtime import registry


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


MISTAKES = [
    # what is in the folder besides points.npy, the arguments, the code, the words
    ("missing file", {}, "build nope.npy -o g.npz", 3, "nope.npy: no such file"),
    ("text as npy", {"a.npy": "1 2 3\n"}, "build a.npy -o g.npz", 3, "not a npy file"),
    ("ragged csv", {"a.csv": "1,2\n3\n"}, "build a.csv -o g.npz", 3, "line 2"),
    (
        "header row",
        {"a.csv": "x,y\n1,2\n"},
        "build a.csv --no-header -o g.npz",
        3,
        "line 1",
    ),
    (
        "id column",
        {"a.csv": "x,y\nn1,2\nn2,3\n"},
        "build a.csv -o g.npz",
        3,
        "--id-column",
    ),
    ("NaN", {"a.csv": "1,2\n3,nan\n"}, "build a.csv -o g.npz", 3, "line 2, column 2"),
    (
        "wrong delimiter",
        {"a.csv": "1 2\n3 4\n"},
        "build a.csv -o g.npz",
        3,
        "--delimiter",
    ),
    ("empty file", {"a.csv": ""}, "build a.csv -o g.npz", 3, "empty"),
    ("k too large", {}, "build points.npy -o g.npz -k 60", 3, "at most 59"),
    ("k is no number", {}, "build points.npy -o g.npz -k ten", 2, "'ten'"),
    ("k is zero", {}, "build points.npy -o g.npz -k 0", 2, "'-k'"),
    (
        "k is no number at all",
        {},
        "build points.npy -o g.npz -k abc",
        2,
        "'abc' is not a whole number of at least 1 ",
    ),
    (
        "too many digits",
        {},
        "build points.npy -o g.npz --round 16",
        2,
        "'16' is not a whole number from 1 to 15 ",
    ),
    (
        "weight is NaN",
        {},
        "build points.npy -o g.npz --min-weight nan",
        2,
        "'nan' is not a number from 0 to ",
    ),
    (
        "no part of all",
        {},
        "classify points.npy --labels points.npy --test-size 1",
        2,
        "'1' is not a number above 0 and below 1 ",
    ),
    ("no tolerance", {}, "build points.npy -o g.npz --grow 0", 2, "above 0 "),
    ("one dash", {}, "build points.npy -o g.npz -id-column 1", 2, "--id-column?"),
    ("one dash, known letter", {}, "build points.npy -output g", 2, "--output?"),
    ("equals after a letter", {}, "build points.npy -o=g.npz", 2, "write -o g.npz"),
    (
        "misspelled parameter",
        {},
        "build points.npy -o g.npz --kernel gaussian:sgima=3",
        2,
        "there are: sigma; did you mean 'sigma'?",
    ),
    (
        "option as parameter",
        {},
        "build points.npy -o g.npz --method nnk:k=15",
        2,
        "it is an option of its own, -k 15 ",
    ),
    ("no output", {}, "build points.npy", 2, "Missing option '-o'"),
    ("unknown input", {"a.foo": "x"}, "build a.foo -o g.npz", 2, ".npy"),
    ("spreadsheet", {"a.xls": "x"}, "build a.xls -o g.npz", 2, "save it as CSV"),
    (
        "spreadsheet with another name",
        {"a.csv": "PK\3\4\24\0\6\0[Content_Types].xml"},
        "build a.csv -o g.npz",
        3,
        "not a text file: the content looks like a spreadsheet; save it as CSV",
    ),
    (
        "graph as spreadsheet",
        {"g.tsv": "0 1 1\n"},
        "convert g.tsv g.xlsx",
        2,
        "write .csv",
    ),
    (
        "convert's output",
        {"g.tsv": "0\t1\t1\n"},
        "convert g.tsv g.foo",
        2,
        "rename it or name its --from (of the output: --to)",
    ),
    (
        "standard output",
        {"g.tsv": "0\t1\t1\n"},
        "convert g.tsv -",
        2,
        "-: standard output: name its --to\n",
    ),
    (
        "standard output of build",
        {},
        "build - --format csv -o -",
        2,
        (
            "-: standard output: --format csv is the input's; name both, as --format "
            "csv,tsv\n"
        ),
    ),
    (
        "standard input of build",
        {},
        "build - -o g.npz",
        2,
        "-: standard input: name its --format\n",
    ),
    (
        "picture as features",
        {"a.png": "x"},
        "build a.png -o g.npz",
        2,
        "error: a.png: pictures are no features: save numbers, a row each, as .npy or",
    ),
    (
        "picture as graph",
        {"a.png": "x"},
        "info a.png",
        2,
        "are no graphs; nnkgraph plo",
    ),
    (
        "graph as picture",
        {},
        "build points.npy -o a.png",
        2,
        "no graphs; nnkgraph plot",
    ),
    (
        "no command",
        {},
        "nothing",
        2,
        "error: no such command 'nothing' (see nnkgraph --help)\n",
    ),
    (
        "option of build",
        {},
        "report g.npz -o r.html --scale standard",
        2,
        (
            "error: report: --scale is for build: the graph holds what it was built "
            "with; leave it out (see nnkgraph report --help)\n"
        ),
    ),
    ("option of build, short", {}, "info g.npz -k 5", 2, "-k is for build: the graph"),
    ("option of nothing", {}, "info g.npz --skale 5", 2, "No such option '--skale' ("),
    (
        "convert's input by its content",
        {"g.npz": "<graphml>"},
        "convert g.npz h.npz",
        3,
        "name its --from (of the output: --to), graphml",
    ),
    (
        "table as graph",
        {"a.csv": "id,x,y,z\na,1,2,3\n"},
        "info a.csv",
        3,
        "looks like a table of features, and build makes",
    ),
    (
        "table of another separator as graph",
        {"a.csv": "id;x;y;z\na;1;2;3\n"},
        "info a.csv",
        3,
        "looks like a table of features, and build makes",
    ),
    (
        "narrow table as graph",
        {"a.csv": "id,x,y\na,1,2\n"},
        "info a.csv",
        3,
        "weight 'y' is not a number; a header begins with source and target, and build",
    ),
    (
        "one colon",
        {"g.tsv": "0\t1\t1\n", "a.csv": "x,y\n1,2\n"},
        "convert g.tsv g.gexf --labels a.csv:y",
        3,
        "no such file; an item is named with two colons: a.csv::y",
    ),
    (
        "near name",
        {"customers.csv": "x,y\n1,2\n"},
        "build ./customer.csv -o g.npz",
        3,
        "./customer.csv: no such file; did you mean ./customers.csv?",
    ),
    (
        "item of a near name",
        {"g.tsv": "0\t1\t1\n", "customers.csv": "x,y\n1,2\n"},
        "convert g.tsv g.gexf --labels customer.csv::y",
        3,
        "no such file; did you mean customers.csv?",
    ),
    (
        "blank between columns",
        {"a.csv": "x,y\n1,2\n"},
        "build a.csv --drop x y -o g.npz",
        3,
        "y: no such file; several columns of an option have commas",
    ),
    ("option cut short", {}, "plot g.npz --label x", 2, "Did you mean '--labels'? ("),
    ("word cut short", {}, "plot g.npz --what degre", 2, "did you mean 'degrees'?"),
    (
        "classes for a table",
        {"g.tsv": "0 1 1\n"},
        "convert g.tsv h.csv --labels y.csv",
        2,
        "h.csv: this format has no room for classes",
    ),
    (
        "a table's options without one",
        {"g.tsv": "0 1 1\n"},
        "convert g.tsv h.gexf --id-column id",
        2,
        "are for --labels",
    ),
    ("unknown output", {}, "build points.npy -o g.gml2", 2, ".graphml"),
    ("no directory", {}, "build points.npy -o no/where/g.npz", 4, "no/where"),
    ("output is input", {}, "build points.npy -o points.npy", 2, "points.npy"),
    ("directory as input", {}, "build . -o g.npz", 3, "directory"),
    ("unknown command", {}, "biuld points.npy -o g.npz", 2, "did you mean 'build'"),
    ("unknown option", {}, "build points.npy -o g.npz --kk 3", 2, "--kk"),
    ("unknown method", {}, "build points.npy -o g.npz --method nkn", 2, "nnk"),
    (
        "bad parameter",
        {},
        "build points.npy -o g.npz --method nnk:x=1",
        2,
        "no parameter",
    ),
    (
        "parameter is no number",
        {},
        "build points.npy -o g.npz --method l1:eta=x",
        2,
        "'eta'",
    ),
    (
        "negative radius",
        {},
        "build points.npy -o g.npz --method eps:radius=-1",
        2,
        "radius",
    ),
    ("unknown kernel", {}, "build points.npy -o g.npz --kernel gauss", 2, "gaussian"),
    (
        "no similarities",
        {},
        "build points.npy -o g.npz --kernel precomputed",
        3,
        "60 x 3",
    ),
    (
        "no distances",
        {},
        "build points.npy -o g.npz --kernel linear --method kstar",
        2,
        "distances",
    ),
    (
        "query columns",
        {"a.csv": "1,2\n"},
        "query points.npy a.csv -o q.npz",
        3,
        "2 col",
    ),
    ("bad sigma", {}, "build points.npy -o g.npz --sigma 0", 2, "'--sigma'"),
    ("bad workers", {}, "build points.npy -o g.npz -j 0", 2, "'-j'"),
    ("bad seed", {}, "build points.npy -o g.npz --seed -1", 2, "'--seed'"),
    (
        "rule needs errors",
        {},
        "build points.npy -o g.npz --method knn --symmetrize error",
        2,
        "max, mean",
    ),
    (
        "sigma without use",
        {},
        "build points.npy -o g.npz --kernel cosine --sigma 1",
        2,
        "no bandwidth",
    ),
    (
        "many inputs, one output",
        {"b.csv": "1,2\n"},
        "build points.npy b.csv -o g.npz",
        2,
        "{name}",
    ),
    ("graph is no graph", {"g.npz": "hello"}, "info g.npz", 3, "g.npz"),
    ("features as graph", {}, "info points.npy", 2, "build makes a graph"),
    ("stdin without format", {}, "build - -o g.npz", 2, "format"),
    ("candidates as csv", {}, "search points.npy -o knn.csv", 2, ".npz"),
    (
        "no such picture",
        {},
        "plot points.npy --coords points.npy -o a.png",
        2,
        "points.npy",
    ),
]


@pytest.mark.parametrize(
    ("files", "call", "code", "words"),
    [m[1:] for m in MISTAKES],
    ids=[m[0] for m in MISTAKES],
)
def test_mistakes_exit_with_one_line_and_no_file(
    run, points, tmp_path, monkeypatch, files, call, code, words
):
    for name, text in files.items():
        write(tmp_path / name, text)
    monkeypatch.chdir(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    result = run(*call.split())
    assert result.code == code, result.err
    assert len(result.lines) == 1, result.err
    assert result.lines[0].startswith("nnkgraph: error: ")
    assert words in result.err
    assert not result.out
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


DRY_MISTAKES = [
    ("-k 60", 3),
    ("--method knn --symmetrize error", 2),
    ("--kernel cosine --sigma 3", 2),
    ("--kernel gaussian:sigma=3 --sigma 2", 2),
    ("--executor processes:start=fork", 2),
    ("--search precomputed:path=nope.npz", 3),
    ("--sigma 1e-200", 2),
    ("--sigma 1e200", 2),
]


@pytest.mark.parametrize(("call", "code"), DRY_MISTAKES)
def test_a_dry_run_finds_the_mistakes_of_a_real_one(run, points, tmp_path, call, code):
    for extra in (["--dry-run"], []):
        result = run("build", points, "-o", tmp_path / "g.npz", *call.split(), *extra)
        assert result.code == code, result.err
        assert len(result.lines) == 1
    assert not (tmp_path / "g.npz").exists()


def test_e10_no_input_of_any_kind_is_overwritten(run, points, tmp_path):
    knn = tmp_path / "knn.npz"
    assert run("search", points, "-o", knn, "-k", 9).code == 0
    before = knn.read_bytes()
    search = ["--search", f"precomputed:path={knn}", "-k", 9]
    graph = tmp_path / "g.npz"
    assert run("build", points, "-o", knn, *search).code == 2
    assert run("build", points, "-o", graph, "--report", knn, *search).code == 2
    assert run("build", points, "-o", graph, "--report", graph).code == 2
    assert run("build", points, "-o", graph, "--report", points).code == 2
    assert run("build", points, "-o", "-", "--report", "-", "--format", "tsv").code == 2
    assert knn.read_bytes() == before
    assert not graph.exists()


def test_e01_no_clobber_protects_graph_and_report(run, points, tmp_path):
    for name in ("g.npz", "r.json"):
        write(tmp_path / name, "precious")
        other = {"g.npz": "h.npz", "r.json": "s.json"}
        graph = tmp_path / ("g.npz" if name == "g.npz" else other["g.npz"])
        report = tmp_path / ("r.json" if name == "r.json" else other["r.json"])
        result = run("build", points, "-o", graph, "--report", report, "--no-clobber")
        assert result.code == 4
        assert (tmp_path / name).read_text() == "precious"


def test_without_arguments_there_is_help(run):
    result = run()
    assert result.code == 0
    assert "Commands:" in result.out
    assert not result.err


def test_one_format_belongs_to_the_side_that_needs_it(run, points, tmp_path, program):
    odd = tmp_path / "graph.out"
    assert run("build", points, "-o", odd, "--format", "tsv").code == 0
    assert odd.read_text().startswith("# nnkgraph")
    data = tmp_path / "data.dat"
    data.write_bytes(points.read_bytes())
    assert run("build", data, "-o", tmp_path / "g.npz", "--format", "npy").code == 0
    assert run("build", data, "-o", odd, "--format", "npy,tsv").code == 0
    found = program("search", points, "-o", "-", "--format", "npz")
    assert found.code == 0, found.err
    assert found.out.startswith("PK")


def test_environment_variables_have_the_names_of_the_options(inside, points, tmp_path):
    inside("build", points, "-o", "g.npz")
    shown = inside("info", "g.npz", env={"NNKGRAPH_INFO_JSON": "1"})
    assert json.loads(shown.out)["nodes"] == 60
    env = {"NNKGRAPH_BUILD_FORMAT": "tsv"}
    assert inside("build", points, "-o", "-", "-q", env=env).out.startswith("# nnk")
    env = {"NNKGRAPH_WORKERS": "zz", "NNKGRAPH_BUILD_WORKERS": "1"}
    assert inside("build", points, "-o", "g.npz", env=env).code == 0
    result = inside("build", points, "-o", "g.npz", env={"NNKGRAPH_WORKERS": "zz"})
    assert result.code == 2
    assert "NNKGRAPH_WORKERS" in result.err


def test_b07_a_million_workers_are_a_few_with_a_warning(run, points, tmp_path):
    result = run("build", points, "-o", tmp_path / "g.npz", "-j", 1_000_000, "-q")
    assert result.code == 0
    assert "instead of 1000000" in result.err


def test_g04_too_few_open_files_are_exit_5(points, tmp_path):
    command = f"ulimit -n 20; exec {PROGRAM} build {points} -o {tmp_path}/g.npz -j 4"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 5, done.stderr
    assert done.stderr.splitlines()[-1].startswith("nnkgraph: error: ")
    assert not (tmp_path / "g.npz").exists()


def test_a12_integers_that_do_not_fit_are_warned_of(run, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(40).reshape(20, 2) + 2**60)
    result = run("build", tmp_path / "x.npy", "-o", tmp_path / "g.npz", "-q")
    assert "nnkgraph: warning" in result.err
    assert "2**53" in result.err


def test_b10_a_bad_environment_variable_is_named(inside, points):
    env = {"NNKGRAPH_BUILD_K": "zz"}
    result = inside("build", points, "-o", "g.npz", env=env)
    assert result.code == 2
    assert "NNKGRAPH_BUILD_K" in result.err
    assert len(result.lines) == 1


def test_b14_help_works_with_a_broken_environment(inside):
    result = inside(
        "build", "--help", env={"NNKGRAPH_BUILD_K": "zz", "NNKGRAPH_WORKERS": "x"}
    )
    assert result.code == 0
    assert "Examples:" in result.out


def test_environment_variables_set_options(inside, points, tmp_path):
    env = {"NNKGRAPH_BUILD_K": "4", "NNKGRAPH_WORKERS": "1"}
    result = inside("build", points, "-o", "g.npz", env=env)
    assert result.code == 0
    assert "k 4," in result.err
    assert (
        inside("build", points, "-o", "g.npz", "-k", 5, env=env).err.count("k 5,") == 1
    )


def test_a_build_says_what_it_did_and_keeps_stdout_empty(run, points, tmp_path):
    target = tmp_path / "g.npz"
    result = run("build", points, "-o", target)
    assert result.code == 0
    assert not result.out
    assert "60 nodes" in result.err
    assert "certificate" in result.err
    assert scipy.sparse.load_npz(target).shape == (60, 60)
    assert read_graph(target).provenance["k"] == 30


def test_compiling_is_announced_once_also_in_a_log(capsys, monkeypatch):
    import numba

    from nnkgraph.cli import talk
    from nnkgraph.cli.progress import Progress
    from nnkgraph.runtime import compiling

    def said():
        talk.reset(0)
        with Progress()("start"):
            numba.njit(lambda x: x + 1)(1)
        return capsys.readouterr().err

    monkeypatch.setattr(compiling.listener, "told", False)
    assert said() == "compiling what runs for the first time: some seconds\n"
    assert not said()


def test_quiet_says_nothing_and_verbose_more(run, points, tmp_path):
    target = tmp_path / "g.npz"
    assert not run("build", points, "-o", target, "-q").err
    assert "symmetrize" in run("build", points, "-o", target, "-v").err


def test_the_report_has_every_field_that_scripts_rely_on(run, points, tmp_path):
    result = run(
        "build", points, "-o", tmp_path / "g.npz", "--report", tmp_path / "r.json"
    )
    assert result.code == 0, result.err
    report = json.loads((tmp_path / "r.json").read_text())
    for field in [
        "schema",
        "nodes",
        "edges",
        "edges_per_node",
        "components",
        "isolated",
        "k",
        "method",
        "kernel",
        "sigma",
        "rule",
        "duplicates",
        "candidates_grown",
        "certificate",
        "error",
        "search",
        "workers",
        "timings",
        "peak_memory_bytes",
        "seed",
        "versions",
        "input",
        "command",
    ]:
        assert field in report, field
    assert report["schema"] == 1
    assert set(report["timings"]) == {
        "start",
        "read",
        "search",
        "solve",
        "symmetrize",
        "write",
        "total",
    }
    parts = sum(v for name, v in report["timings"].items() if name != "total")
    assert parts <= report["timings"]["total"]
    assert report["peak_memory_bytes"] > 10e6
    assert set(report["certificate"]) >= {"kkt_max", "kkt_mean", "nodes_failed"}
    facts = {"backend", "recall", "recall_interval", "threads"}
    assert set(report["search"]) == facts
    assert set(report["input"]) == {"name", "shape", "dtype", "sha256"}


def test_e18_the_report_goes_to_stdout_where_asked(run, points, tmp_path):
    result = run("build", points, "-o", tmp_path / "g.npz", "--report", "-", "-q")
    assert json.loads(result.out, parse_constant=pytest.fail)["nodes"] == 60
    assert not result.err


def test_a_dry_run_checks_everything_and_writes_nothing(run, points, tmp_path):
    target = tmp_path / "g.npz"
    result = run("build", points, "-o", target, "--dry-run")
    assert result.code == 0
    assert "60 x 3" in result.err
    assert not target.exists()
    assert run("build", points, "-o", tmp_path / "no" / "g.npz", "--dry-run").code == 4


def test_several_inputs_share_a_call_and_a_bad_one_does_not_stop_the_others(
    run, tmp_path
):
    rng = np.random.default_rng(0)
    for name in "abc":
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(40, 3)))
    write(tmp_path / "b.npy", "no array")
    (tmp_path / "out").mkdir()
    inputs = [tmp_path / f"{name}.npy" for name in "abc"]
    result = run("build", *inputs, "-o", tmp_path / "out" / "{name}.npz", "-q")
    assert result.code == 3
    assert len(result.lines) == 1
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["a.npz", "c.npz"]


def test_inputs_that_would_share_a_target_are_refused(run, tmp_path):
    for folder in "ab":
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "x.npy", np.eye(4))
    inputs = [tmp_path / folder / "x.npy" for folder in "ab"]
    result = run("build", *inputs, "-o", tmp_path / "{name}.npz")
    assert result.code == 2
    assert "both" in result.err


def test_c18_a_missed_certificate_is_exit_6_after_writing(
    run, points, tmp_path, monkeypatch
):
    from nnkgraph.methods import qp

    regress = qp.regress

    def wrong(*args, **options):
        theta, certificate, *others = regress(*args, **options)
        certificate[3:5] = 1e-6
        return theta, certificate, *others

    monkeypatch.setattr(qp, "regress", wrong)
    target = tmp_path / "g.npz"
    options = ("--report", tmp_path / "r.json", "-q", "-j", 1)  # one block
    result = run("build", points, "-o", target, *options)
    assert result.code == 6
    assert "2 nodes miss the certificate" in result.err
    assert ": 3, 4;" in result.err
    assert read_graph(target).provenance["nodes_failed"] == 2
    assert (
        json.loads((tmp_path / "r.json").read_text())["certificate"]["nodes_failed"]
        == 2
    )


def test_a_worker_error_or_bug_is_one_line_that_asks_for_a_report(
    run, points, tmp_path, monkeypatch
):
    from nnkgraph.methods import qp

    def broken(*args, **options):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(qp, "regress", broken)
    result = run("build", points, "-o", tmp_path / "g.npz", "-q")
    assert result.code == 1
    assert len(result.lines) == 1
    assert "please report" in result.err
    assert not (tmp_path / "g.npz").exists()
    assert "Traceback" in run("build", points, "-o", tmp_path / "g.npz", "-vv").err


def test_searching_first_gives_the_same_graph(run, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (300, 4)).astype(float)  # many copies, many ties
    np.save(tmp_path / "x.npy", x)
    for duplicates in ("merge", "keep"):
        options = ["-k", 12, "--duplicates", duplicates]
        assert (
            run("search", tmp_path / "x.npy", "-o", tmp_path / "knn.h5", *options).code
            == 0
        )
        graph = build_graph(x, k=12, duplicates=duplicates)
        other = build_graph(
            x, k=12, duplicates=duplicates, search=f"precomputed:path={tmp_path}/knn.h5"
        )
        assert np.array_equal(graph.adjacency.toarray(), other.adjacency.toarray())
        assert graph.report["sigma"] == other.report["sigma"]


def test_info_describes_every_format(run, points, tmp_path):
    run("build", points, "-o", tmp_path / "g.npz")
    plain = json.loads(run("info", tmp_path / "g.npz", "--json").out)
    for ending in ("tsv", "csv", "edgelist", "graphml", "mtx", "tsv.gz"):
        target = tmp_path / f"g.{ending}"
        assert run("convert", tmp_path / "g.npz", target).code == 0
        assert json.loads(run("info", target, "--json").out) == plain
    assert "components" in run("info", tmp_path / "g.npz").out


def test_list_names_everything(run):
    out = run("list").out
    for folder in ("methods", "kernels", "search", "executors", "formats"):
        for name in registry.names(folder):
            assert f"  {name} " in out
    listed = json.loads(run("list", "kernels", "--json").out)["kernels"]
    assert {"gaussian", "precomputed"} <= {kernel["name"] for kernel in listed}
    assert run("list", "kernel").out == run("list", "kernels").out
    assert run("list", "searches").out == run("list", "search").out


def test_every_command_has_help_with_examples(run):
    for name in registry.names("cli/commands"):
        result = run(name, "--help")
        assert result.code == 0
        assert "Examples:" in result.out
        assert f"nnkgraph {name}" in result.out.split("Examples:")[1]


def test_a_picture_is_drawn(run, points, tmp_path):
    run("build", points, "-o", tmp_path / "g.npz", "-k", 8)
    for ending, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        target = tmp_path / f"g.{ending}"
        result = run(
            "plot",
            tmp_path / "g.npz",
            "--coords",
            points,
            "--beside",
            tmp_path / "g.npz",
            "-o",
            target,
        )
        assert result.code == 0, result.err
        assert target.read_bytes().startswith(magic)
    assert (
        run(
            "plot", tmp_path / "g.npz", "--coords", points, "-o", tmp_path / "g.bmp2"
        ).code
        == 2
    )
    few = tmp_path / "few.npy"
    np.save(few, np.zeros((5, 2)))
    assert run("plot", tmp_path / "g.npz", "--coords", few, "-o", target).code == 3


def test_e07_a_closed_pipe_is_silent(points):
    command = f"{PROGRAM} build {points} -o - --format tsv -q | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("# nnkgraph")
    assert not done.stderr
    assert done.returncode in {0, 141}  # small outputs fit into the pipe


def test_e07_a_large_output_into_a_closed_pipe_ends_with_141(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(4000, 3)))
    command = f"{PROGRAM} build {tmp_path}/x.npy -o - --format tsv -q | true"
    done = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 141
    assert not done.stderr


def test_a34_standard_input_is_read(program, points):
    result = program(
        "build", "-", "-o", "g.npz", "--format", "npy", input_=points.read_bytes()
    )
    assert result.code == 0, result.err
    result = program(
        "build", "-", "-o", "-", "--format", "npy,tsv", "-q", input_=points.read_bytes()
    )
    assert result.code == 0, result.err
    assert result.out.startswith("# nnkgraph graph")
    assert program("build", "-", "-o", "g.npz", "--format", "npy", input_=b"").code == 3


def test_a36_strange_names_work(inside, points, tmp_path):
    for name in ("a b.npy", "ünïcode.npy", "-dash.npy", "new\nline.npy", "a,b=c.npy"):
        (tmp_path / name).write_bytes(points.read_bytes())
        result = inside("build", "-o", "g.npz", "-q", "--", name)
        assert result.code == 0, result.err


def test_h12_terminal_escapes_in_names_are_shown_not_sent(inside):
    result = inside("build", "\x1b[31mred.npy", "-o", "g.npz")
    assert result.code == 3
    assert "\x1b" not in result.err


def test_h08_modules_in_the_working_directory_are_not_imported(
    program, points, tmp_path
):
    for name in ("numpy.py", "csv.py", "click.py"):
        write(tmp_path / name, "raise SystemExit('imported')")
    assert program("build", points, "-o", "g.npz").code == 0


@pytest.mark.parametrize(
    "env",
    [{"LC_ALL": "C"}, {"TERM": "dumb"}, {"COLUMNS": "1"}, {"HOME": "/nonexistent"}],
)
def test_b15_f08_the_surroundings_do_not_matter(program, points, tmp_path, env):
    assert program("build", points, "-o", "plain.tsv").code == 0
    assert program("build", points, "-o", "other.tsv", env=env).code == 0
    assert (tmp_path / "plain.tsv").read_bytes() == (
        tmp_path / "other.tsv"
    ).read_bytes()


@pytest.mark.parametrize("resume", [False, True])
def test_d10_ctrl_c_is_one_line_and_130(tmp_path, resume):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(90_000, 20)))
    slow = ["--search", "exact", "-j", "1"]
    slow += ["--resume", tmp_path / "kept"] * resume
    job = subprocess.Popen(
        [PROGRAM, "build", tmp_path / "x.npy", "-o", tmp_path / "g.npz", *slow],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert job.stderr.readline().startswith("search: ")  # a tenth is done
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=20)
    assert job.returncode == 130
    more = f"; the same line goes on from what is in {tmp_path / 'kept'}" * resume
    assert err.splitlines()[-1] == f"nnkgraph: error: interrupted{more}"
    left = {p.name for p in tmp_path.iterdir()}
    assert left == {"x.npy", *["kept"] * resume}


def test_d09_a_signal_counts_where_other_errors_follow_it(program, points, tmp_path):
    (tmp_path / "own.py").write_text(
        "import os, signal, time\n"
        "def kernel(a, b):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(5)\n"
        "    finally:\n"
        "        raise RuntimeError('no compiled object yet')\n"
    )
    done = program("build", points, "-o", "g.npz", "--kernel", "own:kernel", "-j", "1")
    assert done.code == 143
    assert done.lines == ["nnkgraph: error: stopped by SIGTERM"]


def test_python_m_nnkgraph_works(tmp_path):
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "nnkgraph", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("nnkgraph, version")


def test_every_sample_gives_equal_graphs_in_every_format(run, tmp_path):
    samples = {
        "roll": [SAMPLES / "swiss_roll.npy"],
        "moons": [SAMPLES / "two_moons.csv", "--id-column", "id"],
        "digits": [f"{SAMPLES}/digits.h5::features"],
    }
    for name, args in samples.items():
        graphs = []
        for ending in ("npz", "tsv", "csv.gz", "edgelist", "graphml", "mtx"):
            target = tmp_path / f"{name}.{ending}"
            assert run("build", *args, "-o", target, "-q").code == 0
            graphs.append(read_graph(target))
        for other in graphs[1:]:
            assert np.array_equal(graphs[0].adjacency.indptr, other.adjacency.indptr)
            assert np.array_equal(graphs[0].adjacency.indices, other.adjacency.indices)
            assert np.array_equal(graphs[0].adjacency.data, other.adjacency.data)
            assert graphs[0].ids == other.ids
            assert np.array_equal(graphs[0].errors, other.errors)
            assert graphs[0].provenance == other.provenance


def test_run_returns_codes_without_ending_the_process():
    assert main.run(["--version"]) == 0


def test_convert_writes_classes_and_names_the_file_beside(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "y.csv", "name;kind\nb;two\na;one\n")
    write(tmp_path / "g.tsv", "a\tb\t0.5\nb\tc\t0.25\n")
    call = ("convert", "g.tsv", "g.gexf", "--labels", "y.csv::kind")
    result = run(*call, "--id-column", "name", "--delimiter", ";")
    assert result.code == 0, result.err
    nodes = Path("g.gexf").read_text().split("<node ")[1:]
    kinds = [
        node.partition('for="class" value="')[2].partition('"')[0] for node in nodes
    ]
    assert kinds == ["one", "two", ""]
    assert ".nnk.npz" not in result.err
    x = np.vstack([np.eye(3), np.eye(3) + 50, np.eye(3) - 50])
    np.save("x.npy", x)
    result = run("build", "x.npy", "-k", "2", "--connect", "mst", "-o", "h.gexf")
    assert "h.gexf.nnk.npz: what h.gexf has no room for" in result.err
    result = run("convert", "h.gexf", "h.tsv")
    assert "h.tsv.nnk.npz: what h.tsv has no room for" in result.err
    assert "nnk.npz" not in run("convert", "h.gexf", "h.npz").err


@pytest.mark.parametrize(
    ("number", "code"),
    [(one, 5) for one in ("ENOSPC", "ENOMEM", "EMFILE", "ENFILE", "EAGAIN")]
    + [("EIO", 1)],
)
def test_what_the_system_lacks_is_no_bug(
    run, points, tmp_path, monkeypatch, number, code
):
    def lacking(_process):
        raise OSError(getattr(errno, number), "alas")

    monkeypatch.setattr(os, "sched_getaffinity", lacking)
    result = run("build", points, "-o", tmp_path / "g.npz")
    assert result.code == code
    assert "alas" in result.lines[-1]
    assert ("bug" in result.lines[-1]) == (code == 1)
