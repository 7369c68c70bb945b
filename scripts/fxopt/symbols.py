"""Symbolic sizes: expressions and symbols of a ShapeEnv in the schema's form, and back.

The schema's grammar (ir/graph/expr.h) has one division, the framework several classes. If the text
of an expression does not parse back to the same object, `spelled` also holds the framework's
printed form. If another expression already has the same text, " + 0" is appended.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import sympy
import torch
import torch.utils._sympy.functions as torch_functions
from torch.fx.experimental import symbolic_shapes
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.value_ranges import ValueRanges

from fxopt import form
from fxopt.form import FormError, Json

_PYTHON_TYPES = {"SYMBOL_TYPE_FLOAT": float, "SYMBOL_TYPE_BOOL": bool}  # otherwise int
_SYMBOL_CLASSES = {int: torch.SymInt, float: torch.SymFloat, bool: torch.SymBool}
_COMPARISONS = {
    ast.Eq: sympy.Eq,
    ast.NotEq: sympy.Ne,
    ast.Lt: sympy.Lt,
    ast.LtE: sympy.Le,
    ast.Gt: sympy.Gt,
    ast.GtE: sympy.Ge,
}


class _Printer(sympy.printing.str.StrPrinter):
    """Prints distinct expressions distinctly, unlike str(): all digits of floats, and CleanDiv by
    name."""

    def _print(self, expr: object, **options: object) -> str:
        if isinstance(expr, torch_functions.CleanDiv):
            return f"CleanDiv({', '.join(map(self._print, expr.args))})"
        return super()._print(expr, **options)

    def _print_Float(self, expr: sympy.Float) -> str:
        return repr(float(expr))


def parse(text: str, symbols: Mapping[str, sympy.Symbol]) -> sympy.Basic:
    """Parses an expression in the schema's grammar or in the framework's printed form. Raises
    FormError if it is neither."""
    try:
        return _build(ast.parse(text, mode="eval").body, symbols)
    except (SyntaxError, RecursionError, ValueError, TypeError) as error:
        raise FormError(f"cannot read the expression {text[:80]!r}: {error}") from error


def _build(tree: ast.expr, symbols: Mapping[str, sympy.Symbol]) -> sympy.Basic:
    def inner(part: ast.expr) -> sympy.Basic:
        return _build(part, symbols)

    match tree:
        case ast.Constant(value=bool(value)):
            return sympy.true if value else sympy.false
        case ast.Constant(value=int(value)):
            return sympy.Integer(value)
        case ast.Constant(value=float(value)):
            return sympy.Float(value)
        case ast.Name(id=name):
            if name in symbols:
                return symbols[name]
            raise FormError(f"unknown symbol {name!r}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -inner(operand)
        case ast.UnaryOp(op=ast.Invert() | ast.Not(), operand=operand):
            return sympy.Not(inner(operand))
        case ast.BinOp(op=ast.Mult() | ast.Add() as op):  # whole chain: sympy expands number * sum
            return (sympy.Mul if isinstance(op, ast.Mult) else sympy.Add)(*map(inner, _operands(tree, type(op))))
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, inner(left), inner(right))
        case ast.BoolOp(op=op, values=values):
            return (sympy.And if isinstance(op, ast.And) else sympy.Or)(*map(inner, values))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            terms = [inner(left), *map(inner, comparators)]
            pairs = [_COMPARISONS[type(op)](a, b) for op, a, b in zip(ops, terms, terms[1:])]
            return pairs[0] if len(pairs) == 1 else sympy.And(*pairs)
        case ast.Call(func=ast.Name(id="Piecewise"), args=cases, keywords=[]):
            return sympy.Piecewise(*(tuple(map(inner, case.elts)) for case in cases if isinstance(case, ast.Tuple)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _function(name)(*map(inner, args))
    raise FormError(f"not an expression: {ast.unparse(tree)[:80]!r}")


def _operands(tree: ast.expr, op: type) -> list[ast.expr]:
    """Returns the operands of a chain of one operator, from left to right."""
    chain: list[ast.expr] = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, op):
        chain.append(tree.right)
        tree = tree.left
    return [tree, *reversed(chain)]


def _binary(op: ast.operator, a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
    match op:
        case ast.Sub():
            return a - b
        case ast.Div():
            return a / b
        case ast.Pow():
            return a**b
        case ast.FloorDiv():
            return torch_functions.FloorDiv(a, b)
        case ast.Mod():
            return torch_functions.PythonMod(a, b)
        case ast.BitAnd():
            return sympy.And(a, b)
        case ast.BitOr():
            return sympy.Or(a, b)
    raise FormError(f"unknown operator {type(op).__name__}")


def _function(name: str) -> type:
    for module in (torch_functions, sympy):
        found = getattr(module, name, None)
        if isinstance(found, type) and issubclass(found, sympy.Basic):
            return found
    raise FormError(f"unknown function {name!r}")


class SymbolWriter:
    """Writes expressions, and collects the table of symbols they use."""

    def __init__(self) -> None:
        self.table = form.SymbolTable()
        self.shape_env: ShapeEnv | None = None
        self.spelled: dict[str, str] = {}
        self.wide: dict[str, dict[str, str]] = {}  # bounds beyond 64 bits, by symbol
        self._texts: dict[sympy.Basic, str] = {}
        self._owners: dict[str, sympy.Basic] = {}  # the expression of each text
        self.symbols: dict[str, sympy.Symbol] = {}

    def of(self, value: torch.SymInt | torch.SymFloat | torch.SymBool) -> str:
        self.note(getattr(value.node, "shape_env", None))
        return self.text(value.node.expr)

    def note(self, env: ShapeEnv | None) -> None:
        """Takes the first environment as that of the module."""
        if self.shape_env is None:
            self.shape_env = env

    def text(self, expr: sympy.Basic) -> str:
        """Returns the expression in the schema's grammar and adds its symbols to the table."""
        if expr not in self._texts:
            self._texts[expr] = self._write(expr)
        return self._texts[expr]

    def _write(self, expr: sympy.Basic) -> str:
        printed = _Printer().doprint(expr)
        text = self.table.expression(printed)
        while self._owners.setdefault(text, expr) != expr:  # as for s0**2 and PowByNatural(s0, 2)
            text += " + 0"
        for symbol in expr.free_symbols:
            if self.symbols.setdefault(str(symbol), symbol) != symbol:
                raise FormError(f"two symbols with different assumptions are both called {symbol}")
        for spelling in (text, printed):
            if parse(spelling, self.symbols) == expr:
                break
        else:
            raise FormError(f"the expression {printed!r} does not parse back to itself")
        if spelling is not text:
            self.spelled[text] = printed
        return text

    def records(self, sites: Mapping[str, tuple[str, str, list[str]]]) -> list[Json]:
        """Returns the symbols in use, with ranges, hints and definitions.

        sites: graph, node and path of each symbol's definition.
        """
        env = self.shape_env
        ranges = {str(s): r for s, r in env.var_to_range.items()} if env is not None else {}
        hints = {str(s): v for s, v in _hints(env).items()} if env is not None else {}
        sources = {str(s): v for s, v in env.var_to_sources.items()} if env is not None else {}
        for name, record in self.table.records.items():
            for key, bound in (("min", "lower"), ("max", "upper")):
                limit = getattr(ranges.get(name), bound, None)
                if not getattr(limit, "is_Integer", False):
                    continue
                if form.is_int64(int(limit)):
                    record[key] = form.integer(int(limit))
                else:
                    self.wide.setdefault(name, {})[key] = str(limit)
            if getattr(hints.get(name), "is_Integer", False):
                record["hint"] = form.integer(int(hints[name]))
            if name in sites:
                graph, node, key_path = sites[name]
                record |= {"graph": graph, "node": node}
                if key_path:
                    record["key_path"] = key_path
            if sources.get(name):
                source = sources[name][0].name
                record["source"] = source() if callable(source) else source
        return list(self.table.records.values())

    def assertions(self, shown: Callable[[str], str]) -> list[Json]:
        """Returns the trace's assumptions: guards on backed symbols, run-time assertions on
        unbacked ones.

        shown: maps a message to the text to write.
        """
        env = self.shape_env
        if env is None:
            return []
        conditions = [(guard.expr, "", "guard") for guard in env.guards]
        for asserts in env.deferred_runtime_asserts.values():
            conditions += [(entry.expr, entry.msg, "runtime_assert") for entry in asserts]
        result = []
        for condition, message, source in conditions:
            if not condition.free_symbols:
                continue  # independent of sizes
            record = {"condition": self.text(condition), "message": shown(message), "source": source}
            result.append({key: value for key, value in record.items() if value})
        return result

    def extra(self) -> Json:
        """Returns facts that the tables have no field for: assumptions of symbols, `spelled`, bounds
        beyond 64 bits, and ranges and hints of float symbols."""
        assumptions = {}
        for name in self.table.records:
            if (symbol := self.symbols.get(name)) is not None:
                assumptions[name] = {key: bool(value) for key, value in sorted(_assumptions(symbol).items())}
        result: Json = {"assumptions": assumptions} if assumptions else {}
        if self.spelled:
            result["spelled"] = dict(sorted(self.spelled.items()))
        if self.wide:
            result["wide_bounds"] = dict(sorted(self.wide.items()))
        if floats := {name: self._float(self.symbols[name]) for name in assumptions if name.startswith("z")}:
            result["floats"] = floats
        return result

    def _float(self, symbol: sympy.Symbol) -> dict[str, float]:
        """Returns the range and hint of a symbol that is not an integer."""
        found = self.shape_env.var_to_range.get(symbol) if self.shape_env is not None else None
        told = {"lower": found.lower, "upper": found.upper} if found is not None else {}
        if symbol in _hints(self.shape_env):
            told["hint"] = _hints(self.shape_env)[symbol]
        return {key: float(value) for key, value in told.items()}


