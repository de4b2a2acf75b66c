"""What c_api.h declares, for ctypes: structures, kinds of functions, signatures."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, Mapping, Optional

import numpy.typing as npt

Progress = Optional[Callable[[Mapping[str, Any]], Any]]
Array = npt.NDArray[Any]
ABI = 1


class TextStruct(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class _ProgressStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("share", c_double), ("done", c_uint64), ("total", c_uint64),
                ("seconds_left", c_double), ("note", c_char_p)]


KeepGoing = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(_ProgressStruct))
OnResult = ctypes.CFUNCTYPE(None, c_void_p, c_size_t, c_char_p)


class HooksStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("user", c_void_p), ("keep_going", KeepGoing), ("on_result", OnResult)]


class HeadStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("d_model", c_size_t), ("d_vocab", c_size_t), ("w_u", c_void_p), ("b_u", c_void_p),
                ("ln_w", c_void_p), ("ln_b", c_void_p), ("norm", c_char_p), ("eps", c_double)]


class QuestionStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("model", c_void_p), ("law", c_void_p), ("events", c_char_p), ("head", c_void_p),
                ("activations", c_void_p), ("n_activations", c_size_t), ("d_activations", c_size_t),
                ("last_tokens", c_void_p)]


class _BatchStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("n", c_size_t), ("length", c_size_t), ("n_numbers", c_size_t),
                ("tokens", POINTER(c_int32)), ("lengths", POINTER(c_uint32)), ("numbers", POINTER(c_double)),
                ("which", POINTER(c_uint32))]


ScoreFunction = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(_BatchStruct), POINTER(c_double))


class ScoresStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("user", c_void_p), ("score", ScoreFunction), ("exact", ScoreFunction), ("near", c_double),
                ("batch", c_size_t), ("numbers", c_size_t), ("smaller", POINTER(c_size_t)), ("n_smaller", c_size_t)]


SampleStates = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_size_t, POINTER(c_int64))
MutateStates = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_int64), c_size_t, c_uint64, POINTER(c_int64))
ScoreStates = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_int64), c_size_t, POINTER(c_double))
DropStates = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_int64), c_size_t)


class StatesStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("user", c_void_p), ("sample", SampleStates), ("mutate", MutateStates),
                ("score", ScoreStates), ("drop", DropStates)]


SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "dt_version": (c_char_p, []),
    "dt_abi_version": (c_int, []),
    "dt_last_error": (c_char_p, []),
    "dt_text_free": (None, [POINTER(TextStruct)]),
    "dt_add_data_folder": (c_int, [c_char_p]),
    "dt_model_load": (c_int, [c_char_p, POINTER(c_void_p)]),
    "dt_model_free": (None, [c_void_p]),
    "dt_model_info": (c_int, [c_void_p, POINTER(TextStruct)]),
    "dt_logits": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_void_p]),
    "dt_residuals": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_void_p]),
    "dt_encode": (c_int, [c_void_p, c_char_p, c_size_t, c_char_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "dt_decode": (c_int, [c_void_p, c_void_p, c_size_t, POINTER(TextStruct)]),
    "dt_law_load": (c_int, [c_char_p, c_void_p, c_char_p, POINTER(c_void_p)]),
    "dt_law_free": (None, [c_void_p]),
    "dt_law_info": (c_int, [c_void_p, POINTER(TextStruct)]),
    "dt_law_sample": (c_int, [c_void_p, c_uint64, c_uint64, c_size_t, c_size_t, c_void_p, c_void_p]),
    "dt_capture": (c_int, [c_void_p, c_void_p, c_uint64, c_uint64, c_size_t, POINTER(HooksStruct), c_void_p, c_void_p,
                           POINTER(c_uint64)]),
    "dt_head_make": (c_int, [POINTER(HeadStruct), POINTER(c_void_p)]),
    "dt_head_free": (None, [c_void_p]),
    "dt_estimate": (c_int, [POINTER(QuestionStruct), c_char_p, POINTER(HooksStruct), POINTER(TextStruct)]),
    "dt_estimate_all": (c_int, [c_void_p, c_void_p, c_char_p, POINTER(HooksStruct), POINTER(TextStruct)]),
    "dt_event_scores": (c_int, [POINTER(QuestionStruct), c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_void_p]),
    "dt_split": (c_int, [c_void_p, c_void_p, POINTER(ScoresStruct), c_char_p, POINTER(HooksStruct), POINTER(TextStruct)]),
    "dt_split_many": (c_int, [c_void_p, c_void_p, POINTER(ScoresStruct), c_char_p, POINTER(HooksStruct), POINTER(TextStruct)]),
    "dt_split_states": (c_int, [POINTER(StatesStruct), c_char_p, POINTER(HooksStruct), POINTER(TextStruct)]),
    "dt_generate": (c_int, [c_void_p, c_void_p, c_char_p, POINTER(HooksStruct), POINTER(TextStruct)]),
    "dt_losses": (c_int, [c_char_p, c_char_p, c_void_p, c_void_p, c_size_t, c_void_p]),
    "dt_call": (c_int, [c_char_p, c_char_p, POINTER(HooksStruct), POINTER(TextStruct)]),
}
