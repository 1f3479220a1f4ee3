"""The errors nnkgraph raises: one message and one exit code each.

Every error takes a single string, because an exception with more constructor
arguments cannot be unpickled from a worker process and would break the pool.
The message names the file, the place, what is wrong and what to do. A parameter to
turn stands in backticks, as in "try `sigma='local'`" or "use fewer `workers`"; the
command line shows its option instead (`nnkgraph.cli.talk.as_options`). Warnings and
remarks do the same.
"""


class NnkGraphError(Exception):
    """Root of all errors that nnkgraph raises on purpose."""

    exit_code = 1


class ParameterError(NnkGraphError, ValueError):
    """A parameter, a plug-in name or a plug-in parameter makes no sense."""

    exit_code = 2


class InputError(NnkGraphError, ValueError):
    """The input file cannot be read, or its values cannot be used."""

    exit_code = 3


class MissingValuesError(InputError):
    """Values are missing, and nothing else is wrong with the features so far."""


class OutputError(NnkGraphError):
    """The output cannot be written, or exists and must not be replaced."""

    exit_code = 4


class ResourceError(NnkGraphError):
    """Workers, memory, time or an optional package are missing."""

    exit_code = 5


class QualityError(NnkGraphError):
    """The result was written, but it misses a promise about its quality."""

    exit_code = 6


class QualityWarning(UserWarning):
    """The result is there, but worth a second look."""
