"""The file of results: a JSON list with one row a line. It is complete even if the program is
killed."""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Iterable

Row = dict[str, object]


class Results:
    """Rows by stage, key and machine. A new row replaces an old one with the same three."""

    def __init__(self, path: pathlib.Path) -> None:
        """Reads the file if it exists, and removes the temporary files of a killed run. Raises
        ValueError if the file holds no results."""
        self.path = path
        self.rows: list[Row] = []
        for left in path.parent.glob(f".{path.name}.*"):
            left.unlink()
        if path.exists():
            self.rows = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(self.rows, list) or not all(isinstance(row, dict) for row in self.rows):
                raise ValueError(f"{path} is not a list of rows; pass another file to --out")

    def add(self, row: Row) -> None:
        self.rows = [other for other in self.rows if identity(other) != identity(row)] + [row]
        self.write()

    def of(self, stage: str, machine: Row) -> list[Row]:
        return [row for row in self.rows if row["stage"] == stage and row["machine"] == machine]

    def done(self, stage: str, machine: Row) -> set[str]:
        """Returns the keys with a result. Keys with an error are left out, so the next run retries
        them."""
        return {str(row["key"]) for row in self.of(stage, machine) if "error" not in row}

    def write(self) -> None:
        """Writes the file by renaming a temporary one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with beside.open("w", encoding="utf-8") as file:
            file.write(lines_of(self.rows))
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.path)


def identity(row: Row) -> tuple[object, ...]:
    return row["stage"], row["key"], json.dumps(row["machine"], sort_keys=True)


def lines_of(rows: Iterable[Row]) -> str:
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


def table(heads: Iterable[str], cells: Iterable[Iterable[object]]) -> list[str]:
    """Returns the lines of a Markdown table with aligned columns."""
    rows = [[str(head) for head in heads], *([str(cell) for cell in row] for row in cells)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]

    def line(row: list[str]) -> str:
        return f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths))} |".rstrip()

    return [line(rows[0]), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, rows[1:])]


def slug(card: object) -> str:
    """Returns a card's name as used in file names."""
    return re.sub(r"[^a-z0-9]+", "-", str(card).lower()).strip("-")


def gib(value: object) -> str:
    """Prints bytes as GiB, small numbers as MiB, and "-" for anything but a number."""
    if not isinstance(value, (int, float)):
        return "-"
    return f"{value / 2**30:.3f}" if value >= 2**26 else f"{value / 2**20:.3f} MiB"


def ratio(measured: object, predicted: object) -> str:
    if not isinstance(measured, (int, float)) or not isinstance(predicted, (int, float)) or predicted == 0:
        return "-"
    return f"{measured / predicted:.4f}"
