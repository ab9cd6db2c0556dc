"""Programs of PyTorch: correct ones that look suspicious, and wrong ones with the rule that each breaks."""

from __future__ import annotations

from typing import Final

RECORDED: Final = """
side = torch.cuda.Stream()
for _ in range(10):
    x = torch.empty({size_bytes}, dtype=torch.uint8, device='cuda')
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = torch.empty_like(x).copy_(x)
    x.record_stream(side)
    del x
torch.cuda.synchronize()
del y
torch.cuda.empty_cache()
"""
"""A block that another stream uses is kept for it; small ones and large ones have pools of their own."""

INNOCENT: Final = {
    "one stream produces, another consumes": """
a, b = torch.cuda.Stream(), torch.cuda.Stream()
shared = torch.empty(1 << 20, dtype=torch.uint8, device='cuda')
torch.cuda.synchronize()
for i in range(20):
    with torch.cuda.stream(a):
        shared.copy_(torch.full((1 << 20,), i, dtype=torch.uint8).pin_memory(), non_blocking=True)
        produced = a.record_event()
    b.wait_event(produced)
    with torch.cuda.stream(b):
        taken = torch.empty_like(shared).copy_(shared)
    a.wait_stream(b)
torch.cuda.synchronize()
assert (taken.cpu() == 19).all()
""",
    "two buffers take turns": """
copying, working = torch.cuda.Stream(), torch.cuda.Stream()
host = [torch.empty(4096, dtype=torch.uint8).pin_memory() for _ in range(2)]
device = [torch.empty(4096, dtype=torch.uint8, device='cuda') for _ in range(2)]
result = torch.empty(4096, dtype=torch.uint8, device='cuda')
torch.cuda.synchronize()
loaded, used = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))
for i in range(12):
    k = i % 2
    loaded[k].synchronize()
    host[k].fill_(i)
    with torch.cuda.stream(copying):
        copying.wait_event(used[k])
        device[k].copy_(host[k], non_blocking=True)
        loaded[k].record()
    with torch.cuda.stream(working):
        working.wait_event(loaded[k])
        result.copy_(device[k])
        used[k].record()
torch.cuda.synchronize()
assert (result.cpu() == 11).all()
""",
    "record_stream keeps a block for another stream": RECORDED.format(size_bytes="1 << 22"),
    "four threads": """
import threading
def work(n):
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(20):
            x = torch.empty(1000 * (n + 1), device='cuda')
            x.copy_(torch.ones(1000 * (n + 1)), non_blocking=True)
            assert (x.cpu() == 1).all()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
torch.cuda.empty_cache()
""",
    "out of memory is recovered from": """
kept = []
try:
    while True:
        kept.append(torch.empty(64 << 20, dtype=torch.uint8, device='cuda'))
except torch.OutOfMemoryError:
    pass
assert len(kept) > 2
del kept[::2]
torch.cuda.empty_cache()
x = torch.empty(64 << 20, dtype=torch.uint8, device='cuda')
del kept, x
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() == 0
""",
    "two graphs share a pool": """
source, result = torch.empty(256, device='cuda'), torch.empty(256, device='cuda')
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    between = torch.empty(256, device='cuda').copy_(source)
with torch.cuda.graph(second, pool=first.pool()):
    result.copy_(between)
for i in range(5):
    source.copy_(torch.full((256,), float(i)))
    first.replay()
    second.replay()
    torch.cuda.synchronize()
    assert (result.cpu() == i).all()
""",
    "a pinned block is dropped in flight": """
stream = torch.cuda.Stream()
target = torch.empty(1 << 16, dtype=torch.uint8, device='cuda')
torch.cuda.synchronize()
with torch.cuda.stream(stream):
    for i in range(30):
        pinned = torch.full((1 << 16,), i, dtype=torch.uint8).pin_memory()
        target.copy_(pinned, non_blocking=True)
        del pinned
stream.synchronize()
assert (target.cpu() == 29).all()
""",
    "forty streams between two timed events": """
streams = [torch.cuda.Stream(priority=-(i % 2)) for i in range(40)]
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
for stream in streams:
    stream.wait_event(start)
    with torch.cuda.stream(stream):
        x = torch.empty(100, device='cuda')
        y = torch.empty(100, device='cuda').copy_(x)
for stream in streams:
    torch.cuda.current_stream().wait_stream(stream)
end.record()
end.synchronize()
assert start.elapsed_time(end) >= 0
""",
    "the runtime's own pool": RECORDED.format(size_bytes="1 << 20"),
    "a capture forks and joins": """
a, b, c = (torch.empty(64, device='cuda') for _ in range(3))
graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
with torch.cuda.graph(graph):
    main = torch.cuda.current_stream()
    b.copy_(a)
    side.wait_stream(main)
    with torch.cuda.stream(side):
        c.copy_(a)
    main.wait_stream(side)
a.copy_(torch.full((64,), 3.0))
graph.replay()
torch.cuda.synchronize()
assert (b.cpu() == 3).all() and (c.cpu() == 3).all()
""",
    "host memory is registered for a while": """
import numpy
data = numpy.zeros(1 << 16, 'u1')
runtime = torch.cuda.cudart()
assert int(runtime.cudaHostRegister(data.ctypes.data, data.nbytes, 0)) == 0
x, stream = torch.from_numpy(data), torch.cuda.Stream()
assert x.is_pinned()
with torch.cuda.stream(stream):
    y = torch.empty(1 << 16, dtype=torch.uint8, device='cuda').copy_(x, non_blocking=True)
stream.synchronize()
assert int(runtime.cudaHostUnregister(data.ctypes.data)) == 0
""",
}

