#!/usr/bin/env python3
"""Trains dt-story's tokenizer: byte-level BPE of 2048 tokens, single digits, BOS id 0 and put before every text, EOS id 1.

    python3 training/story_tokenizer.py --corpora CORPORA --out models/dt-story/tokenizer.json
"""

import argparse
import pathlib

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from story_text import BOS, D_VOCAB, EOS, novels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=D_VOCAB, special_tokens=[BOS, EOS], show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    train, _ = novels(args.corpora)
    tokenizer.train_from_iterator(("\n".join(piece) + "\n" for piece in train), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, 0)])
    assert tokenizer.token_to_id(BOS) == 0 and tokenizer.token_to_id(EOS) == 1 and tokenizer.get_vocab_size() == D_VOCAB
    args.out.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(args.out), pretty=False)
    print(f"{args.out}: {tokenizer.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
