"""What a failure looks like, to the letter."""

from __future__ import annotations

import sys
from pathlib import Path

from .conftest import Project

SQUEEZE = """\
title:    A pool gives its cached blocks back before it reports out of memory
upstream: NVIDIA/cccl#4222, fixed by #4420, first release 3.1.0
fault:    pool.no_squeeze
finds:    request_fits_but_out_of_memory
needs:    pool
promise:  reclaims-before-oom
device:   capacity=128MiB

a = allocate 64MiB
free a
b = allocate 96MiB
free b
"""

GOLDEN = """\
cases/pool/squeeze.case:11: operation 2 on 'reference:pool.no_squeeze': b = allocate 100663296
  rule:      request_fits_but_out_of_memory
  expected:  allocated: it takes at most 100,663,296 bytes (96 MiB), and 134,217,728 bytes (128 MiB) are \
certainly free
  observed:  out of memory
  kind:      missing retry
  reproduce: pytest 'cases/pool/squeeze.case' --quiesce-backend=reference:pool.no_squeeze
"""


def test_a_failure_is_its_finding_and_no_traceback(project: Project) -> None:
    project.write("cases/pool/squeeze.case", SQUEEZE)
    result = project.run("cases/pool/squeeze.case", "--quiesce-backend=reference:pool.no_squeeze")
    result.assert_outcomes(failed=1)
    output = result.stdout.str()
    head, _, rest = output.partition("pool/squeeze on reference:pool.no_squeeze ")
    assert "= FAILURES =" in head
    assert rest.partition("\n")[2].startswith(GOLDEN + "=" * 35 + " quiesce ")


def test_the_command_that_reproduces_a_failure_does(project: Project) -> None:
    project.write("cases/pool/squeeze it.case", SQUEEZE)
    first = project.run("--quiesce-backend=reference:pool.no_squeeze", "-k", "squeeze")
    (command,) = [line for line in first.outlines if "reproduce:" in line]
    assert command == ("  reproduce: pytest 'cases/pool/squeeze it.case' --quiesce-backend=reference:pool.no_squeeze")
    again = project.run("cases/pool/squeeze it.case", "--quiesce-backend=reference:pool.no_squeeze")
    assert command in again.outlines


def test_an_error_in_the_wire_protocol_is_told_whole_once(project: Project) -> None:
    canned = Path(__file__).parents[1] / "backends" / "drivers" / "canned.py"
    backend = f"command:'{sys.executable}' '{canned}' gauges '[]\\n'"
    for number in range(3):
        project.write(f"cases/pool/case_{number}.case", CONTROL.format(number=number))
    result = project.run("-k", "case_", f"--quiesce-backend={backend}")
    result.assert_outcomes(failed=3)
    output = result.stdout.str()
    assert output.count("  rule:      driver_answers_in_protocol") == 1
    assert output.count("the same error of the driver program in the wire protocol as in cases/pool/case_0.case\n") == 2


CONTROL = "title: Blocks come and go, number {number}\nkind: control\n\na = allocate 64\nfree a\n"
