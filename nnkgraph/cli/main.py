"""The command group, and the one place where errors become exit codes."""

import atexit
import errno
import gc
import importlib
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from itertools import chain
from typing import Any, NoReturn

import click

from nnkgraph import __version__
from nnkgraph.cli import signals, talk
from nnkgraph.cli.command import Helpful
from nnkgraph.cli.types import CONFIG, FOLDERS
from nnkgraph.errors import InputError, NnkGraphError, ParameterError, QualityWarning
from nnkgraph.runtime import registry
from nnkgraph.runtime.limits import check_address_space

_CITATION = f"""\
@article{{shekkizhar2023neighborhood,
  title = {{Neighborhood and Graph Constructions using Non-Negative Kernel Regression}},
  author = {{Shekkizhar, Sarath and Ortega, Antonio}},
  journal = {{arXiv preprint arXiv:1910.09383}},
  year = {{2023}}
}}

@software{{nnkgraph,
  title = {{nnkgraph}},
  author = {{{{The nnkgraph developers}}}},
  version = {{{__version__}}},
  license = {{MIT}}
}}"""


def warn_of_cache() -> None:
    """Say which directories of compiled code were not used, and why."""
    cache = sys.modules.get("nnkgraph.runtime.cache")
    for refusal in getattr(cache, "refusals", ()):
        talk.warning(refusal)


def flushed(code: int) -> int:
    """Flush what was printed; a reader that has gone away is no error to report."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            # What could not be written must not be tried again when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if isinstance(error, BrokenPipeError):
                code = 141
            elif stream is sys.stdout:
                code = code or 4
    return code


_FOLDER = "cli/commands"
COMPLETE = "_NNKGRAPH_COMPLETE"
"""The environment variable through which shells ask what could come next."""

_SHORTAGES = {errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOSPC}
"""Errors of the system that a user can do something about."""

_IN_GRAPHS = {
    *("-k", "--k", "--method", "--kernel", "--sigma", "--search", "--scale", "--pca"),
    *("--duplicates", "--symmetrize", "--min-weight", "--min-degree", "--weights"),
    *("--preset", "--connect", "--grow"),
}
"""Options of build that say what a graph is; who reads it is told nothing of them."""

_TOO_MANY = {errno.EMFILE, errno.ENFILE}
"""Those that no file is to blame for."""

_NO_THREAD = "can't start new thread"


class Commands(Helpful, click.Group):
    """The commands of a folder, each imported when it is needed."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names of the files."""
        return list(registry.names(_FOLDER))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command, or suggest the one that was meant."""
        if name not in self.list_commands(ctx):
            close = get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"no such command {name!r}{hint}")
        module = importlib.import_module(f"nnkgraph.cli.commands.{name}")
        command: click.Command = module.command
        for parameter in command.params:
            if isinstance(parameter.type, click.Path):
                # What is wrong with a file is said, with its code, where it is opened.
                parameter.type.readable = False
        return command


def _printing(*flags: str, text: str, what: str) -> Callable[[Any], Any]:
    """Return an option that prints a text and does nothing else."""

    def show(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            talk.data(text)
            ctx.exit()

    how: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
    return click.option(*flags, callback=show, help=f"Show {what} and exit.", **how)


@click.command(
    cls=Commands,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 88,
        "auto_envvar_prefix": "NNKGRAPH",
        "show_default": True,
    },
)
@_printing(
    "-V", "--version", text=f"nnkgraph, version {__version__}", what="the version"
)
@_printing("--citation", text=_CITATION, what="how to cite, as BibTeX,")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Turn feature matrices into graphs by non-negative kernel regression (NNK).

    \b
    Examples:
      nnkgraph build points.npy -o graph.npz
      nnkgraph build table.csv --id-column id -o graph.graphml
      nnkgraph info graph.npz
    """
    if ctx.invoked_subcommand is None:
        talk.data(ctx.get_help())


def main() -> NoReturn:
    """Run the command line and end the process with the right code."""
    signals.install()
    try:
        # Processes that Python starts import nothing from where the user stands.
        os.environ["PYTHONSAFEPATH"] = "1"
        # Rows are shared among workers, and each multiplies on one processor: threads
        # of BLAS would only keep others busy with waiting.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # NumPy reads it, and stumbles over what is no number; our files have no dates.
        os.environ.pop("SOURCE_DATE_EPOCH", None)
        # Compiled code then fits many machines; see nnkgraph.runtime.cache.
        os.environ.setdefault("NNKGRAPH_CPU", "auto")
        # Imports make no garbage: looking for it would cost a tenth of a start.
        gc.set_threshold(100_000, 20, 20)
        code = run(sys.argv[1:])
        warn_of_cache()
        signals.end()
    except signals.Stopped:
        signals.end()
    if signals.received():
        message, code = signals.outcome()
        kept = talk.state.resume
        if kept and os.path.isdir(kept):  # noqa: PTH112 - any string
            message += f"; the same line goes on from what is in {kept}"
        talk.error(message)
    code = flushed(code)
    # Taking numba and LLVM apart takes a third of a second, to free memory that the
    # system frees anyway. Handlers that others have registered are run.
    atexit._run_exitfuncs()
    os._exit(code)


