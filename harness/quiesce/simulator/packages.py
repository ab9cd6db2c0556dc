"""Which installed package a file belongs to, by the record that every wheel leaves (``*.dist-info/RECORD``)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package, by the name and the version that it was published under."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def owner_of(file: Path) -> Package | None:
    """Return the package that installed a file, or None where no record names it."""
    from importlib.metadata import PathDistribution  # takes longer than the rest, and few runs need it

    for folder in file.parents:
        name = file.relative_to(folder).as_posix()
        for record in folder.glob("*.dist-info/RECORD"):
            if _names(record, name):
                installed = PathDistribution(record.parent)
                return Package(installed.metadata["Name"], installed.version)
    return None


def _names(record: Path, name: str) -> bool:
    with record.open(encoding="utf-8", errors="replace") as lines:  # of comma-separated values, the path first
        return any(line.startswith((f"{name},", f'"{name}",')) for line in lines)
