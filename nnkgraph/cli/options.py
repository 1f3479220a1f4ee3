"""Options that commands share, each written once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from nnkgraph import registry
from nnkgraph.cli import numbers
from nnkgraph.cli.types import (
    CONFIG,
    WORKERS,
    Memory,
    Plugin,
    ShardOf,
    Sigma,
    Workers,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorator = Callable[[Any], Any]


def plugin_option(flag: str, folder: str, default: str, help_: str) -> Decorator:
    """Make an option for one folder of plug-ins."""
    return click.option(
        flag,
        type=Plugin(folder),
        default=default,
        show_default=True,
        help=f"{help_} {choices(folder)}",
    )


def choices(folder: str) -> str:
    """Return the names of plug-ins for a help text, and where more is said."""
    return f"One of {', '.join(registry.names(folder))}: see nnkgraph list {folder}."


features_arg = click.argument("features", type=click.Path())
graph_arg = click.argument("graph", type=click.Path())
output_opt = click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="Where the result goes; '-' is stdout.",
)
k_opt = click.option(
    "-k",
    "--k",
    type=numbers.Whole(1),
    default=None,
    show_default="30, or rows - 1 where there are fewer",
    help="Candidates per node.",
)
method_opt = plugin_option("--method", "methods", "nnk", "How edges are weighed.")
kernel_opt = plugin_option(
    "--kernel",
    "kernels",
    "gaussian",
    "Similarity of two nodes; module:function is one of your own.",
)
search_opt = plugin_option("--search", "search", "auto", "How candidates are found.")
executor_opt = plugin_option(
    "--executor", "executors", "processes", "Where workers run."
)
sigma_opt = click.option(
    "--sigma",
    type=Sigma(),
    default=None,
    show_default="auto",
    help="Bandwidth of the kernel, in the features' unit, or its rule.",
)
scale_opt = click.option(
    "--scale",
    type=click.Choice(["none", "standard", "minmax", "unit"]),
    default="none",
    show_default=True,
    help="Scaling of the features before anything else.",
)
duplicates_opt = click.option(
    "--duplicates",
    type=click.Choice(["merge", "keep", "error"]),
    default="merge",
    show_default=True,
    help="Identical rows: hang copies on the first, treat each as a node, or refuse.",
)
workers_opt = click.option(
    "-j",
    "--workers",
    type=Workers(),
    default=lambda: os.environ.get(WORKERS, "auto"),
    show_default=f"auto, or {WORKERS}",
    help="Worker processes; the result does not depend on them.",
)
seed_opt = click.option(
    "--seed",
    type=numbers.Whole(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="For searches that draw at random.",
)
no_clobber_opt = click.option(
    "--no-clobber", is_flag=True, help="Refuse to replace a file that exists."
)
resume_opt = click.option(
    "--resume",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Keep finished blocks in DIR; the same line goes on where a run was ended.",
)
shard_opt = click.option(
    "--shard",
    type=ShardOf(),
    help="Do part I of N only, for 'nnkgraph merge'; auto in a task of a job array.",
)
block_timeout_opt = click.option(
    "--block-timeout",
    "patience",
    type=numbers.Number(0),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="Give up when no worker process finishes a block for so long; 0 never does.",
)
report_opt = click.option(
    "--report",
    type=click.Path(),
    metavar="FILE",
    help="Write a JSON report; '-' is stdout.",
)
memory_opt = click.option(
    "--memory",
    type=Memory(),
    default=None,
    show_default="what is there",
    help="Memory to stay within, as 800MB or 2GiB; the result does not depend on it.",
)
json_opt = click.option("--json", is_flag=True, help="Print JSON.")


class _Config(click.Option):
    """An option that sets defaults of all others, unless help was asked for."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Any, args: list[str]
    ) -> tuple[Any, list[str]]:
        """Read the file before the other options ask for their defaults."""
        path, args = super().handle_parse_result(ctx, opts, args)
        help_ = ctx.command.get_help_option(ctx)
        asked = help_ is not None and opts.get(help_.name)
        if isinstance(path, str) and path and not asked and not ctx.resilient_parsing:
            from nnkgraph.cli.config import settings_of

            ctx.default_map = settings_of(path, ctx)
            ctx.meta[CONFIG] = path
        return path, args


config_opt = click.option(
    "--config",
    cls=_Config,
    is_eager=True,
    expose_value=False,
    type=click.Path(),
    default=lambda: os.environ.get(CONFIG),
    show_default=f"none, or {CONFIG}",
    metavar="FILE.toml",
    help="More options; what is typed or in the environment wins.",
)


def talk_options(function: Any) -> Any:
    """Add --config, and -q and -v, which set how much is said."""
    from nnkgraph.cli import say

    def verbosity(
        ctx: click.Context, _param: click.Parameter, value: int | bool
    ) -> None:
        ctx.meta.setdefault("verbosity", 0)
        ctx.meta["verbosity"] += -1 if value is True else int(value)
        say.reset(ctx.meta["verbosity"])

    quiet = click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=verbosity,
        help="Say nothing but warnings and errors.",
    )
    verbose = click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        callback=verbosity,
        help="Say more; -vv shows tracebacks.",
    )
    return config_opt(quiet(verbose(function)))
