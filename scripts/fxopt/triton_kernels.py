"""Triton kernels of a graph, by their source.

A call of triton_kernel_wrapper_mutation or _functional names its kernel, and the constants of the
launch, by numbers in a table of the process that traced it. In a file they are texts instead:

    kernel_idx         'my_module:plus sha256:1b4f... {"configs": [...]}'
    constant_args_idx  '{"B": 64}'

The digest covers the source, the defaults and the values around it of the kernel and of the
functions that it calls. The part after it is there for an autotuned kernel. load() finds a kernel
with the same text in the table of its process, or imports it. Some kernels have no such text, for
example if they read a module's attribute. They are named by their number and their process, so that
only this process can load them.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import json
import secrets
from typing import Any

from torch.fx import Node

from fxopt.form import FormError

_TARGETS = ("triton_kernel_wrapper_mutation", "triton_kernel_wrapper_functional")
_OPTIONS = ("do_not_specialize", "do_not_specialize_on_alignment", "debug", "noinline")
_FIELDS_OF_CONFIG = ("kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg")
_FIELDS_OF_TUNER = ("keys", "reset_to_zero", "restore_value")
_HOOKS = ("user_defined_pre_hook", "user_defined_post_hook", "early_config_prune", "perf_model")
_PROCESS = secrets.token_hex(8)  # a name of this process


class _Unportable(Exception):
    """No text stands for the object in another process."""


def is_number(node: Node, name: int | str) -> bool:
    """Returns whether that argument of the node is a number in the process's table."""
    is_named = name in ("kernel_idx", "constant_args_idx")
    return is_named and node.op == "call_function" and getattr(node.target, "__name__", "") in _TARGETS


def text_of(name: str, number: int) -> str:
    """Returns the text of a kernel or of constants."""
    try:
        if name == "constant_args_idx":
            return _text_of_constants(_table().get_constant_args(number))
        return _text_of_kernel(_table().get_kernel(number))
    except _Unportable as reason:
        return f"number {number} of process {_PROCESS} ({reason})"


def number_of(name: str, text: object) -> int:
    """Returns this process's number for the text. Raises FormError if no kernel has it."""
    if not isinstance(text, str):
        raise FormError(f"{name} is {text!r}, a number in the table of the process that wrote the file; save the graph again")
    if text.startswith("number "):
        _, number, _, _, process, reason = text.split(" ", 5)
        if process != _PROCESS:
            raise FormError(f"only the process that wrote the file can load this Triton call: {reason.strip('()')}")
        return int(number)
    is_kernel = name == "kernel_idx"
    for known in _table().id_to_kernel if is_kernel else _table().constant_args:
        if text_of(name, known) == text:
            return known
    return _table().add_kernel(_imported(text)) if is_kernel else _table().add_constant_args(_read_constants(text))


def _table() -> Any:
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    return kernel_side_table


# ---- kernels


def _text_of_kernel(kernel: Any) -> str:
    tuning = ""
    if hasattr(kernel, "configs"):
        tuning = " " + json.dumps(_tuning(kernel), sort_keys=True)
        kernel = kernel.fn
    if not hasattr(kernel, "src"):
        raise _Unportable(f"the kernel is a {type(kernel).__name__}")
    facts: dict[str, object] = {}
    _add_facts(kernel, facts)
    digest = hashlib.sha256(repr(sorted(facts.items())).encode()).hexdigest()
    return f"{kernel.fn.__module__}:{kernel.fn.__qualname__} sha256:{digest}{tuning}"


def _tuning(kernel: Any) -> dict[str, object]:
    """The facts of an Autotuner."""
    is_hooked = any(_is_own(getattr(kernel, hook, None)) for hook in _HOOKS)
    if is_hooked or any(getattr(config, "pre_hook", None) or getattr(config, "ir_override", None) for config in kernel.configs):
        raise _Unportable("its autotuning calls functions of its own")
    configs = []
    for config in kernel.configs:
        fields = {field: getattr(config, field, None) for field in _FIELDS_OF_CONFIG}
        configs.append(fields | {"kwargs": {name: _plain(name, value) for name, value in config.kwargs.items()}})
    return {"configs": configs, **{field: list(getattr(kernel, field, None) or ()) for field in _FIELDS_OF_TUNER}}


