"""The library through ctypes: the same numbers as its own, arrays without copies, functions that misbehave."""

import gc
import os
import random
import signal
import threading
import time
import unittest

import numpy as np

from deeptail import _native as native

MODEL = native.load_model("dt-1l")
HEX = native.load_law("hex", MODEL)
EVENT = {"target": 395}


def first_token(tokens, lengths):
    """A quick score of its own: the event is that the last sixteen tokens sum to much."""
    return tokens[:, -16:].sum(axis=1) / 1000.0 - 3.0


class Numbers(unittest.TestCase):
    def test_activations_are_read_where_they_are(self):
        cloud, last = native.capture(MODEL, HEX, 2000, seed=5)
        self.assertIs(native.activation_rows(cloud), cloud)
        settings = {"method": "qld", "seed": 5}
        (brought,) = native.estimate([{"target": 395}], model=MODEL, activations=cloud, last_tokens=last, settings=settings)
        (captured,) = native.estimate([EVENT], model=MODEL, law=HEX, settings={**settings, "calibration": 2000})
        self.assertEqual(brought["ci95"], captured["ci95"])
        self.assertEqual(brought["p"], captured["p"])

    def test_logits_are_those_of_the_head(self):
        tokens, lengths = native.sample(HEX, 4)
        logits = native.logits(MODEL, tokens, lengths)
        margin = logits[:, 395] - np.delete(logits, 395, axis=1).max(axis=1)
        np.testing.assert_array_equal(native.event_scores(EVENT, MODEL, HEX, tokens), margin.astype(np.float64))

    def test_batches_and_threads_change_nothing(self):
        settings = {"budget": 4000, "seed": 3}
        one = native.split(HEX, first_token, batch=64, settings={**settings, "threads": 1})
        other = native.split(HEX, first_token, batch=1000, settings={**settings, "threads": 3})
        self.assertEqual((one["p"], one["ci95"], one["levels"]), (other["p"], other["ci95"], other["levels"]))

    def test_an_exact_score_decides(self):
        settings = {"budget": 4000, "seed": 3}
        exact = native.split(HEX, first_token, settings=settings)
        rough = lambda tokens, lengths: np.round(first_token(tokens, lengths), 1)
        near = native.split(HEX, rough, exact=first_token, near=0.051, settings={**settings, "tilt": "none"})
        self.assertGreater(near["diagnostics"]["exact_rows"], 0)
        self.assertFalse([w for w in near["warnings"] if "differ by more" in w])
        self.assertLess(abs(near["log10_p"] - exact["log10_p"]), 0.5)
        wrong = native.split(HEX, lambda t, n: first_token(t, n) + 0.2, exact=first_token, near=0.1, settings={**settings, "tilt": "none"})
        self.assertTrue([w for w in wrong["warnings"] if "differ by more" in w])

    def test_numbers_besides_the_input(self):
        # Three uniform numbers above 0.95 each: 1.25e-4, whatever the tokens are.
        score = lambda tokens, lengths, numbers: numbers.min(axis=1) - 0.95
        found = native.split(HEX, score, numbers=3, settings={"budget": 3e4, "seed": 2})
        self.assertLess(found["ci95"][0], 1.25e-4)
        self.assertGreater(found["ci95"][1], 1.25e-4)

    def test_states(self):
        found = native.split_state(
            lambda n, rng: list(rng.standard_normal(n)),
            lambda states, rng: list(0.8 * np.array(states) + 0.6 * rng.standard_normal(len(states))),
            lambda states: np.array(states) - 4.0,
            settings={"budget": 3e4, "seed": 3},
        )
        self.assertLess(abs(found["log10_p"] - np.log10(3.167e-5)), 0.35)
        self.assertTrue(found["states"] and min(found["states"]) >= 4.0)


