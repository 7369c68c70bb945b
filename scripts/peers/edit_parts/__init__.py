"""Parts of edits.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from differential_parts.programs import Dice

Edit = Callable[[Any, Dice], bool]  # False: the graph or pair has no place for it


class Edits(dict[str, Edit]):
    """Edits by name, in the order of their tables. subject: returns the argument that the functions
    of at() get for a graph or pair."""

    def __init__(self, subject: Callable[[Any], Any] = lambda given: given) -> None:
        super().__init__()
        self.subject = subject

    def whole(self, name: str) -> Callable[[Edit], Edit]:
        """Registers a function as an edit."""

        def add(function: Edit) -> Edit:
            self[name] = function
            return function

        return add

    def at(self, name: str, places: Callable[[Any], list]) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Registers an edit of one place, drawn from a list of nodes or of tuples of arguments."""

        def add(change: Callable[..., None]) -> Callable[..., None]:
            def at_one(given: Any, dice: Dice) -> bool:
                found = places(self.subject(given))
                if found:
                    place = dice.choice(found)
                    change(self.subject(given), *(place if isinstance(place, tuple) else (place,)))
                return bool(found)

            self[name] = at_one
            return change

        return add
