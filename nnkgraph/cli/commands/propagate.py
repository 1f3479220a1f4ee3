"""nnkgraph propagate: from few labels to labels of all nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

import nnkgraph
from nnkgraph.cli import options, progress, talk, types
from nnkgraph.cli.files import Files, read_graph, say_order
from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from nnkgraph.tasks.propagate import Propagated

_MANY = 500  # steps that multigrid saves most of


@options.command
@options.graph_arg
@options.file(
    "--labels",
    "A class per node, missing for some: empty, NaN, NA, or -1 among 0, 1, ....",
    required=True,
)
@options.output(
    "Labels of all nodes: .csv, .tsv or .npz; '-' is stdout, as .csv.", required=True
)
@options.words(
    "--laplacian",
    "combinatorial normalized",
    "combinatorial",
    "D - W, or I - D^-1/2 W D^-1/2.",
)
@options.solver
@options.file(
    "--truth", "True classes: also say how many of the predicted ones are wrong."
)
@click.option(
    "--sample",
    "share",
    type=types.number(0, 1, inside=True),
    metavar="SHARE",
    help="Keep this share of each class's labels, one at least; the others are the "
    "truth.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Leave out every known label in turn; OUTPUT says what it would be.",
)
@options.seed("For --sample, and for the folds of --check.")
@click.option(
    "--unlabeled",
    "--missing",
    "unlabeled",
    metavar="VALUE",
    envvar="NNKGRAPH_PROPAGATE_MISSING",
    help="One more value that is no label.",
)
@options.for_labels
@options.shared("no_clobber json")
def command(
    graph: str,
    labels: str,
    output: str,
    laplacian: str,
    solver: str,
    truth: str | None,
    share: float | None,
    check: bool,
    seed: int,
    files: Files,
    json: bool,
    unlabeled: str | None,
) -> None:
    """Propagate LABELS over GRAPH by harmonic functions.

    Every class weighs at a node what it weighs at the neighbors on average; the
    heaviest class is the node's. Its confidence is its share of all class weights.
    Nodes that no label reaches stay empty, and are counted.

    The file is .csv or .tsv (id, label, confidence, given, a weight per class where
    there are 50 or fewer) or .npz.

    --check is about the labels that are there: the file has id, label, the confidence
    that the others give to it when it is left out, and the class they suggest. That is
    exact where it is cheap, such as when most nodes have labels; else a tenth of the
    labels is left out at a time, and is said to be.

    \b
    Examples:
      nnkgraph propagate graph.npz --labels some.csv::kind -o all.csv
      nnkgraph propagate graph.npz --labels y.npy --sample 0.05 -o all.npz
      nnkgraph propagate graph.npz --labels y.npy --truth z.npy -o all.csv --json
      nnkgraph propagate graph.npz --labels y.npy --check -o checked.csv
    """
    from nnkgraph.tasks.propagate import sample
    from nnkgraph.tasks.tables import LABEL_SUFFIXES, check_content, label_content

    if check and truth is not None:
        raise ParameterError("--check is about --labels alone: leave out --truth")
    if truth is not None and share is not None:
        raise ParameterError(
            "--sample takes the truth from --labels: leave out --truth"
        )
    files.expect(labels, truth, others=[graph])
    files.check_table(output, LABEL_SUFFIXES, json=json)
    nodes = read_graph(graph, files.format)
    meaning: Any = {"missing": unlabeled, "minus_one": True, "known": nodes.ids}
    known = files.labels(labels, **meaning)
    real = files.labels(truth, **meaning) if truth else None
    say_order(graph, nodes.ids, known, real)
    some = known.for_rows(nodes.n_nodes, nodes.ids, graph)
    real = real and real.for_rows(nodes.n_nodes, nodes.ids, graph)
    if share is not None:
        some, real = replace(some, codes=sample(some.codes, share, seed)), some
    found = nnkgraph.propagate(
        nodes,
        some,
        laplacian=laplacian,
        solver=solver,
        check=check,
        seed=seed,
        name=graph,
        progress=progress.Progress(),
    )
    own = found.checked
    if own is None:
        content = label_content(output, nodes, found, some.classes)
    else:
        content = check_content(output, nodes, own, some.classes)
    checked = _checked(found, some, None if own else real)
    files.write(output, content)
    drawn = {} if share is None else {"sample": share, "seed": seed}
    about = {**found.facts, "classes": list(some.classes), **drawn, "error": checked}
    if own is not None:
        about["check"] = own.facts
    _say(graph, output, labels, about)
    if json:
        talk.data(talk.json_text(about))


def _checked(
    found: Propagated, some: nnkgraph.Labels, real: nnkgraph.Labels | None
) -> dict[str, Any] | None:
    """Compare with the truth, where there is one."""
    from nnkgraph.tasks.propagate import errors

    if real is None:
        return None
    strange = sorted(set(real.classes) - set(some.classes))
    if strange:
        talk.warning(
            f"{real.name}: no label has {len(strange)} of the true classes, such as "
            f"{strange[0]!r}; they count as wrong"
        )
    counts = errors(found, real.in_terms_of(some.classes), real.known)
    if counts is None:
        talk.warning(f"{real.name}: no node without a label has a true class to check")
    return counts


def _say(graph: str, output: str, labels: str, about: dict[str, Any]) -> None:
    stepped = about["cg_nodes"]
    how = f"conjugate gradients, {about['cg_steps']} steps" if stepped else "factored"
    if about["cg_steps"] >= _MANY:
        how += " (--solver amg takes fewer)"
    bound = about["error_bound"]
    good = "" if bound is None else f", error below {max(bound, 1e-16):.0e}"
    talk.summary(
        f"{graph}: {about['nodes']} nodes, {about['labelled']} labels of "
        f"{len(about['classes'])} classes, {about['laplacian']} Laplacian, {how}{good}"
    )
    if check := about.get("check"):
        _say_check(output, check)
        if len(about["classes"]) == 1:
            talk.warning(f"{labels}: there is only one class: a check says nothing")
        return
    talk.summary(
        f"{output}: {about['predicted']} nodes predicted, unreached: "
        f"{about['unreached']}"
    )
    if not about["predicted"] + about["unreached"]:
        talk.warning(
            f"{output}: every node has a label already; name what stands for none with "
            "--unlabeled"
        )
    if about["unreached"]:
        talk.warning(
            f"{output}: {about['unreached']} of {about['nodes']} nodes get no label: "
            f"their {about['unreached_components']} components hold none"
        )
    if len(about["classes"]) == 1:
        talk.warning(f"{labels}: there is only one class, and every node gets it")
    if error := about["error"]:
        share = error["of_reached"]
        part = "" if share is None else f"error {share:.2%} of the reached, "
        talk.summary(
            f"{part}{error['of_all']:.2%} with unreached counted wrong "
            f"({error['right']} right, {error['wrong']} wrong, {error['unreached']} "
            f"unreached of {error['checked']})"
        )


def _say_check(output: str, check: dict[str, Any]) -> None:
    how = "each left out by itself"
    if check["how"] == "folds":
        how = f"left out in {check['folds']} folds: one by one would cost too much"
    talk.summary(
        f"{output}: {check['labels']} labels, {how}; the others suggest another class "
        f"for {check['others']}"
    )
    if check["unreached"]:
        talk.warning(
            f"{output}: {check['unreached']} labels are not checked: no other label "
            "reaches their nodes"
        )
