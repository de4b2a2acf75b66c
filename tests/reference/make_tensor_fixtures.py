#!/usr/bin/env python3
"""Writes the tensor files of tests/data/tensors with PyTorch, NumPy and, where it is installed, safetensors.

Usage: make_tensor_fixtures.py OUT_DIR

Values follow one rule, so that the tests need no copy of them: element i of every tensor is i - 1 (booleans: i odd;
unsigned: i), counted in row-major order. PyTorch files go to OUT_DIR/torch-1 or torch-2 by version; run it under both.
"""
import argparse
import os
from collections import OrderedDict

import numpy as np
import torch


def ramp(shape, dtype):
    n = int(np.prod(shape, dtype=np.int64))
    values = torch.arange(n, dtype=torch.int64)
    if dtype == torch.bool:
        values = values % 2
    elif dtype != torch.uint8:
        values = values - 1
    return values.to(dtype).reshape(shape)


def every_dtype():
    dtypes = {
        "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
        "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "bool": torch.bool,
    }
    tensors = OrderedDict((name, ramp((2, 3), dtype)) for name, dtype in dtypes.items())
    tensors["scalar"] = ramp((), torch.float32)
    tensors["empty"] = ramp((0, 3), torch.float32)
    return tensors


class TwoWeights(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.W = torch.nn.Parameter(ramp((2, 3), torch.float32))
        self.register_buffer("mask", ramp((2, 2), torch.bool))


class RunsCode:
    def __reduce__(self):
        return (os.system, ("true",))


def write_torch(path):
    model = TwoWeights()
    base = ramp((4, 3), torch.float32)
    save = lambda value, name, **kw: torch.save(value, path(name), **kw)
    save(every_dtype(), "every_dtype.pth")
    save(model.state_dict(), "state_dict.pth")  # an OrderedDict with _metadata
    save({"W": model.W}, "parameter.pth")  # _rebuild_parameter
    save({"state_dict": model.state_dict(), "epoch": 3, "lr": 0.5, "name": "x", "done": None}, "nested.pth")
    save(ramp((5,), torch.int64), "single_int64.pt")
    save({"rows": base[1:3], "whole": base}, "shared_storage.pth")
    save({"W": ramp((2, 3), torch.float32)}, "protocol4.pth", pickle_protocol=4)
    save({"W": ramp((2, 3), torch.float32)}, "protocol5.pth", pickle_protocol=5)
    # Files that must be refused:
    save({"W": ramp((2, 3), torch.float32).T}, "transposed.pth")
    save({"W": ramp((2, 3), torch.float32), "evil": RunsCode()}, "runs_code.pth")
    save(model, "whole_model.pth")
    save({"W": torch.zeros(2, dtype=torch.complex64)}, "complex.pth")
    save({"W": torch.zeros(2)}, "legacy.pth", _use_new_zipfile_serialization=False)


def write_numpy(path):
    for code in ("f2", "f4", "f8", "i4", "i8", "u1", "b1"):
        values = np.arange(6) % 2 if code == "b1" else np.arange(6) if code == "u1" else np.arange(6) - 1
        np.save(path(f"{code}.npy"), values.reshape(2, 3).astype(code))
    array = (np.arange(6, dtype="<f4") - 1).reshape(2, 3)
    for version in ((2, 0), (3, 0)):
        with open(path(f"version{version[0]}.npy"), "wb") as out:
            np.lib.format.write_array(out, array, version=version)
    np.save(path("scalar.npy"), np.float32(-1))
    np.save(path("empty.npy"), np.zeros((0, 3), dtype="<f4"))
    # Files that must be refused:
    np.save(path("fortran.npy"), np.asfortranarray(array))
    np.save(path("big_endian.npy"), array.astype(">f4"))
    np.save(path("structured.npy"), np.zeros(2, dtype=[("a", "<f4")]))
    np.savez(path("archive.npz"), a=array)


def write_safetensors(path):
    try:
        from safetensors.torch import save_file
    except ImportError:
        print("safetensors is not installed: every_dtype.safetensors not written")
        return
    save_file(dict(every_dtype()), path("every_dtype.safetensors"), metadata={"made": "by safetensors"})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out_dir")
    args = parser.parse_args()

    def inside(folder):
        os.makedirs(os.path.join(args.out_dir, folder), exist_ok=True)
        return lambda name: os.path.join(args.out_dir, folder, name)

    write_torch(inside(f"torch-{torch.__version__.split('.')[0]}"))
    write_numpy(inside("numpy"))
    write_safetensors(inside("safetensors"))


if __name__ == "__main__":
    main()
