"""Questions: the same bits as the command line, warnings, progress, interruptions, arrays."""

import dataclasses
import json
import logging
import os
import signal
import subprocess
import threading
import unittest
import warnings

import numpy as np

import deeptail as dt

PROGRAM = os.environ.get("DEEPTAIL_PROGRAM", "")

# method, flags of the command line, settings here
METHODS = [
    ("tokensplit", ["--budget", "1e4", "--replicas", "2"], {"budget": 1e4, "replicas": 2}),
    ("mc", ["--budget", "2^13"], {"budget": 2**13}),
    ("ga-amls", ["--particles", "100", "--moves", "2", "--calibration", "2^10"], {"particles": 100, "moves": 2, "calibration": 2**10}),
    ("qld", ["--calibration", "2^12"], {"calibration": 2**12}),
    ("qld-arc", ["--calibration", "2^12"], {"calibration": 2**12}),
    ("gld", ["--calibration", "2^12"], {"calibration": 2**12}),
    ("itgis", ["--budget", "512"], {"budget": 512}),
    ("mhis", ["--budget", "2^11", "--chains", "8", "--burn-in", "16"], {"budget": 2**11, "chains": 8, "burn_in": 16}),
]


def asked(*words):
    found = subprocess.run([PROGRAM, "estimate", "--model", "dt-1l", "--dist", "hex", "--json", *words], stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in found.stdout.splitlines()]


def without_times(values):
    values = {key: value for key, value in values.items() if key != "command"}
    return {**values, "cost": {key: value for key, value in values["cost"].items() if key != "seconds"}}


class Quiet(unittest.TestCase):
    def setUp(self):
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore", dt.EstimateWarning)


@unittest.skipUnless(PROGRAM, "DEEPTAIL_PROGRAM does not name the program")
class AsTheCommandLine(Quiet):
    def test_every_method_to_the_bit(self):
        self.assertEqual({method for method, *_ in METHODS}, set(dt.methods()) & {method for method, *_ in METHODS})
        for method, flags, settings in METHODS:
            with self.subTest(method=method):
                (theirs,) = asked("--target", "37", "--seed", "5", "--method", method, *flags)
                ours = dt.estimate("dt-1l", "hex", 37, method=method, seed=5, **settings)
                self.assertEqual(without_times(ours.to_dict()), without_times(theirs))
                self.assertEqual((ours.p, list(ours.interval)), (theirs["p"], theirs["ci95"]))

    def test_many(self):
        theirs = asked("--target", "18", "--target", " the,ly", "--method", "mc", "--budget", "2^12")
        ours = dt.estimate_many("dt-1l", "hex", [18, [" the", "ly"]], method="mc", budget=2**12)
        self.assertEqual([without_times(e.to_dict()) for e in ours], [without_times(e) for e in theirs])

    def test_all_tokens(self):
        *rows, rest = asked("--all", "--above", "1e-3", "--below", "0.2", "--budget", "1e4", "--seed", "3")
        ours = dt.estimate_all("dt-1l", "hex", above=1e-3, below=0.2, budget=1e4, seed=3)
        self.assertEqual([without_times(e.to_dict()) for e in ours], [without_times(e) for e in rows])
        self.assertEqual(dataclasses.asdict(ours.rest) | {"seconds": 0}, rest | {"seconds": 0})
        self.assertTrue(all(1e-3 <= e.p <= 0.2 and len(e.target_text) == 1 for e in ours))

    def test_activations(self):
        (theirs,) = asked("--target", "37", "--method", "qld", "--calibration", "2^12")
        ours = dt.qld(dt.activations("dt-1l", "hex", 2**12), "dt-1l", 37)
        self.assertEqual((ours.p, list(ours.interval)), (theirs["p"], theirs["ci95"]))

    def test_generated_texts(self):
        command = [PROGRAM, "model", "generate", "--model", "dt-1l", "--dist", "hex", "--count", "3", "--within", "4", "--top-k", "9", "--seed", "2", "--json"]
        theirs = [json.loads(line) for line in subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()]
        ours = dt.load("dt-1l").generate(dt.law("hex"), count=3, within=4, top_k=9, seed=2)
        self.assertEqual([(t.prompt, t.continuation, list(t.tokens), t.stopped) for t in ours],
                         [(t["prompt"], t["continuation"], t["tokens"], t["stopped"]) for t in theirs])
        with self.assertRaisesRegex(dt.InputError, "at most"):
            dt.load("dt-1l").generate("To be", within=10**5)


