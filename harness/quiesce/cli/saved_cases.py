"""Cases that a command found, as files: one that cannot be written takes nothing else away."""

from __future__ import annotations

from pathlib import Path

from quiesce.allocators.cases import Case
from quiesce.allocators.generation import save
from quiesce.cli.console import Console
from quiesce.cli.endings import explain
from quiesce.model import wording
from quiesce.model.wording import counted
from quiesce.reporting import clean_line


def save_or_complain(case: Case, directory: Path, console: Console) -> Path | None:
    """Save a case and return where, or say in one line why it is not saved and return None."""
    try:
        return save(case, directory)
    except OSError as error:
        console.end_progress()
        console.complain(f"a case is not saved: {explain(error)}")
        return None


def tell_how_to_run(saved: Path, backend: str, console: Console) -> None:
    """Say where a case is saved, and the command that makes it fail again."""
    path = saved.as_posix()
    console.write(f"saved as {clean_line(path)}; this command makes it fail again:\n")
    console.write(f"  {wording.join(['quiesce', 'run', wording.operand(path), '--backend', backend])}\n\n")


def tell_shrinking(case: Case, console: Console) -> None:
    """Say what a sequence breaks before it is shortened, which may take long."""
    console.end_progress()
    console.complain(f"{case.finds} is broken after {counted(len(case.body), 'line')}; shrinking (Ctrl-C ends that)")
