"""Which of many strings a text contains: Aho and Corasick's automaton over bytes, then over tokens."""

import collections

import numpy as np
import torch


def token_bytes(tokenizer):
    """-> bytes of every id of a byte-level tokenizer; special tokens have none."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in kept]
    byte_of = {chr(b): b for b in kept} | {chr(256 + i): b for i, b in enumerate(others)}
    special = {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    return [b"" if i in special else bytes(byte_of[c] for c in tokenizer.id_to_token(i)) for i in range(tokenizer.get_vocab_size())]


def byte_automaton(strings):
    """-> (next [n_states, 256], ends: for every state the strings that end there)."""
    children, ends = [{}], [[]]
    for index, string in enumerate(strings):
        state = 0
        for byte in string:
            if byte not in children[state]:
                children[state][byte] = len(children)
                children.append({})
                ends.append([])
            state = children[state][byte]
        ends[state].append(index)
    step = np.zeros((len(children), 256), dtype=np.int32)
    fail, queue = [0] * len(children), collections.deque([0])
    while queue:
        state = queue.popleft()
        if state:
            step[state] = step[fail[state]]
            ends[state] = ends[state] + ends[fail[state]]
        for byte, child in children[state].items():
            fail[child] = step[fail[state], byte] if state else 0
            step[state, byte] = child
            queue.append(child)
    return step, ends


class Sets:
    """Sets of strings by numbers; 0 is the empty one."""

    def __init__(self):
        self.members, self.number_of, self.unions = [()], {(): 0}, {}

    def number(self, members):
        members = tuple(sorted(set(members)))
        if members not in self.number_of:
            self.number_of[members] = len(self.members)
            self.members.append(members)
        return self.number_of[members]

    def union(self, a, b):
        if (a, b) not in self.unions:
            self.unions[a, b] = self.number(self.members[a] + self.members[b])
        return self.unions[a, b]


class Automaton:
    """next_state [n_states, d_vocab]; found [n_states, d_vocab]: the set of strings that a token completes, 0 for none.
    Set s has the members members[offsets[s] : offsets[s + 1]]."""

    def __init__(self, strings, tokens, device):
        step, ends = byte_automaton([s.encode() for s in strings])
        sets = Sets()
        end_set = np.array([sets.number(e) for e in ends])  # [n_states]
        next_state = np.empty((len(step), len(tokens)), dtype=np.int32)
        found = np.zeros((len(step), len(tokens)), dtype=np.int16)
        for token, text in enumerate(tokens):
            state, so_far = np.arange(len(step)), np.zeros(len(step), dtype=np.int64)
            for byte in text:
                state = step[state, byte]
                at = np.flatnonzero(end_set[state])
                so_far[at] = [sets.union(a, b) for a, b in zip(so_far[at].tolist(), end_set[state[at]].tolist())]
            next_state[:, token], found[:, token] = state, so_far
        assert len(sets.members) < 1 << 15
        members = [np.array(m, dtype=np.int64) for m in sets.members]
        tensor = lambda a: torch.from_numpy(a).to(device)
        self.next_state, self.found = tensor(next_state), tensor(found)
        self.sizes = tensor(np.array([len(m) for m in members]))
        self.offsets = tensor(np.concatenate([[0], np.cumsum([len(m) for m in members])]))
        self.members = tensor(np.concatenate(members))
        self.n_strings = len(strings)


def count_texts(sets, kept, automaton):
    """How many texts complete each string at a kept place; sets int16 and kept bool, both [steps, n] -> int64 [n_strings]."""
    at = ((sets > 0) & kept).nonzero()  # [m, 2]
    which = sets[at[:, 0], at[:, 1]].long()
    size = automaton.sizes[which]
    text = at[:, 1].repeat_interleave(size)
    first = (automaton.offsets[which] - (size.cumsum(0) - size)).repeat_interleave(size)
    string = automaton.members[first + torch.arange(len(text), device=sets.device)]
    once = torch.unique(text * automaton.n_strings + string)
    return torch.bincount(once % automaton.n_strings, minlength=automaton.n_strings)
