"""Programs of CuPy without kernels: correct ones that look suspicious, wrong ones with the rule that each breaks."""

from __future__ import annotations

from typing import Final

PREPARE: Final = (
    "import cupy, cupyx, numpy, ctypes, threading, gc, os\n"
    "from cupy.cuda import runtime\n"
    "free_stream = lambda: cupy.cuda.Stream(non_blocking=True)\n"
    "wait = lambda: cupy.cuda.Device().synchronize()\n"
    "def refused(function, *arguments):\n"
    "    try: function(*arguments)\n"
    "    except runtime.CUDARuntimeError: return\n"
    "    raise SystemExit('it was not refused')\n"
)

INNOCENT: Final = {
    "in by one stream, out by another": """
a, b = free_stream(), free_stream()
source, target = cupyx.empty_pinned(1 << 16, 'u1'), cupyx.empty_pinned(1 << 16, 'u1')
with a:
    x = cupy.empty(1 << 16, 'u1')
for i in range(10):
    source[:] = i
    x.data.copy_from_host_async(source.ctypes.data, 1 << 16, a)
    b.wait_event(a.record())
    x.data.copy_to_host_async(target.ctypes.data, 1 << 16, b)
    b.synchronize()
    assert (target == i).all()
""",
    "handles of libraries, kept and given back": """
from cupy_backends.cuda.libs import cublas, curand, cusparse
device, stream = cupy.cuda.Device(), free_stream()
cublas.setStream(device.cublas_handle, stream.ptr)
assert cublas.getStream(device.cublas_handle) == stream.ptr
cublas.setStream(device.cublas_handle, 0)
cublas.setPointerMode(device.cublas_handle, cublas.CUBLAS_POINTER_MODE_DEVICE)
assert cublas.getPointerMode(device.cublas_handle) == cublas.CUBLAS_POINTER_MODE_DEVICE
cusparse.setStream(device.cusparse_handle, 0)
random = cupy.random.RandomState(seed=3)
plans = [cupy.cuda.cufft.Plan1d(64, cupy.cuda.cufft.CUFFT_C2C, 2) for i in range(2)]
del plans[0]
for create, destroy in ((cublas.create, cublas.destroy), (cusparse.create, cusparse.destroy)):
    for i in range(3): destroy(create())
generator = curand.createGenerator(curand.CURAND_RNG_PSEUDO_DEFAULT)
curand.setPseudoRandomGeneratorSeed(generator, 5)
curand.destroyGenerator(generator)
""",
    "four threads": """
def work(n):
    with free_stream() as stream:
        pinned = cupyx.empty_pinned(1000 * (n + 1), 'u1')
        for i in range(20):
            pinned[:] = i
            x = cupy.empty(1000 * (n + 1), 'u1')
            x.data.copy_from_host_async(pinned.ctypes.data, x.nbytes, stream)
            stream.synchronize()
            assert (x.get() == i).all()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
cupy.get_default_memory_pool().free_all_blocks()
cupy.get_default_pinned_memory_pool().free_all_blocks()
""",
    "an allocator of the program's own": """
sizes = {}
def allocate(size):
    memory = cupy.cuda.Memory(size)
    sizes[memory.ptr] = size
    return cupy.cuda.MemoryPointer(memory, 0)
cupy.cuda.set_allocator(allocate)
arrays = [cupy.empty(size, 'u1') for size in (1, 100, 1 << 20)]
del arrays
cupy.cuda.set_allocator(None)
x = cupy.empty(10, 'u1')
""",
    "managed memory": """
pool = cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)
cupy.cuda.set_allocator(pool.malloc)
x = cupy.empty(1 << 16, 'u1')
x.data.memset(5, 1 << 16)
wait()
assert (x.get() == 5).all()
del x
pool.free_all_blocks()
""",
    "memory that somebody else owns": """
x = cupy.empty(1000, 'u1')
memory = cupy.cuda.UnownedMemory(x.data.ptr, 1000, x, 0)
y = cupy.ndarray((500,), 'u1', cupy.cuda.MemoryPointer(memory, 250))
del x
y.data.memset(3, 500)
assert (y.get() == 3).all()
del y, memory
gc.collect()
cupy.get_default_memory_pool().free_all_blocks()
""",
    "events outlive their streams": """
events, x = [], cupy.empty(1000, 'u1')
wait()
for i in range(10):
    stream = free_stream()
    x.data.memset_async(i, 1000, stream)
    events.append(stream.record())
    stream.synchronize()
    del stream
del events
wait()
assert (x.get() == 9).all()
""",
    "a limit is met and kept": """
pool = cupy.cuda.MemoryPool()
pool.set_limit(size=8 << 20)
with cupy.cuda.using_allocator(pool.malloc):
    arrays = [cupy.empty(1 << 20, 'u1') for _ in range(8)]
    try:
        cupy.empty(1 << 20, 'u1')
        raise SystemExit('there is no limit')
    except cupy.cuda.memory.OutOfMemoryError:
        pass
    del arrays[::2]
    x = cupy.empty(1 << 20, 'u1')
del arrays, x
pool.free_all_blocks()
""",
    "from one device to another": """
arrays = []
for number in range(2):
    with cupy.cuda.Device(number):
        x = cupy.empty(4096, 'u1')
        x.data.memset(number + 1, 4096)
        arrays.append(x)
with cupy.cuda.Device(1):
    y = cupy.empty(4096, 'u1')
    y.data.copy_from_device(arrays[0].data, 4096)
    assert (y.get() == 1).all()
""",
    "results go to pinned memory": """
target, stream = cupyx.empty_pinned(1 << 20, 'u1'), free_stream()
with stream:
    x = cupy.empty(1 << 20, 'u1')
    x.data.memset_async(4, 1 << 20, stream)
    x.get(stream=stream, out=target)
stream.synchronize()
assert (target == 4).all()
""",
    "a child does nothing": """
x = cupy.empty(1000, 'u1')
x.data.memset(1, 1000)
child = os.fork()
if not child:
    os._exit(0)
os.waitpid(child, 0)
assert (x.get() == 1).all()
""",
    "four streams write four parts": """
x = cupy.empty(4096, 'u1')
wait()
streams = [free_stream() for _ in range(4)]
for number, stream in enumerate(streams):
    (x.data + 1024 * number).memset_async(number, 1024, stream)
for stream in streams:
    stream.synchronize()
assert [int(value) for value in x.get()[::1024]] == [0, 1, 2, 3]
""",
}

