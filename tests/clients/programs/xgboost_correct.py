"""The device trains the same model as the processor."""

import numpy
import xgboost

values = numpy.random.default_rng(1).random((100, 4))
pages = xgboost.DMatrix(values, label=values[:, 0])
models = [xgboost.train({"device": device, "max_depth": 2}, pages, num_boost_round=1) for device in ("cuda", "cpu")]
first, second = (model.predict(pages) for model in models)
assert numpy.allclose(first, second)
