"""Options that several commands share, and the file that may set them."""

import copy
import functools
import os
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from nnkgraph.cli import talk, types
from nnkgraph.cli.command import EMPTY, Command
from nnkgraph.cli.files import Files
from nnkgraph.errors import ParameterError
from nnkgraph.runtime import registry

Decorator = Callable[[Any], Any]

_LONGEST = 1 << 20
"""Bytes; what is longer is no file of options."""


class PluginOption(click.Option):
    """An option for plug-ins, whose help names also those of other packages."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Look for them now: a run that asks for no help does not."""
        shown, kind = copy.copy(self), self.type
        if self.help and isinstance(kind, types.Plugin):
            every = choices(kind.folder, registry.all_names)
            shown.help = self.help.replace(choices(kind.folder), every)
        return click.Option.get_help_record(shown, ctx)


def choices(
    folder: str, names: Callable[[str], tuple[str, ...]] = registry.names
) -> str:
    """Return the names of plug-ins for a help text, and where more is said."""
    return f"One of {', '.join(names(folder))}: see nnkgraph list {folder}."


def _plugin(
    folder: str, names: str, default: Any, help_: str, **more: Any
) -> Decorator:
    """Make an option for one folder of plug-ins."""
    more |= {"cls": PluginOption, "type": types.Plugin(folder), "default": default}
    return click.option(*names.split(), help=f"{help_} {choices(folder)}", **more)


def methods(*default: str, help: str) -> Decorator:  # noqa: A002 - Click's word
    """Make an option for several methods."""
    return _plugin("methods", "--method methods", default, help, multiple=True)


def output(help: str, **more: Any) -> Decorator:  # noqa: A002 - Click's word
    """Make the option for the file that is written."""
    more = {"metavar": "FILE", "type": click.Path(), **more}
    return click.option("-o", "--output", help=help, **more)


def file(flag: str, help: str, **more: Any) -> Decorator:  # noqa: A002 - Click's word
    """Make an option for one more file that is read."""
    more = {"metavar": "FILE[::ITEM]", "type": click.Path(), **more}
    return click.option(flag, help=help, **more)


def seed(help: str) -> Decorator:  # noqa: A002 - Click's word
    """Make the option for the number that draws start from."""
    return click.option("--seed", type=types.whole(0, 2**32 - 1), default=0, help=help)


def words(flag: str, known: str, default: str, help: str) -> Decorator:  # noqa: A002
    """Make an option that takes one of some words."""
    kind = click.Choice(known.split())
    return click.option(flag, type=kind, default=default, help=help)


def candidates(
    help: str,  # noqa: A002 - Click's word
    kind: types.Parsed | None = None,
    default: str = "30, or rows - 1 where there are fewer",
) -> Decorator:
    """Make the option for the number of candidates."""
    kind = kind or types.whole(1)
    return click.option("-k", "--k", type=kind, show_default=default, help=help)


features_arg = click.argument("features", type=click.Path())
solver = words(
    "--solver",
    "auto amg",
    "auto",
    "A factor or steps from node to node, by the graph; or multigrid, faster for large "
    "graphs of few dimensions. Needs pyamg: pip install 'nnkgraph[amg]'.",
)
graph_arg = click.argument("graph", type=click.Path())
output_opt = output("Where the result goes; '-' is stdout.", required=True)

