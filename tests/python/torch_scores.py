"""deeptail.torch with models of transformers on the CPU: logits, margins, sampled text. `make test-python-torch` runs it."""

import itertools
import math
import pathlib
import re
import sys
import unittest
import warnings

import numpy as np
import torch
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import deeptail as dt
from deeptail.torch.automata import ByteDfa, steps_of, token_bytes
from deeptail.torch.decoding import Sampling

from .gpt2_form import gpt2_form

ROOT = pathlib.Path(__file__).resolve().parents[2]
STORIES = ROOT.parent / "shared" / "real" / "stories260K-hf"


def tiny_gpt2(vocabulary=8, seed=0):
    torch.manual_seed(seed)
    config = GPT2Config(vocab_size=vocabulary, n_embd=16, n_layer=2, n_head=2, n_positions=32, bos_token_id=0, eos_token_id=1)
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    return model


def tiny_llama(vocabulary=8, seed=0):
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, bos_token_id=0, eos_token_id=1,
    )
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6)
    return model


def rows(n, length, vocabulary=8, seed=1):
    return np.random.default_rng(seed).integers(0, vocabulary, (n, length), dtype=np.int32)


def numbers(n, k, seed=1):
    return np.random.default_rng(seed).random((n, k))


class Logits(unittest.TestCase):
    def test_zoo_as_gpt2(self):
        for name in ("dt-1l", "dt-2l"):
            hf, model, x = gpt2_form(ROOT / "models" / name), dt.load(name), dt.law("hex").sample(64)
            self.assertLess(np.abs(dt.torch.last_logits(hf, x).numpy() - model.logits(x)).max(), 1e-4)
            self.assertLess(np.abs(dt.torch.residuals(hf, x).numpy() - model.residuals(x)).max(), 1e-4)

    def test_loaded_from_memory(self):
        for hf in (tiny_gpt2(), tiny_llama()):
            x = rows(16, 6)
            self.assertLess(np.abs(dt.load(hf).logits(x) - dt.torch.last_logits(hf, x).numpy()).max(), 1e-4)

    def test_head_in_float32(self):
        hf = tiny_llama().to(torch.bfloat16)
        z = dt.torch.last_logits(hf, rows(32, 6))
        self.assertEqual(z.dtype, torch.float32)
        own = hf(torch.as_tensor(rows(32, 6)).long()).logits[:, -1].float()
        self.assertLess((z - own).abs().max(), 0.05 * own.abs().max())
        self.assertGreater(len(torch.unique(z)), len(torch.unique(own)))

    def test_shorter_rows(self):
        x = rows(5, 7)
        lengths = np.array([7, 3, 5, 1, 6], dtype=np.uint32)
        for hf in (tiny_gpt2(), tiny_llama()):
            together = dt.torch.last_logits(hf, x, lengths)
            for k, n in enumerate(lengths):
                alone = dt.torch.last_logits(hf, x[k : k + 1, :n])
                self.assertLess((together[k] - alone[0]).abs().max(), 1e-4)

    def test_new_weights_are_seen(self):
        hf = tiny_gpt2()
        before = dt.torch.last_logits(hf, rows(2, 4))
        with torch.no_grad():
            hf.lm_head.weight.mul_(2)
        self.assertFalse(torch.equal(before, dt.torch.last_logits(hf, rows(2, 4))))

    def test_training_mode_is_refused(self):
        with self.assertRaisesRegex(dt.InputError, "eval"):
            dt.torch.last_logits(tiny_gpt2().train(), rows(2, 4))

    def test_margin_is_the_native_one(self):
        model, law = dt.load("dt-1l"), dt.law("hex")
        x = law.sample(256)
        z = torch.tensor(model.logits(x))
        for target in (18, [18, 20], 37):
            native = dt._native.event_scores({"target": target}, model._native, law.native(model), x)
            self.assertEqual(dt.torch.margin(z, target).double().tolist(), native.tolist())

    def test_margin_at_a_tie(self):
        z = torch.tensor([[2.0, 2.0, 1.0]])
        self.assertGreaterEqual(float(dt.torch.margin(z, 0)), 0)
        self.assertLess(float(dt.torch.margin(z, 1)), 0)
        self.assertGreaterEqual(float(dt.torch.margin(z, [0, 1])), 1)

    def test_head_for_activations(self):
        hf = gpt2_form(ROOT / "models" / "dt-1l")
        cloud = dt.activations("dt-1l", "hex", 2**11)
        a, b = dt.qld(cloud, dt.torch.head(hf), 18).p, dt.qld(cloud, "dt-1l", 18).p
        self.assertAlmostEqual(a / b, 1.0, places=5)


