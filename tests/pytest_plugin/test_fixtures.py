"""The fixtures that hand backends to ordinary tests, and the marker on them."""

from __future__ import annotations

import pytest

from .conftest import Project

OPENS = """\
from quiesce.model.backend import DeviceProfile
from quiesce.model.operations import Allocate
from quiesce.model.outcomes import Allocated

def test_opens(backend):
    context = backend.open(DeviceProfile())
    try:
        assert isinstance(context.perform(Allocate("a", 64)).outcome, Allocated)
    finally:
        context.close()
"""


def test_a_test_runs_on_each_chosen_backend(project: Project) -> None:
    project.write("test_it.py", OPENS)
    result = project.run("test_it.py", "-v", "--quiesce-backend=host", "--quiesce-backend=reference")
    result.stdout.fnmatch_lines(["*::test_opens[[]host] PASSED*", "*::test_opens[[]reference] PASSED*"])
    result.stdout.no_fnmatch_line("NOTHING WAS EXECUTED*")


def test_junit_names_the_backend_of_an_ordinary_test(project: Project) -> None:
    project.write("test_it.py", OPENS)
    project.run("test_it.py", "--quiesce-backend=host", "--junitxml=junit.xml").assert_outcomes(passed=1)
    assert '<property name="quiesce_backend" value="host"' in (project.path / "junit.xml").read_text()


@pytest.mark.parametrize("name", ["reference", "host"])
def test_a_named_fixture_gives_that_backend(project: Project, name: str) -> None:
    project.write(
        "test_it.py", f"def test_it({name}_backend):\n    assert {name}_backend.describe().name == '{name}'\n"
    )
    project.run("test_it.py").assert_outcomes(passed=1)


def test_a_named_fixture_skips_where_its_backend_cannot_work(project: Project) -> None:
    project.write("site/pyopencl/__init__.py", "raise ImportError('no such platform')\n")
    project.write("test_it.py", "def test_it(opencl_backend):\n    raise AssertionError('it ran')\n")
    result = project.run_apart("test_it.py", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*backend 'opencl' cannot work here: *"])


def test_the_fixture_of_cupy_skips_with_the_reason_and_the_remedy(project: Project) -> None:
    project.write("site/cupy/__init__.py", "raise ImportError('libcudart is missing')\n")
    project.write("test_it.py", "def test_it(cupy_backend):\n    raise AssertionError('it ran')\n")
    result = project.run_apart("test_it.py", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*backend 'cupy' cannot work here: *libcudart is missing*install one CuPy*"])


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ("@pytest.fixture\ndef backend(): return 'mine'\n", "test_it"),
        ("@pytest.mark.parametrize('backend', ['mine'])\n", "test_it[[]mine]"),
    ],
)
def test_a_projects_own_backend_is_left_alone(project: Project, test: str, name: str) -> None:
    project.write("test_it.py", f"import pytest\n{test}def test_it(backend): assert backend == 'mine'\n")
    result = project.run("test_it.py", "-v", "--quiesce-backend=bare", "--quiesce-backend=host")
    result.stdout.fnmatch_lines([f"test_it.py::{name} PASSED*"])
    result.assert_outcomes(passed=1)


def test_a_projects_fixture_can_build_on_backend(project: Project) -> None:
    project.write(
        "test_it.py",
        "import pytest\n@pytest.fixture\ndef backend(backend): return backend.describe().name\n"
        "def test_it(backend): assert backend in ('bare', 'host')\n",
    )
    project.run("test_it.py", "--quiesce-backend=bare", "--quiesce-backend=host").assert_outcomes(passed=2)


@pytest.mark.long
def test_an_argument_of_the_marker_is_an_error(project: Project) -> None:
    project.write(
        "test_it.py",
        "import pytest\n@pytest.mark.leak('now', limit=3)\ndef test_it(): pass\n"
        "@pytest.mark.leak\ndef test_other(): pass\n",
    )
    result = project.run("test_it.py")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_it: the marker 'leak' takes keywords only, not ('now'); *"])
