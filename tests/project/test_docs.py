"""README and pages: complete, and every command and example in them runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROGRAM, SAMPLES
from faults import told

from nnkgraph.build.catalog import catalog
from nnkgraph.runtime import registry

HOME = SAMPLES.parent
DOCS = HOME / "docs"
README = (HOME / "README.md").read_text()
CHOICES = (DOCS / "choices.md").read_text()
REFERENCE = (DOCS / "reference.md").read_text()
API = (DOCS / "api.md").read_text()
GENERATED = {"reference.md", "api.md", "claims.md"}
PAGES = [
    HOME / "README.md",
    *sorted(page for page in DOCS.glob("*.md") if page.name not in GENERATED),
]

SETUP = ("make ", "pip install", "python3 -m venv")
"""Commands that make the environment the tests run in."""

CONFIG = ("--config", "c.toml")
FOREIGN = {"--citation", "--data", "--help", "--requeue", "--signal", "--memory-limit"}
"""Options of nnkgraph itself and of other programs that pages name."""


def shell(command, folder):
    """Run lines as a reader would, in a home of its own; return all they print."""
    home = {"PATH": f"{PROGRAM.parent}:/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, **home},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def masked(text):
    """Return lines without what differs from run to run: times and last digits."""
    text = re.sub(r"\d(\.\d+)?e-1\d", "~", text)
    text = re.sub(r"done in [\d.]+ s", "done in ~ s", text)
    if "seconds" in text:
        text = re.sub(r" +\d+\.\d{3}$", " ~", text, flags=re.MULTILINE)
    return told(text)


def run(block, folder):
    """Run a block of commands but for those of the set-up; return what it prints."""
    lines = [line for line in block.splitlines() if not line.startswith(SETUP)]
    done = shell("\n".join(lines), folder)
    assert done.returncode == 0, f"{block}\n{done.stdout}"
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_runs_and_prints_what_is_shown(page, tmp_path):
    shutil.copytree(SAMPLES, tmp_path / "sample_data")
    found = re.findall(
        r"^```(sh|python)\n(.*?)^```\n(?:\n```text\n(.*?)^```)?",
        page.read_text(),
        re.MULTILINE | re.DOTALL,
    )
    for language, block, shown in found:
        if language == "python":
            done = subprocess.run(
                [sys.executable, "-c", block],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{block}\n{done.stdout}"
            continue
        printed = run(block, tmp_path)
        lines = iter(masked(printed))
        for line in masked(shown):
            begins = line.removesuffix(" ...")  # where a page leaves the rest out
            cut = begins != line
            there = (one == line or (cut and one.startswith(begins)) for one in lines)
            assert any(there), f"{block}{line}\nis not in\n{printed}"


def test_pages_show_what_commands_print():
    shown = sum(page.read_text().count("```\n\n```text\n") for page in PAGES)
    assert shown >= 10
    assert "```\n\n```text\n" in README


def test_the_readme_is_short():
    assert len(README) < 12_000
    assert "make demo " in README
    assert "make test " in README


def test_the_configuration_of_the_docs_is_taken(tmp_path):
    text = (DOCS / "batch_jobs.md").read_text()
    (shown,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "c.toml").write_text(shown)
    done = subprocess.run(
        [PROGRAM, "build", SAMPLES / "swiss_roll.npy", "-o", "g.npz", *CONFIG],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "nnk, cosine, k 20," in done.stderr
    assert (tmp_path / "report.json").stat().st_size > 100


@pytest.mark.parametrize("name", registry.names("cli/commands"))
def test_every_command_is_in_the_readme(name):
    assert f"`nnkgraph {name} " in README


def printed(*folders, script="reference.py"):
    """Return what a script of docs/ prints."""
    line = [sys.executable, DOCS / script, *folders]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("folder", ["methods", "kernels", "search"])
def test_the_tables_of_plugins_are_what_the_list_says(folder):
    assert printed(folder) in CHOICES  # make tables prints them


def test_every_rule_is_among_the_choices_as_the_list_describes_it():
    for entry in catalog(["rules"])["rules"]:
        assert f"| `{entry['name']}` | {entry['about']} |" in CHOICES


@pytest.mark.parametrize("name", registry.names("executors"))
def test_every_executor_is_explained(name):
    assert f"`{name}`" in (DOCS / "cluster.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pictures_are_there(page):
    for name in re.findall(r"!\[.*?\]\((.*?)\)", page.read_text()):
        assert (page.parent / name).read_bytes().startswith(b"\x89PNG")


def test_make_help_names_every_target():
    text = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=HOME,
        env={"PATH": "/usr/bin:/bin"},  # not what a make around the tests has set
        capture_output=True,
        text=True,
        check=True,
    )
    phony = re.search(r"\.PHONY: (.*)", Path(HOME / "Makefile").read_text()).group(1)
    assert {line.split()[0] for line in text.stdout.splitlines()} == set(phony.split())


def test_the_reference_is_what_the_commands_say():
    assert printed() == REFERENCE  # make reference writes it
    assert "[default:" not in REFERENCE  # defaults have a column of their own


def test_the_api_is_what_the_docstrings_say():
    import nnkgraph

    assert printed(script="api.py") == API  # make reference writes it
    for name in set(nnkgraph.__all__) - {"__version__"}:
        assert f"\n### {name}\n" in API


def test_every_command_and_option_is_in_the_reference():
    from nnkgraph.cli.main import cli

    with cli.make_context("nnkgraph", ["list"]) as context:
        for name in cli.list_commands(context):
            part = REFERENCE.partition(f"## nnkgraph {name}\n")[2].partition("\n## ")[0]
            for option in cli.get_command(context, name).params:
                if option.param_type_name == "option":
                    assert all(f"`{one}`" in part for one in option.opts), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_options_that_are_named_exist(page):
    known = set(re.findall(r"`(--[a-z-]+)`", REFERENCE)) | FOREIGN
    named = set(re.findall(r"`[^`\n]*?(--[a-z][a-z-]*)", page.read_text()))
    assert named <= known


@pytest.mark.parametrize(
    "folder", ["methods", "kernels", "search", "executors", "formats"]
)
def test_every_plugin_is_in_the_reference(folder):
    for name in registry.names(folder):
        assert f"| `{name}` |" in REFERENCE
