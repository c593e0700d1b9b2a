"""The special functions of scipy, imported without a part of numpy that takes a tenth of a second and is not needed.

``scipy.special`` imports each module that numpy names, ``f2py`` among them, so that it is loaded only when it is used.
"""

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec

import numpy as np

_spec = None if "numpy.f2py" in sys.modules else find_spec("numpy.f2py")
if _spec is not None and _spec.loader is not None:
    _spec.loader = LazyLoader(_spec.loader)
    np.f2py = sys.modules[_spec.name] = module_from_spec(_spec)
    _spec.loader.exec_module(np.f2py)

from scipy.special import betainc, betaincinv, erfcx, ndtri, pdtrc, stdtrit  # noqa: E402

__all__ = ("betainc", "betaincinv", "erfcx", "ndtri", "pdtrc", "stdtrit")
