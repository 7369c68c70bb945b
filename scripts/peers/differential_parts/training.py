"""Random training steps: forward, loss and backward in one graph, joint graphs, and AOTAutograd's
halves."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import torch
import torch.fx.traceback
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from differential_parts import blocks
from differential_parts.blocks import CLASSES, WIDTH, Block
from differential_parts.programs import Dice, Program, Unusable, features_of, features_of_node, give_marks, leaves_of
from differential_parts.soup import attributes_for_inputs, trace

MODES = ("fake", "fake", "fake", "real", "symbolic")
ENDS = ("gradients", "update", "accumulate", "clip", "foreach", "reuse")


class BackwardNodes:
    """The names of the nodes that a trace makes inside `with`. is_marking: nodes that autograd's
    engine runs there get PyTorch's marks."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.is_marking = False

    def __enter__(self) -> BackwardNodes:
        self._known = set(self._now())
        self._marking = torch.compiler._patch_engine_backward() if self.is_marking else contextlib.nullcontext()
        self._marking.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._marking.__exit__(*error)
        self.names |= set(self._now()) - self._known

    @staticmethod
    def _now() -> list[str]:
        mode = get_proxy_mode()
        return [] if mode is None else [node.name for node in mode.tracer.graph.nodes]


class Step:
    """A model of random blocks, its loss, and the use of its gradients."""

    def __init__(self, dice: Dice, *, others: Sequence[Block] = ()) -> None:
        """others: additional blocks to draw from."""
        self.dice = dice
        self.batch = dice.choice([3, 4, 5])
        kinds = [*blocks.PLAIN, *dice.sample(blocks.WRITING, 3), *dice.sample(blocks.BACKWARD_WRITING, 2)]
        kinds += [dice.choice(blocks.DRAWING)] if dice.chance(0.3) else []
        kinds += blocks.CHECKPOINTED if dice.chance(0.4) else ()
        kinds += others
        self.is_tagging = dice.chance(0.2)
        self.blocks: list[Block] = dice.choices(kinds, k=dice.randint(1, 4))
        if self.is_tagging:
            self.blocks.insert(dice.randrange(len(self.blocks) + 1), dice.choice(blocks.TAGGING))
        if dice.chance(0.3):
            self.blocks *= 2
        self.loss = dice.choice(list(blocks.LOSSES))
        self.chunks = 2 if dice.chance(0.15) else 1
        self.end = dice.choice(ENDS)
        self.extra = dice.choice(["none", "activation", "view", "both", "late view", "none"])
        # the activation that `extra` returns and `reuse` writes
        self.keeps = dice.randrange(len(self.blocks))
        self.parameters = [dice.tensor(size) * 0.5 for block in self.blocks for size in block.parameters]
        self.state = [dice.tensor(size).abs() for block in self.blocks for size in block.state]
        self.x = [dice.tensor((self.batch, WIDTH)) for _ in range(self.chunks)]
        self.target = torch.tensor([dice.randrange(CLASSES) for _ in range(self.batch)])
        self.backward = BackwardNodes()

    def inputs(self) -> list[Tensor]:
        extra = [torch.zeros_like(value) for value in self.parameters] if self.end == "accumulate" else []
        return [value.clone() for value in (*self.parameters, *self.state, self.target, *self.x, *extra)]

    def traced_inputs(self) -> list[Tensor]:
        given = self.inputs()
        for value in given[: len(self.parameters)]:
            value.requires_grad_()
        if not self.parameters:
            for value in self._parts(given)[3]:
                value.requires_grad_()
        return given

    def roles(self) -> list[str]:
        roles = ["parameter"] * len(self.parameters) + ["buffer"] * len(self.state)
        return roles + ["input"] * (len(self.inputs()) - len(roles))

    def _parts(self, given: Sequence[Tensor]) -> tuple:
        split = len(self.parameters), len(self.parameters) + len(self.state)
        rest = given[split[1] :]
        return given[: split[0]], given[split[0] : split[1]], rest[0], rest[1 : 1 + self.chunks], rest[1 + self.chunks :]

    def forward(self, h: Tensor, parameters: Sequence[Tensor], state: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """The last activation, and the one that is kept."""
        parameters, state, kept = list(parameters), list(state), h
        for place, block in enumerate(self.blocks):
            own = [parameters.pop(0) for _ in block.parameters] + [state.pop(0) for _ in block.state]
            h = block.function(h, *own)
            kept = h if place == self.keeps else kept
        return h, kept

    def __call__(self, *given: Tensor) -> tuple[Tensor | None, ...]:
        parameters, state, target, xs, buffers = self._parts(given)
        wanted = list(parameters) or list(xs)
        losses, total, kept = [], [None] * len(wanted), None
        for x in xs:
            h, kept = self.forward(x, parameters, state)
            losses.append(blocks.LOSSES[self.loss](h, target))
            with self.backward:
                found = torch.autograd.grad(losses[-1], wanted, allow_unused=True)
                total = [sum_of(old, new) for old, new in zip(total, found)]
        with self.backward, torch.no_grad():
            result = self._finish(wanted, total, buffers, kept)
        return (*losses, *result, *self._extra(kept))

    def _finish(self, wanted: list, total: list, buffers: list, kept: Tensor) -> list[Tensor | None]:
        known = [(value, gradient) for value, gradient in zip(wanted, total) if gradient is not None]
        if self.end == "update":
            for value, gradient in known:
                value.detach().sub_(gradient * 0.1)
            return []
        if self.end == "accumulate":
            for buffer, gradient in zip(buffers, total):
                if gradient is not None:
                    buffer.add_(gradient)
            return total[:1]
        if self.end == "clip" and known:
            norm = torch.stack([gradient.norm() for _, gradient in known]).norm()
            for _, gradient in known:
                gradient.mul_(1.0 / (norm + 1.0))
        if self.end == "foreach" and known:
            torch._foreach_mul_([gradient for _, gradient in known], 0.5)
            torch._foreach_add_([value.detach() for value, _ in known], [gradient for _, gradient in known], alpha=-0.1)
        if self.end == "reuse":
            kept = kept.detach()
            total = [*total, kept.view(-1) * 2.0]
            kept.mul_(3.0)
            total.append(kept + 1.0)
        return total

    def _extra(self, kept: Tensor) -> list[Tensor]:
        with self.backward if self.extra == "late view" else contextlib.nullcontext():
            activation, view = [kept], [kept.view(-1)[1:]]
        both = activation + view
        return {"none": [], "activation": activation, "view": view, "both": both, "late view": both}[self.extra]


def sum_of(old: Tensor | None, new: Tensor | None) -> Tensor | None:
    return new if old is None else old if new is None else old + new


def flb(dice: Dice) -> Program:
    """Forward, loss and backward by make_fx with torch.autograd.grad inside; mostly tagged,
    sometimes marked."""
    torch.fx.traceback.current_meta.clear()
    return whole_step(dice, Step(dice, others=gathering(dice, 0.15)), MODES, own=0.1)


def gathering(dice: Dice, share: float) -> Sequence[Block]:
    """Layers whose parameters are gathered: none, a few among others, or enough for buckets."""
    return dice.choice([2, 15]) * blocks.GATHERING if dice.chance(share) else ()


def whole_step(dice: Dice, step: Step, modes: Sequence[str], *, own: float) -> Program:
    """A step as one graph. own: the share that carries PyTorch's own marks of backward."""
    mode, is_own = dice.choice(modes), dice.chance(own)
    context = torch.fx.traceback.preserve_node_meta() if step.is_tagging or dice.chance(0.2) else contextlib.nullcontext()
    with context:
        graph_module = traced(_marking(step) if is_own else step, step.traced_inputs(), mode, is_own=is_own)
    program = Program(graph_module, step.inputs, told={"kind": "forward_loss_backward"})
    if dice.chance(0.6):
        program.told["roles"] = step.roles()
    marks = dice.chance(0.5) and not is_own
    backward = {node for node in graph_module.graph.nodes if node.name in step.backward.names}
    if dice.chance(0.85) and not step.is_tagging or marks:
        give_marks(graph_module, dice, backward, marks=marks, tags=not step.is_tagging or dice.chance(0.5))
    program.features |= {"forward-loss-backward", f"make_fx {mode}", *_step_features(step)} | features_of(graph_module)
    program.features |= ({"PyTorch's own marks"} if is_own else set()) | _tag_features(program.features, marks=marks or is_own)
    if any(node in backward and "in-place" in features_of_node(node) for node in graph_module.graph.nodes):
        program.features.add("write in backward")
    return program


def _marking(function: Callable[..., object]) -> Callable[..., object]:
    """Marks every node that autograd's engine runs, including gradients inside forward."""

    def marking(*given: object) -> object:
        with torch.compiler._patch_engine_backward():
            return function(*given)

    return marking


def traced(function: Callable[..., object], inputs: list[object], mode: str, *, is_own: bool) -> GraphModule:
    """is_own: trace as PyTorch's marks of backward need it."""
    with contextlib.ExitStack() as stack:
        if is_own:
            stack.enter_context(torch.fx.traceback.preserve_node_meta())
            stack.enter_context(torch.autograd.set_multithreading_enabled(False))
            stack.enter_context(torch.compiler._non_strict_tracing_context())
        return trace(function, inputs, mode, False)


def _tag_features(features: set[str], *, marks: bool) -> set[str]:
    return {"tags with marks" if marks else "tags without marks"} if "tags" in features else set()


def _step_features(step: Step) -> set[str]:
    found = {"two backward regions"} if step.chunks > 1 else set()
    if step.loss.startswith("fused"):
        found.add("fused cross entropy")
    if any(block in blocks.CHECKPOINTED + blocks.TAGGING for block in step.blocks):
        found.add("checkpoint")
    return found


def joint(dice: Dice) -> Program:
    """A joint graph: gradients of the outputs for given tangents, in-place writes kept."""
    torch.fx.traceback.current_meta.clear()
    drawing = 2 * blocks.DRAWING if dice.chance(0.3) else ()
    step = Step(dice, others=(*gathering(dice, 0.4), *drawing) + (2 * blocks.READING_FIRST if dice.chance(0.3) else ()))
    step.chunks = 1
    # state whose new value is an output
    averages = [dice.tensor((WIDTH,))] if dice.chance(0.2) else []
    step.state += averages
    # backward reads it; the first is refused
    read = dice.choice([torch.Tensor.detach, torch.tanh, torch.tanh, None, None, None])

    def function(primals: list[Tensor], tangents: list[Tensor]) -> tuple:
        parameters, state, target, xs, _ = step._parts(primals)
        h, kept = step.forward(xs[0], parameters, state)
        new = [state[-1] * 0.9 + h.detach().mean(0) * 0.1] if averages else []
        if averages:
            h = h * read(state[-1]) if read else h + state[-1]
        wanted = list(parameters) or [xs[0]]
        outputs = [h, blocks.LOSSES[step.loss](h, target)]
        with step.backward:
            found = torch.autograd.grad(outputs, wanted, tangents, allow_unused=True)
        return (*new, *outputs, *step._extra(kept)), found

    return joint_of(dice, step, function, MODES, has_averages=bool(averages), own=0.1)


def joint_of(
    dice: Dice,
    step: Step,
    function: Callable[[list[Tensor], list[Tensor]], tuple],
    modes: Sequence[str],
    *,
    has_averages: bool = False,
    own: float = 0.0,
    needs_marks: bool = False,
) -> Program:
    """The joint graph of function(primals, tangents), which returns outputs of a step and its
    gradients. has_averages: the first output is the new value of the last state. own: the share
    that carries PyTorch's own marks of backward. needs_marks: parts of backward depend on no
    tangent."""
    tangents = [dice.tensor((step.batch, WIDTH)), dice.tensor(())]
    mode, is_own = dice.choice(modes), dice.chance(own) and not needs_marks
    # AOTAutograd marks the outer backward only
    step.backward.is_marking = is_own and dice.chance(0.85)
    function = _marking(function) if is_own and not step.backward.is_marking else function
    graph_module = traced(function, [step.traced_inputs(), tangents], mode, is_own=is_own)

    def inputs() -> list[object]:
        return [*step.inputs(), *(tangent.clone() for tangent in tangents)]

    program = _flat(graph_module, inputs)
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    last = placeholders[-2:]
    if not all("tangent" in node.name for node in last):
        raise Unusable("a tangent has no such name")
    average = placeholders[len(step.parameters) + len(step.state) - 1]
    if dice.chance(0.2):
        buffers = [len(step.parameters) + place for place in range(len(step.state) + 2)]
        attributes_for_inputs(program, dice, [place for place in buffers if not has_averages or placeholders[place] is not average])
        graph_module.recompile()
    roles = {node.name: {"role": "tangent"} for node in last}
    if dice.chance(0.7):
        kept = set(graph_module.graph.find_nodes(op="placeholder"))
        roles |= {node.name: {"role": role} for node, role in zip(placeholders, step.roles()) if node in kept}
    program.told |= {"kind": "joint", "roles": roles}
    gradients = len(step.parameters) or 1
    program.num_forward_outputs = forward = len(leaves_of(graph_module)) - gradients
    if has_averages:
        outputs = [{"role": "mutation", "of": average.name}, *["user"] * (forward - 1), *["gradient"] * gradients]
        program.told |= {"outputs": outputs, "num_forward_outputs": forward}
    backward = {node for node in graph_module.graph.nodes if node.name in step.backward.names}
    marks = (dice.chance(0.5) or needs_marks) and not is_own
    program.backward = frozenset(node.name for node in (*backward, *last))
    if marks and step.extra == "late view" and "num_forward_outputs" not in program.told:
        # its mark makes the view a gradient, and nothing contradicts it
        program.num_forward_outputs -= 1
    give_marks(graph_module, dice, backward, marks=marks, tags=dice.chance(0.7))
    program.features |= {"joint", f"make_fx {mode}", *_step_features(step)} | features_of(graph_module)
    program.features |= ({"PyTorch's own marks"} if is_own else set()) | _tag_features(program.features, marks=marks or is_own)
    return program


def _flat(graph_module: GraphModule, inputs: Callable[[], list[object]]) -> Program:
    """Removes the structure of arguments: the graph takes and returns a flat list."""
    graph_module.graph.set_codegen(torch.fx.graph.CodeGen())
    for place, node in enumerate(graph_module.graph.find_nodes(op="placeholder")):
        if place >= len(inputs()) - 2:
            node.name = node.target = f"tangents_{place - len(inputs()) + 3}"
    graph_module.recompile()
    return Program(graph_module, inputs)
