"""Graphs of PyTorch's other tracers: Dynamo, torch.export, AOTAutograd."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.fx import GraphModule
from torch.utils.checkpoint import checkpoint

from differential_parts import blocks, steps
from differential_parts.observe import attributes_of
from differential_parts.programs import Dice, Program, Unusable, asking_gradients, features_of, give_marks
from differential_parts.soup import make_inputs, record
from differential_parts.tape import Tape, tensors_in
from differential_parts.training import Step


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Silences compiler failures: the program is then skipped."""
    torch._dynamo.reset()
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    except Unusable:
        raise
    except Exception as error:  # anything that PyTorch raises
        raise Unusable(f"compiler: {type(error).__name__}") from error
    finally:
        logging.disable(logging.NOTSET)


# ---- Dynamo


@torch.compiler.nested_compile_region
def _region(a: Tensor) -> Tensor:
    return a.cos() + a.sin()


DYNAMO_ONLY = (
    lambda a: a[torch.tensor([0, 1])], lambda a: a[[0, 1]], lambda a: a[a > 0], lambda a: a[..., 0], lambda a: a[0:1],
    lambda a: a[[1, 0]], lambda a: a[None], lambda a: a[0, 1:], lambda a: a[torch.tensor([1])], lambda a: a[[0]].add_(1.0),
    lambda a: a[torch.tensor([True, False])] if a.shape[0] == 2 else a[[0]], lambda a: a.sum(dim=0), lambda a: a.size(0) * a,
    lambda a: checkpoint(lambda x: x.sin() * 2.0, a, use_reentrant=False), lambda a: _region(a),
)  # fmt: skip


SET_ITEMS = (
    lambda a: a.__setitem__(0, 2.0), lambda a: a.__setitem__([0, 1], 3.0), lambda a: a.__setitem__(slice(0, 1), 4.0),
    lambda a: a.__setitem__(torch.tensor([0]), 5.0), lambda a: a.__setitem__(..., 1.0), lambda a: a.__setitem__(a > 0, 0.5),
)  # fmt: skip


def _index_step(tape: Tape) -> None:
    place = tape.pick(lambda value: value.dim() >= 1 and value.shape[0] >= 2)
    if place is None:
        return
    if tape.dice.chance(0.3):
        tape.do(tape.dice.choice(SET_ITEMS), place)
        tape.written.append(place)
    else:
        tape.do(tape.dice.choice(DYNAMO_ONLY), place)
        if tape.dice.chance(0.4):
            steps.KINDS["write"](tape)
            tape.again()


steps.KINDS["dynamo index"] = _index_step


def _source(tape: Tape, outputs: Sequence[int]) -> Callable[..., tuple]:
    """The tape as straight-line Python code, which Dynamo reads."""
    names = ", ".join(f"v{place}" for place in range(tape.inputs))
    lines, known, place = [f"def function({names}):"], {}, tape.inputs
    probe = Tape(tape.dice, [value.clone() for value in tape.first])
    for number, step in enumerate(tape.steps):
        known[f"f{number}"] = step.function
        call = f"f{number}({', '.join(f'v{read}' for read in step.reads)})"
        result = step.function(*(probe.pool[read] for read in step.reads))
        made = tensors_in(result)
        probe.pool.extend(made)
        if isinstance(result, Tensor):
            lines.append(f"    v{place} = {call}")
        else:
            lines.append(f"    r{number} = {call}")
            lines += [f"    v{place + i} = r{number}[{i}]" for i in range(len(made))]
        place += len(made)
    lines.append(f"    return ({''.join(f'v{output}, ' for output in outputs)})")
    exec("\n".join(lines), known)  # noqa: S102
    return known["function"]


def dynamo(dice: Dice) -> Program:
    """A graph that torch.compile gives to a backend: method calls, Python operators, indexes of
    every kind."""
    allowed = ["pure", "view", "nothing", "again", "write", "pairs", "dynamo index", "dynamo index"]
    rare = ["binary", "reduction", "binary write", "size change", "draw", "index", "join", "factory", "types", "out="]
    kinds = [*allowed, *dice.sample(rare, 3)]
    has_gradients = dice.chance(0.35)  # leaves have gradients, and nothing may write them
    if has_gradients:
        kinds = steps.FOR_GRADIENTS
    inputs = make_inputs(dice, dice.choices(((2, 4), (4,), (4, 2), (2, 2)), k=dice.randint(1, 2)))
    tape, outputs = record(dice, inputs(), kinds, dice.randint(3, 12))
    tape.first = inputs()
    torch.manual_seed(0)
    function = _source(tape, outputs)
    if has_gradients:
        inputs = asking_gradients(inputs)
    graph_module = _captured(function, inputs(), dynamic=dice.chance(0.15), has_gradients=has_gradients)
    if sum(node.op == "placeholder" for node in graph_module.graph.nodes) != len(inputs()):
        places = _used_inputs(graph_module, len(inputs()))
        every = inputs
        inputs = lambda: [every()[place] for place in places]  # noqa: E731
    program = Program(graph_module, inputs)
    if dice.chance(0.15) and not has_gradients:
        nodes = [node for node in graph_module.graph.nodes if node.op in ("call_function", "call_method")]
        give_marks(graph_module, dice, nodes[dice.randrange(len(nodes)) :] if nodes else (), marks=True)
        program.told["kind"] = "forward_loss_backward"
    program.features |= {"dynamo"} | features_of(graph_module)
    program.has_gradients = has_gradients
    program.features |= {"dynamo with gradients"} if has_gradients else set()
    return program


