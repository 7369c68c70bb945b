"""Stages. Each file of `stages/` defines one as the constant STAGE. Stages run in the order of
their ranks."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from results import Row

HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = HERE.parent
ROOT = SCRIPTS.parent
_CARDS = ("h200", "h100", "b200", "a100")  # cards with a device profile in fxopt


@dataclass(frozen=True)
class Context:
    """The options that every stage gets."""

    fxopt: str
    is_dry: bool  # without a GPU, with small shapes
    stages: pathlib.Path = HERE / "stages"

    @property
    def device(self) -> str:
        return "cpu" if self.is_dry else "cuda"


@dataclass(frozen=True)
class Process:
    """Units of work that one process runs, in this order."""

    keys: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """One stage. A unit of work has a key and yields one row of results. `table` and `files`
    receive the rows without an error, at least one."""

    name: str
    about: str
    rank: int  # the most valuable first
    seconds: int  # its limit
    processes: Callable[[Context], Sequence[Process]]
    # Runs the units with these keys in their own process. Yields (key, None) when a unit begins and
    # (key, row) when it ends. If the process dies, the unit that has begun gets the error, and
    # another process runs the rest.
    run: Callable[[Context, Sequence[str]], Iterator[tuple[str, Row | None]]]
    table: Callable[[Sequence[Row]], list[str]]
    # Texts of files to write beside the results, by file name extension.
    files: Callable[[Sequence[Row]], Mapping[str, str]] = lambda rows: {}


def profile_of_card(card: str) -> str | None:
    """Returns the name of fxopt's device profile for a card; None if it has none."""
    return next((name for name in _CARDS if name in card.lower()), None)


def each_unit(keys: Sequence[str], unit: Callable[[str], Row]) -> Iterator[tuple[str, Row | None]]:
    """Implements `run` for a stage with independent units. An exception in a unit becomes its row's
    error."""
    for key in keys:
        yield key, None
        try:
            yield key, unit(key)
        except Exception as error:
            yield key, {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}


def all_stages(folder: pathlib.Path = HERE / "stages") -> list[Stage]:
    """Returns the stages of a folder, the most valuable first."""
    stages = []
    for path in sorted(folder.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"stages.{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module  # dataclasses look for it there
        spec.loader.exec_module(module)
        stages.append(module.STAGE)
    return sorted(stages, key=lambda stage: stage.rank)
