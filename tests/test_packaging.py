"""What is installed: one top-level package with the corpus inside, and in a checkout the checkout's own cases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import pytest

build = pytest.importorskip("build", reason="it comes with the extra 'test'")

ROOT: Final = Path(__file__).resolve().parent.parent
FIXTURES: Final = ROOT / "fixtures"
PROJECT: Final = "example_plugin/"
"""A project of its own below ``fixtures/``, which is no subject."""
SUBJECTS: Final = "*/*/subject.toml"
SHOW_SUBJECTS: Final = """
from quiesce.subjects.catalogue import find_subjects, folders
for each in find_subjects([], *folders()).subjects:
    print(each.name, each.folder)
"""
SHOW_CORPUS: Final = "from quiesce.allocators.cases.catalogue import corpus_directory; print(corpus_directory())"


def _run(*arguments: str, folder: Path, path: str = "") -> str:
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _below(folder: Path) -> set[str]:
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in files if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, and the wheel that is built from it; the tools are those of the extra 'test'."""
    folder = tmp_path_factory.mktemp("distributions")
    _run("-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT), folder=folder)
    return folder


@pytest.fixture(scope="module")
def installed(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the wheel is installed, and nothing else."""
    target = tmp_path_factory.mktemp("installed")
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:  # what an installer does with a wheel of this kind, apart from scripts
        archive.extractall(target)
    return target


@pytest.mark.long
def test_the_wheel_runs_on_any_platform(distributions: Path) -> None:
    assert [wheel.name.split("-", 2)[2] for wheel in distributions.glob("*.whl")] == ["py3-none-any.whl"]


def test_the_wheel_holds_one_package(installed: Path) -> None:
    top = sorted(path.name for path in installed.iterdir())
    assert len(top) == 2
    assert top[0] == "quiesce"
    assert top[-1].endswith(".dist-info")
    assert (installed / top[-1] / "licenses" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_wheel_holds_every_file_of_the_package_the_corpus_and_the_subjects(installed: Path) -> None:
    package = {f"quiesce/{name}" for name in _below(ROOT / "harness" / "quiesce")}
    corpus = {f"quiesce/corpus/{name}" for name in _below(ROOT / "cases")}
    assert "quiesce/py.typed" in package
    assert any(name.endswith(".case") for name in corpus)
    fixtures = {f"quiesce/fixtures/{name}" for name in _below(FIXTURES) if not name.startswith(PROJECT)}
    assert "quiesce/fixtures/host/thrust_pool/subject.toml" in fixtures
    assert "quiesce/fixtures/command/cpp/driver.hpp" in fixtures
    assert {name for name in _below(installed) if ".dist-info/" not in name} == package | corpus | fixtures


def test_an_installation_uses_its_own_corpus(installed: Path, tmp_path: Path) -> None:
    shown = _run("-c", SHOW_CORPUS, folder=tmp_path, path=str(installed))
    assert Path(shown) == installed / "quiesce" / "corpus"


def test_an_installation_runs_a_case(installed: Path, tmp_path: Path) -> None:
    case = next(iter(sorted((installed / "quiesce" / "corpus").rglob("*.case")))).relative_to(installed)
    identifier = case.relative_to("quiesce/corpus").with_suffix("").as_posix()
    arguments = ("-m", "quiesce.cli.main", "run", identifier, "--backend", "reference")
    said = _run(*arguments, folder=tmp_path, path=str(installed))
    assert re.search(
        r"^1 case passed on reference(; 1 historic bug, switched on .*, was caught)?\Z", said, re.MULTILINE
    )


def test_an_installation_has_its_own_subjects(installed: Path, tmp_path: Path) -> None:
    said = _run("-c", SHOW_SUBJECTS, folder=tmp_path, path=str(installed)).splitlines()
    named = dict(line.split(" ", 1) for line in said)
    assert sorted(named) == sorted(path.parent.relative_to(FIXTURES).as_posix() for path in FIXTURES.glob(SUBJECTS))
    shown = Path(named["host/thrust_pool"])
    assert shown == installed / "quiesce" / "fixtures" / "host" / "thrust_pool"
    manifest = (shown / "subject.toml").read_text(encoding="utf-8")
    for shared in re.findall(r'^shared\s*=\s*\["([^"]+)"', manifest, re.MULTILINE):
        assert (shown / shared).is_dir()


def test_the_source_distribution_builds_what_the_checkout_builds(distributions: Path) -> None:
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    needed = {"pyproject.toml", "tox.ini", "LICENSE", "README.md", "cases/README.md", "tests/test_packaging.py"}
    assert needed <= names
    assert not [name for name in names if name.startswith(("reports/out/", ".tox/", ".hypothesis/"))]


def test_a_checkout_is_installed_in_place(tmp_path: Path) -> None:
    wheel = Path(build.ProjectBuilder(ROOT).build("editable", tmp_path))
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert [name.endswith(".pth") for name in names] == [True], "an editable wheel is one path and no copies"
        source = archive.read(names[0]).decode().strip()
    assert Path(source) == ROOT / "harness"
    assert Path(_run("-c", SHOW_CORPUS, folder=tmp_path, path=source)) == ROOT / "cases"