def _assumptions(symbol: sympy.Symbol) -> dict[str, bool]:
    """Returns the assumptions that the symbol was created with. Older versions of sympy keep only
    the derived ones."""
    made_with = getattr(symbol, "_assumptions_orig", None)
    return symbol.assumptions0 if made_with is None else made_with


def _number_of(symbol: sympy.Symbol) -> tuple[int, str]:
    """Returns a key that sorts symbols of run-time assertions by creation: u2 before u10."""
    return int("".join(filter(str.isdigit, symbol.name)) or 0), symbol.name


def _hints(env: ShapeEnv) -> dict[sympy.Symbol, sympy.Integer]:
    return env.backed_var_to_val if hasattr(env, "backed_var_to_val") else env.var_to_val


# Attributes of ShapeEnv that hold facts about symbols.
_FACTS = ("var_to_range", "replacements", "replacements_slocs", "unbacked_renamings", "divisible", "axioms", "guards")


class SymbolReader:
    """The symbols of a file, entered into a ShapeEnv."""

    def __init__(self, records: Sequence[Json], extra: Mapping[str, Mapping], env: ShapeEnv | None) -> None:
        self.env = env
        self._guards_before = len(env.guards) if env is not None else 0
        self.spelled = extra.get("spelled", {})
        self.symbols: dict[str, sympy.Symbol] = {}
        self._exprs: dict[str, sympy.Basic] = {}
        self._sizes: dict[tuple[str, str], torch.SymInt | torch.SymFloat | torch.SymBool] = {}
        for record in records:
            record = {**record, **extra.get("wide_bounds", {}).get(record["name"], {})}
            self._enter(record, extra.get("assumptions", {}).get(record["name"], {"integer": True}))
        for name, told in extra.get("floats", {}).items():
            self._enter_float(self.symbols[name], told)

    @classmethod
    def over(cls, writer: SymbolWriter) -> SymbolReader:
        """Returns a reader of `writer`'s texts, over the same symbols and ShapeEnv."""
        result = cls((), {"spelled": writer.spelled}, writer.shape_env)
        result.symbols = writer.symbols
        return result

    def _enter(self, record: Json, assumptions: Mapping[str, bool]) -> None:
        symbol = sympy.Symbol(record["name"], **assumptions)
        self.symbols[record["name"]] = symbol
        if record.get("type") is None:
            lower, upper = (int(record[key]) if key in record else None for key in ("min", "max"))
            infinity = getattr(torch_functions, "int_oo", sympy.oo)
            self._enter_range(symbol, -infinity if lower is None else lower, infinity if upper is None else upper)
        if "hint" in record:
            _hints(self.env)[symbol] = sympy.Integer(int(record["hint"]))
        if "source" in record:
            from torch._dynamo.source import ConstantSource

            self.env.var_to_sources[symbol] = [ConstantSource(record["source"])]

    def _enter_range(self, symbol: sympy.Symbol, lower: object, upper: object) -> None:
        self.env.var_to_range[symbol] = ValueRanges(lower, upper)
        where = symbolic_shapes.SLoc(None, None)
        self.env.var_to_range_sloc[symbol] = symbolic_shapes.ValueRangesSLoc(where, where)

    def _enter_float(self, symbol: sympy.Symbol, told: Mapping[str, float]) -> None:
        lower, upper = (sympy.sympify(told.get(key, other)) for key, other in (("lower", -math.inf), ("upper", math.inf)))
        self._enter_range(symbol, lower, upper)
        if "hint" in told:
            _hints(self.env)[symbol] = sympy.Float(told["hint"])

    def expr(self, text: str) -> sympy.Basic:
        if text not in self._exprs:
            self._exprs[text] = parse(self.spelled.get(text, text), self.symbols)
        return self._exprs[text]

    def number(self, message: Json) -> int | torch.SymInt:
        """Message Int."""
        return self.size(message["expr"]) if "expr" in message else int(message.get("value", 0))

    def size(self, text: str, kind: str = "SYMBOL_TYPE_INT") -> torch.SymInt | torch.SymFloat | torch.SymBool:
        """Returns the expression as a symbolic number."""
        if (text, kind) not in self._sizes:
            self._sizes[text, kind] = self._new_size(text, kind)
        return self._sizes[text, kind]

    def _new_size(self, text: str, kind: str) -> torch.SymInt | torch.SymFloat | torch.SymBool:
        python_type = _PYTHON_TYPES.get(kind, int)
        expr = self.expr(text)
        values = {symbol: _hints(self.env)[symbol] for symbol in expr.free_symbols if symbol in _hints(self.env)}
        known = expr.xreplace(values) if len(values) == len(expr.free_symbols) else None
        hint = python_type(known) if known is not None and not known.free_symbols else None
        return _SYMBOL_CLASSES[python_type](SymNode(expr, self.env, python_type, hint))

    @contextlib.contextmanager
    def learns_nothing(self) -> Iterator[None]:
        """Lets PyTorch build a tensor without facts about symbols. A bounds check would narrow them
        to sizes that fit into the storage as it was traced."""
        kept = {name: copy.copy(getattr(self.env, name)) for name in _FACTS if hasattr(self.env, name)}
        try:
            yield
        finally:
            if any(getattr(self.env, name) != value for name, value in kept.items()):
                for name, value in kept.items():
                    setattr(self.env, name, value)
                self.env._prev_cache_key = (-1, -1, -1, -1)  # forgets cached answers
                self.env._update_version_counter()

    def assertions(self, records: Sequence[Json]) -> None:
        """Enters guards and run-time assertions into the ShapeEnv. They replace guards that reading
        added."""
        del self.env.guards[self._guards_before :]
        where = symbolic_shapes.SLoc(None, None)
        for record in records:
            condition = self.expr(record["condition"])
            if record.get("source") != "runtime_assert":
                self.env.guards.append(symbolic_shapes.ShapeGuard(condition, where, size_oblivious=False))
                continue
            unbacked = sorted((s for s in condition.free_symbols if s not in _hints(self.env)), key=_number_of)
            stack = torch.utils._traceback.CapturedTraceback.extract()
            entry = symbolic_shapes.RuntimeAssert(condition, record.get("message", ""), stack)
            self.env.deferred_runtime_asserts.setdefault(unbacked[-1] if unbacked else None, []).append(entry)
