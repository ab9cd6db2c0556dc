"""The fixture that gives a test the sequences that its backend can be asked for."""

from __future__ import annotations

from .conftest import Project

TEST = """\
from hypothesis import given, settings
from hypothesis import strategies as st
from quiesce.allocators.generation.saving import check_sequence

@settings(max_examples=5, deadline=None, database=None, derandomize=True)
@given(st.data())
def test_drawn(backend, allocation_sequences, data):
    check_sequence(backend, data.draw(allocation_sequences(hostile=True, records_max=8)))
"""


def test_sequences_are_drawn_for_each_chosen_backend(project: Project) -> None:
    project.write("test_it.py", TEST)
    result = project.run_apart("test_it.py", "-v", "--quiesce-backend=host", "--quiesce-backend=reference")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*::test_drawn[[]host] PASSED*", "*::test_drawn[[]reference] PASSED*"])


def test_a_faulty_backend_fails_the_test(project: Project) -> None:
    test = TEST.replace("max_examples=5", "max_examples=300, phases=[Phase.generate]").replace(", records_max=8", "")
    project.write("test_it.py", test.replace("import given", "import Phase, given"))
    result = project.run_apart("test_it.py", "--quiesce-backend=reference:pool.accepts_double_free")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*invalid_requests_are_refused is broken*"])


def test_without_hypothesis_it_says_what_to_install(project: Project) -> None:
    project.write("conftest.py", "import sys\nsys.modules['hypothesis'] = None\n")
    project.write("test_it.py", "def test_drawn(allocation_sequences): pass\n")
    result = project.run_apart("test_it.py", "--quiesce-backend=reference")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*'allocation_sequences' needs Hypothesis: pip install 'quiesce[[]hypothesis]'"])