def memory():
    """MB of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Boom(Exception):
    pass


class Misbehaviour(unittest.TestCase):
    def after(self, calls, action, **arguments):
        """split with a score that turns bad after so many calls."""
        count = [0]

        def score(tokens, lengths):
            count[0] += 1
            return action(tokens) if count[0] > calls else first_token(tokens, lengths)

        return native.split(HEX, score, batch=64, settings={"budget": 4000, "seed": 1, **arguments})

    def test_an_exception_comes_out_as_itself(self):
        error = Boom("mine")

        def raises(_tokens):
            raise error

        for calls in (0, 3, 40):
            with self.assertRaises(Boom) as caught:
                self.after(calls, raises)
            self.assertIs(caught.exception, error)
        self.assertTrue(hasattr(error, "partial"))

    def test_what_was_finished_is_kept(self):
        whole = native.split(HEX, first_token, batch=64, settings={"budget": 4000, "seed": 1})
        calls = int(0.7 * whole["diagnostics"]["batches"])

        def raises(_tokens):
            raise Boom

        with self.assertRaises(Boom) as caught:
            self.after(calls, raises)
        partial = caught.exception.partial
        self.assertEqual(partial["guarantee"], "consistent")
        self.assertTrue([w for w in partial["warnings"] if w.startswith("stopped: ")])

    def test_mistakes_are_told(self):
        cases = {
            "expected a finite number or minus infinity, found nan for row 0, tokens [0": lambda t: np.full(len(t), np.nan),
            "found inf": lambda t: np.full(len(t), np.inf),
            "expected 64 numbers, one for each row, found shape [63]": lambda t: np.zeros(63),
            "found shape [64, 2]": lambda t: np.zeros((64, 2)),
            "expected numbers, found <U1": lambda t: ["a"] * 64,
            "found shape []": lambda t: None,
        }
        for sentence, action in cases.items():
            with self.subTest(sentence), self.assertRaises(native.InputError) as caught:
                self.after(2, action)
            self.assertIn(sentence, str(caught.exception))
        with self.assertRaisesRegex(native.InputError, "budget"):
            native.split(HEX, first_token, settings={"budget": 10})
        with self.assertRaisesRegex(native.InputError, "unknown setting"):
            native.split(HEX, first_token, settings={"bugdet": 10})
        with self.assertRaisesRegex(native.InputError, "rel_error: expected a finite number, found nan"):
            native.split(HEX, first_token, settings={"rel_error": float("nan")})
        with self.assertRaisesRegex(native.InputError, "did you mean"):
            native.estimate([EVENT], model=MODEL, law=HEX, settings={"bugdet": 10})

    def test_minus_infinity_is_allowed(self):
        found = native.split(HEX, lambda t, n: np.where(t[:, -1] % 2 == 0, -np.inf, first_token(t, n)), settings={"budget": 4000, "seed": 1})
        self.assertGreater(found["p"], 0.0)

    def test_progress_and_scores_are_called_on_the_calling_thread(self):
        threads, shares = set(), []

        def score(tokens, lengths):
            threads.add(threading.get_ident())
            time.sleep(0.002)
            return first_token(tokens, lengths)

        def progress(told):
            threads.add(threading.get_ident())
            shares.append(told["share"])

        native.split(HEX, score, settings={"budget": 4000, "seed": 1}, progress=progress)
        self.assertEqual(threads, {threading.get_ident()})
        self.assertGreater(max(shares), 0.0)
        self.assertIsNone(native.split(HEX, score, settings={"budget": 4000}, progress=lambda told: False))

    def test_interrupted_at_random_moments(self):
        """A hundred times, in the function, in the library, and between the two: it stops, and can be called again."""
        generator = random.Random(1)
        interrupted = [0, 0]

        def stop(*_):
            interrupted[0] += 1
            raise KeyboardInterrupt

        def score(tokens, lengths):
            if generator.random() < 0.1:
                time.sleep(0.003)
            return first_token(tokens, lengths)

        before = signal.signal(signal.SIGALRM, stop)
        grown = 0
        try:
            for i in range(100):
                try:
                    signal.setitimer(signal.ITIMER_REAL, generator.uniform(0.0005, 0.04))
                    if i % 10 != 0:
                        native.split(HEX, score, batch=64, settings={"budget": 1e5, "seed": i})
                    else:
                        native.estimate([EVENT], model=MODEL, law=HEX, settings={"budget": 1e5, "seed": i})
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    interrupted[1] += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
                if i == 20:
                    gc.collect()
                    grown = memory()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.assertEqual(interrupted[0], interrupted[1])
        self.assertGreater(interrupted[1], 95)
        gc.collect()
        self.assertLess(memory() - grown, 100, "MB more than after the first twenty")
        self.assertGreater(native.split(HEX, first_token, settings={"budget": 4000, "seed": 1})["p"], 0.0)


if __name__ == "__main__":
    unittest.main()
