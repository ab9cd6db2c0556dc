from __future__ import annotations

import base64
import hashlib
import zlib
from importlib import import_module

import pytest

from quiesce.reporting.page.plot_library import load_plot_library, script_digest

pytest.importorskip("plotly", reason="Plotly is not installed")


def test_the_library_is_packed_whole_and_named_by_its_hash() -> None:
    library = load_plot_library()
    script = zlib.decompress(base64.b64decode(library.packed))
    assert script.decode("utf-8") == import_module("plotly.offline").get_plotlyjs()
    assert library.digest == "sha256-" + base64.b64encode(hashlib.sha256(script).digest()).decode()
    assert len(library.packed) < 2_500_000


def test_the_digest_is_the_one_of_the_specification() -> None:
    # The example of CSP Level 3, section "Usage of hash-source": alert('Hello, world.');
    assert script_digest("alert('Hello, world.');") == "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng="
