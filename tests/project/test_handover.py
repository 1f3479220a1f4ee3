"""The lines of docs/migration.md for other programs, where those are installed."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROGRAM, SAMPLES

PAGE = (SAMPLES.parent / "docs" / "migration.md").read_text()
BLOCK = r"^```(\w+)( [\w. ]+)?\n(.*?)^```"
FOUND = re.findall(
    BLOCK, PAGE.partition("# Going on in other tools")[2], re.MULTILINE | re.DOTALL
)
OTHERS = [(kind, needs.split(), text) for kind, needs, text in FOUND if needs]


def done(line, folder):
    """Run a line in a folder; return what it says where it fails."""
    path = f"{Path(PROGRAM).parent}{os.pathsep}{os.environ['PATH']}"
    found = subprocess.run(
        line,
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return found.stdout if found.returncode else ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("files")
    shutil.copytree(SAMPLES, made / "sample_data")
    (lines,) = (text for kind, _, text in FOUND if kind == "sh")
    assert not done(["bash", "-euc", lines], made)
    return made


def missing(kind, needs):
    """Return which of the packages are not there."""
    if kind == "python":
        return [name for name in needs if importlib.util.find_spec(name) is None]
    if not shutil.which("Rscript"):
        return ["R"]
    asked = "".join(f"stopifnot(requireNamespace('{name}'));" for name in needs)
    return needs if done(["Rscript", "-e", asked], None) else []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("kind", "needs", "text"), OTHERS, ids=["-".join([a, *b]) for a, b, _ in OTHERS]
)
def test_other_programs_take_our_files(kind, needs, text, folder):
    lacking = missing(kind, needs)
    if lacking:
        pytest.skip(f"not installed: {', '.join(lacking)}")
    line = [sys.executable, "-c"] if kind == "python" else ["Rscript", "-e"]
    assert not done([*line, text], folder)


def test_every_program_has_its_lines():
    names = {name for _, needs, _ in OTHERS for name in needs}
    assert names >= {"umap", "openTSNE", "phate", "cleanlab", "hdbscan", "igraph"}


def test_the_arrays_are_those_that_geometric_packages_take(folder):
    """Looked at without torch, which is large."""
    import numpy as np

    with np.load(folder / "graph.pyg.npz") as made:
        edges, weights = made["edge_index"], made["edge_weight"]
        assert edges.dtype == np.int64
        assert edges.shape == (2, len(weights))
        assert edges.max() < made["num_nodes"] == 1797
    there, back = ({*map(tuple, one.T.tolist())} for one in (edges, edges[::-1]))
    assert there == back
    assert len(there) == len(weights)


def test_rows_begin_with_themselves_and_go_on_with_the_nearest(folder):
    import numpy as np

    import nnkgraph

    with np.load(folder / "knn.npz") as knn:
        index, distance = knn["neighbors"], knn["distances"]
    found = nnkgraph.find_candidates(
        nnkgraph.read_features(folder / "sample_data/digits.h5::features"),
        k=15,
        duplicates="keep",
    )
    assert (index[:, 0] == np.arange(len(index))).all()
    assert not distance[:, 0].any()
    assert (index[:, 1:] == found.index).all()
    assert (distance[:, 1:] == found.distance).all()


def test_distances_of_a_graph_are_a_symmetric_matrix(folder):
    import numpy as np

    import nnkgraph
    from nnkgraph.errors import ParameterError

    graph = nnkgraph.read_graph(folder / "union.npz")
    lengths = graph.to_scipy("distance")
    assert (lengths != lengths.T).nnz == 0
    assert (lengths.indices == graph.adjacency.indices).all()
    x = nnkgraph.read_features(folder / "sample_data/digits.h5::features").x
    row, column = lengths.nonzero()
    true = np.linalg.norm(x[row] - x[column], axis=1)
    np.testing.assert_allclose(lengths[row, column], true)
    with pytest.raises(ParameterError, match="'weight' or 'distance'"):
        graph.to_scipy("length")
    with pytest.raises(ParameterError, match="has no distances"):
        nnkgraph.build_graph(x[:50], k=5, kernel="linear").to_scipy("distance")
