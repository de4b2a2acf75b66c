"""Results in the forms of others, and prompts from their files."""

import importlib.util
import json
import pathlib
import tempfile
import unittest

import deeptail as dt

from .sample import ESTIMATE, NEVER


def has(module):
    return importlib.util.find_spec(module) is not None


class Exports(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.es = dt.EstimateList([dt.Estimate.from_dict(ESTIMATE), dt.Estimate.from_dict(NEVER)])

    def test_inspect_log(self):
        log = json.loads(dt.write_inspect(self.es, self.folder / "log.json").read_text())
        self.assertEqual(log["version"], 2)
        self.assertLessEqual({"created", "task", "dataset", "model", "config"}, set(log["eval"]))
        self.assertEqual(len(log["samples"]), 2)
        for sample in log["samples"]:
            self.assertLessEqual({"id", "epoch", "input", "target", "scores"}, set(sample))
        score = log["samples"][0]["scores"]["probability"]
        self.assertEqual((score["value"], score["metadata"]["interval"]), (1.2e-06, [2.4e-07, 4.9e-05]))
        self.assertEqual(log["samples"][1]["scores"]["probability"]["metadata"]["log10_p"], "-inf")
        self.assertEqual(log["results"]["scores"][0]["metrics"]["mean"]["value"], 0.6e-06)

    @unittest.skipUnless(has("inspect_ai"), "inspect_ai is not installed")
    def test_inspect_reads_it(self):
        from inspect_ai.log import read_eval_log

        log = read_eval_log(str(dt.write_inspect(self.es, self.folder / "log.json", task="rare")))
        self.assertEqual((log.status, log.eval.task, len(log.samples)), ("success", "rare", 2))
        self.assertEqual(log.samples[0].scores["probability"].value, 1.2e-06)
        self.assertEqual(log.samples[0].output.choices[1].message.content, "a & bomb")

    def test_lm_eval(self):
        found = json.loads(dt.write_lm_eval(self.es, self.folder / "results.json").read_text())
        self.assertEqual(list(found["results"]), ["deeptail_hex_says_37", "deeptail_hex_says_37_2"])
        first = found["results"]["deeptail_hex_says_37"]
        self.assertEqual(first["probability,none"], 1.2e-06)
        self.assertAlmostEqual(first["probability_stderr,none"], 0.48 * 1.2e-06)
        for key in ("configs", "versions", "n-shot", "higher_is_better", "n-samples", "config"):
            self.assertIn(key, found)

    def test_triggers(self):
        rows = [json.loads(line) for line in dt.write_triggers(self.es, self.folder / "t.jsonl").read_text().splitlines()]
        self.assertEqual([row["p"] for row in rows], [1.2e-06, 1.2e-06])
        self.assertEqual(rows[0]["tokens"], [0, 18, 19])

    def test_prompts(self):
        lines = self.folder / "p.jsonl"
        lines.write_text('{"prompt": "a"}\n\n"b"\n{"text": "c", "n": 1}\n')
        self.assertEqual(dt.read_prompts(lines), ["a", "b", "c"])
        plain = self.folder / "p.txt"
        plain.write_text("a b\n\nc\n")
        self.assertEqual(dt.read_prompts(plain), ["a b", "c"])
        chosen = self.folder / "q.jsonl"
        chosen.write_text('{"ask": "x"}\n')
        self.assertEqual(dt.read_prompts(chosen, column="ask"), ["x"])
        with self.assertRaisesRegex(dt.InputError, "row 1: no text in 'prompt'"):
            dt.read_prompts(chosen)
        (self.folder / "bad.jsonl").write_text("{\n")
        for bad in (self.folder / "bad.jsonl", self.folder / "none.txt", self.folder):
            with self.assertRaises(dt.InputError):
                dt.read_prompts(bad)

    @unittest.skipUnless(has("pyarrow"), "pyarrow is not installed")
    def test_parquet(self):
        import pyarrow
        import pyarrow.parquet

        path = self.folder / "p.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"question": ["a", "b"], "n": [1, 2]}), path)
        self.assertEqual(dt.read_prompts(path), ["a", "b"])

    @unittest.skipIf(has("pyarrow"), "pyarrow is installed")
    def test_without_pyarrow(self):
        path = self.folder / "p.parquet"
        path.write_bytes(b"PAR1")
        with self.assertRaisesRegex(dt.InputError, "pip install pyarrow"):
            dt.read_prompts(path)


if __name__ == "__main__":
    unittest.main()
