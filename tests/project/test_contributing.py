"""CONTRIBUTING.md: its recipes give plug-ins that keep the contract."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
from conftest import SAMPLES

HOME = SAMPLES.parent
GUIDE = (HOME / "CONTRIBUTING.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
NAMES = re.findall(r"Write `nnkgraph/(\w+)/(\w+)\.py`", GUIDE)
CHECKS = {
    "kernels": "check_kernel",
    "methods": "check_method",
    "formats": "check_format",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The three recipes as a package of one's own, and the program that tries them."""
    folder = tmp_path_factory.mktemp("site")
    about = folder / "recipes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: recipes\nVersion: 1.0\n"
    )
    entries = ""
    for (group, name), code in zip(NAMES, BLOCKS[:3], strict=True):
        (folder / f"my_{name}.py").write_text(code)
        entries += f"[nnkgraph.{group}]\n{name} = my_{name}\n"
    (about / "entry_points.txt").write_text(entries)
    return folder


@pytest.mark.parametrize(("group", "name"), NAMES)
def test_every_recipe_keeps_the_contract(site, group, name):
    check = CHECKS[group]
    script = f"from nnkgraph import testing; testing.{check}({name!r})"
    path = os.pathsep.join([str(site), str(HOME)])
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", BLOCKS[:3])
def test_every_recipe_passes_style(block):
    for how in (["check", "--ignore", "INP"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *how, "--stdin-filename", "nnkgraph/a.py"]
        done = subprocess.run(
            [*ruff, "-"],
            input=block,
            cwd=HOME,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def test_the_package_of_ones_own_names_what_the_recipe_defines():
    (text,) = re.findall(r"^```toml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    groups = tomllib.loads(text)["project"]["entry-points"]
    ((group, entries),) = groups.items()
    assert group == "nnkgraph.kernels"
    (value,) = entries.values()
    assert f"class {value.partition(':')[2]}(" in BLOCKS[0]
    assert value.replace(":", " import ") in BLOCKS[3]


def test_make_knows_every_target_of_the_guide():
    known = set(
        re.findall(r"^([a-z-]+):", (HOME / "Makefile").read_text(), re.MULTILINE)
    )
    named = set(re.findall(r"^make ([a-z]+) ", GUIDE, re.MULTILINE))
    assert {"quick", "test", "check"} <= named
    assert named - {"quick"} <= known
