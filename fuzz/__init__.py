"""Mutated files against every reader, and random runs of the command, by a seed.

``python -m fuzz`` (or ``make fuzz``) works for a given time and prints two tables.
Half of the time goes to files: valid ones of every format are damaged, blindly and by
rules that know the format, and read in a child process. The only answers that count
as good are a value and an error of ``nnkgraph.errors``. Everything else is a finding:

- another exception, or a Python warning,
- a signal, or a child that says nothing for a minute,
- more than 2 s of processor time or 500 MB of memory,
- a file opened that is not the one given, seen by Python's audit hook and, for opens
  of the HDF5 library, by inotify on files that links in the mutants point to,
- a pickle that was looked into.

The other half goes to the command: random data, random options, random kills. Exit
codes must be documented ones, every finished graph must pass ``nnkgraph verify``, the
same line after a kill must end well, and nothing may be left behind.

A case depends on the seed and its number alone. Findings are kept in ``fuzz/found``,
each with the line that repeats it, such as ``python -m fuzz --seed 0 --only 4711``.
"""
