"""Triton kernels of a graph, by their source.

A call of triton_kernel_wrapper_mutation or _functional names its kernel, and the constants of the
launch, by numbers in a table of the process that traced it. In a file they are texts instead:

    kernel_idx         "my_module:plus sha256:1b4f..."   of source, options, and configurations
    constant_args_idx  '{"B": 64}'

load() finds a kernel with the same text in the table of its process, or imports it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
from typing import Any

from torch.fx import Node

from fxopt.form import FormError

_TARGETS = ("triton_kernel_wrapper_mutation", "triton_kernel_wrapper_functional")
_OPTIONS = ("do_not_specialize", "do_not_specialize_on_alignment", "debug", "noinline", "launch_metadata")
_FIELDS_OF_CONFIG = ("kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg")


def is_number(node: Node, name: int | str) -> bool:
    """Returns whether that argument of the node is a number in the process's table."""
    is_call = node.op == "call_function" and getattr(node.target, "__name__", "") in _TARGETS
    return is_call and name in ("kernel_idx", "constant_args_idx")


def text_of(name: str, number: int) -> str:
    """Returns the text of a kernel or of constants. Raises FormError if a text cannot stand for it."""
    if name == "constant_args_idx":
        return json.dumps(
            {key: _constant(key, value) for key, value in _table().get_constant_args(number).items()}, sort_keys=True
        )
    return _text_of_kernel(_table().get_kernel(number))


def number_of(name: str, text: object) -> int:
    """Returns this process's number for the text. Raises FormError if no kernel has it."""
    if not isinstance(text, str):
        raise FormError(f"{name} is {text!r}, a number in the table of the process that wrote the file; save the graph again")
    if name == "constant_args_idx":
        return _number_of_constants(text)
    for number, kernel in _table().id_to_kernel.items():
        with contextlib.suppress(FormError):  # a kernel without a text
            if _text_of_kernel(kernel) == text:
                return number
    return _table().add_kernel(_imported(text))


def _table() -> Any:
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    return kernel_side_table


# ---- kernels


def _text_of_kernel(kernel: Any) -> str:
    facts: list[object] = []
    while not hasattr(kernel, "cache_key"):
        if not hasattr(kernel, "fn"):
            raise FormError(f"a Triton kernel of type {type(kernel).__name__} has no source")
        facts.append((type(kernel).__name__, _wrapping(kernel)))
        kernel = kernel.fn
    facts += [kernel.cache_key, _values_around(kernel), [(option, repr(getattr(kernel, option, None))) for option in _OPTIONS]]
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()
    return f"{kernel.fn.__module__}:{kernel.fn.__qualname__} sha256:{digest}"


def _values_around(kernel: Any) -> list[tuple[str, str]]:
    """The global and enclosing values that the source reads. cache_key has functions, but not all
    other values."""
    values = ((name, value) for (name, _), (value, _) in kernel.used_global_vals.items())
    return sorted((name, repr(value)) for name, value in values if not callable(value))


def _wrapping(kernel: Any) -> object:
    """The facts of an Autotuner or of Heuristics."""
    if hasattr(kernel, "configs"):
        configs = [[(field, repr(getattr(config, field, None))) for field in _FIELDS_OF_CONFIG] for config in kernel.configs]
        return configs, repr(getattr(kernel, "keys", None))
    if isinstance(values := getattr(kernel, "values", None), dict):
        return [(name, value.__code__.co_code, repr(value.__code__.co_consts)) for name, value in sorted(values.items())]
    raise FormError(f"a Triton kernel in a {type(kernel).__name__} cannot be written")


def _imported(text: str) -> Any:
    """The kernel of the text, from the module that defines it."""
    place = text.partition(" ")[0]
    module, _, name = place.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        is_same = _text_of_kernel(found) == text
    except (ImportError, AttributeError):
        raise FormError(f"no import finds the Triton kernel {place}; load the file where it can be imported") from None
    if not is_same:
        raise FormError(f"the Triton kernel {place} is another one than in the file: its source, options or constants differ")
    return found


# ---- constants


def _number_of_constants(text: str) -> int:
    for number in _table().constant_args:
        with contextlib.suppress(FormError):  # constants of another kernel
            if text_of("constant_args_idx", number) == text:
                return number
    return _table().add_constant_args({name: _read_constant(value) for name, value in json.loads(text).items()})


def _constant(name: str, value: object) -> object:
    from triton import language

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, language.constexpr):
        return {"constexpr": _constant(name, value.value)}
    if isinstance(value, language.dtype):
        return {"dtype": value.name}
    raise FormError(f"the constant {name!r} of a Triton kernel is a {type(value).__name__}")


def _read_constant(value: object) -> object:
    if not isinstance(value, dict):
        return value
    from triton import language

    (kind, inner), *_ = value.items()
    return language.constexpr(_read_constant(inner)) if kind == "constexpr" else language.dtype(inner)
