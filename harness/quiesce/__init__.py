"""Regression tests for GPU and host memory management; what an installation offers is in README.md."""

from quiesce.marking import mark as mark
