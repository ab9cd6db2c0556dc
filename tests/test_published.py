"""The files for an index: checked by the index's own tools, installed and tried on every Python that is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CLAIMED: Final = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+\Z", text)]
TIME: Final = "import sys; print('%d.%d' % sys.version_info[:2])"

pytestmark = [
    pytest.mark.skipif(not os.environ.get("QUIESCE_PACKAGING"), reason="it needs an index: tox -e packaging"),
    pytest.mark.long,
]


def run(*command: str | Path, folder: Path) -> str:
    """Run a command that has to succeed, without what leads Python to the checkout, and return what it said."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    words = list(map(str, command))
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


def interpreters() -> dict[str, Path]:
    """Return the Pythons of this machine that the package is for; a shim may stand on the path and run nothing."""
    base: str = sys._base_executable  # type: ignore[attr-defined]  # the Python below tox's environment
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": Path(base)}
    for version in CLAIMED:
        for folder in map(Path, os.environ.get("PATH", "").split(os.pathsep)):
            program = folder / f"python{version}"
            if version in found or not program.is_file():
                continue
            done = subprocess.run([program, "-c", TIME], capture_output=True, text=True, check=False)
            if done.stdout.strip() == version:
                found[version] = program
    return found


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, and the wheel that is built from it; those that are given, or new ones."""
    given = os.environ.get("QUIESCE_DISTRIBUTIONS")
    if given:
        return (ROOT / given).resolve()
    folder = tmp_path_factory.mktemp("distributions")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, folder=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    """The wheel."""
    (found,) = distributions.glob("*.whl")
    return found


def test_the_index_accepts_them(distributions: Path, wheel: Path) -> None:
    files = sorted(distributions.iterdir())
    assert len(files) == 2
    said = run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files, folder=distributions)
    assert said.count("PASSED") == len(files)
    assert run(Path(sys.executable).with_name("check-wheel-contents"), wheel, folder=distributions).endswith("OK\n")


def test_the_checkout_and_the_source_distribution_give_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, ROOT, folder=tmp_path)
    (other,) = tmp_path.glob("*.whl")
    assert other.name == wheel.name
    assert _record(other) == _record(wheel)


def _record(wheel: Path) -> list[str]:
    """Return the lines that name each file of a wheel with its digest."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        return sorted(archive.read(name).decode().splitlines())


def test_the_page_of_an_index_has_no_link_that_leads_nowhere(distributions: Path) -> None:
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        (name,) = (name for name in opened.getnames() if name.count("/") == 1 and name.endswith("/PKG-INFO"))
        file = opened.extractfile(name)
        assert file is not None
        metadata = Parser().parsestr(file.read().decode())
    page = str(metadata.get_payload())
    targets = re.findall(r"\]\(([^)\s]+)\)", page)
    assert targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    base = f"{PROJECT['urls']['Source']}/blob/v{PROJECT['version']}/"
    inside = [target.removeprefix(base).partition("#")[0] for target in targets if target.startswith(base)]
    assert inside
    assert [path for path in inside if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(("version", "python"), interpreters().items(), ids=lambda value: str(value).rpartition("/")[2])
def test_the_wheel_works_in_a_fresh_environment(wheel: Path, tmp_path: Path, version: str, python: Path) -> None:
    run(python, "-m", "venv", tmp_path / "venv", folder=tmp_path)
    programs = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    inside = programs / "python"
    run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, folder=tmp_path)
    assert run(inside, "-c", TIME, folder=tmp_path).strip() == version
    assert run(programs / "quiesce", "--version", folder=tmp_path) == f"quiesce {PROJECT['version']}\n"
    assert run(inside, "-m", "quiesce", "--version", folder=tmp_path) == f"quiesce {PROJECT['version']}\n"
    assert re.search(r"^reference: works", run(programs / "quiesce", "doctor", folder=tmp_path), re.MULTILINE)
    said = run(programs / "quiesce", "run", "pool", "--backend", "reference", folder=tmp_path)
    assert " cases passed on reference; " in said
    assert " historic bugs, switched on in the reference, were each caught" in said
    command = (inside, "-m", "pytest", "-m", "leak", "--quiesce-corpus", "--quiesce-backend=reference", "-k", "pool")
    assert re.search(r"[1-9]\d* passed", run(*command, folder=tmp_path))
