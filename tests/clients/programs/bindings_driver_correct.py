"""Memory and a stream of the CUDA driver."""

from cuda.bindings import driver


def check(answer):
    """Return what a call answers, if it succeeded."""
    assert answer[0] == driver.CUresult.CUDA_SUCCESS, answer
    return answer[1] if len(answer) > 1 else None


check(driver.cuInit(0))
context = check(driver.cuDevicePrimaryCtxRetain(0))
check(driver.cuCtxSetCurrent(context))
block = check(driver.cuMemAlloc(4096))
stream = check(driver.cuStreamCreate(1))
check(driver.cuMemsetD8Async(block, 7, 4096, stream))
check(driver.cuStreamSynchronize(stream))
found = bytearray(4096)
check(driver.cuMemcpyDtoH(found, block, 4096))
assert found == b"\7" * 4096
check(driver.cuStreamDestroy(stream))
check(driver.cuMemFree(block))
