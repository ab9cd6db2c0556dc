"""A block is freed twice."""

from cuda.bindings import driver

driver.cuInit(0)
_, context = driver.cuDevicePrimaryCtxRetain(0)
driver.cuCtxSetCurrent(context)
_, block = driver.cuMemAlloc(4096)
driver.cuMemFree(block)
driver.cuMemFree(block)  # the fault