_SHARED: dict[str, Decorator] = {
    "k": candidates("Candidates per node."),
    "method": _plugin("methods", "--method", "nnk", "How edges are weighed."),
    "kernel": _plugin(
        "kernels",
        "--kernel",
        "gaussian",
        "Similarity of two nodes; module:function is one of your own.",
    ),
    "search": _plugin("search", "--search", "auto", "How candidates are found."),
    "executor": _plugin("executors", "--executor", "processes", "Where workers run."),
    "preset": click.option(
        "--preset",
        type=click.Choice(["paper", "classify", "cluster", "propagate"]),
        help="What a graph is for: defaults of options that are not given.",
    ),
    "sigma": click.option(
        "--sigma",
        type=types.SIGMA,
        show_default="as the preset says",
        help="Bandwidth of the kernel, in the features' unit, or its rule.",
    ),
    "scale": words(
        "--scale",
        "none standard minmax unit",
        "none",
        "Scaling of the features before anything else.",
    ),
    "pca": click.option(
        "--pca",
        type=types.whole(1),
        metavar="N",
        show_default="the columns",
        help="So many principal components of the scaled features in their place.",
    ),
    "duplicates": words(
        "--duplicates",
        "merge keep error",
        "merge",
        "Identical rows: hang copies on the first, treat each as a node, or refuse.",
    ),
    "symmetrize": click.option(
        "--symmetrize",
        type=click.Choice(
            ["error", "error-union", "max", "mean", "min", "mutual", "none"]
        ),
        show_default="the method's own",
        help="Rule that joins the two directions of an edge.",
    ),
    "min_weight": click.option(
        "--min-weight",
        type=types.number(0, 1e300),
        default=1e-8,
        help="Lighter edges are dropped.",
    ),
    "min_degree": click.option(
        "--min-degree",
        type=types.whole(0),
        show_default="as the preset says, or 3 with --into",
        metavar="M",
        help="Every node's own M heaviest edges stay, whatever rule and --min-weight "
        "say.",
    ),
    "round": click.option(
        "--round",
        "digits",
        type=types.whole(1, 15),
        metavar="DIGITS",
        help="Significant digits of weights and errors.",
    ),
    "workers": click.option(
        "-j",
        "--workers",
        type=types.WORKER_COUNT,
        default=lambda: os.environ.get(types.WORKERS, "auto"),
        show_default=f"auto, or {types.WORKERS}",
        help="Worker processes; the result does not depend on them.",
    ),
    "seed": seed("For searches that draw at random."),
    "resume": click.option(
        "--resume",
        type=click.Path(file_okay=False),
        metavar="DIR",
        help="Keep finished blocks in DIR; "
        "the same line goes on where a run was ended.",
    ),
    "shard": click.option(
        "--shard",
        type=types.SHARD,
        help="Do part I of N only, for 'nnkgraph merge'; "
        "auto in a task of a job array.",
    ),
    "block_timeout": click.option(
        "--block-timeout",
        type=types.number(0),
        default=3600.0,
        metavar="SECONDS",
        help="Give up when no worker process finishes a block for so long; "
        "0 never does.",
    ),
    "no_clobber": click.option(
        "--no-clobber", is_flag=True, help="Refuse to replace a file that exists."
    ),
    "json": click.option("--json", is_flag=True, help="Print JSON."),
    "report": file("--report", "Write a JSON report; '-' is stdout.", metavar="FILE"),
    "memory": click.option(
        "--memory",
        type=types.MEMORY,
        show_default="what is there",
        help="Memory to stay within, as 800MB or 2GiB; "
        "the result does not depend on it.",
    ),
}


def shared(names: str) -> Decorator:
    """Add options that have the same meaning in all commands, by their names."""
    return _added(*(_SHARED[name] for name in names.split()))


def _added(*options: Decorator) -> Decorator:
    """Add several options, the first on top."""
    return lambda function: functools.reduce(
        lambda done, option: option(done), reversed(options), function
    )


