"""Plotly, packed into the page, so that a timeline is drawn without a network and unpacked only when one is shown."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from quiesce.reporting.page.packing import pack


@dataclass(frozen=True, slots=True)
class PlotLibrary:
    """``packed`` is the script as :func:`quiesce.reporting.page.packing.pack` packs it.

    ``digest`` names it in the page's policy.
    """

    packed: str
    digest: str


@cache
def load_plot_library() -> PlotLibrary:
    """Return Plotly as installed; packing it takes half a second, once. Raises :class:`ImportError` where it is not."""
    script: str = import_module("plotly.offline").get_plotlyjs()
    return PlotLibrary(pack(script), script_digest(script))


def script_digest(script: str) -> str:
    """Return the hash of an inline script as the policy of a page states it (CSP Level 3, hash-source)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
