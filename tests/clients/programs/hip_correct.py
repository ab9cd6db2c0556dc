"""Memory and a stream of HIP's runtime."""

from hip import hip


def check(answer):
    """Return what a call answers, if it succeeded."""
    assert answer[0] == hip.hipError_t.hipSuccess, answer
    return answer[1] if len(answer) > 1 else None


block = check(hip.hipMalloc(4096))
stream = check(hip.hipStreamCreate())
check(hip.hipMemsetAsync(block, 7, 4096, stream))
check(hip.hipStreamSynchronize(stream))
found = bytearray(4096)
check(hip.hipMemcpy(found, block, 4096, hip.hipMemcpyKind.hipMemcpyDeviceToHost))
assert found == b"\7" * 4096
check(hip.hipStreamDestroy(stream))
check(hip.hipFree(block))
