"""The notebooks print what they hold. Those that need torch are run by `make test-python-torch`."""

import importlib.util
import unittest

from . import notebooks


class Notebooks(unittest.TestCase):
    def test_print_what_they_hold(self):
        paths = sorted(notebooks.FOLDER.glob("*.ipynb"))
        self.assertEqual(len(paths), 5)
        for path in paths:
            with self.subTest(notebook=path.name):
                missing = [name for name in notebooks.needs(path) if importlib.util.find_spec(name) is None]
                if not missing:
                    self.assertEqual(notebooks.run(path), [])


if __name__ == "__main__":
    unittest.main()
