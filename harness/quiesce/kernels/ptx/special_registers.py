"""Registers that the hardware fills, by the names that PTX gives them."""

from __future__ import annotations

from typing import Final

_VECTORS: Final = ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
_SINGLE: Final = (
    *("laneid", "warpid", "nwarpid", "smid", "nsmid", "gridid", "is_explicit_cluster"),
    *("lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt"),
    *("clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi"),
    *("total_smem_size", "dynamic_smem_size", "aggr_smem_size", "cluster_ctarank", "cluster_nctarank"),
    *("current_graph_exec", "reserved_smem_offset_begin", "reserved_smem_offset_end", "reserved_smem_offset_cap"),
)
SPECIAL_REGISTERS: Final = frozenset(
    [f"%{name}" for name in _SINGLE]
    + [f"%{name}.{axis}" for name in _VECTORS for axis in "xyzw"]
    + [f"%envreg{number}" for number in range(32)]
    + [f"%pm{number}" for number in range(8)]
    + [f"%pm{number}_64" for number in range(8)]
    + [f"%reserved_smem_offset_{number}" for number in (0, 1)]
)
