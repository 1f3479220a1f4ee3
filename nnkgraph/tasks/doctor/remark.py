"""What ``build`` says about columns, so that nobody has to ask the doctor first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.tasks.doctor._columns import describe_columns
from nnkgraph.tasks.doctor._columnwords import remark

if TYPE_CHECKING:
    from nnkgraph.data import Features

_MOST_VALUES = 10**7
"""More are not looked at in passing."""


def column_remark(features: Features, kernel: str, scale: str) -> str:
    """Return a remark on a key among the features or on scales far apart, or "".

    Only columns with names are a table of all sorts of things.
    """
    if features.columns is None or scale != "none" or features.x.size > _MOST_VALUES:
        return ""
    with np.errstate(over="ignore", invalid="ignore"):
        columns = describe_columns(features, kernel)
    return remark(columns) if columns else ""
