"""Laws and events made in Python."""

import json
import pathlib
import tempfile
import unittest

import numpy as np

import deeptail as dt


class Laws(unittest.TestCase):
    def setUp(self):
        self.model = dt.load("dt-1l")

    def test_positions_are_drawn_as_said(self):
        law = dt.Law.positions([0, {"He": 0.75, "She": 0.25}, dt.tokens("ab")], tokenizer=self.model)
        rows = law.sample(4000, seed=2)
        he, she = dt.ids(self.model, "He", "She")
        self.assertEqual(set(rows[:, 0]), {0})
        self.assertAlmostEqual(np.mean(rows[:, 1] == he), 0.75, delta=0.03)  # 4 standard deviations
        self.assertEqual(set(rows[:, 1]), {he, she})
        self.assertEqual(set(rows[:, 2]), set(dt.ids(self.model, "a", "b")))

    def test_one_table_serves_equal_positions(self):
        law = dt.Law.positions([dt.tokens("abc")] * 30, tokenizer=self.model)
        self.assertEqual(len(json.loads(law.to_json())["tables"]), 1)

    def test_template(self):
        law = dt.Law.template("PIN: {d}{d} {w}:", d=dt.uniform("01"), w=[" the", " be"], tokenizer=self.model)
        texts = {self.model.tokenizer.decode(row) for row in law.sample(200)}
        self.assertEqual(len(texts), 8)
        self.assertTrue(all(text.startswith("<|BOS|>PIN: ") for text in texts))
        e = dt.estimate(self.model, law, " the", method="mc", budget=2**10)
        self.assertEqual(e.guarantee, "exact")  # eight inputs are looked at one by one

    def test_laws_of_text(self):
        pool = dt.Law.pool(["To be", "or not to be"], weights=[1, 3], tokenizer=self.model)
        first = [self.model.tokenizer.encode(text)[0] for text in ("To be", "or not to be")]
        rows = pool.sample(400, seed=1)
        self.assertEqual(set(rows[:, 0]), set(first))
        self.assertAlmostEqual(np.mean(rows[:, 0] == first[1]), 0.75, delta=0.09)  # 4 standard deviations
        longer = dt.Law.template("My {a} says {a}", a=["white cat", "dog"], tokenizer=self.model)
        texts = {self.model.tokenizer.decode(row).replace("<|BOS|>", "") for row in longer.sample(60)}
        self.assertEqual(texts, {f"My {a} says {b}" for a in ("white cat", "dog") for b in ("white cat", "dog")})

    def test_saved_laws_are_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "mine.json"
            dt.Law.positions([0, dt.tokens("ab")], tokenizer=self.model, name="mine").save(path)
            self.assertEqual(dt.law(path).name, "mine")
            self.assertEqual(dt.law(str(path)).sample(5).tolist(), dt.law(path).sample(5).tolist())

    def test_frequencies_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "words.txt"
            path.write_text("cat 3\ndog\t1\n\nhot dog 2\nmouse\n")
            self.assertEqual(dict(zip(dt.frequencies(path).items, dt.frequencies(path).weights)), {"cat": 3, "dog": 1, "hot dog": 2, "mouse": 1})

    def test_mistakes(self):
        for wrong in (
            lambda: dt.law("hax"),
            lambda: dt.Law.positions([]),
            lambda: dt.Law.positions([], tokenizer=self.model),
            lambda: dt.Law.positions(["a"], d_vocab=5),
            lambda: dt.Law.positions([9999], tokenizer=self.model).info,
            lambda: dt.Law.positions(["not one token"], tokenizer=self.model),
            lambda: dt.Law.template("{d}", tokenizer=self.model),
            lambda: dt.Law.template("a", d=[1], tokenizer=self.model),
            lambda: dt.Law.chat([{"role": "user", "content": "x"}], tokenizer=self.model),
            lambda: dt.uniform([]),
            lambda: dt.uniform("aa"),
            lambda: dt.frequencies({"a": -1.0}),
            lambda: dt.Law.pool([]),
        ):
            with self.assertRaises(dt.InputError):
                wrong()


class Events(unittest.TestCase):
    def test_become_json(self):
        self.assertEqual(dt.target(3).to_dict(), {"target": [3]})
        self.assertEqual(dt.target([3, " the"], sampled=True, temperature=0.5).to_dict(), {"target": [3, " the"], "sampled": True, "temperature": 0.5})
        self.assertEqual(dt.matches("b[io]mb", within=9, greedy=True).to_dict(), {"matches": "b[io]mb", "within": 9, "greedy": True})
        self.assertEqual(dt.tokens_any([4, 5], within=3, stop="none").to_dict(), {"tokens_any": [4, 5], "within": 3, "stop": "none"})
        self.assertEqual(dt.judge("./judge", threshold=0.9, within=8).to_dict(), {"judge": "./judge", "within": 8, "threshold": 0.9})

    def test_are_values(self):
        self.assertEqual(dt.contains("a", within=3), dt.contains("a", within=3))
        self.assertEqual(len({dt.contains("a", within=3), dt.contains("a", within=3)}), 1)

    def test_mistakes(self):
        for wrong in (lambda: dt.contains("a", within=0), lambda: dt.contains("a", within=2, temperature=0), lambda: dt.target()):
            with self.assertRaises(dt.InputError):
                wrong()


if __name__ == "__main__":
    unittest.main()
