"""Options that commands share, each written once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from nnkgraph import registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

    Decorator = Callable[[Any], Any]


_WORKERS = "NNKGRAPH_WORKERS"


class Plugin(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """``name`` or ``name:key=value,...`` of a plug-in folder."""

    name = "spec"

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """Show the names in the help text."""
        own = "|module:function" if self.folder == "kernels" else ""
        return "|".join(registry.names(self.folder)) + "[:key=value,...]" + own

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Check the name without importing anything."""
        name = registry.full_spec(self.folder, value).partition(":")[0]
        known = registry.names(self.folder)
        if name not in known:
            self.fail(f"{name!r} is not one of {', '.join(known)}", param, ctx)
        return value

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the names."""
        return _offered(registry.names(self.folder), incomplete)


class Workers(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A number of workers, or ``auto``."""

    name = "workers"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """Show what is accepted."""
        return "N|auto"

    def convert(
        self,
        value: str | int,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | int:
        """Return "auto" or a number of at least 1."""
        if value == "auto":
            return "auto"
        general = f" (from {_WORKERS})" if value == os.environ.get(_WORKERS) else ""
        try:
            count = int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor 'auto'{general}", param, ctx)
        if count < 1:
            self.fail(f"{count} is not at least 1{general}", param, ctx)
        return count


class Sigma(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A bandwidth or the rule that finds one."""

    name = "sigma"
    rules = ("auto", "kth-max", "local", "matlab")

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """Show what is accepted."""
        return "auto|kth-max|local|matlab|NUMBER"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Check the value; the kernel gets it as it was typed."""
        if value not in self.rules:
            try:
                number = float(value)
            except ValueError:
                self.fail(f"{value!r} is neither a number nor a rule", param, ctx)
            if not 0 < number < float("inf"):
                self.fail(f"{value} is not a positive finite number", param, ctx)
        return value

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the rules."""
        return _offered(self.rules, incomplete)


def _offered(words: tuple[str, ...], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def plugin_option(flag: str, folder: str, default: str, help_: str) -> Decorator:
    """Make an option for one folder of plug-ins."""
    return click.option(
        flag, type=Plugin(folder), default=default, show_default=True, help=help_
    )


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
    type=click.IntRange(min=1),
    default=None,
    show_default="30, or rows - 1 where there are fewer",
    help="Candidates per node.",
)
method_opt = plugin_option("--method", "methods", "nnk", "How edges are weighed.")
kernel_opt = plugin_option(
    "--kernel", "kernels", "gaussian", "Similarity of two nodes."
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
    default=lambda: os.environ.get(_WORKERS, "auto"),
    show_default=f"auto, or {_WORKERS}",
    help="Worker processes; the result does not depend on them.",
)
seed_opt = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="For searches that draw at random.",
)
no_clobber_opt = click.option(
    "--no-clobber", is_flag=True, help="Refuse to replace a file that exists."
)
json_opt = click.option("--json", is_flag=True, help="Print JSON.")


def table_options(function: Any) -> Any:
    """Add the options for reading text tables and other inputs."""
    options = [
        click.option(
            "--format",
            metavar="NAME",
            help="Format of '-' or of a file whose name does not say; IN,OUT for both.",
        ),
        click.option("--delimiter", help="Between the fields of a text table."),
        click.option(
            "--header/--no-header",
            default=None,
            help="Whether a text table has a header row.  [default: look]",
        ),
        click.option(
            "--id-column",
            metavar="NAME|NUMBER",
            help="Column of a text table with row names.",
        ),
    ]
    for option in options:
        function = option(function)
    return function


def talk_options(function: Any) -> Any:
    """Add -q and -v, which set how much is said."""
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
    return quiet(verbose(function))
