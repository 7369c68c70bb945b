"""Traces a CUDA training step as PyTorch traces it on a GPU machine, on a machine that has none.

Everything is fake: tensors on "cuda" hold shapes but no bytes, under one FakeTensorMode for building and tracing.
Three things stand in the way without a driver, and are got round here:
  - autograd asks the CUDA library for the device's context before it runs backward: enable_fake_cuda_backward();
  - scaled_dot_product_attention asks the driver which kernel to take and falls back to plain matrix products:
    flash_attention() calls the flash kernel's operator;
  - module.to(dtype) fails on fake parameters: build the module under torch.set_default_dtype.
trace_step() gives a forward-loss-backward graph: backward marked (autograd_backward), forward annotations copied to the
backward nodes of the same sequence number.
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

# Position of hasPrimaryContext among the virtual functions of at::AcceleratorHooksInterface, as of torch 2.15: behind
# two destructors, isBuilt and isAvailable.
_PRIMARY_CONTEXT_SLOT = 4
_COPIED_SLOTS = 128  # more than the interface has
_HEADER_SLOTS = 2  # what precedes the first function in a table of the Itanium ABI: offset to top, type information
_held: list[object] = []  # what the library points to after the patch


def fake_mode() -> FakeTensorMode:
    """The mode to build and to trace a step under."""
    return FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())


def _tiny_backward() -> None:
    with FakeTensorMode():
        x = torch.empty(1, device="cuda", requires_grad=True)
        (x * 2).sum().backward()


def enable_fake_cuda_backward() -> None:
    """Lets backward run over fake CUDA tensors, for the rest of the process. Does nothing where it does already.

    A CUDA build of torch without a driver reports one device while fake tensors are about, then refuses to look at
    it. The object that is asked gets a copy of its table of functions in which "is there a primary context" answers
    no. RuntimeError if backward still fails, as with a torch whose table is laid out differently.
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
    """The attention that scaled_dot_product_attention takes for half-precision inputs without a mask."""
    if q.device.type == "cpu":
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal)[0]
    return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)[0]


def annotate_modules(model: torch.nn.Module, layers: str) -> None:
    """Has every named submodule write its path (custom.module_fqn) on the nodes it makes, and those below the module
    list `layers` also the number of their layer as the activation-checkpointing region (custom.ac_region_id)."""
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
    """Gives each backward node the `custom` and `stack_trace` of the first forward node with its sequence number. Sums
    of gradients belong to no forward node: the number they carry is accidental."""
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
    """The graph of step(*args), which runs forward, loss and backward over fake tensors of `mode`. RuntimeError with a
    torch that cannot mark backward while it traces."""
    if not hasattr(torch.compiler, "_non_strict_tracing_context"):
        raise RuntimeError(f"torch {torch.__version__} cannot mark backward while tracing; 2.15 can")
    enable_fake_cuda_backward()
    torch.fx.traceback.current_meta.clear()  # an earlier trace of checkpointed code leaves its tags there

    def marked(*inputs: object) -> object:
        with torch.compiler._patch_engine_backward():
            return step(*inputs)

    with (
        mode,
        torch.fx.traceback.preserve_node_meta(),
        torch.autograd.set_multithreading_enabled(False),  # annotations are a matter of the calling thread
        torch.compiler._non_strict_tracing_context(),
    ):
        graph_module = make_fx(marked, record_stack_traces=True)(*args)
    copy_annotations_to_backward(graph_module)
    return graph_module
