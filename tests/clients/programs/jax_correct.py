"""An array goes to the device and back."""

from jax._src import hardware_utils

hardware_utils.has_visible_nvidia_gpu = lambda: True  # it looks for /dev/nvidia0

import jax  # noqa: E402
import numpy  # noqa: E402

(device,) = jax.devices()
assert device.platform == "gpu"
array = jax.device_put(numpy.full(1000, 7, numpy.int32), device)
assert (numpy.asarray(array) == 7).all()
array.delete()
