"""libdeeptail.so by ctypes: handles, JSON and arrays. The public interface is in the modules beside this folder."""

from .handles import Head, Law, Model, load_law, load_model, make_head
from .library import DeviceError, InputError, abi_version, add_data_folder, library_path, version
from .passes import capture, decode, encode, logits, residuals, sample
from .questions import call, estimate, estimate_all, event_scores, generate, loss
from .splitting import split, split_state
from .values import activation_rows

__all__ = ["DeviceError", "Head", "InputError", "Law", "Model", "abi_version", "activation_rows", "add_data_folder", "call",
           "capture", "decode", "encode", "estimate", "estimate_all", "event_scores", "generate", "library_path", "load_law", "load_model", "logits", "loss",
           "make_head", "residuals", "sample", "split", "split_state", "version"]
