"""What can go wrong, as exceptions with the library's own sentences.

A user's mistake is an :class:`InputError`; a device that is missing is a :class:`DeviceError`, which is one too. What an
estimate warns of is a Python warning of the category :class:`EstimateWarning`, so that ``warnings.filterwarnings``
turns it off, or into an error.
"""

from __future__ import annotations

from ._native import DeviceError, InputError

__all__ = ["DeviceError", "EstimateWarning", "InputError", "Stopped"]

InputError.__module__ = DeviceError.__module__ = "deeptail"


class EstimateWarning(UserWarning):
    """A reason not to trust an estimate, as its ``warnings`` say it."""


class Stopped(RuntimeError):
    """A progress function ended the work before anything was known."""


EstimateWarning.__module__ = Stopped.__module__ = "deeptail"
