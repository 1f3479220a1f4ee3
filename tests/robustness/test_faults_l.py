"""Surroundings: standard files, environment, locale, limits and clocks."""

import itertools
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from faults import Case, assert_one_line, content, told

BUILD = ("build", "x.npy", "-k", 5, "-o", "out.npz")


def same(kit):
    """Whether the graph that was built is the one it should be."""
    return Path("out.npz").read_bytes() == Path("g.npz").read_bytes()


@pytest.mark.parametrize("closed", ["1>&- 2>&-", "0<&- 1>&- 2>&-"])
def test_l01_standard_files_may_be_closed(kit, closed):
    before = ("sh", "-c", f'exec "$@" {closed}', "sh")
    done = kit.case.run(*BUILD, "-j", 2, before=before)
    assert done.code == 0
    assert same(kit)


def test_l02_what_is_asked_for_needs_a_place_to_be_printed(kit):
    before = ("sh", "-c", 'exec "$@" 1>&-', "sh")
    for call in ("info g.npz", "info g.npz --json", "cluster g.npz -o -", "--help"):
        kit.case.fails(4, "standard output is closed", *call.split(), before=before)


@pytest.mark.linux
def test_l03_messages_that_cannot_be_written_change_nothing(kit):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        assert kit.case.run(*BUILD, "-j", 1, "-v", stderr=full).code == 0
        assert same(kit)
        assert kit.case.run("info", "nope.npz", stderr=full).code == 3
        assert kit.case.run("build", "-k", "x", stderr=full).code == 2


def test_l04_messages_that_nobody_reads_end_a_run_in_silence(kit):
    ours, theirs = os.pipe()
    os.close(ours)
    done = kit.case.run(*BUILD, "-j", 1, stderr=theirs)
    os.close(theirs)
    assert done.code == 141
    assert not Path("out.npz").exists()
    assert not content(kit.tmp)


@pytest.mark.parametrize(
    "call", ["info g.npz", "doctor x.npy", "explain x.npy --node 3", "build --help"]
)
def test_l05_a_terminal_may_be_one_column_wide(kit, monkeypatch, call):
    monkeypatch.setenv("COLUMNS", "1")
    monkeypatch.setenv("LINES", "1")
    narrow = kit.run(call)
    assert narrow.code == 0, narrow.err
    monkeypatch.setenv("COLUMNS", "80")
    assert len(narrow.out.split()) >= len(kit.run(call).out.split())


def test_l06_without_unicode_names_are_still_names(kit):
    """The C locale, where neither Python nor the user made anything else of it."""
    Path("é日.npy").write_bytes(Path("x.npy").read_bytes())
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    call = ("build", "é日.npy", "-k", 5, "-j", 1, "-o", "ü.npz", "--report", "r.json")
    done = kit.case.run(*call, env=plain)
    assert done.code == 0, done.err
    assert done.err.isascii()
    assert Path("ü.npz").read_bytes() == Path("g.npz").read_bytes()
    assert "xb" not in json.loads(Path("r.json").read_text())["input"]["name"]
    kit.case.fails(3, "no such file", "info", "ö.npz", env=plain)


def test_l07_python_without_docstrings_and_asserts_builds_the_same(kit):
    bare = {"PYTHONOPTIMIZE": "2"}
    done = kit.case.run(*BUILD, "-j", 1, env=bare)
    assert done.code == 0, done.err
    assert same(kit)
    done = kit.case.run("list", "methods", env=bare)
    assert done.code == 0
    assert "Aew(" not in done.out  # what Python makes up


@pytest.mark.parametrize("mask", [0o077, 0o777])
def test_l08_the_umask_closes_every_file(kit, mask):
    call = (*BUILD[:-1], "out.tsv", "-j", 1, "-q", "--resume", "ck")
    done = kit.case.run(*call, "--report", "r.json", umask=mask & 0o077)
    assert done.code == 0, done.err
    if mask == 0o777:  # an odd wish, and one that can be met
        done = kit.case.run(*BUILD, "-j", 1, "-q", umask=mask)
        assert done.code == 0, done.err
        assert Path("out.npz").stat().st_mode & 0o777 == 0
    for name in ("out.tsv", "out.tsv.nnk.npz", "r.json"):
        assert Path(name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "call",
    [
        "build x.npy -k 5 -j 1 -o out.npz",
        "cluster g.npz -o out.csv",
        "update u.npz --features x.npy --add y.npy -o out.npz",
        "report g.npz -o out.html",
    ],
)
def test_l09_sixteen_open_files_are_enough(kit, call):
    limits = {resource.RLIMIT_NOFILE: 16}
    done = kit.case.run(*call.split(), "-q", limits=limits)
    assert done.code == 0, done.err


FEW_FILES = """
import resource, sys
import numpy
from nnkgraph.cli import main
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
sys.exit(main.run(sys.argv[1:]))
"""


def test_l10_too_few_open_files_are_no_fault_of_a_file(kit):
    # Python itself needs some to start, and how many depends on what is installed.
    call = [sys.executable, "-c", FEW_FILES, *map(str, BUILD), "-j", "1", "-q"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 5, done.stderr
    assert_one_line(done.stderr, "[Tt]oo many open files")
    assert not Path("out.npz").exists()


@pytest.mark.parametrize(
    "command", ["build x.npy -o out.npz", "cluster g.npz -o c.csv"]
)
def test_l11_too_little_address_space_is_refused_at_once(kit, command):
    limits = {resource.RLIMIT_AS: 400 << 20}
    kit.case.fails(5, r"address space \(ulimit -v\)", *command.split(), limits=limits)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NUMBA_DISABLE_JIT", "1"),
        ("NUMBA_NUM_THREADS", "0"),
        ("NUMBA_CPU_FEATURES", "avx2"),
        ("NNKGRAPH_CPU", "z80"),
    ],
)
def test_l12_settings_of_the_compiler_that_cannot_be_are_named(kit, name, value):
    kit.case.fails(2, name[:6], *BUILD, "-j", 1, "-q", env={name: value})
    assert kit.case.run("--help", env={name: value}).code == 0


