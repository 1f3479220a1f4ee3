"""A terminal of 80 columns: nothing is cut, and slips get a hint."""

import io
import shlex
import sys
import time

import numpy as np
import pytest

from nnkgraph.cli import talk
from nnkgraph.cli.commands.classify import confusion_table
from nnkgraph.cli.main import cli
from nnkgraph.cli.progress import Progress
from nnkgraph.runtime import registry

COMMANDS = registry.names("cli/commands")
WIDTH = 80


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def fits(text):
    return [line for line in text.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_the_terminal(run, name):
    assert fits(run(name, "--help").out)


def test_no_line_of_the_list_of_commands_is_cut(run):
    told = run("--help").out
    assert fits(told)
    assert "..." not in told.partition("Commands:")[2]


def test_help_has_headings_where_there_are_many_options(run):
    many = run("build", "--help").out
    headings = [line for line in many.splitlines() if line[:1].isalpha()]
    assert headings[1:] == [
        "Input:",
        "Neighbors:",
        "Edges:",
        "Output:",
        "Running:",
        "General:",
    ]
    assert "Options:" in run("info", "--help").out
    under = many.partition("Neighbors:")[2].partition("Edges:")[0]
    assert "--kernel NAME[:KEY=VALUE,...]" in under
    assert all(name in under for name in registry.names("kernels"))


def test_all_options_are_under_one_heading():
    with cli.make_context("nnkgraph", ["list"]) as parent:
        for name in COMMANDS:
            command = cli.get_command(parent, name)
            with command.context_class(command, parent=parent) as context:
                shown = [
                    one for under in command.grouped(context).values() for one in under
                ]
                options = [
                    one
                    for one in command.get_params(context)
                    if one.param_type_name == "option"
                ]
            assert sorted(map(str, shown)) == sorted(map(str, options)), name


def test_tables_fit_the_terminal(run, points, tmp_path):
    graph = tmp_path / "graph.npz"
    assert run("build", points, "-o", graph, "-k", 12).code == 0
    calls = [
        ("info", graph),
        ("list",),
        ("compare", points, "-k", "10,20", "--method", "l1:eta=0.1"),
        ("verify", points, graph),
        ("doctor", points, "-k", 12),
    ]
    for call in calls:
        done = run(*call)
        assert done.code == 0, done.err
        # The names of folders for tests are long, and names are never taken apart.
        assert fits(done.out.replace(str(tmp_path), ".")), done.out


def test_the_suggested_line_is_one_for_a_shell(run, tmp_path):
    name = tmp_path / "a name with  spaces that is too long to stand with others.npy"
    np.save(name, np.random.default_rng(0).normal(size=(60, 3)))
    done = run("doctor", name, "-k", 12, "--scale", "standard")
    told = done.out.partition("suggested\n")[2].partition("\n  because")[0]
    assert told.count("\n") > 0
    words = shlex.split(told.replace("\\\n", ""))
    assert words[:4] == ["nnkgraph", "build", str(name), "-o"]


def test_a_confusion_of_many_classes_is_a_list_of_mistakes():
    few = confusion_table("few", ["a", "b"], [[5, 1], [0, 7]])
    assert few.splitlines()[1].split() == ["true", "\\", "predicted", "a", "b"]
    names = [f"class{i}" for i in range(20)]
    table = np.diag(np.full(20, 9))
    table[3, 4], table[7, 2] = 2, 6
    many = confusion_table("many", names, table.tolist())
    assert fits(many)
    told, head, *lines = many.splitlines()
    assert told == "many: 2 of 2 kinds of mistakes, --json has all"
    assert head.split() == ["true", "predicted", "times"]
    assert [line.split() for line in lines] == [
        ["class7", "class2", "6"],
        ["class3", "class4", "2"],
    ]


class Screen(io.StringIO):
    """A terminal, as far as progress can tell."""

    def isatty(self):
        return True


@pytest.fixture
def progress(monkeypatch):
    """What stages write to a terminal, or to a log."""

    def watch(stream, name, total, unit="rows", *, quiet=False, rows=(3, 4)):
        monkeypatch.setattr(sys, "stderr", stream)
        talk.reset(-1 if quiet else 0)
        with Progress()(name, total, unit) as advance:
            for some in rows:
                time.sleep(0.3)
                advance(some)
        return stream.getvalue()

    return watch


def test_a_terminal_shows_a_bar_that_goes_away(progress):
    shown = progress(Screen(), "solve", 10)
    assert "solve:  70%" in shown
    assert "7/10" in shown
    assert not shown.rpartition("\r")[2].strip()


def test_a_log_gets_lines_where_a_stage_takes_long(progress, monkeypatch):
    assert not progress(io.StringIO(), "solve", 10)
    monkeypatch.setattr("nnkgraph.cli.progress._PATIENCE", 0.0)
    lines = progress(io.StringIO(), "solve", 10).splitlines()
    assert lines == ["solve: 30 % of 10 rows", "solve: 70 % of 10 rows"]
    lines = progress(io.StringIO(), "solve", 0, "steps").splitlines()
    assert lines == ["solve: 3 steps", "solve: 7 steps"]


def test_quiet_stages_write_nothing(progress, monkeypatch):
    monkeypatch.setattr("nnkgraph.cli.progress._PATIENCE", 0.0)
    assert not progress(Screen(), "solve", 10, quiet=True)
    assert not progress(io.StringIO(), "solve", 10, quiet=True)
