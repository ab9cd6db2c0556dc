"""Factors, solutions, eigenvalues, singular values and convolutions are the same on the device as on the processor."""

import jax
import jax.numpy as jnp
import numpy

numbers = numpy.random.default_rng(1)
square = numbers.standard_normal((6, 6), numpy.float32)
positive = square @ square.T + 6 * numpy.eye(6, dtype=numpy.float32)
wanted = numbers.standard_normal((6, 2), numpy.float32)
images, filters = (
    numbers.standard_normal((2, 3, 8, 8), numpy.float32),
    numbers.standard_normal((4, 3, 3, 3), numpy.float32),
)


def loss(images, filters):
    """Return a number that depends on every element of a convolution."""
    made = jax.lax.conv_general_dilated(images, filters, (1, 1), "SAME")
    return jnp.vdot(made, made)


def computed(platform):
    """Return what does not depend on the signs of vectors."""
    (device,) = jax.devices(platform)
    with jax.default_device(device):
        values, vectors = jnp.linalg.eigh(positive)
        left, singular, right = jnp.linalg.svd(square, full_matrices=False)
        orthogonal, upper = jnp.linalg.qr(square)
        return (
            jnp.linalg.cholesky(positive),
            jnp.linalg.solve(square, wanted),
            values,
            vectors * values @ vectors.T,
            singular,
            left * singular @ right,
            orthogonal @ upper,
            loss(images, filters),
            *jax.grad(loss, (0, 1))(images, filters),
        )


for expected, found in zip(computed("cpu"), computed("gpu"), strict=True):
    numpy.testing.assert_allclose(numpy.asarray(found), numpy.asarray(expected), rtol=2e-4, atol=2e-4)
