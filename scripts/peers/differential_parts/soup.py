"""Random straight-line programs, traced by make_fx in its modes."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from differential_parts import steps
from differential_parts.collectives import join_group
from differential_parts.observe import attributes_of
from differential_parts.programs import (
    FAILING,
    WORLD,
    Dice,
    Program,
    Unusable,
    asking_gradients,
    aten,
    features_of,
    give_marks,
    returns_its_argument,
    share_memory,
    writes,
)
from differential_parts.tape import Tape

SIZES = ((2, 4), (4,), (4, 2), (2, 2), (4, 4), (8,), (2, 2, 2), (1, 4), (2, 4))
# (tracing_mode, pre_dispatch) and its weight
MODES = ((("fake", False), 9), (("fake", True), 5), (("real", False), 2), (("real", True), 4), (("symbolic", False), 3))


def make_inputs(dice: Dice, sizes: list[tuple[int, ...]]) -> Callable[[], list[Tensor]]:
    """Inputs, some of which may be views of one another."""
    held = [dice.tensor(size, special=dice.chance(0.2)) for size in sizes]
    shared = dice.chance(0.4) and held[0].numel() >= held[-1].numel() and len(held) > 1
    layout = dice.choice(["same", "flat", "flat", "flat"])

    def inputs() -> list[Tensor]:
        result = [value.clone() for value in held]
        if shared:
            last = result[-1]
            result[-1] = result[0] if layout == "same" else result[0].view(-1)[: last.numel()].view(last.shape)
        return result

    return inputs


def record(dice: Dice, inputs: list[Tensor], kinds: list[str], length: int) -> tuple[Tape, list[int]]:
    tape = Tape(dice, inputs)
    if tape.has_shared_inputs and "around" in kinds:
        kinds = [*kinds, *["around"] * 5]
    torch.manual_seed(dice.randrange(2**31))
    for _ in range(length):
        kind = dice.choice(kinds)
        steps.KINDS[kind](tape)
        if kind in steps.RARE and dice.chance(0.35):
            tape.again(1)
    if not tape.steps:
        raise Unusable("no step runs")
    return tape, tape.choose_outputs()


def trace(function: Callable[..., object], inputs: list[object], mode: str, pre_dispatch: bool) -> GraphModule:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            graph_module = make_fx(function, tracing_mode=mode, pre_dispatch=pre_dispatch, _allow_non_fake_inputs=True)(*inputs)
        except Exception as error:  # programs that PyTorch's tracer refuses are skipped
            raise Unusable(f"make_fx: {type(error).__name__}") from error
    if any(map(torch._C._functorch.is_functorch_wrapped_tensor, attributes_of(graph_module).values())):
        raise Unusable("make_fx: a tensor of vmap among the constants")
    return graph_module


def soup(dice: Dice) -> Program:
    """Random steps; sometimes with marks, tags, attributes instead of inputs, copies of nodes, or
    missing values."""
    kinds = [*steps.COMMON, *dice.sample(steps.RARE, dice.randint(2, 5))]
    kinds += dice.choices(kinds, k=3)
    mode, pre_dispatch = dice.choices([mode for mode, _ in MODES], [weight for _, weight in MODES])[0]
    has_gradients = pre_dispatch and dice.chance(0.35)  # its graph has the changes of gradient mode
    kinds = steps.FOR_GRADIENTS if has_gradients else kinds
    if "collective" in kinds:
        join_group(WORLD)
    return of_steps(dice, kinds, 22, mode, pre_dispatch, has_gradients, bare=0.35)


def pairs(dice: Dice) -> Program:
    """Nearly equal calls, close together and often without values: cases for the rules of
    unrecorded graphs."""
    kinds = ["unrecorded", "unrecorded", "unrecorded", "around", "view", "write"]
    program = of_steps(dice, kinds, 10, "fake", dice.chance(0.5), False, bare=0.7)
    _by_outs(program)
    return program


def of_steps(
    dice: Dice, kinds: list[str], longest: int, mode: str, pre_dispatch: bool, has_gradients: bool, *, bare: float
) -> Program:
    inputs = make_inputs(dice, dice.choices(SIZES, k=dice.randint(1, 3)))
    if share_memory(inputs()):
        # values of a real trace have no storages that could show it
        mode = "fake" if mode == "real" else mode
    tape, outputs = record(dice, inputs(), kinds, dice.randint(3, longest))
    is_list = dice.chance(0.5)

    def function(*given: Tensor) -> object:
        result = tape.replay(given, outputs)
        return result if is_list else tuple(result)

    if has_gradients:
        inputs = asking_gradients(inputs)
    graph_module = trace(function, inputs(), mode, pre_dispatch)
    program = Program(graph_module, inputs, has_gradients=has_gradients)
    program.features |= {"pre_dispatch with gradients"} if has_gradients else set()
    program.features |= {f"make_fx {mode}"} | ({"pre_dispatch"} if pre_dispatch else set())
    vary(program, dice, bare)
    program.features |= features_of(graph_module)
    return program


def vary(program: Program, dice: Dice, bare: float) -> None:
    """Applies changes that keep the computed results, including some that no trace would have made.
    bare: the share of programs that look written by hand."""
    graph_module = program.graph_module
    is_bare = dice.chance(bare)
    if is_bare or dice.chance(0.5):
        _by_arguments(program, dice)
    if is_bare or dice.chance(0.4):
        _by_indexes(program, dice)
    if dice.chance(0.2):
        attributes_for_inputs(program, dice)
    # a graph with a backward is not differentiated again
    if dice.chance(0.45) and not program.has_gradients:
        _mark(program, dice)
    if is_bare:
        share = dice.choice([0.6, 1.0, 1.0])
        kept = "placeholder" if share_memory(program.inputs()) else ""  # only their values show it
        for node in graph_module.graph.nodes:
            if dice.chance(share) and node.op != kept:
                node.meta.pop("val", None)
        program.features.add("no values")
    if dice.chance(0.15):
        _fail(program, dice)
    graph_module.recompile()


def _by_arguments(program: Program, dice: Dice) -> None:
    """Users of an in-place op's result read the changed argument instead, which is the same
    tensor."""
    for node in program.graph_module.graph.nodes:
        if not returns_its_argument(node):
            continue
        for user in list(node.users):
            if dice.chance(0.6):
                user.replace_input_with(node, node.args[0])
                program.features.add("read by argument")


def _by_outs(program: Program) -> None:
    """Users of an out-variant's result read the given tensor instead, which is the same one."""
    for node in program.graph_module.graph.nodes:
        if isinstance(given := node.kwargs.get("out"), Node):
            node.replace_all_uses_with(given, delete_user_cb=lambda user: user.op != "output")
    program.graph_module.recompile()


