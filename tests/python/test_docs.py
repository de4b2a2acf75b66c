"""The examples of docs/python.md, run as they stand, in one namespace; those that need torch where it is installed."""

import doctest
import importlib.util
import os
import pathlib
import re
import tempfile
import unittest
import warnings

import deeptail

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))


def blocks(text):
    """Blocks of Python with prompts: (line, source)."""
    for found in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if ">>>" in found.group(1):
            yield text[: found.start()].count("\n") + 2, found.group(1)


class Docs(unittest.TestCase):
    def test_examples(self):
        names, parser = {}, doctest.DocTestParser()
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        told, here = [], os.getcwd()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", deeptail.EstimateWarning)
            os.chdir(folder)
            self.addCleanup(os.chdir, here)
            for line, source in blocks(PAGE.read_text(encoding="utf-8")):
                if "torch" in source and not HAS_TORCH:
                    continue
                test = parser.get_doctest(source, names, f"{PAGE.name}:{line}", PAGE.name, line)
                runner.run(test, out=told.append, clear_globs=False)
                names = test.globs
            os.chdir(here)
        self.assertEqual(runner.failures, 0, "\n" + "".join(told))
        self.assertGreater(runner.tries, 20)


if __name__ == "__main__":
    unittest.main()
