"""The documentation says what is so: links lead somewhere, commands are accepted, paths and names exist."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from tests.documentation.pages import ShownFile, documents, shown
from tests.tox_environments import ENVIRONMENTS

from quiesce.cli.main import COMMANDS, build_parser

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDERS: Final = ("docs", "cases", "fixtures", "reports", "benchmarks", "tests")
TEST_COMMANDS: Final = ("python -m pip install tox", "tox")

_LINK = re.compile(r"\[[^\]\n]+\]\(([^)\s]+)\)")
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_PATH = re.compile(r"(?:harness|cases|tests|docs|fixtures|reports|benchmarks|\.ci|\.github)/[\w./-]*\w/?\Z")
_GENERATED: Final = ("reports/out",)


@dataclass(frozen=True, slots=True)
class Words:
    """Something written as code, and where."""

    place: str
    text: str


def _documents() -> tuple[Path, ...]:
    return (*sorted(ROOT.glob("*.md")), *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.md"))))


def _blocks(path: Path) -> Iterator[Words]:
    """Yield the lines of code blocks, fenced or indented."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield Words(f"{path.relative_to(ROOT).as_posix()}:{number}", line.strip())


def _inline(path: Path) -> Iterator[Words]:
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fenced ^= line.startswith("```")
        if not fenced and not line.startswith("    "):
            place = f"{path.relative_to(ROOT).as_posix()}:{number}"
            yield from (Words(place, match[1]) for match in _INLINE.finditer(line))


DOCUMENTS: Final = _documents()
INLINE: Final = tuple(words for path in DOCUMENTS for words in _inline(path))
BLOCKS: Final = tuple(words for path in DOCUMENTS for words in _blocks(path))


def _commands(program: str) -> list[Words]:
    """Return the commands of a program; in a block, what stands two blanks after a command explains it."""
    lines = [Words(words.place, re.split(r"\s{2,}", words.text)[0]) for words in BLOCKS]
    parts = [Words(words.place, part) for words in (*lines, *INLINE) for part in words.text.split(" && ")]
    return [words for words in parts if re.match(rf"{program}(?: |\Z)", words.text) and "…" not in words.text]


def _files(path: Path) -> Iterator[ShownFile]:
    """Yield the files that a page has its reader save."""
    yield from (item for item in shown(path.read_text(encoding="utf-8")) if isinstance(item, ShownFile))


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_there_is_documentation() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in DOCUMENTS}
    assert {
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/contributing/development.md",
        "cases/README.md",
    } <= names


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    for link in _LINK.findall(path.read_text(encoding="utf-8")):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), f"{path}: the link to '{link}' leads nowhere"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(_slug, headings), f"{path}: '{name or path.name}' has no heading for '#{anchor}'"


def test_paths_exist() -> None:
    of_the_reader = {item.name for path in documents() for item in _files(path) if item.name.startswith(".github/")}
    known = (*_GENERATED, *of_the_reader)
    paths = [words for words in INLINE if _PATH.match(words.text) and not words.text.startswith(known)]
    assert len(paths) > 10
    assert [f"{words.place}: {words.text}" for words in paths if not (ROOT / words.text).exists()] == []


def test_commands_of_quiesce_are_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    commands = _commands("quiesce")
    refused = []
    for words in commands:
        arguments = shlex.split(words.text, comments=True)[1:]
        if len(arguments) < 2 and set(arguments) <= set(COMMANDS):
            continue  # prose that names a command
        try:
            build_parser(arguments[0] if arguments[0] in COMMANDS else None).parse_args(arguments)
        except SystemExit as ending:
            if ending.code:
                refused.append(f"{words.place}: {words.text}: {capsys.readouterr().err}")
    assert len(commands) > 10
    assert refused == []


def test_options_of_pytest_exist(pytestconfig: pytest.Config) -> None:
    written = {option for words in (*INLINE, *BLOCKS) for option in re.findall(r"--quiesce-[a-z-]*[a-z]", words.text)}
    assert "--quiesce-report" in written
    assert [option for option in sorted(written) if pytestconfig.getoption(option, "unknown") == "unknown"] == []


def test_environments_of_tox_exist_and_are_explained() -> None:
    written = {name for words in _commands("tox") for name in re.findall(r"-e ([\w.-]+)", words.text)}
    assert "bench" in written
    assert written <= ENVIRONMENTS
    page = (ROOT / "docs" / "contributing" / "development.md").read_text(encoding="utf-8")
    assert [name for name in sorted(ENVIRONMENTS) if f"`{name}`" not in page] == []


def test_extras_exist_and_are_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    page = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    assert [name for name in sorted(extras) if f"`{name}`" not in page] == []
    written = {name for words in (*INLINE, *BLOCKS) for name in re.findall(r"(?:'\.|quiesce)\[([\w,-]+)\]", words.text)}
    assert {name for names in written for name in names.split(",")} <= extras


def test_every_python_that_is_claimed_has_an_environment() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    claimed = {text.rpartition(" :: ")[2] for text in project["classifiers"] if re.search(r":: 3\.\d+\Z", text)}
    assert claimed
    page = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    for version in claimed:
        assert f"py{version.replace('.', '')}-short" in ENVIRONMENTS
        assert version in page


def test_ci_runs_the_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\n".join(f"    {command}" for command in TEST_COMMANDS) in readme
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    program, *arguments = TEST_COMMANDS[0].split(" install ")
    assert f"'{program} install --quiet {arguments[0]} && {TEST_COMMANDS[1]}'" in script
