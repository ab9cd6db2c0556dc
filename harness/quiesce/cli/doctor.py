"""``quiesce doctor``: which backends work here, what they can do, and what to do about those that don't."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from quiesce.backends.registry import Unusable, Usable, backend_names, probe_backend, probe_unnamed, refused
from quiesce.cli.arguments import add_verbose
from quiesce.cli.console import Console
from quiesce.cli.endings import ExitCode
from quiesce.cli.selection import check_described
from quiesce.model.backend import Description
from quiesce.model.errors import BackendUnavailable, ConfigurationError
from quiesce.model.wording import bytes_in_words
from quiesce.reporting import Palette, clean_line
from quiesce.simulator.runtime import INSTALL_KERNELS, find_compiler, kernels_can_run, require_platform

EXEC: Final = "quiesce exec"
"""Under which name the command stands among the backends."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("names", nargs="*", metavar="BACKEND", help="only these, which must work (default: all)")
    parser.add_argument(
        "--clean", action="store_true", help="remove the folders that killed runs of quiesce exec left, and do no more"
    )
    add_verbose(parser)


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Examine and report. Raises :class:`ConfigurationError` for an unknown backend and where none is installed."""
    from quiesce.cli.killed_run import tell_left_folders

    if arguments.clean:
        tell_left_folders(console, clean=True)
        return ExitCode.NOTHING_FOUND
    names = dict.fromkeys(arguments.names or backend_names())
    if not names:
        raise ConfigurationError("no backend is declared here; install quiesce (pip install -e .)")
    probes = [examine(name, explicit=bool(arguments.names)) for name in names]
    told = [render_probe(probe, console.palette) for probe in told_together(probes)]
    console.write("\n".join([*told, *([] if arguments.names else [render_exec(console.palette)])]))
    if not arguments.names:
        tell_left_folders(console, clean=False)
    broken = any(isinstance(probe, Unusable) for probe in probes)
    return ExitCode.COULD_NOT_RUN if broken and arguments.names else ExitCode.NOTHING_FOUND


def examine(name: str, *, explicit: bool, compiles: bool = True) -> Usable | Unusable:
    """Return what is known of a backend; one that has to be compiled first is compiled, or said to be.

    Raises :class:`ConfigurationError` for one that is asked for and unknown.
    """
    try:
        probe = probe_backend(name) if compiles else probe_unnamed(name)
    except ConfigurationError as error:
        if explicit:
            raise
        return refused(name, error)
    return check_described(probe) if isinstance(probe, Usable) else probe


def told_together(probes: Iterable[Usable | Unusable]) -> list[Usable | Unusable]:
    """Make one of the backends that cannot work for the same reason, at the place of the first of them."""
    kept: dict[object, Usable | Unusable] = {}
    for probe in probes:
        key = probe.name if isinstance(probe, Usable) else (probe.reason, probe.remedy)
        first = kept.get(key)
        kept[key] = probe if first is None else replace(first, name=f"{first.name}, {probe.name}")
    return list(kept.values())


def render_exec(palette: Palette) -> str:
    """Return whether ``quiesce exec`` works here, or what it lacks."""
    try:
        require_platform()
        find_compiler()
    except BackendUnavailable as error:
        return render_probe(Unusable(EXEC, error.reason, error.remedy), palette)
    head = f"{palette.strong}{EXEC}{palette.end}: {palette.good}works{palette.end}, also without a GPU\n"
    kernels = "compute on the CPU" if kernels_can_run() else f"do not compute; to let them, run {INSTALL_KERNELS}"
    return f"{head}  CUDA kernels: {kernels}\n"


def render_probe(probe: Usable | Unusable, palette: Palette) -> str:
    """Return what is known of one backend: a line, and indented lines below it."""
    if isinstance(probe, Usable):
        head, verdict, colour = probe.name, "works", palette.good
        details = describe_lines(probe.description)
    else:
        head, verdict, colour = probe.name, "cannot work here", palette.bad
        details = [("because", probe.reason), ("remedy", probe.remedy)]
    lines = [f"{palette.strong}{clean_line(head)}{palette.end}: {colour}{verdict}{palette.end}"]
    lines += [f"  {f'{name}:':<14}{clean_line(text)}" for name, text in details]
    return "\n".join(lines) + "\n"


def describe_lines(description: Description) -> list[tuple[str, str]]:
    """Return a description as pairs of what and how."""
    gauges = [f"{gauge} ({' and '.join(sorted(sources))})" for gauge, sources in sorted(description.gauges.items())]
    return [
        ("version", description.version),
        ("alignment", bytes_in_words(description.alignment_bytes)),
        ("capabilities", _listed(description.capabilities)),
        ("promises", _listed(description.promises)),
        ("gauges", ", ".join(gauges) or "none"),
    ]


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words)) or "none"
