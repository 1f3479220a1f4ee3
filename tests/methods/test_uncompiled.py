"""Python without the compiler computes the same numbers, to the last bit."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import plain
import pytest
import uncompiled

from nnkgraph.search import _reservoir


@numba.njit
def below(row, start, add, limit):
    return _reservoir.below(row, start, add, limit)


@numba.njit
def lowest_bit(mask):
    return _reservoir.lowest_bit(mask)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_masks_are_what_is_written_down_in_plain_python(dtype):
    row, add, limit = np.random.default_rng(3).normal(size=(3, 80)).astype(dtype)
    limit[5] = np.nan
    for args in ((4, add, limit), (3, dtype(0.25), limit), (0, add, dtype(0.5))):
        mask = below(row, *args)
        assert mask == plain.below(row, *args)
        assert lowest_bit(np.uint32(mask)) == plain.lowest_bit(mask)


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
