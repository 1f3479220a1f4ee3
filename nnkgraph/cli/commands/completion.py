"""nnkgraph completion: what the shell offers when the tab key is pressed."""

import os
import sys
from pathlib import Path, PurePath
from shlex import quote

import click

from nnkgraph.cli import options, talk
from nnkgraph.errors import OutputError

_SHELLS = ("bash", "zsh", "fish")


@options.command
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
@click.option("--install", is_flag=True, help="Set it up for new shells.")
def command(shell: str | None, install: bool) -> None:
    """Complete words in a shell: print the script, or set it up.

    Without SHELL it is the one that $SHELL names. --install writes the script to a file
    of its own and, for bash and zsh, one line into the shell's start-up file; a second
    time it changes nothing.

    \b
    Examples:
      nnkgraph completion --install
      nnkgraph completion zsh
    """
    shell = shell or PurePath(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        raise click.UsageError(
            f"$SHELL names none of {', '.join(_SHELLS)}: say which one it is"
        )
    script = _script(shell)
    if not install:
        talk.data(script)
        if sys.stdout is not None and sys.stdout.isatty():
            here = f'eval "$(nnkgraph completion {shell})"'
            if shell == "fish":
                here = "nnkgraph completion fish | source"
            talk.summary(f"this shell:  {here}")
            talk.summary(f"new shells:  nnkgraph completion {shell} --install")
        return
    place, startup = _places(shell)
    changed = []
    try:
        if _write(place, script):
            changed.append(place)
        if startup and _add(startup, _line(shell, place)):
            changed.append(startup)
    except OSError as error:
        what = (error.strerror or str(error)).lower()
        raise OutputError(f"{error.filename}: cannot be written: {what}") from error
    for path in changed:
        talk.summary(f"{path}: {'a line was added' if path == startup else 'written'}")
    talk.summary(f"new {shell} shells complete nnkgraph's words")


def _script(shell: str) -> str:
    from click.shell_completion import get_completion_class

    from nnkgraph.cli import main

    complete = get_completion_class(shell)
    if complete is None:
        raise click.UsageError(f"this version of Click knows no {shell}")
    return complete(main.cli, {}, "nnkgraph", main.COMPLETE).source().strip() + "\n"


def _places(shell: str) -> tuple[Path, Path | None]:
    """Return where the script goes, and the start-up file that has to name it."""
    home = Path.home()
    if shell == "fish":  # looks there by itself
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return config / "fish" / "completions" / "nnkgraph.fish", None
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    folder = home if shell == "bash" else Path(os.environ.get("ZDOTDIR") or home)
    return data / "nnkgraph" / f"completion.{shell}", folder / f".{shell}rc"


def _line(shell: str, place: Path) -> str:
    """Return the line that loads a script, if it is still there."""
    path = quote(str(place))
    ready = ""
    if shell == "zsh":  # where its completion was not switched on yet
        ready = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }; "
    return f"[ -r {path} ] && {{ {ready}. {path}; }}  # nnkgraph completion"


def _write(path: Path, text: str) -> bool:
    """Write a file whole, unless that is what it holds; return whether it was."""
    if path.is_file() and path.read_bytes() == text.encode():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
    return True


def _add(path: Path, line: str) -> bool:
    """Add a line to a file of the user's, unless it is there; return whether it was."""
    known = path.read_bytes() if path.is_file() else b""
    if line.encode() in known.splitlines():
        return False
    gap = "" if not known or known.endswith(b"\n") else "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{gap}{line}\n")
    return True
