"""The lines round the loops over all threads of a block: the indices, and what follows when all threads have run."""

from __future__ import annotations

from typing import Final

from quiesce.kernels.translation.frames import NEXT
from quiesce.kernels.translation.shapes import BLOCK

ENDED, APART = 0, 1
"""What the function returns: all threads have ended, or not all of them wait at the same barrier."""
DONE: Final = -1
HEAD: Final = f"""br label %$.head.z
$.head.z:
%$.z = phi i32 [0, %$], [%$.z.next, %$.next.z]
%$.z.rows = mul i32 %$.z, %c{BLOCK + 4}.i32
br label %$.head.y
$.head.y:
%$.y = phi i32 [0, %$.head.z], [%$.y.next, %$.next.y]
%$.row = add i32 %$.z.rows, %$.y
%$.row.first = mul i32 %$.row, %c{BLOCK}.i32
br label %$.head.x
$.head.x:
%$.x = phi i32 [0, %$.head.y], [%$.x.next, %$.next.x]
%$.linear = add nuw nsw i32 %$.row.first, %$.x
%$.linear.wide = zext i32 %$.linear to i64
br label %$.thread""".split("\n")
TAIL: Final = f"""%$.state = load i32, ptr %next
%$.state.place = getelementptr i8, ptr %frames, i64 {NEXT}
%$.state.own = getelementptr i32, ptr %$.state.place, i64 %$.linear.wide
store i32 %$.state, ptr %$.state.own, !llvm.access.group !4
%$.or.before = load i32, ptr %together.or
%$.or = or i32 %$.or.before, %$.state
store i32 %$.or, ptr %together.or
%$.and.before = load i32, ptr %together.and
%$.and = and i32 %$.and.before, %$.state
store i32 %$.and, ptr %together.and
%$.x.next = add nuw nsw i32 %$.x, 1
%$.x.done = icmp eq i32 %$.x.next, %c{BLOCK}.i32
br i1 %$.x.done, label %$.next.y, label %$.head.x, !llvm.loop !5
$.next.y:
%$.y.next = add nuw nsw i32 %$.y, 1
%$.y.done = icmp eq i32 %$.y.next, %c{BLOCK + 4}.i32
br i1 %$.y.done, label %$.next.z, label %$.head.y
$.next.z:
%$.z.next = add nuw nsw i32 %$.z, 1
%$.z.done = icmp eq i32 %$.z.next, %c{BLOCK + 8}.i32
br i1 %$.z.done, label %$.done, label %$.head.z
$.done:""".split("\n")
DECIDE: Final = f"""decide:
%all.or = load i32, ptr %together.or
%all.and = load i32, ptr %together.and
%is.one = icmp eq i32 %all.or, %all.and
br i1 %is.one, label %one, label %apart
one:
switch i32 %all.or, label %apart [i32 {DONE}, label %ended $]
ended:
ret i32 {ENDED}""".split("\n")
