"""Scores and states of your own: right answers, exceptions, checks, interruptions."""

import math
import random
import unittest
import warnings

import numpy as np

import deeptail as dt
from deeptail import _native as native

COINS = dt.Law.positions([[0, 1]] * 20, d_vocab=2, name="coins")


def heads(k):
    """At least k of 20 coins."""
    return sum(math.comb(20, j) for j in range(k, 21)) / 2**20


def at_least(k):
    return lambda tokens: tokens.sum(axis=1) - float(k)


class Quiet(unittest.TestCase):
    def setUp(self):
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore", dt.EstimateWarning)


class Splitting(Quiet):
    def test_coins(self):
        logs = []
        for seed in range(4):
            r = dt.split(COINS, at_least(19), budget=6e4, seed=seed, batch=256)
            self.assertEqual((r.status, r.guarantee), ("ok", "unbiased"))
            self.assertTrue(all(sum(t.tokens) >= 19 for t in r.triggers))
            logs.append(math.log(r.p / heads(19)))
        self.assertLess(abs(np.mean(logs)), 0.3)  # each spreads by about 0.2

    def test_same_seed_same_bits_whatever_the_batch(self):
        a = dt.split(COINS, at_least(18), budget=5e3, seed=3, batch=64)
        b = dt.split(COINS, at_least(18), budget=5e3, seed=3, batch=500)
        self.assertEqual((a.p, a.interval), (b.p, b.interval))

    def test_batches_have_one_shape(self):
        shapes = set()

        @dt.score(batch=128)
        def seen(tokens, lengths):
            shapes.add((tokens.shape, str(tokens.dtype), lengths.shape))
            return tokens.sum(axis=1) - 18.0

        dt.split(COINS, seen, budget=5e3)
        self.assertEqual(shapes, {((128, 20), "int32", (128,))})

    def test_batches_of_a_few_shapes(self):
        shapes = set()

        def seen(tokens):
            shapes.add(len(tokens))
            return tokens.sum(axis=1) - 18.0

        few = dt.split(COINS, seen, budget=5e3, batch=[16, 64, 256])
        self.assertEqual(shapes, {16, 64, 256})
        one = dt.split(COINS, seen, budget=5e3, batch=256)
        self.assertEqual((few.p, few.interval), (one.p, one.interval))
        with self.assertRaises(dt.InputError):
            dt.split(COINS, seen, batch=[0, 4])

    def test_many_events_share_batches(self):
        least = np.array([16.0, 18.0, 19.0])
        calls = []

        @dt.score(batch=256)
        def many(tokens, which):
            calls.append(which.dtype)
            return tokens.sum(axis=1) - least[which]

        together = dt.split_many(COINS, many, ["16", "18", "19"], budget=5e3, seed=3)
        n = len(calls)
        alone = [dt.split(COINS, at_least(k), budget=5e3, seed=3, batch=256) for k in (16, 18, 19)]
        self.assertEqual([(r.p, r.interval) for r in together], [(r.p, r.interval) for r in alone])
        self.assertEqual([r.event for r in together], ["16", "18", "19"])
        self.assertLess(n, sum(r.to_dict()["diagnostics"]["batches"] for r in alone))
        with self.assertRaisesRegex(dt.InputError, "which"):
            dt.split_many(COINS, at_least(3), ["a"])
        self.assertEqual(len(dt.split_many(COINS, many, [])), 0)

    def test_many_events_that_are_interrupted(self):
        calls = []

        def interrupted(tokens, which):
            calls.append(1)
            if len(calls) == 60:
                raise KeyboardInterrupt
            return tokens.sum(axis=1) - 19.0

        with self.assertRaises(KeyboardInterrupt) as caught:
            dt.split_many(COINS, interrupted, ["a", "b", "c"], budget=2e4, batch=128)
        self.assertIsInstance(caught.exception.partial, dt.EstimateList)

    def test_an_exception_comes_out_as_itself(self):
        class Mine(Exception):
            pass

        for when in (0, 5, 20):
            calls, thrown = [], Mine("no")

            def breaks(tokens):
                calls.append(1)
                if len(calls) > when:
                    raise thrown
                return tokens.sum(axis=1) - 19.0

            with self.assertRaises(Mine) as caught:
                dt.split(COINS, breaks, budget=2e4, batch=64)
            self.assertIs(caught.exception, thrown)

    def test_wrong_answers(self):
        def nan(tokens):
            found = tokens.sum(axis=1) - 19.0
            found[3] = np.nan
            return found

        for wrong in (nan, lambda tokens: np.zeros(3), lambda tokens: "no", lambda tokens: np.zeros((len(tokens), 2)), lambda tokens: None):
            for check in (True, False):
                with self.assertRaises((dt.InputError, TypeError, ValueError)):
                    dt.split(COINS, wrong, budget=1e4, batch=64, check=check)
        with self.assertRaises(dt.InputError):
            dt.split(COINS, "no function")

    def test_a_noisy_score_is_refused(self):
        with self.assertRaisesRegex(dt.InputError, "not deterministic"):
            dt.split(COINS, lambda tokens: tokens.sum(axis=1) - 19.0 + np.random.random(len(tokens)))

    def test_a_score_that_sees_its_neighbours_is_told(self):
        r = dt.split(COINS, lambda tokens: tokens.sum(axis=1) - 18.0 + 1e-9 * tokens[0, 0], budget=5e3)
        self.assertIn(r.guarantee, ("consistent",))
        self.assertTrue(any("neighbours" in sentence for sentence in r.warnings))

    def test_interrupted(self):
        calls = []

        def interrupted(tokens):
            calls.append(1)
            if len(calls) == 30:
                raise KeyboardInterrupt
            return tokens.sum(axis=1) - 19.0

        with self.assertRaises(KeyboardInterrupt) as caught:
            dt.split(COINS, interrupted, budget=1e5, batch=256)
        partial = caught.exception.partial
        self.assertTrue(partial is None or isinstance(partial, dt.Estimate))

    def test_exact_decides_near_a_level(self):
        rough = lambda tokens: tokens.sum(axis=1) + 0.5 * tokens[:, 0] - 19.0
        true = lambda tokens: tokens.sum(axis=1) - 19.0
        r = dt.split(COINS, rough, exact=true, near=0.6, budget=6e4, seed=4, batch=256)
        self.assertLess(abs(math.log(r.p / heads(19))), 1.0)
        self.assertTrue(all(sum(t.tokens) >= 19 for t in r.triggers))

    def test_numbers_beside_the_input(self):
        """An answer that is drawn: ten uniform numbers that are all above 1/2 after a given token."""
        law = dt.Law.positions([[0, 1]], d_vocab=2, name="one")

        @dt.score(batch=256, numbers=10)
        def drawn(tokens, numbers):
            high = (numbers >= 0.5).sum(axis=1)
            return high + tokens[:, 0] - 11.0

        r = dt.split(law, drawn, budget=2e4, seed=1)
        self.assertLess(abs(math.log(r.p / 2**-11)), 0.8)

    def test_margins_of_numpy_give_the_native_estimate_to_the_bit(self):
        """With sizes that no count of work decides, a score's margins lead where the library's own do."""
        model, law, target = dt.load("dt-1l"), dt.law("hex"), 395

        def says(tokens):
            z = model.logits(tokens, threads=1)  # float32 [n, d_vocab]
            return z[:, target] - np.delete(z, target, axis=1).max(axis=1)

        inputs = law.sample(64, seed=3)
        np.testing.assert_array_equal(says(inputs), native.event_scores({"target": target}, model._native, law.native(model), inputs))
        pinned = {"budget": 1.5e5, "replicas": 2, "particles": 32, "first_draw": 500, "moves": 6, "tilt": "none", "seed": 11}
        inside = dt.estimate(model, law, target, method="tokensplit", **pinned)
        own = dt.split(law, says, model=model, batch=512, **pinned)
        self.assertGreater(own.p, 0.0)
        for name in ("p", "log10_p", "interval", "status", "guarantee", "levels", "triggers", "positions", "warnings"):
            self.assertEqual(getattr(own, name), getattr(inside, name), name)


