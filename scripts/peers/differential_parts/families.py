"""Maps a seed to a program: the families, their weights, and inputs of other sizes for symbolic
graphs."""

from __future__ import annotations

import contextlib
import io
import operator
from collections.abc import Callable

import sympy
import torch
from torch import Tensor

from differential_parts import modules, nested, observe, soup, stages, training
from differential_parts.programs import Dice, Program, Unusable, share_memory

FAMILIES: dict[str, tuple[Callable[[Dice], Program], int]] = {
    "soup": (soup.soup, 44),
    "forward-loss-backward": (training.flb, 32),
    "joint": (training.joint, 8),
    "dynamo": (modules.dynamo, 13),
    "torch.export": (modules.exported, 7),
    "AOTAutograd": (modules.aot, 6),
    "messages": (stages.sends, 9),
    "nested backward": (nested.nested, 9),
    "pairs": (soup.pairs, 0),  # every tenth seed
}


def make(seed: int, family: str | None = None) -> tuple[Program, str]:
    """The program of a seed, and its family. Raises Unusable if the dice gave none."""
    dice = Dice(seed)
    names = list(FAMILIES)
    drawn = dice.choices(names, [FAMILIES[name][1] for name in names])[0]
    family = family or ("pairs" if seed % 10 == 9 else drawn)
    torch.fx.traceback.current_meta.clear()
    torch.manual_seed(seed)
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        program = FAMILIES[family][0](dice)
        if dice.chance(0.7):
            _scatter_getitems(program, dice)
        if "make_fx symbolic" in program.features:
            program.features.add("symbolic shapes")
            _resize(program, dice)
    return program, family


def _scatter_getitems(program: Program, dice: Dice) -> None:
    """Moves getitems of non-tensors down, at most to their first use."""
    graph_module = program.graph_module
    nodes = {node: place for place, node in enumerate(graph_module.graph.nodes)}
    for node in list(nodes):
        source = node.args[0] if node.target is operator.getitem else None
        if source is None or isinstance(source.meta.get("val", source.meta.get("example_value")), Tensor | None) or not node.users:
            continue
        reader = min(node.users, key=nodes.__getitem__)
        if dice.chance(0.7) and nodes[reader] > nodes[node] + 1:
            reader.prepend(node)
            program.features.add("getitems moved down")
    graph_module.recompile()


def _resize(program: Program, dice: Dice) -> None:
    """Chooses other sizes for the symbols of the graph, if its guards allow them and the graph runs
    with them."""
    graph_module = program.graph_module
    given = program.inputs()
    values: dict[sympy.Symbol, int] = {}
    sizes = []
    if share_memory(given):
        return
    for node, value in zip(graph_module.graph.find_nodes(op="placeholder"), given):
        fake = node.meta.get("val")
        if not isinstance(fake, Tensor):
            return
        sizes.append([_new_size(size, values, dice) for size in fake.shape])
    if not values or not _guards_hold(graph_module, values):
        return
    resized = [_of_size(value, size, dice) for value, size in zip(given, sizes)]
    if [value.shape for value in resized] == [value.shape for value in given]:
        return

    def inputs() -> list[object]:
        return [value.clone() for value in resized]

    with observe.kept(observe.attributes_of(graph_module)):
        if observe.execute(graph_module, inputs(), {}).error is None:
            program.inputs = inputs
            program.features.add("other sizes")


def _new_size(size: object, values: dict[sympy.Symbol, int], dice: Dice) -> int:
    if isinstance(size, int):
        return size
    expression = size.node.expr
    for symbol in sorted(expression.free_symbols, key=str):
        values.setdefault(symbol, dice.choice([2, 3, 4, 5, 6]))
    return int(expression.subs(values))


def _guards_hold(graph_module: torch.fx.GraphModule, values: dict[sympy.Symbol, int]) -> bool:
    env = getattr(graph_module, "shape_env", None)
    return env is None or all(guard.expr.subs(values) == sympy.true for guard in env.guards)


def _of_size(value: Tensor, size: list[int], dice: Dice) -> Tensor:
    if value.dtype == torch.int64:
        return torch.tensor([dice.randrange(2) for _ in range(size[0])]) if size else value.clone()
    return dice.tensor(size)


__all__ = ["FAMILIES", "Unusable", "make"]
