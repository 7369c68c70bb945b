"""Named objects of torch graphs (operators, functions, classes, enumerators) and objects made of
fields.

Names are spelled as in the targets of files: aten.mm.default, higher_order.flex_attention,
operator.getitem, torch.nn.Linear. This module never unpickles or runs the contents of a file. It
looks a name up in torch's operator registry and in modules. It imports only modules of the
framework for that; the caller must have imported others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import importlib
import operator
import pkgutil
import re
import sys
import types
from collections.abc import Iterator, Mapping

import sympy
import torch
import torch.utils._sympy.numbers
from torch.fx.immutable_collections import immutable_dict, immutable_list

from fxopt.form import FormError

# Packages whose modules are imported when a name needs one.
_FRAMEWORK = frozenset({"torch", "torchtitan", "builtins", "operator", "math", "collections"})
# Modules that define higher-order operators outside torch._higher_order_ops.
_HIGHER_ORDER_MODULES = (
    "torch._prims.rng_prims",
    "torch._inductor.fx_passes.control_dependencies",
    "torch._export.wrappers",
    "torch._dynamo.variables.higher_order_ops",
)


_INT_INFINITY = getattr(torch.utils._sympy.numbers, "int_oo", sympy.oo)
_INFINITIES = (sympy.oo, -sympy.oo, _INT_INFINITY, -_INT_INFINITY)


def is_operator(value: object) -> bool:
    """Returns whether it is an operator of torch's registry or a function of Python's
    `operator`."""
    operators = torch._ops.OpOverload | torch._ops.OpOverloadPacket | torch._ops.HigherOrderOperator
    return isinstance(value, operators) or getattr(value, "__module__", None) == "_operator"


def is_named(value: object) -> bool:
    """Returns whether a file refers to it by name: an operator, a class or a function."""
    return is_operator(value) or isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__"))


def is_return_type(kind: object) -> bool:
    """Returns whether it is a tuple class that torch's functions return, such as
    torch.return_types.max."""
    return isinstance(kind, type) and kind.__module__ == "torch.return_types" and issubclass(kind, tuple)


def holds_immutable(value: object) -> bool:
    """Returns whether a node's value is or holds one of torch.fx's immutable lists or dicts."""
    if isinstance(value, immutable_list | immutable_dict):
        return True
    if not isinstance(value, dict | list | tuple):
        return False
    return any(map(holds_immutable, value.values() if isinstance(value, dict) else value))


def name_of(value: object) -> str:
    """Returns the name of an operator, class or function. Raises FormError if it has none."""
    if isinstance(value, str):
        return value
    if isinstance(value, torch._ops.HigherOrderOperator):
        return "higher_order." + value._name
    if isinstance(value, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return str(value)
    qualified = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if qualified is None:
        raise FormError(f"an object of type {type_name(value)} has no name")
    module = getattr(value, "__module__", None) or "builtins"
    if module == "_operator":
        return "operator." + qualified
    if "<locals>" in qualified and getattr(sys.modules.get(module), value.__name__, None) is value:
        # Made by a function of the module, such as F.max_pool2d. torch.fx prints this name.
        return f"{module}.{value.__name__}"
    # A function written in C may have no module, or one that does not contain it.
    if not isinstance(value, type | types.FunctionType):
        for owner, owner_name in ((torch, "torch"), (torch.nn.functional, "torch.nn.functional"), (torch.Tensor, "torch.Tensor")):
            if getattr(owner, value.__name__, None) is value:
                return f"{owner_name}.{value.__name__}"
    return f"{module}.{qualified}"


def type_name(value: object) -> str:
    """Returns the name of an object's type, without the module for Python's built-in types."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@functools.cache
def find(name: str) -> object:
    """Returns the object called `name`. Raises FormError if it does not exist, or only in a module
    that was not imported."""
    if name.startswith("higher_order."):
        return _higher_order(name.removeprefix("higher_order."))
    if (found := _registered(name.split("."))) is not None:
        return found
    parts = name.split(".") if "." in name else ["builtins", name]
    for length in range(len(parts), 0, -1):
        module = _module(".".join(parts[:length]))
        if module is None:
            continue
        found = module
        for part in parts[length:]:
            found = getattr(found, part, None)
        if found is not None and not isinstance(found, types.ModuleType):
            return found
    raise FormError(f"this process has no {name!r}; import the module that defines it first")