class Checking(unittest.TestCase):
    def test_finds_what_is_wrong(self):
        good = dt.check_score(at_least(19), COINS, batch=64)
        self.assertTrue(good.ok)
        self.assertGreater(good.ties, 0.5)
        self.assertGreater(good.rows_per_second, 0)
        state = random.Random(1)
        noisy = dt.check_score(lambda tokens: tokens.sum(axis=1) + state.random(), COINS, batch=64)
        self.assertFalse(noisy.deterministic)
        near = dt.check_score(lambda tokens: tokens.sum(axis=1) + 1e-6 * tokens[-1, 0], COINS, batch=64)
        self.assertTrue(near.depends_on_batch)
        self.assertAlmostEqual(near.largest_batch_difference, 1e-6, places=9)
        nan = dt.check_score(lambda tokens: np.where(tokens[:, 0] == 1, np.nan, 0.0), COINS, batch=64)
        self.assertGreater(nan.nans, 0)
        low = dt.check_score(lambda tokens: np.where(tokens[:, 0] == 1, -np.inf, 0.0), COINS, batch=64)
        self.assertTrue(low.ok and low.infinities > 0)


class States(Quiet):
    def sample(self, n, rng):
        return list(rng.random((n, 20)) < 0.5)

    def mutate(self, states, rng):
        return [np.where(rng.random(20) < 0.1, rng.random(20) < 0.5, s) for s in states]

    def test_twenty_coins(self):
        logs = []
        for seed in range(3):
            r = dt.split_state(self.sample, self.mutate, lambda s: [x.sum() - 20.0 for x in s], budget=5e4, seed=seed)
            self.assertEqual(r.status, "ok")
            logs.append(math.log(r.p * 2**20))
        self.assertLess(abs(np.mean(logs)), 1.0)

    def test_any_object(self):
        r = dt.split_state(
            lambda n, rng: [{"x": float(v)} for v in rng.normal(size=n)],
            lambda states, rng: [{"x": 0.8 * s["x"] + 0.6 * float(rng.normal())} for s in states],
            lambda states: [s["x"] - 4.0 for s in states],
            budget=3e4,
        )
        self.assertLess(abs(math.log(r.p / 3.167e-5)), 1.0)

    def test_exceptions(self):
        for name in ("sample", "mutate", "score"):
            functions = {"sample": self.sample, "mutate": self.mutate, "score": lambda s: [x.sum() - 30.0 for x in s]}

            def breaks(*_):
                raise LookupError(name)

            functions[name] = breaks
            with self.assertRaisesRegex(LookupError, name):
                dt.split_state(**functions, budget=1e4)
        with self.assertRaises(dt.InputError):
            dt.split_state(1, 2, 3)


if __name__ == "__main__":
    unittest.main()
