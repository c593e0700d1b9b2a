"""Intervals, exact tests, agreement and ratings, on counts and columns of numbers."""

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec

import numpy as np

# scipy.special imports each module that numpy names; f2py takes a tenth of a second of that, and nothing needs it.
spec = None if "numpy.f2py" in sys.modules else find_spec("numpy.f2py")
if spec is not None and spec.loader is not None:
    spec.loader = LazyLoader(spec.loader)
    np.f2py = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(np.f2py)
