"""What to try where a graph leaves nodes alone: only what was not tried yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnkgraph.pairs import DISTANCES

if TYPE_CHECKING:
    from nnkgraph.prepare import Plan


def advice(plan: Plan, settings: dict[str, Any], duplicates: str) -> str:
    """Return a half-sentence with options that fit this run, or nothing."""
    tips = []
    kernel = plan.kernel
    if kernel.nearness in {"inner-product", "absolute-product"}:
        if settings["scale"] != "unit":
            tips.append("--scale unit, because inner products favor long rows")
        tips.append("--kernel cosine")
    if settings["min_degree"] == 0 and plan.rule != "none":
        tips.append("--min-degree 3")
    if plan.rule == "error":
        tips.append("--symmetrize error-union")
    local = getattr(kernel, "sigma", None) in {None, "local"}
    if kernel.nearness in DISTANCES and not local and plan.method.local:
        tips.append("--sigma local")
    if "connect" not in settings and plan.rule != "none":
        tips.append("--connect mst")
    if duplicates == "keep":
        tips.append("--duplicates merge")
    if not tips:
        return ""
    *others, last = tips
    return f"; try {', '.join(others)} or {last}" if others else f"; try {last}"