ALLOCATOR_OPTIONS: Final = {"the runtime's own pool": "backend:cudaMallocAsync"}
"""PYTORCH_CUDA_ALLOC_CONF of a program."""

GUILTY: Final = {
    "blocks are lost": (
        "nothing_is_left_at_quiescence",
        "for _ in range(5):\n    p = V()\n    rt.cudaMalloc(ctypes.byref(p), N)\n    p.value = 0\n",
    ),
    "events are lost": (
        "handles_are_destroyed_at_quiescence",
        "for _ in range(5):\n    e = V()\n    rt.cudaEventCreate(ctypes.byref(e))\n    e.value = 0\n",
    ),
    "a block is freed twice": (
        "memory_is_freed_once",
        "rt.cudaMalloc(ctypes.byref(p), N), rt.cudaFree(p), rt.cudaFree(p)\n",
    ),
    "a tensor is freed": (
        "only_own_memory_is_freed",
        "x, y = (torch.empty(10, device='cuda') for _ in range(2))\nrt.cudaFree(V(y.data_ptr()))\n",
    ),
    "a segment is freed behind torch's back": (
        "memory_is_freed_once",
        "x = torch.empty(10, device='cuda')\nrt.cudaFree(V(x.data_ptr()))\ndel x\ntorch.cuda.empty_cache()\n",
    ),
    "freed memory is filled": (
        "freed_memory_is_not_used",
        "rt.cudaMalloc(ctypes.byref(p), N), rt.cudaFree(p), rt.cudaMemset(p, 0, N)\n",
    ),
    "the host writes behind a block": (
        "memory_after_a_block_is_unchanged",
        "rt.cudaHostAlloc(ctypes.byref(p), N, 0)\nctypes.memset(p.value, 0, 1001)\nrt.cudaFreeHost(p)\n",
    ),
    "a fill is too long": (
        "uses_stay_inside_their_block",
        "rt.cudaMalloc(ctypes.byref(p), N), rt.cudaMemset(p, 0, ctypes.c_size_t(1001)), rt.cudaFree(p)\n",
    ),
    "a destroyed stream is waited for": (
        "destroyed_handles_are_not_used",
        "rt.cudaStreamCreate(ctypes.byref(p)), rt.cudaStreamDestroy(p), rt.cudaStreamSynchronize(p)\n",
    ),
    "tensors pile up": (
        "retained_does_not_grow",
        "kept = []\nfor _ in range(20):\n    kept.append(torch.empty(30 << 20, dtype=torch.uint8, device='cuda'))\n"
        "    rt.quiesce_mark(b'step')\n",
    ),
    "one stream reads what another writes": (
        "conflicting_uses_are_ordered",
        """
a, b = torch.cuda.Stream(), torch.cuda.Stream()
x, y, z = (torch.empty(1 << 16, device='cuda') for _ in range(3))
torch.cuda.synchronize()
with torch.cuda.stream(a):
    x.copy_(y)
with torch.cuda.stream(b):
    z.copy_(x)
torch.cuda.synchronize()
""",
    ),
    "record_stream is forgotten": (
        "conflicting_uses_are_ordered",
        """
side = torch.cuda.Stream()
x, y, z = (torch.empty(1 << 22, dtype=torch.uint8, device='cuda') for _ in range(3))
torch.cuda.synchronize()
with torch.cuda.stream(side):
    y.copy_(x, non_blocking=True)
del x
again = torch.empty(1 << 22, dtype=torch.uint8, device='cuda').copy_(z)
torch.cuda.synchronize()
""",
    ),
    "a pinned source is written in flight": (
        "conflicting_uses_are_ordered",
        """
a, b = torch.cuda.Stream(), torch.cuda.Stream()
pinned = torch.empty(1 << 16, dtype=torch.uint8).pin_memory()
x, y = (torch.empty(1 << 16, dtype=torch.uint8, device='cuda') for _ in range(2))
torch.cuda.synchronize()
with torch.cuda.stream(a):
    x.copy_(pinned, non_blocking=True)
with torch.cuda.stream(b):
    pinned.copy_(y, non_blocking=True)
torch.cuda.synchronize()
""",
    ),
    "a graph writes beside a stream": (
        "conflicting_uses_are_ordered",
        """
a, b, c = (torch.empty(64, device='cuda') for _ in range(3))
graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
with torch.cuda.graph(graph):
    b.copy_(a)
torch.cuda.synchronize()
graph.replay()
with torch.cuda.stream(side):
    b.copy_(c)
torch.cuda.synchronize()
""",
    ),
}

OF_TENSORS: Final = frozenset(
    {
        "a graph writes beside a stream",
        "a pinned source is written in flight",
        "a tensor is freed",
        "one stream reads what another writes",
        "record_stream is forgotten",
        "tensors pile up",
    }
)
"""Wrong programs whose blocks are PyTorch's: they are as wrong under another of its allocators."""

PREPARE: Final = (
    "import ctypes\nrt = ctypes.CDLL('libcudart.so')\nV, N = ctypes.c_void_p, ctypes.c_size_t(1000)\np = V()\n"
    "torch.empty(1, device='cuda')\n"
)
"""What stands above a wrong program: the runtime below torch, a place for a handle, a size."""
