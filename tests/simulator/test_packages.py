"""The package that a file belongs to is the one whose record names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiesce.simulator.runtime.packages import Package, owner_of, xla_variables


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages in which one is installed."""
    site = tmp_path / "site-packages"
    (site / "deep" / "lib").mkdir(parents=True)
    (site / "my_client-1.2.dist-info").mkdir()
    (site / "my_client-1.2.dist-info" / "RECORD").write_text('deep/lib/libx.so,sha256=a,1\n"deep/a,b.so",,\n')
    (site / "my_client-1.2.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: my-client\nVersion: 1.2\n")
    return site


@pytest.mark.parametrize("name", ["deep/lib/libx.so", "deep/a,b.so"])
def test_a_record_names_its_files(site: Path, name: str) -> None:
    assert owner_of(site / name) == Package("my-client", "1.2")
    assert str(owner_of(site / name)) == "my-client 1.2"


@pytest.mark.parametrize("name", ["deep/lib/libx.so.1", "lib/libx.so", "other.so"])
def test_no_record_names_others(site: Path, name: str) -> None:
    assert owner_of(site / name) is None


KEEPS = "--xla_gpu_enable_libnvptxcompiler=false"


@pytest.mark.parametrize(
    ("record", "flags", "expected"),
    [
        ("jaxlib-0.12.0.1", "", KEEPS),
        ("jaxlib-0.4.26", "--xla_dump_to=here", f"--xla_dump_to=here {KEEPS}"),
        ("tensorflow-2.21.0", "", KEEPS),
        ("jaxlib-0.4.25", "", None),
        ("tensorflow-2.16.1", "", None),
        ("my_client-1.2", "", None),
        ("jaxlib-0.12.0.1", "--xla_gpu_enable_libnvptxcompiler=true", None),
        ("jaxlib-0.12.0.1", "flags.txt", None),
    ],
)
def test_xla_keeps_ptx_where_it_knows_the_flag(tmp_path: Path, record: str, flags: str, expected: str | None) -> None:
    (tmp_path / f"{record}.dist-info").mkdir()
    environment = {"XLA_FLAGS": flags} if flags else {}
    assert xla_variables([tmp_path], environment).get("XLA_FLAGS") == expected
