"""Positions and weights of particles, in arrays of CuPy: what a user's own package may look like."""

import cupy as cp

_BLOCK = 128

scale = cp.ElementwiseKernel("T x, T factor", "T y", "y = x * factor + 1", "particles_scale")

largest_distance = cp.ReductionKernel(
    "T x, T y", "T found", "abs(x - y)", "max(a, b)", "found = a", "0", "particles_largest_distance"
)

_BLUR = cp.RawKernel(
    r"""
extern "C" __global__ void blur(const float *from, float *to, int count) {
    __shared__ float part[130];
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = threadIdx.x + 1;
    part[at] = i < count ? from[i] : 0;
    if (threadIdx.x == 0) part[0] = i > 0 ? from[i - 1] : 0;
    if (threadIdx.x == blockDim.x - 1) part[at + 1] = i + 1 < count ? from[i + 1] : 0;
    __syncthreads();
    if (i >= count) return;
    float next = i + 1 < count ? part[at + 1] : 0;
    to[i] = (part[at - 1] + part[at] + next) / 3;
}
""",
    "blur",
)

_DEPOSIT = cp.RawKernel(
    r"""
extern "C" __global__ void deposit(const int *cells, const double *weights, double *sums, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(&sums[cells[i]], weights[i]);
}
""",
    "deposit",
)

_WARP_SUM = cp.RawKernel(
    r"""
extern "C" __global__ void warp_sum(const int *from, int *to, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < count ? from[i] : 0;
    for (int offset = 16; offset; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(to, value);
}
""",
    "warp_sum",
)


def _blocks(count):
    return ((count + _BLOCK - 1) // _BLOCK,)


def blur(values):
    """Return the mean of each value and its neighbours."""
    values = values.astype(cp.float32)
    made = cp.empty_like(values)
    _BLUR(_blocks(values.size), (_BLOCK,), (values, made, cp.int32(values.size)))
    return made


def deposit(cells, weights, count):
    """Return the sum of the weights in each cell."""
    sums = cp.zeros(count, cp.float64)
    _DEPOSIT(_blocks(cells.size), (_BLOCK,), (cells, weights, sums, cp.int32(cells.size)))
    return sums


def warp_sum(values):
    """Return the sum of integers."""
    made = cp.zeros(1, cp.int32)
    _WARP_SUM(_blocks(values.size), (_BLOCK,), (values, made, cp.int32(values.size)))
    return made[0]


@cp.fuse()
def energy(speed, mass):
    """Return the energy of movement."""
    return mass * speed * speed / 2


def softmax(values):
    """Return weights that sum up to 1."""
    powers = cp.exp(values - values.max())
    return powers / powers.sum()


def moving_average(values, width):
    """Return means of so many neighbours."""
    sums = cp.cumsum(cp.concatenate([cp.zeros(1, values.dtype), values]))
    return (sums[width:] - sums[:-width]) / width


def inside(values, low, high):
    """Return the values in a range, in their order."""
    return values[(values >= low) & (values < high)]


def nearest(first, second):
    """Return for each value of one array the place of the nearest one of another."""
    return cp.abs(first[:, None] - second[None, :]).argmin(axis=1)


def two_streams(values):
    """Return a sum that two streams computed half of each."""
    half = values.size // 2
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]
    sums = []
    cp.cuda.get_current_stream().synchronize()
    for stream, part in zip(streams, (values[:half], values[half:]), strict=True):
        with stream:
            sums.append(part.sum())
    for stream in streams:
        stream.synchronize()
    return sums[0] + sums[1]


_kept = []


def record(values, forget):
    """Keep a copy, and forget the earlier ones if asked."""
    if forget:
        _kept.clear()
    _kept.append(values.copy())
