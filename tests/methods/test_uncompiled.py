"""Python without the compiler computes the same numbers, to the last bit."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import uncompiled


@pytest.mark.slow
def test_the_compiler_cannot_be_seen_in_any_result(tmp_path):
    done = subprocess.run(
        [sys.executable, uncompiled.__file__, tmp_path / "plain.npz"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=Path(uncompiled.__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = uncompiled.results()
    with np.load(tmp_path / "plain.npz") as plain:
        assert set(plain) == set(found)
        different = [
            name for name in found if plain[name].tobytes() != found[name].tobytes()
        ]
    assert not different