class _Config(click.Option):
    """An option that sets defaults of all others, unless help was asked for."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Any, args: list[str]
    ) -> tuple[Any, list[str]]:
        """Read the file before the other options ask for their defaults."""
        path, args = super().handle_parse_result(ctx, opts, args)
        help_ = ctx.command.get_help_option(ctx)
        asked = help_ is not None and opts.get(help_.name)
        if not opts.get(self.name, True) and not asked and not ctx.resilient_parsing:
            raise click.BadParameter(EMPTY, ctx, self)
        if isinstance(path, str) and path and not asked and not ctx.resilient_parsing:
            ctx.default_map = settings_of(path, ctx)
            ctx.meta[types.CONFIG] = path
        return path, args


config_opt = click.option(
    "--config",
    cls=_Config,
    is_eager=True,
    expose_value=False,
    type=click.Path(),
    default=lambda: os.environ.get(types.CONFIG),
    show_default=f"none, or {types.CONFIG}",
    metavar="FILE.toml",
    help="More options; what is typed or in the environment wins.",
)


def _verbosity(ctx: click.Context, _param: click.Parameter, value: int | bool) -> None:
    ctx.meta.setdefault("verbosity", 0)
    ctx.meta["verbosity"] += -1 if value is True else int(value)
    talk.reset(ctx.meta["verbosity"])


_loudness: dict[str, Any] = {"expose_value": False, "callback": _verbosity}
_quiet = "Say nothing but warnings and errors."
_verbose = "Say more; -vv shows tracebacks."
talk_options = _added(
    config_opt,
    click.option("-q", "--quiet", is_flag=True, help=_quiet, **_loudness),
    click.option(
        "-v", "--verbose", count=True, show_default=False, help=_verbose, **_loudness
    ),
)
"""Options that set all others, and how much is said."""


def command(function: Any) -> click.Command:
    """Make a command of a function, with the options that all commands have."""
    made = click.command(cls=Command)(function)
    made.params += click.command()(talk_options(lambda: None)).params
    return made


def without_defaults(command: click.Command, names: str, instead: str) -> None:
    """Leave options open that are not given, and say in the help what they are then."""
    for one in command.params:
        if isinstance(one, click.Option) and one.name in names.split():
            one.default, one.show_default = None, instead


def typed(ctx: click.Context, names: Iterable[str]) -> set[str]:
    """Return which options were typed; defaults and files of options are not."""
    sources = {name: ctx.get_parameter_source(name) for name in names}
    return {name for name, one in sources.items() if one and one.name == "COMMANDLINE"}


def refuse_typed(ctx: click.Context, names: str, given: str) -> None:
    """Refuse options that a graph answers; defaults and files of options give way."""
    for name in names.split():
        if typed(ctx, [name]):
            flags = {one.name: one.opts[-1] for one in ctx.command.params}
            raise ParameterError(
                f"{flags[name]} and {given}: the graph says that already; leave one out"
            )


def reading(*options: Decorator) -> Decorator:
    """Add options about files, whose values the function takes as one, `files`."""
    known = {"format", "no_clobber", "header", "ids", "id_column", "delimiter"}
    known |= {"decimal", "drop", "missing"}

    def add(function: Any) -> Any:
        @functools.wraps(function)
        def call(**given: Any) -> Any:
            told = {name: given.pop(name) for name in known if name in given}
            return function(files=Files(**told), **given)

        return _added(*options)(call)

    return add


def format_of(what: str) -> Decorator:
    """Make the option for the format of one file."""
    return click.option("--format", metavar="NAME", help=f"Format of {what}, for '-'.")


_format_opt = click.option(
    "--format",
    metavar="NAME",
    help="Format of '-' or of a file whose name does not say; IN,OUT for both.",
)
_column_opts = (
    click.option(
        "--id-column",
        metavar="NAME|NUMBER",
        show_default="'id', where it holds words",
        help="Column of a table with row names.",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        show_default="look",
        help="Whether a text table has a header row.",
    ),
    click.option(
        "--delimiter",
        show_default="look",
        help="Between the fields of a text table.",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        show_default="a point",
        help="Before the decimals of a text table's numbers.",
    ),
)
_drop_opt = click.option(
    "--drop",
    multiple=True,
    metavar="NAME|NUMBER,...",
    help="Columns of a table that are left out; repeatable.",
)
_missing_opt = click.option(
    "--missing",
    type=click.Choice(["drop-rows", "drop-columns", "mean"]),
    show_default="refuse",
    help="Where features lack values: leave out rows or columns, or fill in the "
    "column's mean.",
)


def ids_of(what: str, flag: str = "--ids") -> Decorator:
    """Make the option for a file with names of rows."""
    return file(
        flag,
        f"Names of {what}: a file with one a line, a column of a table, or an array.",
    )


_ids_opt = ids_of("the rows")
for_features = reading(_format_opt, _ids_opt, *_column_opts, _drop_opt, _missing_opt)
"""Options for reading tables with features, and other inputs."""

unlabeled = click.option(
    "--unlabeled", metavar="VALUE", help="One more value that is no label."
)

for_labels = reading(_format_opt, *_column_opts)
"""Options for reading tables with one value per row, and other inputs."""

for_labels_only = reading(*_column_opts)
"""The same where the format of another file is given by itself."""

drawn = _added(
    file(
        "--clusters", "Clusters that color the nodes: what 'nnkgraph cluster' writes."
    ),
    file(
        "--audit",
        "Findings that mark nodes: what 'nnkgraph audit' writes, .csv or .parquet.",
        metavar="FILE",
    ),
    click.option(
        "--sample",
        type=types.whole(1),
        default=20_000,
        help="Of more nodes so many are drawn, of every cluster its share.",
    ),
    seed("For the sample."),
)
"""Options for drawing the nodes of a graph."""

for_graph = reading(format_of("GRAPH"))
"""Options for reading a graph."""


def settings_of(path: str, ctx: click.Context) -> dict[str, Any]:
    """Return what a file sets for a command, by the names of its parameters.

    All names in the file are checked, also those that are for other commands.
    """
    content, command = _read(path), ctx.info_name or ""
    known = {command: _options(ctx.command)}
    if ctx.parent and isinstance(group := ctx.parent.command, click.Group):
        for name in group.list_commands(ctx.parent):
            if one := group.get_command(ctx.parent, name):
                known[name] = _options(one)
    tables = {key: one for key, one in content.items() if isinstance(one, dict)}
    shared = {key: one for key, one in content.items() if key not in tables}
    _check_names(
        f"{path}: key", shared, {name for some in known.values() for name in some}
    )
    _check_names(f"{path}: table", tables, known, "command")
    for name, table in tables.items():
        _check_names(f"{path}: [{name}] key", table, known[name])
    own = known[command]
    shared = {key: one for key, one in shared.items() if _spelled(key) in own}
    settings = _settings(f"{path}: key", shared, own)
    settings |= _settings(f"{path}: [{command}] key", tables.get(command, {}), own)
    if types.WORKERS in os.environ:  # the environment stands above the file
        settings.pop("workers", None)
    return settings


def _read(path: str) -> dict[str, Any]:
    import tomllib

    try:
        with Path(path).open("rb") as file:
            text = file.read(_LONGEST + 1)
    except OSError as error:
        what = (error.strerror or str(error)).lower()
        raise ParameterError(f"{path}: cannot be read as --config: {what}") from error
    if len(text) > _LONGEST:
        raise ParameterError(f"{path}: is too long for a file of options")
    try:
        return tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        what = " ".join(str(error).split())
        raise ParameterError(f"{path}: is not TOML: {what}") from error


def _options(command: click.Command) -> dict[str, click.Option]:
    """Return the options that a file can set, by all of their names."""
    return {
        _spelled(name.lstrip("-")): one
        for one in command.params
        if isinstance(one, click.Option) and one.name != "config"
        for name in one.opts
    }


def _spelled(key: str) -> str:
    return key.replace("_", "-")


def _check_names(
    what: str, given: Iterable[str], known: Iterable[str], kind: str = "option"
) -> None:
    for key in given:
        if _spelled(key) not in known:
            close = get_close_matches(_spelled(key), list(known), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ParameterError(f"{what} {key!r} is the name of no {kind}{hint}")


def _settings(
    where: str, given: dict[str, Any], options: dict[str, click.Option]
) -> dict[str, Any]:
    """Return the values of some keys as words, by the names of their parameters."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        option = options[_spelled(key)]
        name = option.name or ""
        if name in found:
            raise ParameterError(f"{where} {key!r} sets an option for the second time")
        wanted, typed = _words(option, value)
        if typed is None:
            shown = f"{str(value)[:40]!r} ({type(value).__name__})"
            raise ParameterError(f"{where} {key!r} has to be {wanted}, not {shown}")
        found[name] = typed
    return found


def _words(option: click.Option, value: Any) -> tuple[str, Any]:
    """Return what an option takes, and a value as if typed; None where it is not so."""
    if option.is_flag:
        return "true or false", value if isinstance(value, bool) else None
    if option.count:
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return "a number from 0 on", value if whole else None
    if not option.multiple:
        return "text or a number", _word(value)
    several = [_word(one) for one in (value if isinstance(value, list) else [value])]
    return "text, a number or a list of them", None if None in several else several


def _word(value: Any) -> str | None:
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if plain else None
