"""The functions that compute: two tables have the same, and each takes what its vendor's header says.

The wheels ``nvidia-cublas-cu12``, ``nvidia-cufft-cu12`` and their like carry the headers.
"""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("scipy")

from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.libraries import server
from quiesce.simulator.libraries.table import TABLE
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.library_server import computed_functions
from quiesce.simulator.runtime.vendor_libraries import functions_of

assert server  # it loads every row
HEADERS: Final = (
    *("cublas_api.h", "cublasLt.h", "cufft.h", "cufftXt.h", "curand.h", "cusolverDn.h", "cusolverSp.h"),
    *("cusparse.h", "cudnn_graph_v9.h", "cudnn_ops_v9.h", "cudnn_cnn_v9.h", "nccl.h"),
)
LIBRARIES: Final = (
    *("libcublas.so.12", "libcublasLt.so.12", "libcudnn.so.9", "libcufft.so.11", "libcurand.so.10"),
    *("libcusolver.so.11", "libcusparse.so.12", "libnccl.so.2"),
)
COMMENTS: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
PROTOTYPE: Final = re.compile(
    r"\b(?:cublas|cudnn|cufft|curand|cusolver|cusparse|nccl)(?:Status_t|Status|Result_t|Result)\s+"
    r"(?:CU\w+API\s+)?(\w+)\s*\(([^;{}]*?)\)\s*;"
)
DESCRIPTORS: Final = re.compile(
    r"cublasLt(?:Matmul|Matrix)\w*(?:Create|Destroy|Init_internal|Attribute|GetHeuristic|GetIds|Init|Check)"
    r"|cusolverDn(?:(?:Create|Destroy)(?:\w+Info|Params)|SetAdvOptions|X(?:syevj|gesvdj)Set\w+)"
    r"|cusparse(?:Create|Destroy|GetMat|SetMat)\w+|cusparse\w+_(?:create|destroy)Descr|cusparse\w+_numericBoost"
    r"|cusparse(?:Const)?(?:Sp|Dn|Csr|Csc|Coo|Bsr)(?:Mat|Vec)?(?:[GS]et\w*)|cusparseSpGEMM_getNumProducts"
    r"|cufftXtSetJITCallback|__cufftXtSetJITCallback_12_7"
    r"|cudnn(?:Backend(?!Execute)|Create|Destroy|Get|Find|Derive|Set\w*Descriptor|SetConvolution)\w*"
    r"|cudnn\w+VersionCheck|ncclRedOp\w+"
)
"""These compute nothing, and have no row."""
POINTER: Final = re.compile(
    r"\*|\[\]|\b(?:cublas(?:Lt)?Handle_t|curandGenerator_t|cudaStream_t|ncclComm_t)\b"
    r"|cublasLt\w+(?:Desc|Layout|Preference)_t"
    r"|\bcusolver\w+Handle_t\b|\w+(?:Params|Infos?|MatDescr)_t\b"
    r"|\bcusparse\w*(?:Handle|Descr)_t\b|\b\w+Info_t\b|\bcudnn\w*(?:Handle|Descriptor)_t\b"
)


def test_both_tables_have_the_same_functions() -> None:
    try:
        exported = computed_functions()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert TABLE.keys() - exported == set()
    assert [name for name in exported - TABLE.keys() if not DESCRIPTORS.fullmatch(name)] == []
    assert len(exported) > 250


def test_every_function_is_one_of_its_library() -> None:
    known = frozenset[str]().union(*map(functions_of, LIBRARIES))
    assert sorted(name for name in TABLE.keys() - known if not name.startswith("hip")) == []


def test_libraries_of_which_functions_compute_come_before_installed_ones() -> None:
    computed = {name.partition(".so")[0] for name in parse_flavour("cuda:12").computed}
    assert {each.partition(".so")[0] for each in LIBRARIES if functions_of(each) & TABLE.keys()} == computed


def headers() -> Iterator[Path]:
    """Yield the headers of the packages that are installed."""
    for folder in (Path(sysconfig.get_paths()["purelib"]) / "nvidia").glob("*/include"):
        yield from (folder / name for name in HEADERS if (folder / name).is_file())


def letter_of(parameter: str) -> str:
    """Return the letter of a parameter's type in a signature; ``n`` for any number of 32 bits."""
    text = re.sub(r"\bconst\b", "", parameter)
    if text.count("*") == 2 or ("*" in text and "[]" in text):
        return "a"
    if POINTER.search(text):
        return "p"
    kinds = (("long long", "l"), ("int64_t", "l"), ("size_t", "z"), ("float", "f"), ("double", "d"))
    complex_kinds = (("cuDoubleComplex", "d"), ("cuComplex", "f"))  # passed where their first part is
    return next((letter for word, letter in (*kinds, *complex_kinds) if word in text), "n")


def prototypes() -> Mapping[str, tuple[str, ...]]:
    """Return the parameters of the functions that headers declare."""
    made = {}
    for path in headers():
        text = COMMENTS.sub("", path.read_text(encoding="utf-8", errors="replace"))
        for name, parameters in PROTOTYPE.findall(text):
            made[name] = tuple(letter_of(each) for each in parameters.split(","))
    if not made:
        pytest.skip("needs headers: nvidia-cublas-cu12 and its like")
    return made


def wanted(name: str) -> tuple[str, ...]:
    """Return the parameters of a function as its row has them, without what no header tells apart."""
    wide = {"n": "l"} if name.endswith("_64") else {"n": "n"}
    return tuple({"e": "n", **wide}.get(letter, letter) for letter, _ in TABLE[name].parameters if letter != "w")


def test_signatures_are_those_of_the_headers() -> None:
    declared = prototypes()
    both = sorted(TABLE.keys() & declared.keys())
    least = 100 if "cublasCreate_v2" in declared else 6  # of which one package alone may be there
    assert len(both) > least, "hardly any function was found"
    wrong = {name: (wanted(name), declared[name]) for name in both if wanted(name) != declared[name]}
    assert wrong == {}
