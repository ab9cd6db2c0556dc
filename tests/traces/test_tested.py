"""A process that used no device memory tested nothing: which ones count, and what is said of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiesce.simulator.judge.tested import Use, causes_of, never_called, untested, untested_beside
from quiesce.simulator.runtime.failed_calls import Refusal, RefusalKind
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.ledger import Flag, Record, Seen, Thing
from quiesce.simulator.runtime.loads import Load, Loaded
from quiesce.simulator.runtime.packages import Package

CUDA = parse_flavour("cuda:12")
TABLE = Refusal(RefusalKind.NOT_SIMULATED, "cuGetExportTable", 801, "/s/xgboost/lib/libxgboost.so")
STUB = Refusal(RefusalKind.NOT_SIMULATED, "cublasCreate_v2", 801, "/s/client.so")
FAILED = Refusal(RefusalKind.FAILED, "cudaSetDevice", 101)
ARMED = Refusal(RefusalKind.ARMED, "cudaStreamCreate", 2)
FORKED = Refusal(RefusalKind.FORKED, "cudaMalloc", 3)
REAL = Path("/s/nvidia/cuda_runtime/lib/libcudart.so.13")

PACKAGES = {
    "/s/xgboost/lib/libxgboost.so": Package("xgboost", "3.2.0"),
    "/s/cupy/_core.so": Package("cupy-cuda12x", "14.2.0"),
    str(REAL): Package("nvidia-cuda-runtime", "13.0.96"),
}


def owner(file: Path) -> Package | None:
    return PACKAGES.get(str(file))


def record(seen: Seen, function: str = "") -> Record:
    return Record(0, seen, Thing.NONE, 0, 0, function, Flag(0), 0, 0, 0, 0, 0, 0)


def use(*seen: Seen, refusals: tuple[Refusal, ...] = (), vendors: tuple[Path, ...] = ()) -> Use:
    made = Use(refusals, vendors)
    for each in seen:
        made.see(record(each))
    return made


@pytest.mark.parametrize("seen", [Seen.ALLOCATED, Seen.COPIED, Seen.WRITTEN])
@pytest.mark.parametrize("refusals", [(), (TABLE,), (STUB,), (FAILED,)])
def test_whoever_uses_device_memory_was_tested_whatever_else_it_asked_for(
    seen: Seen, refusals: tuple[Refusal, ...]
) -> None:
    assert untested(use(seen, refusals=refusals, vendors=(REAL,)), CUDA, owner) is None


@pytest.mark.parametrize("seen", [Seen.CREATED, Seen.LAUNCHED, Seen.RECORDED])
def test_streams_events_and_kernels_are_use_unless_something_is_not_simulated(seen: Seen) -> None:
    assert untested(use(seen), CUDA, owner) is None
    assert untested(use(seen, refusals=(FAILED,)), CUDA, owner) is None
    assert untested(use(seen, refusals=(STUB,)), CUDA, owner) is not None


@pytest.mark.parametrize("seen", [(), (Seen.DEVICE_WAITED_FOR,), (Seen.MARK, Seen.STREAM_WAITED_FOR)])
def test_questions_and_waits_are_no_use(seen: tuple[Seen, ...]) -> None:
    why = untested(use(*seen), CUDA, owner)
    assert why is not None
    assert not why.refused
    assert "the program used no device memory, stream or kernel: it only asked for devices" in why.reason
    assert "tell it to use the GPU" in why.reason
    assert "--flavour (one of hip:5, " in why.reason


def test_one_flavour_is_advised_where_a_runtime_names_it(tmp_path: Path) -> None:
    needs = (tmp_path / "libcuda.so.1", tmp_path / "libcudart.so.12")
    other = Use(others=needs)
    other.see(record(Seen.ALLOCATED))
    why = untested(other, parse_flavour("hip:5"), owner)
    assert why is not None
    told = "judged as hip:5, although it needs libcuda.so.1, libcudart.so.12. Run it with --flavour cuda:12"
    assert why.reason == told


@pytest.mark.parametrize("seen", [(), (Seen.DEVICE_WAITED_FOR,)])
def test_a_program_that_failed_before_is_told_nothing_of_flavours(seen: tuple[Seen, ...]) -> None:
    for why in (untested(use(*seen), CUDA, owner, failed=True), never_called([STARTED], CUDA, owner, failed=True)):
        assert why is not None
        assert why.reason == "it had not used the GPU"


def test_a_program_that_failed_and_needs_another_runtime_is_told_which() -> None:
    needs = [STARTED, Load(Loaded.OTHER, 7, Path("libcudart.so.13"), Path("/s/program"))]
    assert "--flavour cuda:13" in never_called(needs, CUDA, owner, failed=True).reason


def nvrtc(function: str) -> Refusal:
    return Refusal(RefusalKind.NOT_SIMULATED, function, 11, "/s/client.so")


@pytest.mark.parametrize(
    ("refusals", "flavour", "said"),
    [
        ((), "cuda:12", ""),
        ((FAILED,), "cuda:12", ""),
        (
            (STUB,),
            "cuda:12",
            "cublasCreate_v2 (called by client.so) is not simulated. Leave that part out, or run it on",
        ),
        ((TABLE,), "cuda:12", "CUDA's runtime is linked statically into libxgboost.so"),
        ((nvrtc("nvrtcVersion"),), "cuda:11", "pip install nvidia-cuda-nvrtc-cu11."),
        ((nvrtc("nvrtcVersion"),), "cuda:12", "nvrtcVersion (called by client.so) is not simulated. Install NVRTC"),
        ((nvrtc("nvrtcVersion"), nvrtc("nvrtcGetErrorString")), "cuda:13", "pip install 'nvidia-cuda-nvrtc==13.*'."),
        ((nvrtc("nvrtcGetErrorString"), nvrtc("nvrtcVersion")), "cuda:12", "nvrtcVersion (called by client.so) is not"),
        ((nvrtc("nvrtcVersion"), STUB), "cuda:12", "are not simulated. Leave that part out, or run it on a GPU"),
    ],
)
def test_the_likely_cause_of_a_failure_is_named_with_one_remedy(
    refusals: tuple[Refusal, ...], flavour: str, said: str
) -> None:
    causes = causes_of(use(Seen.ALLOCATED, refusals=refusals), parse_flavour(flavour), owner)
    assert said in causes if said else causes == ""
    assert "no device memory was used" not in causes
    assert "nvrtcGetErrorString" not in causes


def refused_memory(size_bytes: int, flags: int = 0, thing: Thing = Thing.DEVICE) -> Use:
    made = use(Seen.CREATED)
    for size in (1, size_bytes, 2):
        made.see(record(Seen.REFUSED)._replace(size_bytes=size, flags=Flag(flags), thing=thing))
    return made


@pytest.mark.parametrize(
    ("size_bytes", "thing", "said"),
    [
        (
            24 << 30,
            Thing.DEVICE,
            "the largest was 25,769,803,776 bytes (24 GiB) of device memory; use --capacity 32GiB",
        ),
        (1 << 20, Thing.MANAGED, "the largest was 1,048,576 bytes (1 MiB) of managed memory; use --capacity 1GiB"),
        (16 << 30, Thing.DEVICE, "use --capacity 32GiB"),
        (-1 % (1 << 64), Thing.DEVICE, "of device memory; ask for less"),
        (24 << 30, Thing.PINNED, "of pinned memory; ask for less"),
    ],
)
def test_memory_that_was_only_refused_was_not_tested(size_bytes: int, thing: Thing, said: str) -> None:
    why = untested(refused_memory(size_bytes, thing=thing), CUDA, owner)
    assert why is not None
    assert why.refused
    assert why.reason.startswith("all requests for memory were refused; the largest was ")
    assert why.reason.endswith(said)


def test_memory_that_was_refused_beside_some_that_was_used_or_as_the_run_asked_is_a_test() -> None:
    assert untested(refused_memory(24 << 30, Flag.INJECTED), CUDA, owner) is None
    used = refused_memory(24 << 30)
    used.see(record(Seen.ALLOCATED))
    assert untested(used, CUDA, owner) is None


def test_a_failure_that_the_run_asked_for_is_a_test() -> None:
    assert untested(use(refusals=(ARMED, FAILED)), CUDA, owner) is None


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (TABLE, "CUDA's runtime is linked statically into libxgboost.so of xgboost 3.2.0"),
        (TABLE, "Use a build that loads libcudart.so.12 (nvcc --cudart shared; CMake: CUDA_RUNTIME_LIBRARY"),
        (TABLE, "was not redirected to the simulated one (its functions were not recognized), so it got no device"),
        (Refusal(TABLE.kind, TABLE.function, 801, "/s/program"), "is linked statically into program"),
        (Refusal(TABLE.kind, TABLE.function, 801, str(REAL)), f"{REAL} of nvidia-cuda-runtime 13.0.96"),
        (Refusal(TABLE.kind, TABLE.function, 801, str(REAL)), "Run it with --flavour cuda:13"),
        (STUB, "cublasCreate_v2 (called by client.so) is not simulated, and no device memory was used"),
        (FAILED, "cudaSetDevice (error 101) failed before the program used the device"),
        (FORKED, "a child of fork() called cudaMalloc and was refused a device"),
        (FORKED, "set_start_method('spawn')"),
    ],
)
def test_who_was_refused_and_what_to_do_is_said(refused: Refusal, said: str) -> None:
    why = untested(use(refusals=(refused,)), CUDA, owner)
    assert why is not None
    assert why.refused
    assert said in why.reason


@pytest.mark.parametrize(
    ("functions", "asks"),
    [
        ("cudaGetLastError cudaPeekAtLastError cudaDriverGetVersion", False),
        ("hipGetErrorString hipStreamQuery __hipUnregisterFatBinary", False),
        ("cudaFree", True),
        ("hipDeviceSynchronize", True),
        ("cuEventDestroy_v2", True),
        ("cudaFree cudaMalloc", True),
        ("cudaGetDeviceCount", True),
        ("cuCtxCreate_v2", True),
    ],
)
def test_a_child_asks_for_what_the_device_would_have_to_do(functions: str, asks: bool) -> None:
    why = untested(use(refusals=tuple(Refusal(RefusalKind.FORKED, name, 3) for name in functions.split())), CUDA, owner)
    assert why is not None
    assert why.refused == asks


def test_several_are_named_and_the_rest_counted() -> None:
    stubs = tuple(Refusal(RefusalKind.NOT_SIMULATED, f"cudaFunction{number}", 801) for number in range(5))
    why = untested(use(refusals=stubs), CUDA, owner)
    assert why is not None
    assert "cudaFunction0, cudaFunction1, cudaFunction2 and 2 more are not simulated" in why.reason


def test_what_a_static_runtime_is_refused_besides_is_not_told() -> None:
    why = untested(use(refusals=(STUB, TABLE)), CUDA, owner)
    assert why is not None
    assert "cublasCreate_v2" not in why.reason


def test_a_stub_that_only_the_ledger_names_is_refused_as_well() -> None:
    made = use()
    made.see(record(Seen.NOT_SIMULATED, "cudaMallocMipmappedArray"))
    why = untested(made, CUDA, owner)
    assert why is not None
    assert why.refused
    assert "cudaMallocMipmappedArray is not simulated" in why.reason


def test_a_vendors_own_runtime_answered() -> None:
    why = untested(use(vendors=(REAL,)), CUDA, owner)
    assert why is not None
    assert why.refused
    assert "the vendor's own runtime was loaded instead of the simulated cuda:12" in why.reason
    old = untested(use(vendors=(Path("/s/libcudart.so.10.1"),)), CUDA, owner)
    assert old is not None
    assert "This version is not simulated: install one of hip:5, " in old.reason


def test_what_is_not_tested_beside_what_is_is_told() -> None:
    (text,) = untested_beside(use(Seen.ALLOCATED, refusals=(TABLE, STUB)), CUDA, owner)
    assert text.startswith("not tested: CUDA's runtime is linked statically into libxgboost.so")
    assert untested_beside(use(Seen.ALLOCATED, refusals=(STUB,)), CUDA, owner) == ()


def test_another_runtime_than_the_flavours_is_told_with_the_flavour_to_choose() -> None:
    others = (Path("libamdhip64.so.5"),)
    used = Use((), (), others, has_own=True)
    used.see(record(Seen.ALLOCATED))
    assert untested(used, CUDA, owner) is None
    (note,) = untested_beside(used, CUDA, owner)
    assert note == "judged as cuda:12, although it needs libamdhip64.so.5. Run it with --flavour hip:5"
    why = untested(Use((), (), others), CUDA, owner)
    assert why is not None
    assert why.reason.endswith("and it needs libamdhip64.so.5. Run it with --flavour hip:5")


@pytest.mark.parametrize("seen", [Seen.ALLOCATED, Seen.CREATED])
def test_what_another_runtime_alone_did_was_not_tested(seen: Seen) -> None:
    used = Use((), (), (Path("libamdhip64.so.5"),))
    used.see(record(seen))
    why = untested(used, CUDA, owner)
    assert why is not None
    assert why.refused
    assert why.reason == "judged as cuda:12, although it needs libamdhip64.so.5. Run it with --flavour hip:5"


STARTED = Load(Loaded.STARTED, 7, Path("/bin/client"), Path())
UNHEARD = Load(Loaded.UNHEARD, 7, Path("/bin/client"), Path("/lib/libtsan.so.2"))


@pytest.mark.parametrize(
    ("loads", "said"),
    [
        ((STARTED,), "the program never called the simulated runtime. If it ran on the CPU"),
        ((), "it is a static program, or built for another C library (musl) or processor"),
        ((STARTED, Load(Loaded.REAL, 7, REAL, Path("/m.so"))), "Run it with --flavour cuda:13"),
        ((STARTED, Load(Loaded.OTHER, 7, Path("libamdhip64.so.6"), Path("/m.so"))), "Run it with --flavour hip:6"),
        ((STARTED, UNHEARD, STARTED), "client never called the simulated runtime. It starts with libtsan.so.2, whose"),
        ((STARTED, UNHEARD, Load(Loaded.STARTED, 8, Path("/bin/test"), Path())), "If it ran on the CPU"),
    ],
)
def test_a_program_that_never_called_is_told_by_what_was_loaded(loads: tuple[Load, ...], said: str) -> None:
    why = never_called(loads, CUDA, owner)
    assert said in why.reason
    assert why.refused == any(load.kind is Loaded.REAL for load in loads)


def test_a_program_that_never_called_and_left_a_process_running_is_told_so() -> None:
    why = never_called((STARTED,), CUDA, owner, outlived=True)
    assert "a process that was started in the background was still running; run it in the foreground" in why.reason


@pytest.mark.parametrize(
    ("flavour", "function", "advice"),
    [
        (
            "cuda:12",
            "cuCtxGetDevice_v2",
            "Run it with --flavour cuda:13, which has cuCtxGetDevice_v2",
        ),
        (
            "cuda:11",
            "cuGreenCtxCreate",
            "Run it with --flavour cuda:12, which has cuGreenCtxCreate",
        ),
        ("hip:5", "hipStreamGetId", "Run it with --flavour hip:7, which has hipStreamGetId"),
        ("cuda:13", "cuNothingLikeIt", "(release 13.5) does not have;"),
    ],
)
def test_a_function_that_was_looked_for_in_vain_is_named_where_nothing_was_tested(
    flavour: str, function: str, advice: str
) -> None:
    looked_for = Refusal(RefusalKind.MISSING, function, 500, "/s/cupy/_core.so")
    why = untested(use(refusals=(looked_for,)), parse_flavour(flavour), owner)
    assert why is not None
    assert f"it looked for {function} (asked by _core.so of cupy-cuda12x 14.2.0) in vain, which {flavour}" in why.reason
    assert advice in why.reason
    assert not why.refused, "clients try names, and a helper may use no device"


def test_a_function_that_was_looked_for_in_vain_is_no_news_of_whoever_uses_the_device() -> None:
    looked_for = Refusal(RefusalKind.MISSING, "cuCtxGetDevice_v2", 500)
    used = use(Seen.CREATED, refusals=(looked_for,))
    assert untested(used, CUDA, owner) is None
    assert untested_beside(used, CUDA, owner) == ()
    assert causes_of(used, CUDA, owner) == ""


def test_a_compiler_that_is_not_installed_is_named_wherever_there_is_no_verdict() -> None:
    sentence = "libNVVM (libnvvm.so.4) is not installed; run python -m pip install 'nvidia-nvvm==13.*'"
    asked = Refusal(RefusalKind.NOT_INSTALLED, sentence, 801)
    why = untested(use(refusals=(asked,)), CUDA, owner)
    assert why is not None
    assert why.reason.startswith(sentence)
    assert not why.refused
    used = use(Seen.ALLOCATED, refusals=(asked,))
    assert causes_of(used, CUDA, owner) == sentence, "it may be why the program failed"
    assert untested(used, CUDA, owner) is None
    assert untested_beside(used, CUDA, owner) == (), "a program that goes on without it was tested"