def _is_own(hook: object) -> bool:
    """Whether a hook of an Autotuner is the user's: Triton's defaults are False, None or its own."""
    return bool(hook) and not str(getattr(hook, "__module__", "")).startswith("triton")


def _add_facts(function: Any, facts: dict[str, object]) -> None:
    """Adds source, options, defaults and the values around the function and those that it calls."""
    place = f"{function.fn.__module__}:{function.fn.__qualname__}"
    if place in facts:
        return
    around = inspect.getclosurevars(function.fn)
    values = {**around.globals, **around.nonlocals}
    defaults = {name: each.default for name, each in inspect.signature(function.fn).parameters.items()}
    facts[place] = (
        function.src,
        [(option, repr(getattr(function, option, None))) for option in _OPTIONS],
        [(name, _value_around(name, value, facts)) for name, value in sorted({**values, **_given(defaults)}.items())],
    )


def _given(defaults: dict[str, object]) -> dict[str, object]:
    return {f"default {name}": value for name, value in defaults.items() if value is not inspect.Parameter.empty}


def _value_around(name: str, value: Any, facts: dict[str, object]) -> str:
    module = value.__name__ if inspect.ismodule(value) else str(getattr(value, "__module__", ""))
    is_function = hasattr(value, "src") and hasattr(value, "fn")
    is_code = is_function or inspect.ismodule(value) or inspect.isroutine(value) or inspect.isclass(value)
    if is_code and module.partition(".")[0] == "triton":
        return f"{module} {getattr(value, '__name__', '')}"
    if is_function:
        _add_facts(value, facts)
        return f"{value.fn.__module__}:{value.fn.__qualname__}"
    if inspect.ismodule(value):
        raise _Unportable(f"it reads the module {module}")
    return json.dumps(_plain(name, value))


def _imported(text: str) -> Any:
    """The kernel of the text, from the module that defines it."""
    place, digest, *tuning = text.split(" ", 2)
    module, _, name = place.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # the module may fail in any way
        raise FormError(
            f"no import finds the Triton kernel {place} ({type(error).__name__}: {error}); load the file where it can be imported"
        ) from error
    with contextlib.suppress(_Unportable):
        if _text_of_kernel(found) == text:
            return found
    while hasattr(found, "fn") and not hasattr(found, "src"):
        found = found.fn
    try:
        is_same = _text_of_kernel(found) == f"{place} {digest}"
    except _Unportable:
        is_same = False
    if not is_same:
        raise FormError(
            f"the Triton kernel {place} is another one than in the file: its source, or a value that it reads, differs"
        )
    return _tuned(found, json.loads(tuning[0])) if tuning else found


def _tuned(kernel: Any, tuning: dict[str, Any]) -> Any:
    from triton.runtime.autotuner import Autotuner, Config

    configs = [Config({n: _read_plain(v) for n, v in each.pop("kwargs").items()}, **each) for each in tuning["configs"]]
    return Autotuner(kernel, kernel.arg_names, configs, tuning["keys"], tuning["reset_to_zero"], tuning["restore_value"])


# ---- constants


def _text_of_constants(constants: dict[str, object]) -> str:
    return json.dumps({name: _plain(name, value) for name, value in constants.items()}, sort_keys=True)


def _read_constants(text: str) -> dict[str, object]:
    return {name: _read_plain(value) for name, value in json.loads(text).items()}


def _plain(name: str, value: object) -> object:
    """The value in JSON, with its type."""
    from triton import language

    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, tuple):
        return {"tuple": [_plain(name, item) for item in value]}
    if isinstance(value, language.constexpr):
        return {"constexpr": _plain(name, value.value)}
    if type(value) is language.dtype:
        return {"dtype": value.name}
    raise _Unportable(f"{name} is a {type(value).__name__}")


def _read_plain(value: object) -> object:
    if not isinstance(value, dict):
        return value
    from triton import language

    (kind, inner), *_ = value.items()
    if kind == "tuple":
        return tuple(map(_read_plain, inner))
    return language.constexpr(_read_plain(inner)) if kind == "constexpr" else language.dtype(inner)
