"""The README: complete, and every command in it runs."""

import os
import re
import shlex
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
README = (HOME / "README.md").read_text()
SETUP = ("make ", "pip install")
"""Commands that make the environment the tests run in."""

CONFIG = ("--config", "c.toml")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def shell(command, folder):
    """Run a line as a reader would, in a home of its own; return all it prints."""
    home = {"PATH": f"{PROGRAM.parent}:/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
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


def test_every_shell_command_runs_and_prints_what_is_shown(tmp_path):
    shutil.copytree(SAMPLES, tmp_path / "sample_data")
    found = re.findall(
        r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```)?",
        README,
        re.MULTILINE | re.DOTALL,
    )
    commands = outputs = 0
    for block, shown in found:
        printed = ""
        for command in block.splitlines():
            if command and not command.startswith(SETUP):
                done = shell(command, tmp_path)
                # A reader such as head may close the pipe early.
                assert done.returncode in {0, 141}, f"{command}\n{done.stdout}"
                printed += done.stdout
                commands += 1
        lines = iter(masked(printed))
        for line in masked(shown):
            begins = line.removesuffix(" ...")  # where the README leaves the rest out
            cut = begins != line
            there = (one == line or (cut and one.startswith(begins)) for one in lines)
            assert any(there), f"{block}{line}\nis not in\n{printed}"
        outputs += bool(shown)
    assert commands > 8
    assert outputs >= 6


def test_every_python_block_runs(tmp_path):
    for block in blocks("python"):
        subprocess.run(
            [sys.executable, "-c", block], cwd=tmp_path, check=True, capture_output=True
        )


def test_the_configuration_of_the_readme_is_taken(tmp_path):
    (tmp_path / "c.toml").write_text(blocks("toml")[0])
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


def printed(*folders):
    """Return what docs/reference.py prints."""
    line = [sys.executable, HOME / "docs" / "reference.py", *folders]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("folder", ["methods", "kernels", "search"])
def test_the_tables_of_plugins_are_what_the_list_says(folder):
    assert printed(folder) in README  # make tables prints them


def test_every_rule_is_in_the_readme_as_the_list_describes_it():
    for entry in catalog(["rules"])["rules"]:
        assert f"| `{entry['name']}` | {entry['about']} |" in README


@pytest.mark.parametrize("name", registry.names("executors"))
def test_every_executor_is_in_the_readme(name):
    assert f"`{name}`" in README


def test_the_pictures_of_the_readme_are_there():
    for name in re.findall(r"!\[.*?\]\((.*?)\)", README):
        assert (HOME / name).read_bytes().startswith(b"\x89PNG")


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


REFERENCE = (HOME / "docs" / "reference.md").read_text()


def test_the_reference_is_what_the_commands_say():
    assert printed() == REFERENCE  # make reference writes it
    assert "[default:" not in REFERENCE  # defaults have a column of their own


def test_every_command_and_option_is_in_the_reference():
    from nnkgraph.cli.main import cli

    with cli.make_context("nnkgraph", ["list"]) as context:
        for name in cli.list_commands(context):
            part = REFERENCE.partition(f"## nnkgraph {name}\n")[2].partition("\n## ")[0]
            for option in cli.get_command(context, name).params:
                if option.param_type_name == "option":
                    assert all(f"`{one}`" in part for one in option.opts), name


@pytest.mark.parametrize(
    "folder", ["methods", "kernels", "search", "executors", "formats"]
)
def test_every_plugin_is_in_the_reference(folder):
    for name in registry.names(folder):
        assert f"| `{name}` |" in REFERENCE


PAGES = sorted(p for p in (HOME / "docs").glob("*.md") if p.name != "reference.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_tutorial_runs(page, tmp_path):
    shutil.copytree(SAMPLES, tmp_path / "sample_data")
    found = re.findall(
        r"^```(sh|python)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
    )
    for language, block in found:
        python = f"{sys.executable} -c {shlex.quote(block)}"
        done = shell(f"set -eu\n{block}" if language == "sh" else python, tmp_path)
        assert done.returncode == 0, f"{block}\n{done.stdout}"


@pytest.mark.parametrize("page", [HOME / "README.md", *HOME.glob("*/*.md")], ids=str)
def test_every_link_to_a_file_leads_somewhere(page):
    for name in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / name).exists(), name
