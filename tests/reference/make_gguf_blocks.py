#!/usr/bin/env python3
"""Writes tests/data/tensors/gguf with the package gguf: blocks.gguf, quantised blocks and what gguf makes of them; and
small.gguf, one block of every type.

Usage: make_gguf_blocks.py OUT_DIR

For each type T a tensor T [2, n] of random blocks, the last ones extreme (largest, smallest and negative scales, all
bits on or off), and T.values [2, n] in F32: gguf's own dequantised values. The keys have one value of every kind.
"""
import argparse
import os

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

# (type, where its halves lie in a block)
TYPES = [(T.Q4_0, [0]), (T.Q4_1, [0, 2]), (T.Q5_0, [0]), (T.Q5_1, [0, 2]), (T.Q8_0, [0]), (T.Q4_K, [0, 2]),
         (T.Q5_K, [0, 2]), (T.Q6_K, [208]), (T.BF16, [0]), (T.F16, [0])]
EXTREME = [65504.0, -65504.0, 6e-8, -6e-8, 6.1e-5, 0.0, -0.0, 1.0]


def blocks(rng, qtype, halves):
    n_values, n_bytes = gguf.GGML_QUANT_SIZES[qtype]
    n = 512 // n_values * 2 if n_values < 256 else 8
    raw = rng.integers(0, 256, (n, n_bytes), dtype=np.uint8)
    for at in halves:
        scales = rng.standard_normal(n).astype(np.float16)
        extreme = EXTREME if n_values > 1 or qtype == T.F16 else []
        for i, value in enumerate(extreme[:n // 2]):
            scales[n - 1 - i] = value
        if qtype == T.BF16:
            scales = (rng.standard_normal(n).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        raw[:, at:at + 2] = scales.view(np.uint8).reshape(n, 2)
    if n_values > 1:
        rest = [b for b in range(n_bytes) if not any(at <= b < at + 2 for at in halves)]
        for i, byte in enumerate([0x00, 0xff, 0x80, 0x7f]):
            raw[i, rest] = byte
    return raw.reshape(2, -1)


def add_keys(writer):
    writer.add_uint8("a.u8", 200)
    writer.add_int8("a.i8", -100)
    writer.add_uint16("a.u16", 60000)
    writer.add_int16("a.i16", -30000)
    writer.add_uint32("a.u32", 4000000000)
    writer.add_int32("a.i32", -2000000000)
    writer.add_uint64("a.u64", 2**63 + 1)
    writer.add_int64("a.i64", -2**62)
    writer.add_float32("a.f32", 0.1)
    writer.add_float64("a.f64", 0.1)
    writer.add_bool("a.bool", True)
    writer.add_string("a.string", "caf\u00e9")
    writer.add_array("a.strings", ["one", "", "two"])
    writer.add_array("a.integers", [1, -2, 3])
    writer.add_array("a.floats", [0.5, -1.5])


def write(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    out = parser.parse_args().out
    os.makedirs(out, exist_ok=True)
    rng = np.random.default_rng(20)
    writer = gguf.GGUFWriter(os.path.join(out, "blocks.gguf"), "none")
    add_keys(writer)
    for qtype, halves in TYPES:
        raw = blocks(rng, qtype, halves)
        writer.add_tensor(qtype.name, raw, raw_dtype=qtype)
        if qtype == T.F16:
            values = raw.view(np.float16).astype(np.float32)
        else:
            values = gguf.quants.dequantize(raw, qtype)
        assert np.isfinite(values).all(), qtype
        writer.add_tensor(qtype.name + ".values", values)
    write(writer)
    writer = gguf.GGUFWriter(os.path.join(out, "small.gguf"), "none")
    add_keys(writer)
    for qtype, halves in TYPES:
        n_bytes = gguf.GGML_QUANT_SIZES[qtype][1]
        writer.add_tensor(qtype.name, blocks(rng, qtype, halves)[:1, :n_bytes], raw_dtype=qtype)
    # A size that the alignment divides: a shorter file is then a broken one.
    writer.add_tensor("end", np.arange(8, dtype=np.float32))
    write(writer)


if __name__ == "__main__":
    main()
