"""Which devices the caller may see, in every form that the variables have, and what a driver's files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiesce.pytest_plugin.worker_devices import DeviceList, Machine, device_lists, find_machine

CUDA = "CUDA_VISIBLE_DEVICES"
HIP = "HIP_VISIBLE_DEVICES"
ROCR = "ROCR_VISIBLE_DEVICES"
BARE = Machine(0, 0)


def divided(environ: dict[str, str], nvidia: int = 0, amd: int = 0) -> dict[str, tuple[str, ...]]:
    return {each.variable: each.entries for each in device_lists(environ, Machine(nvidia, amd))}


@pytest.mark.parametrize(
    ("value", "nvidia", "entries"),
    [
        ("2,1", 0, ("2", "1")),
        (" 0 , 3 ", 4, ("0", "3")),
        ("0,2,-1,1", 4, ("0", "2")),
        ("0,1,7,2", 4, ("0", "1")),
        ("0,1,7,2", 0, ("0", "1", "7", "2")),
        ("0,1,NoDevFiles", 0, ("0", "1")),
        ("0,1,,2", 0, ("0", "1")),
        ("0,1,٣", 0, ("0", "1")),
        ("GPU-8932f937,GPU-8932f938-d72c-4106-c12f-20bd9faed9f6", 8, None),
        ("MIG-GPU-8932f937/0/0,MIG-GPU-8932f937/1/0", 1, None),
        ("MIG-c7384736-a75d-5afc-978f-d2f1294409fd,MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d", 1, None),
        ("", 4, ()),
        ("-1", 4, ()),
        ("none", 4, ()),
        ("0", 4, ()),
        ("3,-1", 4, ()),
        (None, 0, ()),
        (None, 1, ()),
        (None, 3, ("0", "1", "2")),
    ],
)
def test_a_list_of_cuda_is_divided(value: str | None, nvidia: int, entries: tuple[str, ...] | None) -> None:
    """Where one device or none is visible there is nothing to divide, and nothing is touched."""
    if value is not None and entries is None:
        entries = tuple(value.split(","))
    assert divided({} if value is None else {CUDA: value}, nvidia) == ({CUDA: entries} if entries else {})


@pytest.mark.parametrize(
    ("environ", "amd", "expected"),
    [
        ({}, 3, {HIP: ("0", "1", "2")}),
        ({HIP: "2,0"}, 4, {HIP: ("2", "0")}),
        ({HIP: "2,9,0"}, 4, {}),
        ({HIP: ""}, 4, {}),
        ({HIP: "-1"}, 4, {}),
        ({ROCR: "2,3"}, 4, {ROCR: ("2", "3")}),
        ({ROCR: "0,GPU-4b2c1a9f8d3e6f7a"}, 4, {ROCR: ("0", "GPU-4b2c1a9f8d3e6f7a")}),
        ({ROCR: ""}, 4, {}),
        ({ROCR: "2,3", HIP: "1,0"}, 4, {HIP: ("1", "0")}),
        ({ROCR: "2,3", HIP: "0"}, 4, {}),
        ({ROCR: "4,5,6", CUDA: "2,0"}, 8, {CUDA: ("2", "0")}),
        ({CUDA: "1,2", HIP: "1,2"}, 4, {CUDA: ("1", "2"), HIP: ("1", "2")}),
        ({CUDA: ""}, 4, {}),
    ],
)
def test_one_level_of_rocm_is_divided(environ: dict[str, str], amd: int, expected: dict[str, tuple[str, ...]]) -> None:
    assert divided(environ, amd=amd) == expected


def test_both_vendors_in_one_machine_are_divided_each() -> None:
    assert divided({}, nvidia=2, amd=2) == {CUDA: ("0", "1"), HIP: ("0", "1")}


def test_what_nvidia_needs_does_not_hide_a_device_from_hip() -> None:
    assert divided({ROCR: "2,3"}, nvidia=2, amd=4) == {CUDA: ("0", "1"), ROCR: ("2", "3"), HIP: ("0", "0")}


def test_workers_go_round() -> None:
    devices = DeviceList(CUDA, ("5", "GPU-a"))
    assert [devices.entry_of(worker) for worker in range(5)] == ["5", "GPU-a", "5", "GPU-a", "5"]


def test_nothing_is_found_where_there_is_nothing(tmp_path: Path) -> None:
    assert find_machine(tmp_path) == BARE


@pytest.mark.parametrize(("listed", "given", "count"), [(4, 4, 4), (4, 1, 1), (2, 8, 2), (0, 1, 0)])
def test_nvidia_counts_what_is_listed_and_can_be_opened(listed: int, given: int, count: int, tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-modeset", *(f"nvidia{number}" for number in range(given))):
        (tmp_path / "dev" / name).touch()
    for number in range(listed):
        (tmp_path / f"proc/driver/nvidia/gpus/0000:0{number}:00.0").mkdir(parents=True)
    assert find_machine(tmp_path) == Machine(count, 0)


def test_amd_counts_nodes_with_simd_units_that_can_be_opened(tmp_path: Path) -> None:
    nodes = {
        "0": "cpu_cores_count 16\nsimd_count 0\ndrm_render_minor 0\n",
        "1": "cpu_cores_count 0\nsimd_count 256\nlds_size_in_kb 64\ndrm_render_minor 128\n",
        "2": "simd_count 256\ndrm_render_minor 129\n",
        "3": "simd_count 256\ndrm_render_minor 130\n",
        "4": "",
    }
    for name, properties in nodes.items():
        path = tmp_path / "sys/class/kfd/kfd/topology/nodes" / name / "properties"
        path.parent.mkdir(parents=True)
        path.write_text(properties, encoding="ascii")
    (tmp_path / "sys/class/kfd/kfd/topology/nodes/5/properties").mkdir(parents=True)  # cannot be read
    (tmp_path / "dev/dri").mkdir(parents=True)
    for minor in (128, 130):
        (tmp_path / f"dev/dri/renderD{minor}").touch()
    assert find_machine(tmp_path) == Machine(0, 2)
