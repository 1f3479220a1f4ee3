"""nnkgraph warm: compile beforehand."""

import click

import nnkgraph
from nnkgraph.cli import options, talk
from nnkgraph.errors import QualityError


@options.command
@click.argument("folder", metavar="[DIR]", required=False)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also what few people use: every method and kernel, sparse rows, pynndescent.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Compile nothing; exit code 6 where a run would have to.",
)
@options.shared("workers json")
def command(
    folder: str | None,
    everything: bool,
    check: bool,
    workers: int | str,
    json: bool,
) -> None:
    """Compile everything beforehand, so that runs start at once.

    Into the cache of this machine or, for many machines and users, into DIR: runs that
    have NNKGRAPH_CACHE=DIR in their environment read it and never write to it. DIR and
    the folders above it must belong to you or root, and nobody else may write to them.
    The code is for processors of level x86-64-v3 (AVX2) or newer, or for those like
    this one if it is older; NNKGRAPH_CPU=x86-64-v2, -v4 or native changes that, and
    has to be the same for the runs.

    \b
    Examples:
      nnkgraph warm
      nnkgraph warm --all /opt/nnkgraph-cache
      NNKGRAPH_CACHE=/opt/nnkgraph-cache nnkgraph warm --check
    """
    if not check:
        talk.summary("compiling: a minute or two where nothing is there yet")
    found = nnkgraph.warm(folder, everything=everything, check=check, workers=workers)
    if json:
        talk.data(talk.json_text(found.as_dict()))
    size = f"{found.files} files, {found.bytes / 1e6:.1f} MB, for {found.cpu}"
    place = folder or found.folder
    if check and not found.warm:
        raise QualityError(
            f"{place}: a run would have to compile {found.compiled[0]} first ({size}); "
            "run nnkgraph warm"
        )
    done = "nothing to compile"
    if not found.warm:
        done = f"{len(found.compiled)} functions compiled in {found.seconds:.1f} s"
    talk.summary(f"{place}: {done}; {size}")
