"""The same bytes on every machine: other processors, and other libraries for them.

A processor, numpy and BLAS can be had with less than they are capable of, so that one
machine stands for several. Each of them is a process that writes all graphs.
"""

import hashlib
import json
import os
import subprocess
import sys

import h5py
import llvmlite.binding
import numpy as np
import pytest
from conftest import SAMPLES
from scipy import sparse

from claims.machines import OURS, dispatched, is_x86, machines

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not is_x86(),
        reason="other processors than x86-64 cannot be had with less",
    ),
]

KINDS = {
    "gaussian": "build digits.npy --search exact --scale standard",
    "cosine": "build digits.npy --search exact --kernel cosine --symmetrize mean",
    "laplacian": "build digits.npy --search exact --kernel laplacian --sigma local",
    "polynomial": "build digits.npy --search exact --kernel polynomial --scale unit",
    "sparse": "build thin.npz --round 6",
    "sparse cosine": "build thin.npz --kernel cosine --grow 0.01",
    "kdtree": "build roll.npy --search kdtree --connect mst",
    "kdtree of l1": "build roll.npy --search kdtree --kernel laplacian",
    "aew": "build digits.npy --method aew",
    "kalofolias": "build digits.npy --method kalofolias",
    "kalofolias of few": "build few.npy --method kalofolias -k 4",
    "partition": "build many.npy --search partition:recall=0.8",
    "query": "query digits.npy asked.npy --scale minmax",
}

CHILD = """
import json, sys
import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_info
from nnkgraph.cli import main
from nnkgraph.runtime import cache

cache.settle_cpu()
for name, line in json.loads(sys.argv[1]).items():
    command, *rest = line.split()
    code = main.run([command, "-k12", "-j1", "-q", f"-o{name}.npz", *rest])
    assert code == 0, line
blas = {one["architecture"] for one in threadpool_info() if "architecture" in one}
simd = np.show_config(mode="dicts")["SIMD Extensions"]
print(json.dumps([cache.target()[0], simd.get("found", []), sorted(blas)]))
"""


def made_by(machine, env, folder):
    """Return what a machine is, and the digest of every array that it wrote."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(KINDS)],
        env={**kept, "NNKGRAPH_CPU": "auto", "OPENBLAS_NUM_THREADS": "1", **env},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (machine, done.stderr)
    found = {}
    for kind in KINDS:
        with np.load(folder / f"{kind}.npz") as archive:
            for name, array in archive.items():
                text = f"{array.dtype} {array.shape} ".encode() + array.tobytes()
                found[kind, name] = hashlib.sha256(text).hexdigest()
    return json.loads(done.stdout.splitlines()[-1]), found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files whose sums are not exact in any order, as those of small integers are."""
    folder = tmp_path_factory.mktemp("machines")
    with h5py.File(SAMPLES / "digits.h5") as file:
        digits = file["features"][:450].astype(float)
    noise = np.random.default_rng(0).normal(size=digits.shape)
    rng = np.random.default_rng(3)  # so many columns that groups are worth it
    surface = np.tanh(rng.normal(size=(8000, 4)) @ rng.normal(size=(4, 400)))
    np.save(folder / "many.npy", surface.astype(np.float32))
    near = (digits + 0.1 * noise).astype(np.float32)
    np.save(folder / "digits.npy", near[:400])
    np.save(folder / "asked.npy", near[400:])
    np.save(folder / "roll.npy", np.load(SAMPLES / "swiss_roll.npy")[:400])
    # One of 2000 for which glibc's exp with FMA and the one without differed.
    few = np.random.default_rng(3).normal(size=(1207, 40, 3))[-1]
    np.save(folder / "few.npy", few)
    thin = sparse.csr_array(np.where(digits > 3, digits + 0.1 * noise, 0.0)[:400])
    sparse.save_npz(folder / "thin.npz", thin)
    return folder


def test_processors_numpy_and_blas_make_no_difference(folder):
    seen = {}
    for machine, env in machines().items():
        seen[machine] = made_by(machine, env, folder)
    usual, truth = seen.pop("as the command")
    for kind in KINDS:
        assert (kind, "data") in truth
    differ = {
        machine: [name for name in truth if found.get(name) != truth[name]]
        for machine, (_, found) in seen.items()
    }
    assert not any(differ.values()), differ
    assert all(found.keys() == truth.keys() for _, found in seen.values())

    # Each was the machine that it should stand for.
    assert usual[1] == dispatched()
    assert seen["numba x86-64-v2"][0][0] == "x86-64-v2"
    assert seen["numba native"][0][0] == llvmlite.binding.get_host_cpu_name()
    assert seen["numpy without AVX"][0][1] == []
    cores = {name.split()[1]: one[0][2] for name, one in seen.items() if "BLAS" in name}
    if len({*map(tuple, cores.values())}) > 1:  # else another BLAS, or made for one
        assert cores == {core: [core] for core in cores}
