"""Plotly and the values it draws, packed into the page: drawn without a network, unpacked only when shown."""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import dataclass
from functools import cache
from importlib import import_module


def pack(text: str) -> str:
    """Return text compressed (RFC 1950) and in base64, for ``atob`` and ``DecompressionStream("deflate")``."""
    return base64.b64encode(zlib.compress(text.encode("utf-8"), level=9)).decode("ascii")


@dataclass(frozen=True, slots=True)
class PlotLibrary:
    """``packed`` is the script as :func:`quiesce.reporting.page.plot_library.pack` packs it.

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
