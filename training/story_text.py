"""The text dt-story is trained on: the novels of the English corpus, as paragraphs."""

import re

import corpora

BOS, EOS = "<|BOS|>", "<|EOS|>"  # ids 0 and 1
D_VOCAB = 2048
ODD = re.compile(r"[`{}*_=<>\[\]#|/\\]")  # the signs of documentation, nearly absent from novels
ODD_SHARE = 0.002
SAME = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "´": "'", "`": "'", "‐": "-", "‑": "-", "–": "-", "…": "...",
                      "\u00a0": " ", "\u200a": "", "\u2060": "", "\u00ad": "", "\ufffd": ""})


def is_novel(piece):
    return len(piece) > 200 and len(ODD.findall(piece)) < ODD_SHARE * len(piece)


def paragraphs(piece):
    """-> paragraphs of one line each, with one kind of quotes, dashes and spaces."""
    lines = (re.sub(r"\s+", " ", part).strip() for part in re.split(r"\n\s*\n", piece.translate(SAME)))
    return [line for line in lines if line]


def novels(folder):
    """-> (pieces for training, pieces held out), each a list of paragraphs."""
    train, held_out = [], []
    for piece in corpora.pieces(folder, "english"):
        if is_novel(piece):
            (held_out if corpora.is_held_out(piece) else train).append(paragraphs(piece))
    return train, held_out
