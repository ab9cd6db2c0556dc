"""The projects that pages show are no tests."""

from __future__ import annotations

collect_ignore = ["stand_ins"]
