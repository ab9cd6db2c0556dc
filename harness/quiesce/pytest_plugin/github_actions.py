"""Tells GitHub Actions what leaks and what fails: annotations in the output, and a table in the step's summary."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from quiesce.model.results import Result
from quiesce.reporting import SUMMARY_BYTES_MAX, annotation_lines, checkout, finding_lines, summary

STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


def tell_github_of_cases(reporter: pytest.TerminalReporter, cases: Sequence[Result]) -> None:
    """Annotate the line of each case that fails, if this is a step of GitHub Actions."""
    folders = (reporter.config.invocation_params.dir, reporter.config.rootpath)
    if workspace := checkout(folders[-1]):
        for line in finding_lines(cases, folders, workspace):
            reporter.line(line)


def tell_github(
    reporter: pytest.TerminalReporter, checks: Sequence[Result], environ: Mapping[str, str] = os.environ
) -> None:
    """Tell what leaks, if this is a step of GitHub Actions. A summary that can't be written changes nothing."""
    folders = (reporter.config.invocation_params.dir, reporter.config.rootpath)
    workspace = checkout(folders[-1], environ)
    if workspace is None:
        return
    for line in annotation_lines(checks, folders, workspace):
        reporter.line(line)
    if path := environ.get(STEP_SUMMARY):
        text = summary(checks).encode("utf-8", "replace")
        try:
            with Path(path).open("ab") as stream:
                if stream.tell() + len(text) <= SUMMARY_BYTES_MAX:
                    stream.write(text)
        except OSError as error:
            reporter.line(f"the leak checks are not in the summary of this step: {error}")
