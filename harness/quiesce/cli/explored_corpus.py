"""``quiesce explore --corpus``: what earlier searches found runs first, and what this one finds is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from quiesce.amounts import counted
from quiesce.backend import Backend, Description
from quiesce.backends import python_source
from quiesce.cases.case import Case
from quiesce.cases.writer import write_case
from quiesce.cli.console import Console
from quiesce.cli.file_errors import explain
from quiesce.cli.saved_cases import save_or_complain, tell_how_to_run
from quiesce.errors import ConfigurationError
from quiesce.execution import run_case
from quiesce.generation.corpus import Database, folder_database, keep, kept
from quiesce.generation.jobs import Died, Jobs
from quiesce.generation.running import Search, ended_process
from quiesce.reporting.text import clean_line
from quiesce.results import Result, Verdict

_FROM_SOURCE: Final = f"{python_source.PREFIX}:"


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is kept for one backend and one mode."""

    database: Database
    backend: str
    search: Search

    def replay(self, jobs: Jobs, directory: Path, console: Console) -> list[Result]:
        """Run what is kept, and show and save what still fails."""
        cases, unreadable = kept(self.database, self.backend, hostile=self.search.hostile)
        if unreadable:
            console.complain(f"{counted(unreadable, 'sequence')} of the corpus can't be read by this version")
        results = []
        for case, ran in zip(cases, jobs.run(partial(_run, case=case) for case in cases), strict=True):
            result = _ended(case, self.search, ran) if isinstance(ran, Died) else ran
            results.append(result)
            if result.verdict.is_failure:
                self._show(case, result, directory, console)
        failing = sum(result.verdict.is_failure for result in results)
        if results:
            console.write(f"{failing} of {counted(len(results), 'sequence')} of the corpus {_fails(failing)}\n")
        return results

    def keep(self, case: Case, console: Console) -> None:
        """Keep what was found; a database that can't be written takes nothing else away."""
        try:
            keep(self.database, self.backend, case, hostile=self.search.hostile)
        except Exception as error:
            said = explain(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
            console.complain(f"a sequence is not kept in the corpus: {said}")

    def _show(self, case: Case, result: Result, directory: Path, console: Console) -> None:
        for finding in result.findings[:1]:
            console.write(f"{finding.rule} is still broken by a sequence of the corpus\n")
            console.write(f"  expected: {clean_line(finding.expected)}\n")
            console.write(f"  observed: {clean_line(finding.observed)}\n")
            console.write(f"  kind:     {clean_line(finding.kind)}\n\n")
        saved = save_or_complain(case, directory, console)
        console.write(f"{write_case(case)}\n")
        if saved is not None:
            tell_how_to_run(saved, self.search.name, console)


def open_corpus(name: str, description: Description, search: Search) -> Corpus:
    """Return the corpus of a folder, or what a factory of the user's makes.

    Raises :class:`quiesce.errors.QuiesceError` where there is none.
    """
    if not name.startswith(_FROM_SOURCE):
        return Corpus(folder_database(Path(name)), description.name, search)
    made = python_source.make(name.removeprefix(_FROM_SOURCE), name)
    if not (callable(getattr(made, "fetch", None)) and callable(getattr(made, "save", None))):
        raise ConfigurationError(f"'{name}' makes {type(made).__name__}, which is none of Hypothesis' databases")
    database: Database = made  # type: ignore[assignment]  # it has the methods
    return Corpus(database, description.name, search)


def _run(backend: Backend, description: Description, case: Case) -> Result:
    return run_case(case, backend)


def _ended(case: Case, search: Search, died: Died) -> Result:
    finding = ended_process(0, died).finding
    findings = () if finding is None else (finding,)
    return Result(case.identifier, case.title, case.path, search.name, Verdict.FAILED, findings=findings)


def _fails(count: int) -> str:
    return "still fails" if count == 1 else "still fail"


def is_red(results: Sequence[Result]) -> bool:
    """Whether something of the corpus still fails."""
    return any(result.verdict.is_failure for result in results)
