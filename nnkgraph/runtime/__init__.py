"""The machine: limits, arrays, blocks, workers and compiled code."""