@pytest.mark.parametrize("value", ["-5", "never"])
def test_l13_no_date_gets_into_a_file(kit, value):
    env = {"SOURCE_DATE_EPOCH": value}
    done = kit.case.run(*BUILD, "-j", 1, "-q", env=env)
    assert done.code == 0, done.err
    assert same(kit)
    if value == "never":
        call = ("plot", "g.npz", "--coords", "e.csv", "-o")
        assert kit.run(" ".join(call), "a.pdf").code == 0
        assert kit.case.run(*call, "b.pdf", env=env).code == 0
        assert Path("a.pdf").read_bytes() == Path("b.pdf").read_bytes()


@pytest.mark.parametrize("year", [1901, 1970, 2099])
def test_l14_files_may_be_of_any_time(kit, year):
    seconds = int(np.datetime64(f"{year}-01-01", "s").astype(int))
    for name in ("x.npy", "u.npz", "y.npy", "g.npz"):
        os.utime(name, (seconds, seconds))
    assert kit.run("build x.npy -k 5 -j 1 -o out.npz").code == 0
    assert same(kit)
    for _ in range(2):  # the second time, that was done already
        assert kit.run("update u.npz --features x.npy --add y.npy -o u.npz").code == 0
    assert kit.run("verify x.npy g.npz").code == 0


CLOCK = """
import itertools, time
real, count = time.time, itertools.count(1)
time.time = lambda: real() - 86400 * 365 * next(count)
from nnkgraph.__main__ import main
main()
"""


def test_l15_a_clock_may_step_back_during_a_run(kit):
    back = Case(kit.here, kit.tmp, (sys.executable, "-c", CLOCK))
    done = back.run(*BUILD, "-j", 2, "-q", "--report", "r.json", "--resume", "ck")
    assert done.code == 0, done.err
    assert same(kit)
    times = json.loads(Path("r.json").read_text())["timings"]
    assert all(0 <= one < 3600 for one in times.values())
    assert not content(kit.tmp)


def test_l16_matplotlib_that_cannot_start_is_said(kit):
    call = ("plot", "g.npz", "--coords", "e.csv", "-o", "out.png", "-q")
    words = "matplotlib cannot start: .*MPLBACKEND"
    kit.case.fails(2, words, *call, env={"MPLBACKEND": "crayon"})


def test_l17_warnings_of_libraries_are_no_errors(kit):
    env = {"PYTHONWARNINGS": "error"}
    done = kit.case.run(*BUILD, "-j", 1, "-q", env=env)
    assert done.code == 0, done.err
    assert not told(done.err)
    assert same(kit)


def test_l18_processors_that_are_only_claimed_are_not_waited_for(kit):
    claims = {"SLURM_CPUS_PER_TASK": "100000", "PBS_NCPUS": "9" * 30}
    done = kit.case.run(*BUILD, "-q", "--report", "-", env=claims)
    assert done.code == 0, done.err
    assert json.loads(done.out)["workers"] <= max(32, 4 * os.cpu_count())
    assert same(kit)


def test_l19_an_environment_may_be_empty(kit):
    """As of cron and of some schedulers: no PATH, no HOME, no locale."""
    keep = ("NUMBA_CACHE_DIR", "TMPDIR", "COVERAGE_PROCESS_CONFIG")
    env = {name: os.environ[name] for name in keep if name in os.environ}
    done = subprocess.run(
        [kit.program, *map(str, BUILD), "-j", "2", "-q"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert same(kit)


def test_l20_options_from_the_environment_are_named(kit, monkeypatch):
    bad = {
        "NNKGRAPH_CONFIG": ("nope.toml", "nope.toml: cannot be read"),
        "NNKGRAPH_BUILD_SIGMA": ("-1", "NNKGRAPH_BUILD_SIGMA"),
        "NNKGRAPH_BUILD_REPORT": ("nowhere/r.json", "there is no directory"),
        "NNKGRAPH_WORKERS": ("-3", "NNKGRAPH_WORKERS"),
        "NNKGRAPH_BUILD_NO_CLOBBER": ("perhaps", "NNKGRAPH_BUILD_NO_CLOBBER"),
    }
    for name, (value, words) in bad.items():
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            code = 4 if "directory" in words else 2
            kit.fails(code, words, "build x.npy -k 5 -q -o out.npz")
    for ending, what in itertools.product(("dir", "loop"), ("NNKGRAPH_CONFIG",)):
        place = Path(f"c.{ending}")
        place.mkdir() if ending == "dir" else place.symlink_to(place)
        with monkeypatch.context() as patch:
            patch.setenv(what, str(place))
            kit.fails(2, f"{place}: cannot be read", "build x.npy -q -o out.npz")


def test_l21_broken_pipes_are_silent_in_every_command(kit):
    for call in ("info g.npz --json", "cluster g.npz -o -", "list", "doctor x.npy"):
        ours, theirs = os.pipe()
        os.close(ours)
        done = kit.case.run(*call.split(), stdout=theirs)
        os.close(theirs)
        assert done.code == 141, call
        assert "rror" not in done.err


def test_l22_a_listing_for_people_stays_one_line_for_an_error(kit):
    """A name with line ends, tabs, a bell and right-to-left marks."""
    odd = "a\n\tb\x07\u202ec.npy"
    done = kit.run("build", odd, "-o", "out.npz")
    assert done.code == 3
    assert_one_line(done.err, r"a\\n\\tb\\x07\\u202ec.npy: no such file")
