"""The library names parameters; the command line shows them as its options."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM

import nnkgraph
from nnkgraph.cli import talk
from nnkgraph.cli.main import cli

HOME = Path(nnkgraph.__file__).parent
OF_OTHERS = ("--memory-limit 0",)
"""Options of dask's own workers."""

FLAG = re.compile(
    r"(?<![\w-])--[a-z]|(?<![\w-])-[jko]\b|nnkgraph (?:build|merge|verify)"
)
PARAMETER = re.compile(r"`([a-z]\w*)(?:=|`)")


def texts(path):
    """Return the strings of a module that are no docstrings."""
    tree = ast.parse(path.read_text())
    alone = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    for one in ast.walk(tree):
        text = one.value if isinstance(one, ast.Constant) else None
        if isinstance(text, str) and id(one) not in alone:
            yield text


def library():
    for path in sorted(HOME.rglob("*.py")):
        name = path.relative_to(HOME).as_posix()
        if not name.startswith(("cli/", "__main__")):
            yield name, list(texts(path))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("try `sigma='local'`", "try --sigma local"),
        ("use fewer `workers`", "use fewer --workers"),
        ("use `k=12` or a larger `min_weight`", "use -k 12 or a larger --min-weight"),
        ("`drop='city,a b'`", "--drop 'city,a b'"),
        (f"`drop={chr(39)!r}`", "--drop ''\"'\"''"),
        ("`header=True`, `header=False`", "--header, --no-header"),
        ("`axes=(0, 1)`", "--axes 0,1"),
        ("`grow=0.01`", "--grow 0.01"),
        ("`executor='dask:...,folder=DIR'`", "--executor dask:...,folder=DIR"),
        ("k=3/`two words`.npz: `", "k=3/`two words`.npz: `"),
        (r"a name: `drop='\x'`", "a name: --drop x"),
    ],
)
def test_parameters_are_shown_as_options(said, shown):
    assert talk.as_options(said) == shown


def test_the_library_names_no_option():
    for name, said in library():
        for text in said:
            own = text
            for foreign in OF_OTHERS:
                own = own.replace(foreign, "")
            assert not FLAG.search(own), (name, text)


def test_parameters_that_messages_name_are_options():
    with cli.make_context("nnkgraph", ["list"]) as context:
        commands = [cli.get_command(context, one) for one in cli.list_commands(context)]
    known = {flag for one in commands for option in one.params for flag in option.opts}
    named = {
        (file, name)
        for file, said in library()
        for text in said
        for name in PARAMETER.findall(text)
    }
    assert len(named) > 30
    for file, name in named:
        flag = f"--{name.replace('_', '-')}"
        assert flag in known, (file, name)


def test_what_is_said_and_what_fails_names_options(run, tmp_path):
    (tmp_path / "x.csv").write_text("name,a,b\nu,1,2\nv,3,4\nw,5,6\n")
    failed = run("build", tmp_path / "x.csv", "-o", tmp_path / "g.npz")
    assert failed.code == 3
    assert "--id-column name, or leave it out with --drop name" in failed.err
    assert "`" not in failed.err


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["info", "-h"], ["list"]])
def test_a_full_disk_behind_stdout_is_exit_4(args):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PROGRAM, *args],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert "standard output: cannot be written: no space left" in done.stderr
