"""Opening text, compressed or not, so that damage is told with its place."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import zlib
from typing import TYPE_CHECKING, BinaryIO, TextIO

from nnkgraph.errors import InputError
from nnkgraph.formats._source import expect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nnkgraph.formats._source import Source


@contextlib.contextmanager
def open_bytes(source: Source, *kinds: str) -> Iterator[BinaryIO]:
    """Open content that may be gzip-compressed, whatever its name says.

    Raises
    ------
    InputError
        Where the content looks like none of `kinds`, or the compressed data ends
        early or is damaged, found anywhere in the block.
    """
    packed = expect(source, *kinds, "gz") == "gz"
    try:
        with source.open() as raw, gzip.GzipFile(fileobj=raw, mode="rb") as unpacked:
            if packed:
                head = unpacked.read(len(source.head))
                expect(dataclasses.replace(source, head=head, size=len(head)), *kinds)
                unpacked.seek(0)
            yield unpacked if packed else raw  # type: ignore[misc]
    except (EOFError, OSError, zlib.error) as error:
        what = "the gzip-compressed data is damaged" if packed else "cannot be read"
        raise InputError(f"{source.name}: {what}: {error}") from error


@contextlib.contextmanager
def open_text(
    source: Source, *kinds: str, newline: str | None = None
) -> Iterator[TextIO]:
    """Open UTF-8 text, with or without a byte order mark."""
    with open_bytes(source, *kinds) as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig", newline=newline)
        try:
            yield text
        except UnicodeDecodeError as error:
            raise InputError(
                f"{source.name}: line {_undecodable(stream)} is not UTF-8; save the "
                "file as UTF-8 text"
            ) from error
        finally:
            # The stream is closed by its owner; the wrapper must not do it twice.
            text.detach()


@contextlib.contextmanager
def write_text(stream: BinaryIO, *, packed: bool) -> Iterator[Callable[[str], object]]:
    """Give a function that writes text as UTF-8.

    Compressed data carries neither a time nor a file name.
    """
    with contextlib.ExitStack() as stack:
        if packed:
            # Level 6 costs a third of level 9 for the same size within 1 %.
            writer = gzip.GzipFile("", "wb", 6, stream, mtime=0)
            stream = stack.enter_context(writer)  # type: ignore[assignment]
        yield lambda text: stream.write(text.encode("utf-8"))


def _undecodable(stream: BinaryIO) -> int:
    stream.seek(0)
    number = 0
    for number, line in enumerate(stream, 1):  # noqa: B007 - its last value counts
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            break
    return number
