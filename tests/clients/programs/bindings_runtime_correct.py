"""Memory, a stream and an event of CUDA's runtime."""

from cuda.bindings import runtime


def check(answer):
    """Return what a call answers, if it succeeded."""
    assert answer[0] == runtime.cudaError_t.cudaSuccess, answer
    return answer[1] if len(answer) > 1 else None


block = check(runtime.cudaMalloc(4096))
stream = check(runtime.cudaStreamCreate())
check(runtime.cudaMemsetAsync(block, 7, 4096, stream))
check(runtime.cudaStreamSynchronize(stream))
found = bytearray(4096)
check(runtime.cudaMemcpy(found, block, 4096, runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost))
assert found == b"\7" * 4096
check(runtime.cudaStreamDestroy(stream))
check(runtime.cudaFree(block))
