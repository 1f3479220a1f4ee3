"""A command of ours: its help has headings, and frequent slips get a hint."""

import click

from nnkgraph.cli import talk

_HEADINGS = {
    "Input": "--features --labels --truth --unlabeled --test --test-labels --split "
    "--test-size --add --remove --graph --coords --beside --values --ids "
    "--query-ids --test-ids --add-ids --id-column --drop --missing --header "
    "--delimiter --decimal --format --scale --pca "
    "--duplicates",
    "Neighbors": "--like --preset --k --method --kernel --sigma --lc --cv --search "
    "--min-recall --grow --max-k --k-check --normalize --exclude-identical "
    "--self-first",
    "Edges": "--symmetrize --min-weight --min-degree --weights --connect",
    "Picture": "--what --edges --axes --view --title",
    "Output": "--output --write-features --into --key-added --updatable --round "
    "--no-clobber --report --json",
    "Running": "--workers --executor --memory --resume --shard --block-timeout --seed "
    "--dry-run",
    "General": "--config --quiet --verbose --help",
}
"""Where options stand; what is not here is a command's own and stands first."""

_HEADING_OF = {
    flag: heading for heading, flags in _HEADINGS.items() for flag in flags.split()
}
_FLAGS = list(_HEADING_OF)
_OWN = "Options"
EMPTY = "the name of a file is empty; is a variable of a script not set?"

_FEW = 10
"""Options that need no headings."""

_FLAGS_WIDTH = 24
"""Columns for the names of options; longer ones have a line of their own."""


class Helpful(click.Command):
    """A command whose help is printed as all data is: a full disk is said, too."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return Click's option, which prints by itself."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option


def _show_help(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        talk.data(ctx.get_help())
        ctx.exit()


class Command(Helpful):
    """A command that lists its options under headings."""

    def grouped(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the options that are shown, by heading."""
        options = [
            one
            for one in self.get_params(ctx)
            if isinstance(one, click.Option) and not one.hidden
        ]
        if len(options) < _FEW:
            return {_OWN: options}
        found: dict[str, list[click.Option]] = {}
        for option in sorted(options, key=_place):
            at = _place(option)
            heading = _OWN if at < 0 else _HEADING_OF[_FLAGS[at]]
            found.setdefault(heading, []).append(option)
        return found

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options, in columns that all headings share."""
        records = {
            heading: [one.get_help_record(ctx) or ("", "") for one in options]
            for heading, options in self.grouped(ctx).items()
        }
        widths = [len(flags) for rows in records.values() for flags, _ in rows]
        width = max(one for one in widths if one <= _FLAGS_WIDTH)
        for heading, rows in records.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(flags.ljust(width), text) for flags, text in rows], col_max=width
                )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse -output X and -o=X, which Click takes for -o utput and for -o =X."""
        known = {flag for one in self.get_params(ctx) for flag in one.opts}
        for word in () if ctx.resilient_parsing else args:
            if word == "--":
                break
            name, equals, value = word.partition("=")
            if len(name) > 2 and f"-{name}" in known:
                ctx.fail(f"no such option {name}; did you mean -{name}?")
            if len(name) == 2 and equals and name in known:
                ctx.fail(f"{word}: write {name} {value}, without '='")
        talk.state.command = ctx.info_name or ""
        rest = super().parse_args(ctx, args)
        talk.state.resume = ctx.params.get("resume") or ""
        for one in () if ctx.resilient_parsing else self.get_params(ctx):
            if isinstance(one.type, click.Path) and _is_empty(ctx.params.get(one.name)):
                raise click.BadParameter(EMPTY, ctx, one)
        return rest


def _is_empty(given: object) -> bool:
    return given == "" or (isinstance(given, tuple) and "" in given)


def _place(option: click.Option) -> int:
    """Return where an option stands among all that have a heading, or -1."""
    return max(_FLAGS.index(flag) if flag in _FLAGS else -1 for flag in option.opts)
