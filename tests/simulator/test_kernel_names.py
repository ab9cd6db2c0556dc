"""What is shown of a kernel's name."""

from __future__ import annotations

import ctypes

import pytest

from quiesce.simulator.runtime.device_code import readable_kernel_name

try:
    ctypes.CDLL("libstdc++.so.6")
except OSError:
    pytest.skip("this machine has no libstdc++, which knows the names", allow_module_level=True)


@pytest.mark.parametrize(
    ("mangled", "readable"),
    [
        ("fill", "fill"),
        ("_Z4fillIfEvPT_i", "fill<float>"),
        ("_ZN5inner5otherEPfi", "inner::other"),
        (
            "_ZN12_GLOBAL__N_14workIZ4mainEUliE_EEvT_",
            "(anonymous namespace)::work<main::{lambda(int)#1}>",
        ),
        ("_ZN6cudapy8__main__4fillB2v1B8cw51cXTLE5ArrayIfLi1E1C7mutable7alignedEi", "cudapy::__main__::fill"),
        ("_Z4workIXadL_Z5twicefEEEvPf", "work<&(twice(float))>"),
        ("_ZN5inner4workIN5outer120" + 120 * "a" + "EE3runIfEEvv", "inner::work<…>::run<…>"),
        ("__nv_static_22__1a0a7e87_4_a_cu_38b6c_Z4workPf", "__nv_static_22__1a0a7e87_4_a_cu_38b6c_Z4workPf"),
        ("__nv_static_25__1a0a7e87_4_a_cu_38b671cf__Z4workPf", "work"),
        ("_Zgarbage", "_Zgarbage"),
        ("_Z", "_Z"),
        ("", ""),
    ],
)
def test_a_name_is_that_of_the_source(mangled: str, readable: str) -> None:
    assert readable_kernel_name(mangled) == readable
