"""The hooks that a conftest can implement."""

from __future__ import annotations

import pytest

from .conftest import BAD, Project


def test_a_backend_can_be_replaced(project: Project) -> None:
    project.write(
        "conftest.py",
        "import lent\ndef pytest_quiesce_backend(name, backend):\n"
        "    assert backend.describe().name == name\n"
        "    return lent.bare() if name == 'host' else None\n",
    )
    result = project.run("-v", "--quiesce-backend=host", "--quiesce-backend=reference")
    result.stdout.fnmatch_lines(
        [
            "*good.case::reference PASSED*",
            "host              0       0       0       0            1 *",
            "reference         1       1       0       0            0 *",
        ]
    )


def test_a_result_can_be_adjusted(project: Project) -> None:
    project.write("cases/pool/refused.case", BAD)
    project.write(
        "conftest.py",
        "import dataclasses\nfrom quiesce.model.results import Verdict\n"
        "def pytest_quiesce_adjust_result(result):\n"
        "    if result.verdict is Verdict.FAILED:\n"
        "        return dataclasses.replace(result, verdict=Verdict.KNOWN_UPSTREAM, reason='example/project#1')\n",
    )
    result = project.run("-rs", "--quiesce-backend=host")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*cases/pool/refused.case:1: known upstream: example/project#1 (on 'host')"])


@pytest.mark.long
@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_report_is_seen_once(project: Project, workers: str) -> None:
    project.write("cases/pool/refused.case", BAD)
    project.write(
        "conftest.py",
        "def pytest_quiesce_report(report):\n"
        "    print('SEEN', report.seed, [(each.case, str(each.verdict)) for each in report.results])\n",
    )
    result = project.run_apart("-s", "-n", workers, "--quiesce-backend=host", "--quiesce-seed=5")
    seen = [line.partition("SEEN")[2] for line in result.outlines if "SEEN" in line]
    assert seen == [" 5 [('pool/good', 'passed'), ('pool/refused', 'failed')]"]