class Sampled(unittest.TestCase):
    def test_kept_keys_change_nothing(self):
        for hf in (tiny_gpt2(), tiny_llama()):
            x, u = rows(6, 4), numbers(6, 8)
            drawn = dt.torch.sample_continuations(hf, x, u, temperature=0.9)
            text = torch.as_tensor(x).long()
            for t in range(8):
                p = torch.softmax(dt.torch.last_logits(hf, text) / 0.9, dim=-1)
                token = Sampling(0.9).draw(p, torch.as_tensor(u[:, t]))
                self.assertEqual(token.tolist(), drawn[:, t].tolist())
                text = torch.cat([text, token[:, None]], dim=1)

    def test_lengths_and_neighbours_change_nothing(self):
        x, u, lengths = rows(6, 5), numbers(6, 6), np.array([5, 2, 3, 5, 1, 4], dtype=np.uint32)
        hf = tiny_llama()
        together = dt.torch.sample_continuations(hf, x, u, lengths=lengths)
        for k, n in enumerate(lengths):
            alone = dt.torch.sample_continuations(hf, x[k : k + 1, :n], u[k : k + 1])
            self.assertEqual(together[k].tolist(), alone[0].tolist())

    def test_law_of_the_next_token(self):
        z = torch.log(torch.tensor([[0.1, 0.4, 0.2, 0.3]]))
        self.assertEqual((Sampling(top_k=2).probabilities(z) > 0).tolist(), [[False, True, False, True]])
        self.assertEqual((Sampling(top_p=0.75).probabilities(z) > 0).tolist(), [[False, True, True, True]])
        self.assertEqual((Sampling(top_p=0.7).probabilities(z) > 0).sum().item(), 2)
        u = torch.linspace(0, 1 - 1e-9, 10001, dtype=torch.float64)
        p = Sampling(top_k=3).probabilities(z).expand(len(u), 4)
        shares = Sampling(top_k=3).draw(p, u).bincount(minlength=4) / len(u)
        self.assertLess((shares - torch.tensor([0, 4 / 9, 2 / 9, 3 / 9])).abs().max(), 1e-3)
        self.assertEqual(Sampling(greedy=True).draw(torch.tensor([[0.4, 0.4, 0.2]]), u[:1]).tolist(), [0])

    def test_stop_is_kept(self):
        drawn = dt.torch.sample_continuations(tiny_gpt2(), rows(64, 2), numbers(64, 12), stop=[3])
        for row in drawn.tolist():
            if 3 in row:
                self.assertEqual(set(row[row.index(3) :]), {3})

    def test_strings_over_all_ways_to_cut_them(self):
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(ROOT / "models" / "tokenizer.json"))
        pieces = token_bytes(tokenizer, 4096)
        self.assertEqual(b"".join(pieces[k] for k in tokenizer.encode(" naïve café", add_special_tokens=False)), " naïve café".encode())
        rng = np.random.default_rng(1)
        letters = [k for k, piece in enumerate(pieces) if piece and set(piece) <= set(b"ab ")]
        for kind, within in (("contains", "aab a"), ("contains", "aa"), ("starts_with", "ab")):
            event = dt.contains(within, within=9) if kind == "contains" else dt.starts_with(within)
            steps = steps_of(event, tokenizer, 4096)
            for _ in range(300):
                ids = rng.choice(letters, 9)
                text, state = b"", steps.start
                for k in ids:
                    text += pieces[k]
                    state = steps.table[state, k]
                    said = within.encode() in text if kind == "contains" else text.startswith(within.encode())
                    self.assertEqual(state == steps.accepted, said)


    def test_regular_expressions(self):
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(ROOT / "models" / "tokenizer.json"))
        pieces, rng = token_bytes(tokenizer, 4096), np.random.default_rng(2)
        letters = [k for k, piece in enumerate(pieces) if piece and set(piece) <= set(b"ab ")]
        for regex in ("a(b|ab) ", "^[ab]{3,} a", "b+ ?ba$"):
            steps, dfa, known = steps_of(dt.matches(regex, within=8), tokenizer, 4096), ByteDfa.of_regex(regex), re.compile(regex.encode())
            for _ in range(300):
                text, state = b"", steps.start
                for k in rng.choice(letters, 8):
                    text, state = text + pieces[k], steps.table[state, k]
                self.assertEqual(bool(steps.at_end[state]), known.search(text) is not None, (regex, text))
                begin, end = dfa.find(text)
                if begin >= 0 and "^" not in regex and "$" not in regex:
                    self.assertIsNotNone(known.fullmatch(text[begin:end]))


