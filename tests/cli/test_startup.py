"""Start-up: help, version and completion load nothing heavy."""

import os
import subprocess
import sys

import pytest
from conftest import PROGRAM

HEAVY = ("numpy", "scipy", "numba", "h5py", "pynndescent", "tqdm", "matplotlib")
SCRIPT = """
import sys
from nnkgraph.cli import main
code = main.run(sys.argv[1:])
print(code, *(m for m in {heavy} if m in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "args", [["--help"], ["--version"], ["build", "--help"], ["search", "-h"]]
)
def test_g09_help_loads_nothing_heavy(args):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(heavy=HEAVY), *args],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.split() == ["0"]


BUILD = """
import sys
import numpy as np
from nnkgraph.cli import main
np.save("x.npy", np.random.default_rng(0).normal(size=(60, 3)))
assert main.run("build x.npy -o g.npz -k 5 -q".split()) == 0
print(*sys.modules)
"""


def test_a_plain_build_loads_what_it_needs(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BUILD],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = done.stdout.split()
    assert not {"dask", "distributed", "sklearn", "matplotlib", "h5py"} & {*loaded}
    own = [name for name in loaded if name.startswith("nnkgraph")]
    assert not [name for name in own if "doctor" in name or "plot" in name]
    assert len(own) <= 74, own


def test_completion_offers_names_and_loads_nothing_heavy():
    env = {
        **os.environ,
        "_NNKGRAPH_COMPLETE": "bash_complete",
        "COMP_WORDS": "nnkgraph build --kernel g",
        "COMP_CWORD": "3",
        "PYTHONVERBOSE": "1",
    }
    done = subprocess.run(
        [PROGRAM], env=env, capture_output=True, text=True, check=False
    )
    assert "plain,gaussian" in done.stdout
    loaded = {
        line.split()[1]
        for line in done.stderr.splitlines()
        if line.startswith("import ")
    }
    assert "'click'" in loaded
    assert not {f"'{name}'" for name in HEAVY} & loaded


def test_help_loads_at_most_twice_what_a_bare_click_loads():
    """Modules are counted, since times depend on the machine."""

    def modules(code):
        count = "import sys; print(len(sys.modules), file=sys.stderr)"
        command = [sys.executable, "-c", f"{code}; {count}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stderr)

    helped = modules("from nnkgraph.cli import main; main.run(['--help'])")
    assert helped <= 2.1 * modules("import click")
