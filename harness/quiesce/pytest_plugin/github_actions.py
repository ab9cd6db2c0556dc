"""Tells GitHub Actions what leaks: annotations in the output, and a table in the step's summary."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from quiesce.reporting.github import SUMMARY_BYTES_MAX, annotation_lines, summary
from quiesce.results import Result

ACTIONS: Final = "GITHUB_ACTIONS"
WORKSPACE: Final = "GITHUB_WORKSPACE"
STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


def tell_github(
    reporter: pytest.TerminalReporter, checks: Sequence[Result], environ: Mapping[str, str] = os.environ
) -> None:
    """Tell what leaks, if this is a step of GitHub Actions. A summary that can't be written changes nothing."""
    if environ.get(ACTIONS) != "true":
        return
    folders = (reporter.config.invocation_params.dir, reporter.config.rootpath)
    for line in annotation_lines(checks, folders, Path(environ.get(WORKSPACE, folders[-1]))):
        reporter.line(line)
    if path := environ.get(STEP_SUMMARY):
        text = summary(checks).encode("utf-8", "replace")
        try:
            with Path(path).open("ab") as stream:
                if stream.tell() + len(text) <= SUMMARY_BYTES_MAX:
                    stream.write(text)
        except OSError as error:
            reporter.line(f"the leak checks are not in the summary of this step: {error}")
