"""A model is trained on the device."""

import numpy
import xgboost

generator = numpy.random.default_rng(1)
pages = xgboost.DMatrix(generator.random((100, 4)), label=generator.integers(0, 5, 100), group=[50, 50])
model = xgboost.train({"device": "cuda", "objective": "rank:pairwise", "max_depth": 2}, pages, num_boost_round=1)
assert model.num_boosted_rounds() == 1