GUILTY: Final = {
    "handles that are made anew and dropped": (
        "handles_are_destroyed_at_quiescence",
        """
from cupy_backends.cuda.libs import cublas
cupy.empty(8, 'u1')
for i in range(4): handle = cublas.create()
handle = None
""",
    ),
    "a handle that is used after its end": (
        "destroyed_handles_are_not_used",
        """
from cupy_backends.cuda.libs import cublas
cupy.empty(8, 'u1')
handle = cublas.create()
cublas.destroy(handle)
try: cublas.setStream(handle, 0)
except cublas.CUBLASError: pass
""",
    ),
    "blocks are lost": ("nothing_is_left_at_quiescence", "for _ in range(5): runtime.malloc(1000)\n"),
    "streams are lost": ("handles_are_destroyed_at_quiescence", "for _ in range(5): runtime.streamCreate()\n"),
    "a block is freed twice": (
        "memory_is_freed_once",
        "p = runtime.malloc(1000)\nruntime.free(p)\nrefused(runtime.free, p)\n",
    ),
    "the middle of a block is freed": (
        "only_own_memory_is_freed",
        "p = runtime.malloc(1000)\nrefused(runtime.free, p + 8)\nruntime.free(p)\n",
    ),
    "pinned memory is freed as device memory": (
        "only_own_memory_is_freed",
        "p = runtime.hostAlloc(1000, 0)\nrefused(runtime.free, p)\nruntime.freeHost(p)\n",
    ),
    "the host writes behind a block": (
        "memory_after_a_block_is_unchanged",
        "p = runtime.hostAlloc(1000, 0)\nctypes.memset(p + 1000, 0, 4)\nruntime.freeHost(p)\n",
    ),
    "a fill is too long": (
        "uses_stay_inside_their_block",
        "p = runtime.malloc(1000)\nrefused(runtime.memset, p + 500, 0, 501)\nruntime.free(p)\n",
    ),
    "freed memory is filled": (
        "freed_memory_is_not_used",
        "p = runtime.malloc(1000)\nruntime.free(p)\nrefused(runtime.memset, p, 0, 10)\n",
    ),
    "a destroyed stream is waited for": (
        "destroyed_handles_are_not_used",
        "s = runtime.streamCreate()\nruntime.streamDestroy(s)\nrefused(runtime.streamSynchronize, s)\n",
    ),
    "two streams write the same bytes": (
        "conflicting_uses_are_ordered",
        """
x, a, b = cupy.empty(4096, 'u1'), free_stream(), free_stream()
wait()
x.data.memset_async(1, 4096, a)
(x.data + 4000).memset_async(2, 96, b)
a.synchronize(), b.synchronize()
""",
    ),
    "a block is dropped in use by another stream": (
        "conflicting_uses_are_ordered",
        """
a, b = free_stream(), free_stream()
with a:
    x = cupy.empty(1 << 20, 'u1')
x.data.memset_async(1, 1 << 20, b)
del x
with a:
    y = cupy.empty(1 << 20, 'u1')
    y.data.memset_async(2, 1 << 20, a)
wait()
""",
    ),
    "a pinned block is dropped in flight": (
        "conflicting_uses_are_ordered",
        """
s, t = free_stream(), free_stream()
p = cupyx.empty_pinned(1 << 16, 'u1')
with s:
    x, y = cupy.empty(1 << 16, 'u1'), cupy.empty(1 << 16, 'u1')
x.data.copy_from_host_async(p.ctypes.data, 1 << 16, s)
del p
q = cupyx.empty_pinned(1 << 16, 'u1')
y.data.copy_to_host_async(q.ctypes.data, 1 << 16, t)
s.synchronize(), t.synchronize()
""",
    ),
    "the default stream does not wait for this one": (
        "conflicting_uses_are_ordered",
        """
x, stream = cupy.empty(4096, 'u1'), free_stream()
x.data.memset_async(1, 4096, cupy.cuda.Stream.null)
x.data.memset_async(2, 4096, stream)
stream.synchronize(), cupy.cuda.Stream.null.synchronize()
""",
    ),
}

GUILTY_ON_HIP: Final = {
    "an event of a destroyed stream is waited for": (
        "waits_name_live_streams",
        """
event, stream = cupy.cuda.Event(), free_stream()
event.record(stream)
stream.synchronize()
del stream
gc.collect()
event.synchronize()
""",
    ),
}
