"""Results: what they hold, how they show themselves, what they become."""

import dataclasses
import html.parser
import importlib.util
import json
import math
import unittest

import deeptail as dt

from .sample import ESTIMATE, NEVER


def has(module):
    return importlib.util.find_spec(module) is not None


class Page(html.parser.HTMLParser):
    """Names of elements, text, and that every element is closed."""

    VOID = {"rect", "circle", "line", "polyline"}

    def __init__(self, page):
        super().__init__()
        self.names, self.words, self.open = set(), "", []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.add(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data):
        self.words += data


class Results(unittest.TestCase):
    def setUp(self):
        self.e = dt.Estimate.from_dict(ESTIMATE)
        self.never = dt.Estimate.from_dict(NEVER)

    def test_says_what_the_json_says(self):
        self.assertEqual(self.e.p, 1.2e-06)
        self.assertEqual(self.e.interval, (2.4e-07, 4.9e-05))
        self.assertEqual(self.e.cost.forward, 17852)
        self.assertEqual(self.e.levels[0].ancestors, 558)
        self.assertEqual(self.e.triggers[1].match, (4, 8))
        self.assertEqual(self.e.positions[0].share, 0.9)
        self.assertEqual(self.e.to_dict(), ESTIMATE)
        self.assertEqual(json.loads(self.e.to_json()), ESTIMATE)
        self.assertEqual(dt.Estimate.from_json(self.e.to_json()), self.e)
        self.assertEqual(self.never.log10_p, -math.inf)

    def test_is_frozen(self):
        with self.assertRaises(dataclasses.FrozenInstanceError):
            self.e.p = 1.0
        self.e.to_dict()["p"] = 2
        self.assertEqual(self.e.to_dict()["p"], 1.2e-06)

    def test_repr_is_one_short_line(self):
        self.assertLess(len(repr(self.e)), 140)
        self.assertIn("p=1.2e-06", repr(self.e))

    def test_html_is_closed_and_escaped(self):
        for e in (self.e, self.never, dt.EstimateList([self.e, self.never]), dt.EstimateList()):
            page = Page(e._repr_html_())
            self.assertEqual(page.open, [])
            self.assertFalse(page.names & {"script", "b>model", "i", "small"})
        page = Page(self.e._repr_html_())
        self.assertIn("<b>model</b>", page.words)
        self.assertIn("the budget is <small>", page.words)
        self.assertIn("p = 1.2e-06", page.words)
        self.assertNotIn("\u0007", self.e._repr_html_())

    def test_html_marks_what_decides(self):
        shown = self.e._repr_html_()
        self.assertIn(">bomb</span>", shown)
        self.assertIn(">3</span>", shown)
        self.assertNotIn(">2</span>", shown)

    def test_never_seen(self):
        self.assertIn("p &lt; 1.4e-05", self.never._repr_html_())

    def test_lists(self):
        es = dt.EstimateList([self.e, self.never])
        self.assertEqual(es.p.tolist(), [1.2e-06, 0.0])
        self.assertEqual(es.low.tolist(), [2.4e-07, 0.0])
        self.assertFalse(es.p.flags.writeable)
        self.assertEqual(es[:1], dt.EstimateList([self.e]))
        self.assertEqual(repr(es), "EstimateList(2: 1 ok, p from 0 to 1.2e-06)")
        self.assertEqual([json.loads(line)["p"] for line in es.to_json().splitlines()], [1.2e-06, 0.0])

    def test_triggers_become_lines(self):
        first, second = (json.loads(line) for line in self.e.triggers.to_jsonl().splitlines())
        self.assertEqual(first["tokens"], [0, 18, 19])
        self.assertEqual(second["continuation"], "a & bomb")

    @unittest.skipUnless(has("pandas"), "pandas is not installed")
    def test_pandas(self):
        frame = dt.EstimateList([self.e, self.never]).to_pandas()
        self.assertEqual(frame.query("status == 'ok'")["p"].tolist(), [1.2e-06])
        self.assertEqual(len(self.e.triggers.to_pandas()), 2)

    @unittest.skipUnless(has("polars"), "polars is not installed")
    def test_polars(self):
        self.assertEqual(dt.EstimateList([self.e, self.never]).to_polars()["p"].to_list(), [1.2e-06, 0.0])

    @unittest.skipIf(has("pandas"), "pandas is installed")
    def test_without_pandas(self):
        with self.assertRaisesRegex(dt.InputError, "pip install pandas"):
            self.e.to_pandas()

    @unittest.skipUnless(has("matplotlib"), "matplotlib is not installed")
    def test_plots(self):
        import matplotlib

        matplotlib.use("agg")
        self.assertEqual(self.e.plot().get_xscale(), "log")
        self.assertEqual(self.e.plot_levels().get_yscale(), "log")
        dt.EstimateList([self.e, self.never]).plot()


if __name__ == "__main__":
    unittest.main()
