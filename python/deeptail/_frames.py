"""Rows of plain values as frames of pandas or polars, which are imported when they are asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from .errors import InputError

if TYPE_CHECKING:
    import pandas
    import polars


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"{name} is not installed: pip install {name}, or take to_dict()") from error


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Columns by name, in the order of their first row; None where a row has no such value."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def to_pandas(rows: Sequence[Mapping[str, Any]]) -> pandas.DataFrame:
    frame: pandas.DataFrame = _module("pandas").DataFrame(columns(rows))
    return frame


def to_polars(rows: Sequence[Mapping[str, Any]]) -> polars.DataFrame:
    frame: polars.DataFrame = _module("polars").DataFrame(columns(rows), strict=False)
    return frame
