"""Lets backward repeat the random draws of forward, as PyTorch's partitioners do.

A random operator draws other numbers when it runs again. Forward therefore saves the state of the
generator, and backward draws from the saved state:

    saved = run_and_save_rng_state(op, ...)     the state before the draw, and the drawn value
    value = run_with_rng_state(saved[0], op, ...)

expose_states() writes both calls into a joint graph before the cut. The second call has no effect
on the generator, so fxopt may recompute it. use_saved_draws() removes the second call from forward
after the cut, because saved[1] is the same value.
"""

from __future__ import annotations

import operator
from collections.abc import Collection

import torch
from torch import Tensor
from torch._guards import detect_fake_mode
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import CheckpointPolicy

__all__ = ["expose_states", "exposed_states", "hide_states", "use_saved_draws"]

_RECOMPUTED = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)
_CUDA_STATE_BYTES = 16  # torch.cuda.get_rng_state(): the seed and the offset, 8 bytes each
_OWN_META = ("recompute", "val", "tensor_meta", "custom")  # metadata of the value, not of the place in the model


def _drawing_device(node: Node) -> str | None:
    """Returns the type of the device on which a tagged random call draws. Returns None for other
    calls, and for devices whose generator has no known state."""
    op = node.target
    if not isinstance(op, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in op.tags:
        return None
    if node.meta.get("recompute") not in _RECOMPUTED or _has_no_dropout(node):
        return None
    devices = {leaf.device.type for leaf in tree_leaves(node.meta.get("val")) if isinstance(leaf, Tensor)}
    return next(iter(devices)) if devices in ({"cpu"}, {"cuda"}) else None


def _has_no_dropout(node: Node) -> bool:
    """Returns whether the call is an attention with dropout_p=0, which draws nothing."""
    for place, argument in enumerate(node.target._schema.arguments):
        if argument.name == "dropout_p":
            given = node.args[place] if place < len(node.args) else node.kwargs.get("dropout_p", argument.default_value)
            return given == 0
    return False


def _sample_state(device: str, value: object) -> Tensor:
    """Returns a tensor with the metadata of a generator's state, fake if the value is fake."""
    size = torch.get_rng_state().numel() if device == "cpu" else _CUDA_STATE_BYTES
    state = torch.empty(size, dtype=torch.uint8)
    mode = detect_fake_mode(tree_leaves(value))
    return state if mode is None else mode.from_tensor(state, static_shapes=True)


def expose_states(joint: GraphModule) -> set[str]:
    """Writes each random call that is tagged for recompute as two calls: one saves the state of the
    generator, and one draws from this state. The second call keeps the name, the tag and all other
    metadata. Returns the names of the first calls."""
    names = set()
    for node in list(joint.graph.nodes):
        if node.op != "call_function" or (device := _drawing_device(node)) is None:
            continue
        state = _sample_state(device, node.meta["val"])
        with joint.graph.inserting_before(node):
            saved = joint.graph.call_function(run_and_save_rng_state, (node.target, *node.args), node.kwargs)
            first = joint.graph.call_function(operator.getitem, (saved, 0))
        place = {key: value for key, value in node.meta.items() if key not in _OWN_META}
        saved.meta, first.meta = place | {"val": (state, node.meta["val"])}, place | {"val": state}
        node.target, node.args = run_with_rng_state, (first, *saved.args)
        names.add(saved.name)
    if names:
        joint.recompile()
    return names


def hide_states(joint: GraphModule, names: Collection[str]) -> None:
    """Undoes expose_states()."""
    _rewrite(joint, names, ())


def exposed_states(joint: GraphModule) -> set[str]:
    """Returns the names of all calls that only save a state, from which the same call draws again. An
    earlier expose_states() may have written them."""
    return {
        saved.name
        for saved in joint.graph.find_nodes(op="call_function", target=run_and_save_rng_state)
        if _draws_again(saved) and all(state.args[1] == 0 for state in saved.users)
    }


def _draws_again(saved: Node) -> list[Node]:
    """Returns the calls that give the value that `saved` drew."""
    draws = [draw for state in saved.users for draw in state.users if draw.target is run_with_rng_state]
    return [draw for draw in draws if (draw.args[1:], draw.kwargs) == (saved.args, saved.kwargs)]


def use_saved_draws(forward: GraphModule, backward: GraphModule, names: Collection[str]) -> None:
    """Makes forward draw once. If backward takes the saved state, forward uses the value that was
    drawn with it. Otherwise the call becomes an ordinary random call again.

    names: the result of exposed_states().
    """
    _rewrite(forward, names, {node.name for node in backward.graph.find_nodes(op="placeholder")})


def _rewrite(graph: GraphModule, names: Collection[str], taken: Collection[str]) -> None:
    """taken: the names of the states that backward takes."""
    for saved in [node for node in graph.graph.nodes if node.name in names]:
        states, draws = list(saved.users), _draws_again(saved)
        if any(state.name in taken for state in states):
            for draw in draws:
                draw.target, draw.args, draw.kwargs = operator.getitem, (saved, 1), {}
            continue
        call = draws[0] if draws else saved
        call.target, call.args, call.kwargs = saved.args[0], saved.args[1:], saved.kwargs
        for again in draws[1:]:
            again.replace_all_uses_with(call)
            graph.graph.erase_node(again)
        if draws:
            saved.prepend(call)
        else:
            call.meta["val"] = call.meta["val"][1]
        for unused in [*states, *([saved] if draws else [])]:
            graph.graph.erase_node(unused)
    if names:
        graph.recompile()