def _captured(function: Callable, inputs: list[Tensor], *, dynamic: bool, has_gradients: bool) -> GraphModule:
    """The only graph of the function."""
    got: list[GraphModule] = []

    def backend(graph_module: GraphModule, example: object) -> Callable:
        got.append(graph_module)
        return graph_module.forward

    with quietly(), torch.set_grad_enabled(has_gradients):
        torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic)(*inputs)
    if len(got) != 1:
        raise Unusable("no graph")
    return got[0]


def _used_inputs(graph_module: GraphModule, count: int) -> list[int]:
    """The function's inputs that the graph takes, found by Dynamo's names for them."""
    places = []
    for node in graph_module.graph.find_nodes(op="placeholder"):
        digits = node.name.lower().rpartition("v")[2].strip("_")
        if not digits.isdigit() or int(digits) >= count:
            raise Unusable("an input that is no argument")
        places.append(int(digits))
    return places


# ---- torch.export


class Model(nn.Module):
    """Random blocks as a module; state in buffers, and regions that autograd must not go
    through."""

    def __init__(self, dice: Dice) -> None:
        super().__init__()
        kinds = [*blocks.PLAIN, *dice.sample(blocks.WRITING, 3), *blocks.DRAWING[:1]]
        self.blocks = dice.choices(kinds, k=dice.randint(1, 3))
        for place, block in enumerate(self.blocks):
            for number, size in enumerate(block.parameters):
                self.register_parameter(f"p{place}_{number}", nn.Parameter(dice.tensor(size) * 0.5))
            for number, size in enumerate(block.state):
                self.register_buffer(f"s{place}_{number}", dice.tensor(size).abs())
        self.stop = dice.choice(["none", "detach", "no_grad", "alias", "straight through"])
        self.returns = dice.choice(["one", "views", "input"])

    def forward(self, x: Tensor) -> object:
        h = x
        for place, block in enumerate(self.blocks):
            own = [getattr(self, f"p{place}_{number}") for number in range(len(block.parameters))]
            h = block.function(h, *own, *(getattr(self, f"s{place}_{number}") for number in range(len(block.state))))
        if self.stop == "detach":
            h = h.detach() * h + h.sin()
        elif self.stop == "no_grad":
            with torch.no_grad():
                scale = h.exp().clamp(max=2.0)
            h = h * scale
        elif self.stop == "alias":
            h = h.view(h.shape).detach() - h.sin() + h.view_as(h)
        elif self.stop == "straight through":
            h = h + (h.round() - h).detach()
        return {"one": h, "views": (h, h.view(-1)), "input": (h, x, h.detach())}[self.returns]


def exported(dice: Dice) -> Program:
    """A training module of torch.export; its gradients are compared."""
    model, batch = Model(dice), dice.choice([3, 4])
    x = dice.tensor((batch, blocks.WIDTH))
    dynamic = dice.chance(0.3)
    shapes = ({0: torch.export.Dim("batch", min=2, max=64)},) if dynamic else None
    is_inference = dice.chance(0.25)
    with quietly():
        program = torch.export.export(model.train(), (x,), dynamic_shapes=shapes, strict=dice.chance(0.3))
        if is_inference:
            program = program.run_decompositions(None if dice.chance(0.5) else {})
        graph_module = program.module(check_guards=False)
    size = dice.choice([2, 5, 7]) if dynamic else batch
    given = dice.tensor((size, blocks.WIDTH))
    result = Program(graph_module, lambda: [given.clone().requires_grad_()], has_gradients=True)
    _plain_calls(graph_module)
    result.features |= {"torch.export", f"stop: {model.stop}"} | features_of(graph_module)
    if dynamic:
        result.features |= {"symbolic shapes"} | ({"other sizes"} if size != batch else set())
    result.parameters = [path for path, value in attributes_of(graph_module).items() if isinstance(value, nn.Parameter)]
    return result


def _plain_calls(graph_module: GraphModule) -> None:
    """Makes the graph callable with a flat list of inputs."""
    graph_module.graph.set_codegen(torch.fx.graph.CodeGen())
    graph_module.recompile()


# ---- AOTAutograd


def aot(dice: Dice) -> Program:
    """A forward or backward graph of AOTAutograd, or its joint graph, with inputs as the wrapper
    passes them."""
    step = Step(dice)
    step.chunks, step.end = 1, "gradients"
    caught: list[tuple[GraphModule, list[list[object]]]] = []

    def keep(graph_module: GraphModule, example: object) -> Callable:
        calls: list[list[object]] = []
        caught.append((graph_module, calls))

        def call(given: list[object]) -> object:
            given = list(given)
            calls.append([value.detach().clone() if isinstance(value, Tensor) else value for value in given])
            return graph_module(*given)

        call._boxed_call = True
        return call

    def function(*given: Tensor) -> Tensor:
        parameters, state, target, xs, _ = step._parts(given)
        h, kept = step.forward(xs[0], parameters, state)
        return blocks.LOSSES[step.loss](h, target), *step._extra(kept)

    from torch._functorch.aot_autograd import aot_function
    from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition

    partition = dice.choice([default_partition, min_cut_rematerialization_partition])
    with quietly():
        compiled = aot_function(function, keep, keep, partition, keep_inference_input_mutations=True)
        compiled(*step.traced_inputs())[0].backward()
    graph_module, calls = dice.choice(caught)
    if not calls:
        raise Unusable("a graph that was not called")

    def inputs() -> list[object]:
        return [value.clone() if isinstance(value, Tensor) else value for value in calls[0]]

    _plain_calls(graph_module)
    program = Program(graph_module, inputs, told={"kind": "forward" if graph_module is caught[0][0] else "backward"})
    program.features |= {"AOTAutograd"} | features_of(graph_module)
    return program