class Asking(Quiet):
    def test_mistakes_are_sentences(self):
        for wrong in (
            lambda: dt.estimate("dt-9l", "hex", 37),
            lambda: dt.estimate("dt-1l", "hax", 37),
            lambda: dt.estimate("dt-1l", "hex", "no such token"),
            lambda: dt.estimate("dt-1l", "hex", 9999),
            lambda: dt.estimate("dt-1l", "hex", 37, method="magic"),
            lambda: dt.estimate("dt-1l", "hex", 37, budget=-3),
            lambda: dt.estimate("dt-1l", "hex", 37, no_such_setting=1),
            lambda: dt.estimate("dt-1l", "hex"),
            lambda: dt.load(3),
        ):
            with self.assertRaises(dt.InputError) as caught:
                wrong()
            self.assertIsInstance(caught.exception, ValueError)
            self.assertNotIn("--", str(caught.exception))

    def test_warnings_are_warnings(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            e = dt.estimate("dt-1l", "hex", 37, method="qld", calibration=2**10)
        self.assertEqual([str(w.message) for w in caught], list(e.warnings))
        self.assertTrue(all(w.category is dt.EstimateWarning and w.filename == __file__ for w in caught))

    def test_logs_and_prints_nothing(self):
        with self.assertLogs("deeptail", logging.INFO) as told:
            dt.estimate("dt-1l", "hex", 18, method="mc", budget=2**10)
        self.assertIn("Pr[dt-1l on hex says 18", told.output[0])

    def test_progress_may_end_it(self):
        told = []

        def enough(done, total):
            told.append((done, total))
            return False

        e = dt.estimate("dt-1l", "hex", 18, method="mc", budget=2**30, progress=enough)
        self.assertTrue(told)
        self.assertLess(e.cost.forward, 2**30)

    def test_interruption_keeps_what_is_finished(self):
        def interrupt(done, total):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt) as caught:
            dt.estimate("dt-1l", "hex", 18, method="mc", budget=2**30, progress=interrupt)
        partial = caught.exception.partial
        self.assertTrue(partial is None or isinstance(partial, dt.Estimate))
        with self.assertRaises(KeyboardInterrupt) as caught:
            dt.estimate_many("dt-1l", "hex", [18, 19], method="mc", budget=2**30, progress=interrupt)
        partial = caught.exception.partial
        self.assertTrue(partial is None or isinstance(partial, dt.EstimateList))

    def test_a_loaded_model_answers_the_same(self):
        model, law = dt.load("dt-1l"), dt.law("hex")
        a = dt.estimate(model, law, "ly", method="mc", budget=2**12)
        b = dt.estimate("dt-1l", "hex", 395, method="mc", budget=2**12)
        self.assertEqual(a, b)

    def test_triggers_are_cut_into_tokens(self):
        e = dt.estimate("dt-1l", "hex", 18, method="mc", budget=2**10)
        self.assertEqual("".join(e.triggers[0].pieces), e.triggers[0].text)


