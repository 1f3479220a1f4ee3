"""The paper's experiments, run again with nnkgraph.

``python -m paper`` (or ``make paper``) writes tables and figures, with the published
numbers beside ours. README.md in this folder says what there is and how long it takes.
"""