def run(args: list[str]) -> int:
    """Run one call and return its exit code; every error becomes one line."""
    try:
        with warnings.catch_warnings():
            # What the library warns of, summaries and reports say in their own words.
            warnings.simplefilter("ignore", QualityWarning)
            _invoke(args)
    except BaseException as error:
        # A compiler that is stopped in the middle fails in ways of its own.
        if signals.received():
            raise signals.Stopped from error
        return _exit_code(error)
    return talk.state.exit_code


def _invoke(args: list[str]) -> None:
    if COMPLETE in os.environ:
        cli.main(args, prog_name="nnkgraph", complete_var=COMPLETE)
    # Not cli.main: it turns broken pipes and Ctrl-C into exit codes of its own.
    with cli.make_context("nnkgraph", args) as context:
        if not {"-h", "--help"} & set(args):  # help is there under any limit
            check_address_space()
            _check_here()
            if os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}:
                what = "commands need compiled code; unset it"
                raise ParameterError(f"NUMBA_DISABLE_JIT: {what}")
        cli.invoke(context)


def _check_here() -> None:
    """Refuse a working directory that is gone: libraries cannot be imported there."""
    try:
        os.getcwd()  # noqa: PTH109 - it is all that is wanted
    except OSError as error:
        raise InputError(
            "the working directory was removed; change to another"
        ) from error


def _exit_code(error: BaseException) -> int:  # noqa: PLR0911 - a kind of error each
    """Say what went wrong and return the code for it."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.UsageError):
        talk.error(_usage_message(error))
        return 2
    if isinstance(error, click.ClickException):
        talk.error(error.format_message())
        return error.exit_code
    if isinstance(error, NnkGraphError):
        mapped = sys.modules.get("nnkgraph.cli.files")
        cause = mapped.blamed(error) if mapped else error
        # A file that is good may have been one too many.
        lacking = getattr(cause.__cause__, "errno", None) in _TOO_MANY
        return talk.failed(str(cause), 5 if lacking else cause.exit_code)
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        talk.error("interrupted")
        return 130
    if isinstance(error, BrokenPipeError):
        return 141
    if not isinstance(error, Exception):
        raise error
    if _is_shortage(error):
        advice = "use fewer workers or raise the limit"
        return talk.failed(f"out of resources: {error}; {advice}", 5)
    # What was noted on its way: the rows it was about.
    rows = "".join(f" {one}" for one in getattr(error, "__notes__", ()))
    what = f"{type(error).__name__}: {error}{rows}"
    whose, to = _package_behind(error)
    report = f"please report it{to} with the output of the same command and -vv"
    return talk.failed(f"bug{whose}: {what}; {report}", 1)


def _package_behind(error: Exception) -> tuple[str, str]:
    """Return where in another package an error came up, and who is to be told.

    The text of tracebacks is looked at: those of worker processes are nothing else.
    """
    trace = "".join(traceback.format_exception(error))
    places = re.findall(r'File "(.+)", line (\d+)', trace)
    every = [registry.foreign(folder).values() for folder in FOLDERS]
    entries = [entry for some in chain(*every) for entry in some]
    # Not entry.module, which fails where the value is malformed.
    modules = [(entry, entry.value.partition(":")[0].strip()) for entry in entries]
    for path, line in reversed(places):
        for entry, module in modules:
            home = sys.modules.get(module.partition(".")[0])
            own = [*getattr(home, "__path__", [getattr(home, "__file__", None)])]
            if any(one and f"{path}/".startswith(f"{one}/") for one in own):
                package = registry.package_of(entry)
                return f" in package {package} ({path}, line {line})", " to its authors"
    used = {
        registry.package_of(entry) for entry, module in modules if module in sys.modules
    }
    return f", with plug-ins of {', '.join(sorted(used))}" if used else "", ""


def _is_shortage(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in _SHORTAGES
    no_thread = isinstance(error, RuntimeError) and str(error) == _NO_THREAD
    return no_thread or isinstance(error, MemoryError)


def _usage_message(error: click.UsageError) -> str:
    """Return Click's message in one line, with the command and where to look."""
    message = " ".join(error.format_message().split()).rstrip(".")
    parameter = getattr(error, "param", None)
    if error.ctx is None:
        return message
    if isinstance(error, click.NoSuchOption):
        # An option that was cut short has one suggestion.
        flags = [flag for one in error.ctx.command.params for flag in one.opts]
        longer = [one for one in flags if one.startswith(error.option_name)]
        if len(longer) == 1:
            message = f"{error.message} Did you mean {longer[0]!r}?"
        elif error.option_name in _IN_GRAPHS and any(
            one.name == "graph" and isinstance(one, click.Argument)
            for one in error.ctx.command.params
        ):
            what = "is for build: the graph holds what it was built with; leave it out"
            message = f"{error.option_name} {what}"
    source = error.ctx.get_parameter_source(parameter.name) if parameter else None
    if parameter and source and source.name == "ENVIRONMENT":
        variable = f"{error.ctx.auto_envvar_prefix}_{parameter.name}"
        message += f" (from the environment variable {variable.upper()})"
    elif source and source.name == "DEFAULT_MAP":
        message += f" (from {error.ctx.meta[CONFIG]})"
    command = error.ctx.command_path
    where = f"{command.partition(' ')[2]}: " if " " in command else ""
    return f"{where}{message} (see {command} --help)"
