"""Examples of docstrings, run as they stand."""

import doctest
import importlib
import pkgutil
import unittest
import warnings

import deeptail

FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE
NEED_TORCH = {"deeptail.torch"}


def load_tests(loader, tests, pattern):
    names = [f"deeptail.{m.name}" for m in pkgutil.iter_modules(deeptail.__path__)]
    for name in ["deeptail", *(n for n in names if n not in NEED_TORCH)]:
        tests.addTests(doctest.DocTestSuite(importlib.import_module(name), optionflags=FLAGS))
    return tests


def setUpModule():
    warnings.simplefilter("ignore", deeptail.EstimateWarning)


if __name__ == "__main__":
    unittest.main()
