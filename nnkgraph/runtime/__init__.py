"""The machine: limits, arrays, blocks, workers and compiled code."""

import os

if os.name != "posix":  # locks, signals and limits are those of POSIX
    raise ImportError("nnkgraph needs Linux or macOS; on Windows, install it in WSL")
