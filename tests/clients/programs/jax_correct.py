"""Arrays are computed on the device as on the processor: kernels that XLA writes, sorts among them."""

import jax
import jax.numpy as jnp
import numpy

(device,) = jax.devices()
assert device.platform == "gpu"
numbers = numpy.random.default_rng(1).integers(0, 100, (33, 17), numpy.int32)
array = jax.device_put(numbers, device)
assert (numpy.asarray(jnp.sum(array, 1)) == numbers.sum(1)).all()
assert (numpy.asarray(jnp.sort(array.ravel())) == numpy.sort(numbers, None)).all()
chosen = jax.jit(lambda x: jnp.where(x > 50, x * 2, -x))(array)
assert (numpy.asarray(chosen) == numpy.where(numbers > 50, numbers * 2, -numbers)).all()
array.delete()
