"""The JSON form of a module (schemas/README.md), as the exporters write it. Standard library only.

All functions use plain dicts that mirror the messages of schemas/fxgraph.proto. Strings replace
indices, enumerators have their full names, and numbers that a double cannot hold are strings.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import decimal
import gc
import json
import math
import os
import pathlib
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence

Json = dict[str, object]

DTYPES = frozenset(
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool bfloat16 uint16 uint32"
    " uint64 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 qint8 quint8"
    " qint32 bits8 bits16".split()
)
LAYOUTS = {
    "strided": "LAYOUT_STRIDED",
    "sparse_coo": "LAYOUT_SPARSE_COO",
    "sparse_csr": "LAYOUT_SPARSE_CSR",
    "sparse_csc": "LAYOUT_SPARSE_CSC",
    "sparse_bsr": "LAYOUT_SPARSE_BSR",
    "sparse_bsc": "LAYOUT_SPARSE_BSC",
    "_mkldnn": "LAYOUT_MKLDNN",
    "jagged": "LAYOUT_JAGGED",
}
MEMORY_FORMATS = {
    "contiguous_format": "MEMORY_FORMAT_CONTIGUOUS",
    "preserve_format": "MEMORY_FORMAT_PRESERVE",
    "channels_last": "MEMORY_FORMAT_CHANNELS_LAST",
    "channels_last_3d": "MEMORY_FORMAT_CHANNELS_LAST_3D",
}
NODE_KINDS = {
    "placeholder": "NODE_KIND_PLACEHOLDER",
    "get_attr": "NODE_KIND_GET_ATTR",
    "call_function": "NODE_KIND_CALL_FUNCTION",
    "output": "NODE_KIND_OUTPUT",
    "call_method": "NODE_KIND_CALL_METHOD",
    "call_module": "NODE_KIND_CALL_MODULE",
}
SYMBOL_TYPES = {"SymInt": "SYMBOL_TYPE_INT", "SymFloat": "SYMBOL_TYPE_FLOAT", "SymBool": "SYMBOL_TYPE_BOOL"}


class FormError(ValueError):
    """An object that the JSON form cannot represent."""


# ---- numbers and expressions


def is_int64(value: int) -> bool:
    return -(2**63) <= value < 2**63


def integer(value: int) -> int | str:
    """Returns a signed 64-bit integer: a number if a double holds it exactly, else a string."""
    if not is_int64(value):
        raise FormError(f"the integer {value} cannot be written: integers in a file are from -2**63 to 2**63 - 1")
    return value if abs(value) < 2**53 else str(value)


def number(value: int | str) -> Json:
    """Returns message Int for a number or the text of an expression."""
    return {"expr": expression(value)} if isinstance(value, str) else {"value": integer(value)}


# Precedence levels of the grammar in ir/graph/expr.h, from loosest to tightest.
_COMPARE, _SUM, _PRODUCT, _UNARY, _POWER, _ATOM = range(6)
_BINARY = {
    ast.Add: ("+", _SUM),
    ast.Sub: ("-", _SUM),
    ast.Mult: ("*", _PRODUCT),
    ast.FloorDiv: ("//", _PRODUCT),
    ast.Mod: ("%", _PRODUCT),
    ast.Div: ("/", _PRODUCT),
}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.LtE: "<=", ast.GtE: ">=", ast.Lt: "<", ast.Gt: ">"}
# Functions of the framework that are operators in the grammar.
_FUNCTION_OPERATORS = {
    "FloorDiv": ast.FloorDiv,
    "CleanDiv": ast.FloorDiv,
    "PythonMod": ast.Mod,
    "IntTrueDiv": ast.Div,
    "FloatTrueDiv": ast.Div,
    "PowByNatural": ast.Pow,
    "Pow": ast.Pow,
    "Eq": ast.Eq,
    "Ne": ast.NotEq,
}
_LOGIC = {ast.BitAnd: "And", ast.BitOr: "Or"}


def _expression(tree: ast.expr, level: int) -> str:
    text, own = _expression_parts(tree)
    return f"({text})" if own < level else text


def _apply(operator: type, left: ast.expr, right: ast.expr) -> tuple[str, int]:
    if operator is ast.Pow:
        return f"{_expression(left, _ATOM)} ** {_expression(right, _UNARY)}", _POWER
    if operator in _COMPARISONS:
        return f"{_expression(left, _SUM)} {_COMPARISONS[operator]} {_expression(right, _SUM)}", _COMPARE
    sign, own = _BINARY[operator]
    return f"{_expression(left, own)} {sign} {_expression(right, own + 1)}", own


def _float_text(value: float) -> str:
    """Prints a float like the fxopt program: the fewest digits that read back, with an exponent if
    that is shorter."""
    if not math.isfinite(value) or value == 0:
        return repr(value)
    shortest = decimal.Decimal(repr(value)).normalize()
    sign, digits, exponent = shortest.as_tuple()
    fixed = str(int(value)) if exponent >= 0 else f"{shortest:f}"
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    scientific = f"{'-' * sign}{first}{'.' * bool(rest)}{rest}e{exponent + len(rest):+03d}"
    if len(scientific) < len(fixed):
        return scientific
    return fixed if "." in fixed else fixed + ".0"


def _call(function: str, arguments: Iterable[ast.expr]) -> tuple[str, int]:
    return f"{function}({', '.join(_expression(argument, _COMPARE) for argument in arguments)})", _ATOM


def _cases(cases: list[ast.expr], other: ast.expr) -> tuple[str, int]:
    """Prints a Piecewise as nested Where calls. cases: (value, condition) pairs; other: the
    default."""
    if not cases:
        return _expression_parts(other)
    match cases[0]:
        case ast.Tuple(elts=[value, condition]):
            parts = [_expression(condition, _COMPARE), _expression(value, _COMPARE), _cases(cases[1:], other)[0]]
            return f"Where({', '.join(parts)})", _ATOM
    raise FormError(f"fxopt has no expression for {ast.unparse(cases[0])!r}")


def _expression_parts(tree: ast.expr) -> tuple[str, int]:
    match tree:
        case ast.Constant(value=bool(value)):
            return f"0 == {0 if value else 1}", _COMPARE
        case ast.Constant(value=float(value)):
            return _float_text(value), _ATOM
        case ast.Constant(value=int(value)):
            return str(value), _ATOM
        case ast.Name():
            return tree.id, _ATOM
        case ast.UnaryOp(op=ast.USub()):
            return f"-{_expression(tree.operand, _UNARY)}", _UNARY
        case ast.UnaryOp(op=ast.Invert() | ast.Not()):
            return _call("Not", [tree.operand])
        case ast.BinOp() if type(tree.op) in _LOGIC:
            return _call(_LOGIC[type(tree.op)], [tree.left, tree.right])
        case ast.BinOp() if type(tree.op) in _BINARY or isinstance(tree.op, ast.Pow):
            return _apply(type(tree.op), tree.left, tree.right)
        case ast.BoolOp():
            return _call("And" if isinstance(tree.op, ast.And) else "Or", tree.values)
        case ast.Compare() if all(type(op) in _COMPARISONS for op in tree.ops):
            terms = [tree.left, *tree.comparators]
            pairs = [_apply(type(op), a, b) for op, a, b in zip(tree.ops, terms, terms[1:])]
            return pairs[0] if len(pairs) == 1 else (f"And({', '.join(text for text, _ in pairs)})", _ATOM)
        case ast.Call(func=ast.Name(id="Piecewise"), args=[*cases, ast.Tuple(elts=[other, ast.Constant(value=True)])]):
            return _cases(cases, other)
        case ast.Call(func=ast.Name(), keywords=[]):
            if tree.func.id in _FUNCTION_OPERATORS and len(tree.args) == 2:
                return _apply(_FUNCTION_OPERATORS[tree.func.id], *tree.args)
            return _call(tree.func.id, tree.args)
    raise FormError(f"fxopt has no expression for {ast.unparse(tree)!r}")


def expression(text: str) -> str:
    """Converts the framework's printed expression to the canonical form of the grammar in
    ir/graph/expr.h. Raises FormError if the grammar cannot represent it."""
    try:
        return _expression(ast.parse(text.strip(), mode="eval").body, _COMPARE)
    except (SyntaxError, RecursionError, ValueError) as error:
        raise FormError(f"cannot read the symbolic expression {text[:80]!r}: {error}") from error


def symbols_of(text: str) -> list[str]:
    """Returns the symbols of an expression, in order of appearance."""
    return list(dict.fromkeys(re.findall(r"\b([A-Za-z_]\w*)\b(?!\s*\()", text)))


class SymbolTable:
    """The symbols of a module, in order of first use."""

    def __init__(self) -> None:
        self.records: dict[str, Json] = {}

    def expression(self, text: str) -> str:
        result = expression(text)
        for name in symbols_of(result):
            if name not in self.records:
                # Names by the framework: u0, zuf0 are unbacked, s0, zf0 backed; zf, zuf floats.
                unbacked = re.fullmatch(r"(u|zuf)\d+", name) is not None
                kind = "SYMBOL_KIND_UNBACKED" if unbacked else "SYMBOL_KIND_BACKED"
                self.records[name] = {"name": name, "kind": kind}
                if name.startswith("z"):
                    self.records[name]["type"] = "SYMBOL_TYPE_FLOAT"
        return result


# ---- arguments and metadata


def floating(value: float) -> Json:
    return {"float_bits": "0x" + struct.pack(">d", value).hex()}


def _bits(value: float) -> str:
    return "0x" + struct.pack(">d", value).hex()


def sequence(value: Sequence[object], of: Callable[[object], Json], kind: str = "list", type_name: str = "") -> Json:
    """Returns a list, tuple or set of arguments. Plain ints are packed."""
    if value and not type_name and kind != "set" and all(type(item) is int and is_int64(item) for item in value):
        return {"ints" if kind == "list" else "int_tuple": {"values": [integer(item) for item in value]}}
    result: Json = {"items": [of(item) for item in value]} if value else {}
    if type_name:
        result["type"] = type_name
    return {kind: result}


def mapping(value: dict, of: Callable[[object], Json], type_name: str = "") -> Json:
    result: Json = {"items": [{"key": of(key), "value": of(item)} for key, item in value.items()]} if value else {}
    if type_name:
        result["type"] = type_name
    return {"dict": result}


def scalar(value: object) -> Json | None:
    """Returns the argument for a Python scalar; None for other values."""
    match value:
        case None:
            return {"none": True}
        case _ if value is Ellipsis:
            return {"ellipsis": True}
        case _ if type(value) is bool:
            return {"bool_value": value}
        case _ if type(value) is int:
            return {"int_value": integer(value)}
        case _ if type(value) is float:
            return floating(value)
        case complex():
            return {"complex_value": {"real_bits": _bits(value.real), "imag_bits": _bits(value.imag)}}
        case _ if type(value) is str:
            return {"string": value}
        case bytes():
            return {"bytes_value": base64.b64encode(value).decode()}
    return None


def plain(value: object) -> Json:
    """Returns the typed tree of a value of Python's built-in types, such as the contents of a JSON
    file."""
    if (result := scalar(value)) is not None:
        return result
    match value:
        case list():
            return sequence(value, plain)
        case tuple():
            return sequence(value, plain, "tuple")
        case dict():
            return mapping(value, plain)
    raise FormError(f"metadata of type {type(value).__name__} is not of Python's built-in types")


def dtype(name: str) -> str:
    if name not in DTYPES:
        raise FormError(f"unknown dtype {name!r}")
    return "DTYPE_" + name.upper()


def layout(name: str) -> str:
    if name not in LAYOUTS:
        raise FormError(f"unknown layout {name!r}")
    return LAYOUTS[name]


def memory_format(name: str) -> str:
    if name not in MEMORY_FORMATS:
        raise FormError(f"unknown memory format {name!r}")
    return MEMORY_FORMATS[name]


def dims(field: str, values: Sequence[int | str]) -> Json:
    """Returns sizes or strides as numbers, with the symbolic entries in a list beside them."""
    result: Json = {}
    if values:
        result[field] = [0 if isinstance(value, str) else integer(value) for value in values]
    symbolic = [(i, value) for i, value in enumerate(values) if isinstance(value, str)]
    if symbolic:
        entries = [{"index": i, "expr": value} for i, value in symbolic]
        result["symbolic_" + field] = entries
    return result


def leaves(arg: Json) -> list[Json]:
    """Returns the leaves of an argument, in the order of output specifications."""
    for kind in ("list", "tuple", "slice"):
        if kind in arg:
            return [leaf for item in arg[kind].get("items", []) for leaf in leaves(item)]
    for kind in ("ints", "int_tuple"):
        if kind in arg:
            return [{"int_value": value} for value in arg[kind].get("values", [])]
    if "dict" in arg:
        return [leaf for item in arg["dict"].get("items", []) for leaf in leaves(item["value"])]
    return [arg]


# ---- files


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Pauses the cyclic garbage collector, which would scan a JSON form's millions of live
    objects."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_LIBRARY_FOLDER = re.compile(r"(?:/[^/\s\"':]+)*/(?=(?:site-packages|dist-packages)/|python3\.\d+/[\w.]+\.py)")


def shorten_paths(text: str) -> str:
    """Cuts machine-specific folders from file names: the current directory, and the path above the
    folder of installed packages."""
    text = _LIBRARY_FOLDER.sub("", text)
    return text.replace(os.getcwd() + "/", "")


def write_json(module: Json, path: str | os.PathLike[str]) -> None:
    """Writes the JSON form atomically."""
    target = pathlib.Path(path)
    partial = target.with_name(target.name + ".partial")
    file = {"version": 0, "module": module}
    text = json.dumps(file, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False)
    try:
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
