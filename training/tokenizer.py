#!/usr/bin/env python3
"""Trains the zoo's tokenizer: byte-level BPE, single digits, BOS id 0.

    python3 training/tokenizer.py --corpora CORPORA --out models/tokenizer.json

The same number of bytes of every language, from the pieces that are not held out; the same text gives the same file.
"""

import argparse
import pathlib

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import corpora

D_VOCAB = 4096
BOS = "<|BOS|>"
BYTES_PER_LANGUAGE = 20_000_000


def training_pieces(folder):
    for language in corpora.LANGUAGES:
        left = BYTES_PER_LANGUAGE
        for piece in corpora.pieces(folder, language):
            if corpora.is_held_out(piece):
                continue
            yield piece
            left -= len(piece.encode())
            if left <= 0:
                break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=D_VOCAB, special_tokens=[BOS], show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(training_pieces(args.corpora), trainer)
    assert tokenizer.token_to_id(BOS) == 0 and tokenizer.get_vocab_size() == D_VOCAB
    args.out.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(args.out), pretty=False)
    print(f"{args.out}: {tokenizer.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
