"""Trace a CUDA training step on a machine without a GPU, as PyTorch traces it on a machine with
one.

All tensors are fake: on "cuda" they have shapes but no bytes, under one FakeTensorMode for building
and tracing. Three obstacles without a driver are solved as follows:
  - autograd asks the CUDA library for the device's context before it runs backward:
    enable_fake_cuda_backward() answers;
  - scaled_dot_product_attention asks the driver for a kernel and falls back to plain matrix
  products:
    flash_attention() calls the flash kernel's operator;
  - module.to(dtype) fails on fake parameters: build the module under torch.set_default_dtype.
trace_step() returns a forward-loss-backward graph. Backward is marked (autograd_backward), and
backward nodes have the annotations of the forward nodes with the same sequence number.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import ctypes
import functools
import pathlib
from collections.abc import Callable, Sequence

import torch
from torch._subclasses import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv

# Position of hasPrimaryContext among the virtual functions of at::AcceleratorHooksInterface in
# torch 2.15: after two destructors, isBuilt and isAvailable.
_PRIMARY_CONTEXT_SLOT = 4
_COPIED_SLOTS = 128  # more than the interface has
# In the Itanium ABI: offset to top and type information before the first function.
_HEADER_SLOTS = 2
_held: list[object] = []  # objects that the library points to after the patch


def fake_mode() -> FakeTensorMode:
    """Returns a mode for building and tracing a step."""
    return FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())


def _tiny_backward() -> None:
    with FakeTensorMode():
        x = torch.empty(1, device="cuda", requires_grad=True)
        (x * 2).sum().backward()


def enable_fake_cuda_backward() -> None:
    """Enables backward over fake CUDA tensors for the rest of the process, unless it works already.

    A CUDA build of torch without a driver reports one device under a fake mode, and then fails to
    query it. This function gives torch's CUDA hooks a copy of their virtual table in which
    hasPrimaryContext returns false.

    Raises RuntimeError if backward still fails, as with a torch whose virtual table differs.
    """
    if torch.cuda.is_available() or _held:
        return
    with contextlib.suppress(RuntimeError):
        _tiny_backward()
        return
    library = ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    hooks = getattr(library, "_ZN2at6detail12getCUDAHooksEv")
    hooks.restype = ctypes.c_void_p
    table_of_object = ctypes.c_void_p.from_address(hooks())
    original = table_of_object.value
    word = ctypes.sizeof(ctypes.c_void_p)
    table = (ctypes.c_void_p * (_HEADER_SLOTS + _COPIED_SLOTS))()
    ctypes.memmove(table, original - _HEADER_SLOTS * word, ctypes.sizeof(table))
    answer_no = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_int8)(lambda self, device: False)
    table[_HEADER_SLOTS + _PRIMARY_CONTEXT_SLOT] = ctypes.cast(answer_no, ctypes.c_void_p).value
    _held.extend([table, answer_no])

    def restore() -> None:
        table_of_object.value = original

    table_of_object.value = ctypes.addressof(table) + _HEADER_SLOTS * word
    atexit.register(restore)  # the library's own destructors run after Python has freed the copy
    try:
        _tiny_backward()
    except RuntimeError as error:
        restore()
        _held.clear()
        raise RuntimeError(f"torch {torch.__version__} cannot run backward over fake CUDA tensors: {error}") from error


def flash_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool) -> torch.Tensor:
    """Attention by the operator that scaled_dot_product_attention uses for half-precision inputs
    without a mask."""
    if q.device.type == "cpu":
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal)[0]
    return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)[0]


def annotate_modules(model: torch.nn.Module, layers: str) -> None:
    """Makes every named submodule annotate its nodes with its path (custom.module_fqn).

    layers: the path of a module list. Its members also annotate their index as the
        activation-checkpointing region (custom.ac_region_id).
    """
    for name, module in model.named_modules():
        if not name:
            continue
        annotation: dict[str, object] = {"module_fqn": name}
        head, _, number = name.rpartition(".")
        if head == layers and number.isdigit():
            annotation["ac_region_id"] = int(number)
        module.forward = _annotated(module.forward, annotation)


def _annotated(forward: Callable, annotation: dict[str, object]) -> Callable:
    @functools.wraps(forward)
    def run(*args: object, **kwargs: object) -> object:
        with torch.fx.traceback.annotate(annotation):
            return forward(*args, **kwargs)

    return run


def copy_annotations_to_backward(graph_module: GraphModule) -> None:
    """Gives each backward node the `custom` and `stack_trace` of the first forward node with its
    sequence number. Gradient sums are skipped: they belong to no forward node, and their number is
    accidental."""
    forward = {}
    for node in graph_module.graph.nodes:
        if node.op == "call_function" and "seq_nr" in node.meta and not node.meta.get("autograd_backward"):
            forward.setdefault(node.meta["seq_nr"], node)
    for node in graph_module.graph.nodes:
        if not node.meta.get("autograd_backward") or node.meta.get("is_gradient_acc"):
            continue
        source = forward.get(node.meta.get("seq_nr"))
        for key in ("custom", "stack_trace"):
            if source is not None and key in source.meta:
                node.meta[key] = copy.deepcopy(source.meta[key])


def trace_step(step: Callable, mode: FakeTensorMode, args: Sequence[object]) -> GraphModule:
    """Returns the graph of step(*args), which runs forward, loss and backward over fake tensors of
    `mode`.

    Raises RuntimeError if this version of torch cannot mark backward while tracing.
    """
    if not hasattr(torch.compiler, "_non_strict_tracing_context"):
        raise RuntimeError(f"torch {torch.__version__} cannot mark backward while tracing; 2.15 can")
    enable_fake_cuda_backward()
    torch.fx.traceback.current_meta.clear()  # removes tags of an earlier trace of checkpointed code

    def marked(*inputs: object) -> object:
        with torch.compiler._patch_engine_backward():
            return step(*inputs)

    with (
        mode,
        torch.fx.traceback.preserve_node_meta(),
        torch.autograd.set_multithreading_enabled(False),  # annotations are thread-local
        torch.compiler._non_strict_tracing_context(),
    ):
        graph_module = make_fx(marked, record_stack_traces=True)(*args)
    copy_annotations_to_backward(graph_module)
    return graph_module