class AllTokens(Quiet):
    def test_mistakes_are_sentences(self):
        for sentence, wrong in (
            ("above: expected a number above 0", lambda: dt.estimate_all("dt-1l", "hex", above=0)),
            ("below 1e-06: expected a probability above 0.001", lambda: dt.estimate_all("dt-1l", "hex", above=1e-3, below=1e-6)),
            ("budget 10: expected at least 1e4", lambda: dt.estimate_all("dt-1l", "hex", budget=10)),
            ("expected a distribution of independent tokens", lambda: dt.estimate_all("dt-1l", dt.Law.constant("To be"))),
        ):
            with self.assertRaisesRegex(dt.InputError, sentence):
                wrong()

    def test_rows_with_warnings_are_told_once(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = dt.estimate_all("dt-1l", "hex", above=1e-5, budget=1e4)
        warned = sum(bool(e.warnings) for e in found)
        self.assertEqual([str(w.message) for w in caught], [f"{warned} of {len(found)} estimates have warnings of their own"])
        self.assertEqual(caught[0].filename, __file__)

    def test_progress_may_end_it(self):
        found = dt.estimate_all("dt-1l", "hex", above=1e-3, budget=1e9, progress=lambda done, total: done < 2000)
        self.assertTrue(found.rest.stopped)
        self.assertGreater(len(found), 3)
        self.assertLess(found.rest.forward_equivalents, 1e6)

    def test_control_c_keeps_what_was_drawn(self):
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt) as caught:
            dt.estimate_all("dt-1l", "hex", above=1e-3, budget=1e9)
        found = caught.exception.partial
        self.assertIsInstance(found, dt.AllTokens)
        self.assertTrue(found.rest.stopped)
        self.assertGreater(len(found), 3)

    def test_the_method_is_one_among_others(self):
        whole = {e.target: e for e in dt.estimate_all("dt-1l", "hex", above=1e-3, budget=1e4, seed=2)}
        some = dt.estimate_many("dt-1l", "hex", ["e", 4000], method="all-tokens", above=1e-3, budget=1e4, seed=2)
        self.assertEqual(some[0].p, whole[some[0].target].p)
        self.assertEqual((some[1].p, some[1].status), (0.0, "not_reached_upper_bound"))
        self.assertGreater(some[1].interval.high, 0.0)


class Arrays(Quiet):
    def test_head_of_arrays_is_the_models(self):
        rng = np.random.default_rng(1)
        cloud = rng.normal(size=(500, 8)).astype(np.float32)
        w_u = rng.normal(size=(8, 11)).astype(np.float32)
        head = dt.Head(w_u, norm="none")
        e = dt.gld(cloud, head, 3)
        self.assertEqual(e.guarantee, "model_based")
        self.assertEqual(dt.gld(cloud.astype(np.float64), dt.Head(w_u.astype(np.float64), norm="none"), 3).p, e.p)

    def test_bits_of_bfloat16(self):
        cloud = np.random.default_rng(1).normal(size=(400, 4)).astype(np.float32)
        bits = (cloud.view(np.uint32) >> 16).astype(np.uint16)
        head = dt.Head(np.eye(4, 6), norm="none")
        rounded = (bits.astype(np.uint32) << 16).view(np.float32)
        self.assertEqual(dt.gld(bits, head, 1).p, dt.gld(rounded, head, 1).p)

    def test_mistakes(self):
        head = dt.Head(np.eye(4, 6), norm="none")
        for wrong in (
            lambda: dt.gld(np.zeros(4), head, 1),
            lambda: dt.gld(np.zeros((100, 5)), head, 1),
            lambda: dt.gld(np.full((100, 4), np.nan), head, 1),
            lambda: dt.Head(np.zeros(3)),
            lambda: dt.Head(np.eye(4, 6), ln_w=np.ones(5)),
            lambda: dt.gld(np.array([["a"] * 4]), head, 1),
        ):
            with self.assertRaises(dt.InputError):
                wrong()

    def test_activations_are_read_only(self):
        cloud = dt.activations("dt-1l", "hex", 64)
        self.assertEqual(np.asarray(cloud).shape, (64, 128))
        self.assertTrue(np.shares_memory(np.asarray(cloud), cloud.values))
        with self.assertRaises(ValueError):
            cloud.values[0, 0] = 1.0


if __name__ == "__main__":
    unittest.main()
