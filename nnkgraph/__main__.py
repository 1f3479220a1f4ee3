"""Run as ``python -m nnkgraph``."""

from nnkgraph.cli.main import main

if __name__ == "__main__":
    main()
