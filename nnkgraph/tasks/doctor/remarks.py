"""What ``build`` says about columns, so that nobody has to ask the doctor first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.tasks.doctor._columns import describe_columns
from nnkgraph.tasks.doctor._columnwords import remarks

if TYPE_CHECKING:
    from nnkgraph.data import Features

_MOST_VALUES = 10**7
"""More are not looked at in passing."""


def column_remarks(features: Features, kernel: str, scale: str) -> list[str]:
    """Return what to know of a key among the features, and of scales far apart.

    Only columns with names are a table of all sorts of things.
    """
    if features.columns is None or scale != "none" or features.x.size > _MOST_VALUES:
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        columns = describe_columns(features, kernel)
    return list(remarks(columns, named=features.ids is not None)) if columns else []