def _registered(parts: list[str]) -> object | None:
    if len(parts) not in (2, 3):
        return None
    packet = getattr(getattr(torch.ops, parts[0]), parts[1], None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return None
    return packet if len(parts) == 2 else getattr(packet, parts[2], None)


def _higher_order(name: str) -> object:
    known = torch._ops._higher_order_ops
    if name not in known:
        package = importlib.import_module("torch._higher_order_ops")
        names = [f"{package.__name__}.{found.name}" for found in pkgutil.iter_modules(package.__path__)]
        for module in (*names, *_HIGHER_ORDER_MODULES):
            if name in known:
                break
            try:
                importlib.import_module(module)
            except ImportError:
                continue  # a dependency or the module itself is missing
    if name not in known:
        raise FormError(f"torch {torch.__version__} has no higher-order operator {name!r}")
    return known[name]


def defining_module(operator: torch._ops.OpOverload) -> str | None:
    """Returns the Python module that registers an operator; None if unknown, as for C++
    operators."""
    definition = getattr(torch._library.custom_ops, "OPDEFS", {}).get(operator.name())
    if definition is None:
        return _module_of_library(operator)
    function = getattr(definition, "_init_fn", None)
    module = getattr(function, "__module__", None)
    # The function may be a closure that a helper registered on behalf of a caller. The module of an
    # object in its closure may then be the caller's.
    givers = [getattr(given, "__module__", None) for given in _closure(function)]
    return next((giver for giver in (module, *givers) if giver in sys.modules and _holds(giver, operator)), module)


def _closure(function: object) -> Iterator[object]:
    """Yields the contents of a function's closure."""
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # an empty cell
            yield cell.cell_contents


def _holds(module: str, operator: torch._ops.OpOverload) -> bool:
    """Returns whether the module holds an operator, or its definition by
    torch.library.custom_op."""
    for value in vars(sys.modules[module]).values():
        if isinstance(value, torch._library.custom_ops.CustomOpDef):
            value = value._opoverload
        if isinstance(value, torch._ops.OpOverloadPacket) and value._qualified_op_name == operator.name():
            return True
        if isinstance(value, torch._ops.OpOverload) and value.name() == operator.name():
            return True
    return False


def _module_of_library(operator: torch._ops.OpOverload) -> str | None:
    """Returns the module whose torch.library.Library defines an operator, by the file that the
    dispatcher records."""
    dump = torch._C._dispatch_dump(operator.name())
    registered = re.search(r"^debug: registered at (.*\.py):\d+$", dump, re.MULTILINE)
    if registered is None:
        return None
    modules = ((name, module) for name, module in sys.modules.items() if isinstance(module, types.ModuleType))
    return next((name for name, module in modules if vars(module).get("__file__") == registered[1]), None)


def require(name: str, module: str) -> None:
    """Imports the module that registers operator `name`, if it belongs to the framework. Raises
    FormError if the operator is still missing: the caller must import its module."""
    if module.partition(".")[0] in _FRAMEWORK:
        _module(module)
    if _registered(name.split(".")) is None:
        raise FormError(f"this process has no operator {name!r}; import {module} first, which registers it")


def _module(name: str) -> types.ModuleType | None:
    if name == "operator":
        return operator
    if name not in sys.modules and name.partition(".")[0] in _FRAMEWORK:
        try:
            return importlib.import_module(name)
        except ImportError:
            return None
    return sys.modules.get(name)


def names_itself(value: object) -> bool:
    """Returns whether its name leads back to it. Names of lambdas and local definitions do not."""
    try:
        found = find(name_of(value))
        return found is value or isinstance(found, torch._ops.OperatorBase)
    except (FormError, AttributeError):
        return False


# ---- objects made of fields


def is_infinity(value: object) -> bool:
    """Returns whether it is an infinite bound of a symbol's range: a singleton without fields."""
    return any(value is known for known in _INFINITIES)


def fields_of(value: object) -> dict[str, object] | None:
    """Returns the fields of a dataclass's object or a named tuple; None for other objects."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if hasattr(value, field.name)}
    if isinstance(value, torch.fx.traceback.NodeSource):
        return value.to_dict()
    return None


def build(name: str, fields: Mapping[str, object]) -> object:
    """Returns an object of class `name` with these fields, without calling its constructor. Raises
    FormError if `name` is not a class with these fields."""
    kind = find(name)
    if not isinstance(kind, type):
        raise FormError(f"{name!r} is not a class")
    for known in _INFINITIES:
        if type(known) is kind:
            return known
    if issubclass(kind, tuple) and list(getattr(kind, "_fields", ())) == list(fields):
        return kind(*fields.values())
    if issubclass(kind, torch.fx.traceback.NodeSource):
        return kind._from_dict(fields)
    if not dataclasses.is_dataclass(kind) or not {field.name for field in dataclasses.fields(kind)}.issuperset(fields):
        raise FormError(f"{name!r} does not have the fields of the file here: {', '.join(fields)}")
    result = object.__new__(kind)
    for field, value in fields.items():
        object.__setattr__(result, field, value)
    return result


def enumerator(type_of: str, name: str) -> enum.Enum:
    """Returns a member of an enumeration. Raises FormError if it does not exist."""
    kind = find(type_of)
    if not (isinstance(kind, type) and issubclass(kind, enum.Enum)) or name not in kind.__members__:
        raise FormError(f"{type_of!r} has no enumerator {name!r}")
    return kind[name]
