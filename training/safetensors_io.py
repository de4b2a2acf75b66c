"""Read and write safetensors: 8 bytes of little-endian header length, a JSON header, then the raw tensors."""

import json
import struct

import numpy as np
import torch

DTYPES = {"F16": (np.float16, torch.float16), "F32": (np.float32, torch.float32)}


def save(path, tensors):
    """tensors: {name: torch tensor, fp16 or fp32}. Sorted by name, so the same weights give the same bytes."""
    header, blobs, end = {}, [], 0
    for name in sorted(tensors):
        array = tensors[name].detach().cpu().contiguous().numpy()
        dtype = next(key for key, (kind, _) in DTYPES.items() if array.dtype == kind)
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [end, end + array.nbytes]}
        blobs.append(array.tobytes())
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def load(path):
    """-> {name: torch tensor}."""
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        array = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]][0]).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(array.copy())
    return tensors
