"""Functions of CUDA's library for kernels, ``libcudadevrt.a``, which numba-cuda and ``nvcc -rdc=true`` link with.

They are those by which the blocks of a cooperative grid wait for each other. A word of the grid's workspace counts the
blocks that have come, from the first wait to the last one. A block goes on when all have come as often as itself.
CUDA's headers have another word for kernels that are not linked with the library.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "cudaCG"
"""Begins their names."""

_WAIT: Final = """
.weak .func (.param .b32 result) {name}(.param .b64 handle, .param .b32 flags)
{{
.reg .pred %p<4>;
.reg .b32 %r<7>;
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [handle];
setp.ne.s64 %p1, %rd1, 0;
@%p1 bra $has_workspace;
st.param.b32 [result], 1;
ret;
$has_workspace:
barrier.sync 0;
mov.u32 %r1, %tid.x;
mov.u32 %r2, %tid.y;
or.b32 %r1, %r1, %r2;
mov.u32 %r2, %tid.z;
or.b32 %r1, %r1, %r2;
setp.ne.s32 %p2, %r1, 0;
@%p2 bra $come;
mov.u32 %r3, %nctaid.x;
mov.u32 %r4, %nctaid.y;
mul.lo.s32 %r3, %r3, %r4;
mov.u32 %r4, %nctaid.z;
mul.lo.s32 %r3, %r3, %r4;
atom.add.release.gpu.u32 %r5, [%rd1+8], 1;
div.u32 %r5, %r5, %r3;
mad.lo.s32 %r5, %r5, %r3, %r3;
$again:
ld.acquire.gpu.u32 %r6, [%rd1+8];
setp.lt.u32 %p3, %r6, %r5;
@%p3 bra $again;
$come:
barrier.sync 0;
st.param.b32 [result], 0;
ret;
}}
"""
DEVICE_RUNTIME: Final = (
    """
.weak .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
.reg .pred %p1;
.reg .b32 %r<4>;
.reg .b64 %rd<3>;
ld.param.u32 %r3, [scope];
setp.eq.u32 %p1, %r3, 1;
mov.u32 %r1, %envreg1;
mov.u32 %r2, %envreg2;
mov.b64 %rd1, {%r2, %r1};
selp.b64 %rd2, %rd1, 0, %p1;
st.param.b64 [result], %rd2;
ret;
}
"""
    + _WAIT.format(name="cudaCGSynchronize")
    + _WAIT.format(name="cudaCGSynchronizeGrid")
)
