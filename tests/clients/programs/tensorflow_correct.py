"""Tensors are computed on the device as on the processor: eagerly, with gradients, and as one compiled function."""

import numpy
import tensorflow

(device,) = tensorflow.config.list_physical_devices("GPU")
tensorflow.config.experimental.set_memory_growth(device, True)
numbers = numpy.random.default_rng(1).integers(0, 100, (33, 17)).astype(numpy.float32)


@tensorflow.function
def scaled(x: tensorflow.Tensor) -> tensorflow.Tensor:
    return tensorflow.where(x > 50.0, x * 2.0, -x)


with tensorflow.device("/GPU:0"):
    tensor = tensorflow.constant(numbers)
    assert "GPU" in tensor.device
    assert (tensorflow.reduce_sum(tensor, 1).numpy() == numbers.sum(1)).all()
    assert (tensorflow.gather(tensor, [3, 1, 2]).numpy() == numbers[[3, 1, 2]]).all()
    assert (scaled(tensor).numpy() == numpy.where(numbers > 50, numbers * 2, -numbers)).all()
    with tensorflow.GradientTape() as tape:
        tape.watch(tensor)
        total = tensorflow.reduce_sum(tensor * tensor)
    assert (tape.gradient(total, tensor).numpy() == 2 * numbers).all()
