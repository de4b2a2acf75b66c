"""training/px/count.py on the CPU, with a tiny model, against one input after the other. `make test-python-torch` runs it."""

import json
import pathlib
import sys
import tempfile
import types
import unittest

import torch

TRAINING = pathlib.Path(__file__).resolve().parents[2] / "training"
sys.path += [str(TRAINING), str(TRAINING / "px")]
import count as px_count  # noqa: E402
import safetensors_io  # noqa: E402
from transformer import Transformer, init_weights  # noqa: E402

CONFIG = {"n_layers": 2, "d_model": 16, "d_mlp": 32, "d_head": 8, "n_heads": 2, "n_ctx": 16, "d_vocab": 50, "eps": 1e-5}
SEED = 3


def table(ids):
    """Unequal probabilities that are multiples of 2^-32."""
    units = [(3 * i + 1) * 2**20 for i in range(len(ids))]
    units[0] += 2**32 - sum(units)
    return {"ids": ids, "probabilities": [u / 2**32 for u in units]}


DIST = {"positions": ["bos", "many", "many", "few", "many"], "tables": {"bos": table([0]), "many": table(list(range(5, 25))), "few": table([4, 9, 33])}}


def tiny_model():
    model = Transformer(CONFIG)
    init_weights(model, 3)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_((p * (20 if "embed" in name else 1)).half().float())
    return model


class Sevens:
    """Says 7 of every input: shows which ones were run again, and in which shapes."""

    def __init__(self):
        self.shapes = set()

    def top_two(self, tokens):
        self.shapes.add(tuple(tokens.shape))
        return torch.full((len(tokens),), 7), None


class Counts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        plain = tiny_model()
        safetensors_io.save(f"{folder.name}/model.safetensors", {k: p.detach().half() for k, p in plain.named_parameters()})
        (pathlib.Path(folder.name) / "config.json").write_text(json.dumps(CONFIG))
        self.plain = plain.double()
        self.model = px_count.Model(pathlib.Path(folder.name), torch.float32, "cpu")
        self.tables = px_count.tables_of(DIST, "cpu")

    def count(self, exact, **given):
        args = types.SimpleNamespace(**{"samples": 10, "batch": 64, "near_tie": 0.3, "seconds": float("inf"), "seed": SEED, **given})
        return px_count.count(self.model, exact, self.tables, args, "cpu")

    @torch.no_grad()
    def one_by_one(self, samples, batch, near_tie, near_says=None):
        generator = torch.Generator().manual_seed(SEED)
        counts, again, n = [0] * CONFIG["d_vocab"], 0, 0
        while n < 1 << samples:
            for row in px_count.draw(self.tables, min(batch, 1 << samples), generator):
                best = self.plain(row[None])[0, -1].topk(2)
                near = float(best.values[0] - best.values[1]) < near_tie
                counts[near_says if near and near_says else int(best.indices[0])] += 1
                again, n = again + near, n + 1
        return counts, again, n

    def test_every_input_is_counted_once(self):
        for samples, batch, near_tie in [(10, 256, 0.3), (9, 100, 0.5), (5, 256, 0.3), (10, 8, 0.3), (8, 2, 1e9), (9, 64, 0.0), (6, 1, 0.3)]:
            with self.subTest(samples=samples, batch=batch, near_tie=near_tie):
                sevens = Sevens()
                counts, again, n = self.count(sevens, samples=samples, batch=batch, near_tie=near_tie)
                self.assertEqual((counts.tolist(), again, n), self.one_by_one(samples, batch, near_tie, near_says=7))
                self.assertLessEqual(len(sevens.shapes), 1)
                counts, again, n = self.count(self.model, samples=samples, batch=batch, near_tie=near_tie)
                self.assertEqual((counts.tolist(), again, n), self.one_by_one(samples, batch, near_tie))

    def test_ends_after_its_seconds_with_whole_groups(self):
        counts, _, n = self.count(self.model, samples=30, batch=4, seconds=0.0)
        self.assertEqual(n, 4 * px_count.GROUP)
        self.assertEqual(int(counts.sum()), n)

    def test_draws_by_the_tables(self):
        tokens = px_count.draw(self.tables, 200, torch.Generator().manual_seed(SEED))
        at = torch.randint(0, 2**32, (5, 200), generator=torch.Generator().manual_seed(SEED))
        for position, name in enumerate(DIST["positions"]):
            for i in range(200):
                end, ids = 0.0, iter(DIST["tables"][name]["ids"])
                for p in DIST["tables"][name]["probabilities"]:
                    token, end = next(ids), end + p * 2**32
                    if at[position, i] < end:
                        break
                self.assertEqual(tokens[i, position], token)


if __name__ == "__main__":
    unittest.main()
