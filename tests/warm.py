"""Fill the cache of compiled code before tests start, unless that was done before."""

import nnkgraph
from nnkgraph.runtime import cache

if __name__ == "__main__":
    # The folder's name changes with the sources, and with it what was done.
    mark = cache.private() / "warm-all"
    if not mark.exists():
        nnkgraph.warm(everything=True)
        mark.touch()
