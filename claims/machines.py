"""Processors and libraries that one machine can stand for.

A processor, numpy and BLAS can be had with less than they are capable of.
"""

from __future__ import annotations

import platform

import llvmlite.binding
import numpy as np

SKYLAKE = "avx512f avx512bw avx512cd avx512dq avx512vl"
CORES = {"Nehalem": "sse4.2", "Sandybridge": "avx", "Haswell": "avx2 fma"}
CORES |= {"SkylakeX": SKYLAKE}
"""What OpenBLAS has code for, and what a processor needs to run it."""

OURS = ("NUMBA_CPU", "NPY_", "OPENBLAS_CORETYPE", "GLIBC_TUNABLES", "NNKGRAPH_CPU")
"""How the variables begin that make one machine another."""


def is_x86() -> bool:
    """Say whether processors can be had with less here."""
    return platform.machine().lower() in {"x86_64", "amd64"}


def dispatched() -> list[str]:
    """Return what this numpy has special code for, and this processor has."""
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    return list(simd.get("found", []))


def machines() -> dict[str, dict[str, str]]:
    """Return the environment of each machine, by name."""
    features = llvmlite.binding.get_host_cpu_features()
    fewer = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F"
    cores = [
        core
        for core, needed in CORES.items()
        if all(features.get(one) for one in needed.split())
    ]
    return {
        "as the command": {},
        "numba x86-64-v2": {"NNKGRAPH_CPU": "x86-64-v2"},
        "numba native": {"NNKGRAPH_CPU": "native"},
        "numpy without AVX": {"NPY_DISABLE_CPU_FEATURES": " ".join(dispatched())},
        "glibc without FMA": {"GLIBC_TUNABLES": fewer},  # other C libraries ignore it
        **{f"BLAS {core}": {"OPENBLAS_CORETYPE": core} for core in cores},
    }