def chance_of(model, prompts, accepts, n_steps, temperature):
    """Exact: over all texts of n_steps tokens."""
    vocabulary = model.config.vocab_size
    total = 0.0
    for prompt in prompts:
        texts = torch.tensor([list(prompt) + list(tail) for tail in itertools.product(range(vocabulary), repeat=n_steps)])
        with torch.inference_mode():
            p = torch.softmax(model(texts).logits.double() / temperature, dim=-1)
        start = len(prompt)
        chances = torch.ones(len(texts), dtype=torch.float64)
        for t in range(n_steps):
            chances *= p[torch.arange(len(texts)), start + t - 1, texts[:, start + t]]
        said = torch.tensor([accepts(row) for row in texts[:, start:].tolist()])
        total += float(chances[said].sum()) / len(prompts)
    return total


class Splitting(unittest.TestCase):
    def setUp(self):
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore", dt.EstimateWarning)

    def test_sampled_tokens_against_enumeration(self):
        law = dt.Law.positions([0, [2, 3]], d_vocab=8, name="two prompts")
        for hf in (tiny_gpt2(seed=3), tiny_llama(seed=3)):
            chances = [(chance_of(hf, [(0, 2), (0, 3)], lambda row, k=k: k in row, 3, 0.5), k) for k in range(8)]
            q, token = min((c for c in chances if c[0] > 1e-5), default=min(chances))
            score = dt.torch.continuation_score(hf, None, dt.tokens_any([token], within=3, temperature=0.5), batch=256)
            logs = [math.log(max(dt.split(law, score, budget=1e4, seed=s).p, 1e-300) / q) for s in range(4)]
            self.assertLess(abs(np.mean(logs)), 0.5, (q, logs))

    def test_a_function_of_texts(self):
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(ROOT / "models" / "tokenizer.json"))
        hf = gpt2_form(ROOT / "models" / "dt-1l")
        law = dt.Law.template("{n} of", n=[" two", " three"], bos=False, tokenizer=tokenizer)

        def vowels(prompts, continuations):
            self.assertTrue(all(prompt.endswith(" of") for prompt in prompts))
            return [sum(c in "aeiou" for c in text) - 9.0 for text in continuations]

        r = dt.split(law, dt.torch.continuation_score(hf, tokenizer, vowels, 6, batch=128), budget=3000, seed=1, tokenizer=tokenizer)
        self.assertEqual(r.status, "ok")
        for trigger in r.triggers:
            self.assertGreaterEqual(sum(c in "aeiou" for c in trigger.continuation), 9)

    def test_a_judge_that_is_a_program(self):
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(ROOT / "models" / "tokenizer.json"))
        hf, law = gpt2_form(ROOT / "models" / "dt-1l"), dt.Law.template("{n} of", n=[" two", " three"], bos=False, tokenizer=tokenizer)
        judge = f"{sys.executable} -c 'import json, sys\nfor line in sys.stdin: print(json.loads(line)[\"continuation\"].count(\"e\"), flush=True)'"
        score = dt.torch.continuation_score(hf, tokenizer, dt.judge(judge, threshold=3, within=6), batch=128)
        r = dt.split(law, score, budget=2000, replicas=2, seed=1, check=False)
        self.assertTrue(r.triggers and all(t.continuation.count("e") >= 3 for t in r.triggers))
        broken = dt.torch.continuation_score(hf, tokenizer, dt.judge("echo no", threshold=3, within=2), batch=8)
        with self.assertRaisesRegex(dt.InputError, "one finite number a line"):
            dt.split(law, broken, budget=2000, check=False)

    def test_many_at_once(self):
        """Each is what it is alone."""
        law, hf = dt.Law.positions([0, range(8), range(8)], d_vocab=8, name="two"), tiny_gpt2(seed=3)
        together = dt.split_many(law, dt.torch.margin_scores(hf, [1, 4], batch=64), ["1", "4"], budget=1500, replicas=2)
        for token, r in zip((1, 4), together):
            self.assertEqual(r.p, dt.split(law, dt.torch.margin_score(hf, token, batch=64), budget=1500, replicas=2).p)
        events = [dt.tokens_any([k], within=2, temperature=0.7) for k in (2, 5)]
        drawn = dt.split_many(law, dt.torch.continuation_scores(hf, None, events, batch=64), ["2", "5"], budget=1500, replicas=2)
        for event, r in zip(events, drawn):
            self.assertEqual(r.p, dt.split(law, dt.torch.continuation_score(hf, None, event, batch=64), budget=1500, replicas=2).p)
            self.assertTrue(all(str(event.what[0]) in t.continuation for t in r.triggers))

    def test_zoo_as_gpt2_gives_the_native_answer(self):
        hf, truth = gpt2_form(ROOT / "models" / "dt-1l"), dt.read_truth("dt-1l-hex")
        target = int(truth.band(1e-3, 1e-2)[-1])
        r = dt.split("hex", dt.torch.margin_score(hf, target, batch=256), budget=6e3, replicas=4, seed=1)
        self.assertLess(abs(math.log10(r.p / truth.q(target))), 0.5)

    def test_chat(self):
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(ROOT / "models" / "tokenizer.json"))
        tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<answer>"
        law = dt.Law.chat([{"role": "user", "content": "{w} be"}], w=["To", "to"], tokenizer=tokenizer)
        texts = {tokenizer.decode(row) for row in law.sample(30)}
        self.assertEqual(texts, {"<user>To be<answer>", "<user>to be<answer>"})

    @unittest.skipUnless(STORIES.is_dir(), "stories260K-hf is not there")
    def test_stories(self):
        hf = AutoModelForCausalLM.from_pretrained(STORIES).eval()
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(STORIES / "tokenizer.json"))
        self.assertLess(np.abs(dt.torch.last_logits(hf, rows(8, 9, 512)).numpy() - dt.load(STORIES).logits(rows(8, 9, 512))).max(), 1e-3)
        law = dt.Law.positions([1], d_vocab=512, name="start")
        score = dt.torch.continuation_score(hf, tokenizer, dt.contains(" castle", within=40), batch=512)
        r = dt.split(law, score, budget=4000, replicas=4, moves=4, seed=1, check=False)
        self.assertLess(abs(math.log10(r.p / (134958 / 41943040))), 0.4)
        self.assertTrue(all(" castle" in trigger.continuation for trigger in r.triggers))


def load_tests(loader, tests, pattern):
    import doctest

    import deeptail.torch.decoding
    import deeptail.torch.graphs
    import deeptail.torch.heads
    import deeptail.torch.margins

    for module in (deeptail.torch.heads, deeptail.torch.graphs, deeptail.torch.margins, deeptail.torch.decoding):
        tests.addTests(doctest.DocTestSuite(module))
    return tests


if __name__ == "__main__":
    unittest.main()
