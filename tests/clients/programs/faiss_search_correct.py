"""Each vector is its own nearest one."""

import faiss
import numpy

vectors = numpy.random.default_rng(1).random((100, 8), numpy.float32)
index = faiss.GpuIndexFlatL2(faiss.StandardGpuResources(), 8)
index.add(vectors)
_, found = index.search(vectors, 1)
assert (found[:, 0] == numpy.arange(100)).all()
