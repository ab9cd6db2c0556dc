"""Leaks that were reported in releases: a small test finds each one, and finds nothing once it is corrected."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from tests.clients.environments import FOLDER, NotInstallable, made_environment

import quiesce

SUITES: Final = Path(__file__).with_name("released_leaks")
PYTEST: Final = ("--only-binary", ":all:", "pytest==8.4.2", "pytest-xdist==3.8.0")

pytestmark = [pytest.mark.long, pytest.mark.skipif(not FOLDER, reason="it downloads wheels: tox -e released-leaks")]


@dataclass(frozen=True, slots=True)
class Release:
    """A suite under one release, and what each test that leaks there must say."""

    suite: str
    packages: tuple[str, ...]
    leaks: dict[str, str]
    clean: int

    @property
    def identifier(self) -> str:
        """Return the suite and the release."""
        return f"{self.suite}-{self.packages[0].partition('==')[2]}"


RELEASES: Final = (
    Release(
        "aiohttp_middlewares",
        ("aiohttp==3.10.10",),
        dict.fromkeys(
            ("test_not_found", "test_method_not_allowed"),
            "kept by:   aiohttp.web_app._build_middlewares (functools.lru_",
        ),
        clean=1,
    ),
    Release("aiohttp_middlewares", ("aiohttp==3.10.11",), {}, clean=3),
    Release(
        "bottleneck_errors",
        ("bottleneck==1.6.0", "numpy<2.4"),
        {
            "test_nanargmin_of_an_all_nan_slice": ": bottleneck.nanargmin(numpy.full((4, 4), numpy.nan), axis=1)",
            "test_partition_out_of_bounds": ": bottleneck.partition(numpy.zeros(1000), kth=-1)",
        },
        clean=2,
    ),
    Release(
        "warp_factories",
        ("warp-lang==1.15.0", "numpy<2.4"),
        {"test_a_kernel_that_is_made_anew": "kernel_hooks"},
        clean=0,
    ),
    Release("warp_factories", ("warp-lang==1.16.0", "numpy<2.4"), {}, clean=1),
    Release(
        "warp_meshes",
        ("warp-lang==1.1.0", "numpy<2"),
        {"test_a_mesh": "the C heap grows by "},
        clean=0,
    ),
    Release("warp_meshes", ("warp-lang==1.2.0", "numpy<2"), {}, clean=1),
)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.identifier)
def test_a_leak_is_found_in_the_release_that_has_it_and_in_no_other(release: Release, tmp_path: Path) -> None:
    try:
        python = made_environment(release.identifier, (*PYTEST, *release.packages), (3, 11), (3, 12))
    except NotInstallable as error:
        pytest.skip(f"{release.packages[0]} can't be installed: {error}")
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "quiesce").symlink_to(Path(quiesce.__file__).parent)
    suite = tmp_path / f"test_{release.suite}.py"
    suite.write_bytes((SUITES / f"{release.suite}.py").read_bytes())
    done = subprocess.run(
        [python, "-m", "pytest", "-p", "quiesce.pytest_plugin.plugin", "-p", "no:cacheprovider", suite],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "path"), "WARP_CACHE_PATH": str(tmp_path / "kernels")},
        capture_output=True,
        text=True,
        check=False,
    )
    parts = re.split(r"^_+ (test_\w+) _+$", done.stdout.partition("= leak checks =")[0], flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert sorted(found) == sorted(release.leaks), done.stdout + done.stderr
    assert [test for test, words in release.leaks.items() if words not in found[test]] == [], done.stdout
    assert [test for test in found if found[test].count("  rule: ") != 1 or "Error" in found[test]] == [], done.stdout
    count = len(release.leaks) + release.clean
    assert f"{count} test{'s' * (count > 1)} checked for leaks: " in done.stdout, done.stdout
    assert "no verdict" not in done.stdout, done.stdout