def _by_indexes(program: Program, dice: Dice) -> None:
    """Rewrites selects and slices of the first dimension as operator.getitem, as in Python code."""
    for node in program.graph_module.graph.nodes:
        if node.target not in (aten.select.int, aten.slice.Tensor) or not dice.chance(0.8):
            continue
        source, dim, *told = node.args if len(node.args) > 1 else (*node.args, 0)
        if dim != 0:
            continue
        index = told[0] if node.target is aten.select.int else slice(*told) if len(told) > 1 else slice(*told, None)
        node.target, node.args = operator.getitem, (source, index)
        program.features.add("getitem of a tensor")


def _fail(program: Program, dice: Dice) -> None:
    """Adds an assertion that fails: a graph that raises before must raise after."""
    graph = program.graph_module.graph
    nodes = [node for node in graph.nodes if node.op == "placeholder" and isinstance(node.meta.get("val"), Tensor)]
    places = [node for node in graph.nodes if node.op in ("call_function", "output")]
    if not nodes:
        return
    with graph.inserting_before(dice.choice(places)):
        large = graph.call_function(aten.gt.Scalar, (dice.choice(nodes), 1e9))
        held = graph.call_function(aten.any.default, (large,))
        graph.call_function(aten._assert_async.msg, (held, FAILING))
    program.features.add("failing assertion")


def _mark(program: Program, dice: Dice) -> None:
    """Marks a cut: forward before it, backward from it on."""
    nodes = list(program.graph_module.graph.nodes)
    calls = [place for place, node in enumerate(nodes) if node.op in ("call_function", "call_method")]
    if len(calls) < 2:
        return
    marked = [place for place in calls[1:] if writes(nodes[place])]
    middle = calls[len(calls) // 3 :] or calls[1:]
    first = dice.choice(marked) if marked and dice.chance(0.5) else dice.choice(middle)
    give_marks(program.graph_module, dice, nodes[first:], marks=True)
    program.told["kind"] = "forward_loss_backward"


def attributes_for_inputs(program: Program, dice: Dice, places: Sequence[int] | None = None) -> None:
    """Replaces some inputs by buffers, or some of the inputs at these places."""
    graph_module = program.graph_module
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    given = program.inputs()
    if share_memory(given):
        return
    chosen = [place for place in (range(len(placeholders)) if places is None else places) if dice.chance(0.5)]
    for place in chosen:
        node = placeholders[place]
        graph_module.register_buffer(f"buffer_{place}", given[place].detach().clone())
        with graph_module.graph.inserting_before(_first_call(graph_module)):
            attribute = graph_module.graph.get_attr(f"buffer_{place}")
        attribute.meta = dict(node.meta)
        node.replace_all_uses_with(attribute)
        graph_module.graph.erase_node(node)
    rest = [place for place in range(len(placeholders)) if place not in chosen]
    program.inputs = _Some(program.inputs, rest)
    if chosen:
        program.features.add("attributes")


class _Some:
    """A subset of the inputs that a function makes."""

    def __init__(self, inputs: Callable[[], list[object]], places: list[int]) -> None:
        self.inputs, self.places = inputs, places

    def __call__(self) -> list[object]:
        made = self.inputs()
        return [made[place] for place in self.places]


def _first_call(graph_module: GraphModule):
    return next(node for node in graph_module.graph.nodes if node.op != "placeholder")
