#include "runtime/plan/scalars.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <string_view>

namespace fxopt {
namespace {

constexpr int64_t kNoNumber = std::numeric_limits<int64_t>::min();

struct NamedOp {
  std::string_view name;
  FxCodeOp op;
};

// Functions of expressions, see ir/graph/expr.h.
constexpr std::array kFunctions = {
    NamedOp{"Max", FX_CODE_MAX},
    NamedOp{"Min", FX_CODE_MIN},
    NamedOp{"CeilDiv", FX_CODE_CEILDIV},
    NamedOp{"Mod", FX_CODE_MOD},
    NamedOp{"Abs", FX_CODE_ABS},
    NamedOp{"And", FX_CODE_AND},
    NamedOp{"Or", FX_CODE_OR},
    NamedOp{"Not", FX_CODE_NOT},
    NamedOp{"Where", FX_CODE_WHERE},
    NamedOp{"ModularIndexing", FX_CODE_INDEXING},
    NamedOp{"Pow2Floor", FX_CODE_POW2FLOOR},
};

std::optional<FxCodeOp> op_of(const Expr& expr, std::string_view function) {
  switch (expr.kind) {
    case ExprKind::kAdd:
      return FX_CODE_ADD;
    case ExprKind::kSub:
      return FX_CODE_SUB;
    case ExprKind::kMul:
      return FX_CODE_MUL;
    case ExprKind::kFloorDiv:
      return FX_CODE_FLOORDIV;
    case ExprKind::kMod:
      return FX_CODE_MOD;
    case ExprKind::kTrueDiv:
      return FX_CODE_TRUEDIV;
    case ExprKind::kPow:
      return FX_CODE_POW;
    case ExprKind::kNeg:
      return FX_CODE_NEG;
    case ExprKind::kEq:
      return FX_CODE_EQ;
    case ExprKind::kNe:
      return FX_CODE_NE;
    case ExprKind::kLe:
      return FX_CODE_LE;
    case ExprKind::kGe:
      return FX_CODE_GE;
    case ExprKind::kLt:
      return FX_CODE_LT;
    case ExprKind::kGt:
      return FX_CODE_GT;
    case ExprKind::kCall:
      for (const NamedOp& row : kFunctions) {
        if (row.name == function && ExprTable::takes(function, expr.inputs.size())) return row.op;
      }
      return std::nullopt;
    case ExprKind::kInt:
    case ExprKind::kFloat:
    case ExprKind::kSymbol:
      break;
  }
  return std::nullopt;
}

bool is_boolean(FxCodeOp op) { return op >= FX_CODE_EQ && op <= FX_CODE_NOT; }

// Max and Min take any number of operands, the code two.
bool folds(FxCodeOp op) { return op == FX_CODE_MAX || op == FX_CODE_MIN || op == FX_CODE_AND || op == FX_CODE_OR; }

}  // namespace

ScalarBuilder::ScalarBuilder(const Module& module, Plan& plan) : module_(module), plan_(plan) {
  for (uint32_t i = 0; i < module.symbols.size(); ++i) rows_.emplace(module.symbols[i].name, i);
}

FxWord ScalarBuilder::of(const Dim& dim) { return dim.is_static() ? plan_.number(dim.value) : of(dim.expr); }

FxWord ScalarBuilder::of(ExprId expr) {
  if (words_.get(expr) != kNoWord) return words_.get(expr);
  // By an explicit stack: expressions that were built, not parsed, may be nested deeply.
  std::vector<std::pair<ExprId, bool>> stack = {{expr, false}};
  while (!stack.empty()) {
    const auto [id, are_operands_done] = stack.back();
    stack.pop_back();
    if (words_.get(id) != kNoWord) continue;
    if (are_operands_done) {
      const FxWord word = make(id);
      if (word == kNoWord) return kNoWord;
      words_[id] = word;
      continue;
    }
    stack.emplace_back(id, true);
    for (const ExprId input : module_.exprs[id].inputs) stack.emplace_back(input, false);
  }
  return words_.get(expr);
}

FxWord ScalarBuilder::make(ExprId id) {
  const Expr& expr = module_.exprs[id];
  if (expr.kind == ExprKind::kInt) return plan_.number(expr.value);
  if (expr.kind == ExprKind::kFloat) return plan_.real(std::bit_cast<double>(expr.value));
  if (expr.kind == ExprKind::kSymbol) {
    const auto found = symbols_.find(expr.name);
    return found == symbols_.end() ? kNoWord : found->second;
  }
  Operands operands;
  std::vector<std::optional<int64_t>> values;
  bool is_constant = true;
  for (const ExprId input : expr.inputs) {
    operands.push_back(words_.get(input));
    values.push_back(module_.exprs[input].kind == ExprKind::kInt ? std::optional(module_.exprs[input].value)
                                                                 : std::nullopt);
    is_constant = is_constant && values.back().has_value();
  }
  if (is_constant) {
    if (const std::optional<int64_t> value = module_.exprs.apply(id, values)) return plan_.number(*value);
  }
  const std::optional<FxCodeOp> op = op_of(expr, module_.text(expr.name));
  return op.has_value() ? compute(*op, operands) : kNoWord;
}

FxWord ScalarBuilder::compute(FxCodeOp op, std::span<const FxWord> operands, FxScalarType type) {
  FxScalar scalar{};
  scalar.source = FX_SCALAR_CODE;
  scalar.code = static_cast<uint32_t>(plan_.code.size());
  for (const FxWord word : operands) {
    scalar.ready = std::max(scalar.ready, ready(word));
    const bool is_real = kind_of(word) == FX_WORD_DOUBLE ||
                         (kind_of(word) == FX_WORD_SCALAR && plan_.scalars[index_of(word)].type == FX_SCALAR_FLOAT);
    if (is_real) type = FX_SCALAR_FLOAT;
  }
  if (op == FX_CODE_TRUEDIV) type = FX_SCALAR_FLOAT;
  if (is_boolean(op)) type = FX_SCALAR_BOOL;
  scalar.type = static_cast<uint8_t>(type);
  for (size_t i = 0; i < operands.size(); ++i) {
    plan_.code.push_back({operands[i], FX_CODE_PUSH, 0});
    if (folds(op) && i > 0 && i + 1 < operands.size()) plan_.code.push_back({kNoWord, static_cast<uint32_t>(op), 0});
  }
  if (!folds(op) || operands.size() > 1) plan_.code.push_back({kNoWord, static_cast<uint32_t>(op), 0});
  scalar.num_code = static_cast<uint32_t>(plan_.code.size()) - scalar.code;
  return add(scalar);
}

FxWord ScalarBuilder::add(FxScalar scalar) {
  scalar.name = FX_NONE;
  scalar.tensor = FX_NONE;
  scalar.min = kNoNumber;
  scalar.max = std::numeric_limits<int64_t>::max();
  scalar.hint = kNoNumber;
  plan_.scalars.push_back(scalar);
  return make_word(FX_WORD_SCALAR, plan_.scalars.size() - 1);
}

FxWord ScalarBuilder::bind(StringId symbol, FxScalar scalar) {
  scalar.min = kNoNumber;
  scalar.max = std::numeric_limits<int64_t>::max();
  scalar.hint = kNoNumber;
  if (const auto row = rows_.find(symbol); row != rows_.end()) {
    const Symbol& known = module_.symbols[row->second];
    scalar.min = known.min.value_or(scalar.min);
    scalar.max = known.max.value_or(scalar.max);
    scalar.hint = known.hint.value_or(kNoNumber);
  }
  scalar.name = plan_.add_string(module_.text(symbol));
  if (scalar.source != FX_SCALAR_DIM) scalar.tensor = FX_NONE;
  plan_.scalars.push_back(scalar);
  const FxWord word = make_word(FX_WORD_SCALAR, plan_.scalars.size() - 1);
  symbols_.emplace(symbol, word);
  return word;
}

FxWord ScalarBuilder::bind_dim(StringId symbol, uint32_t tensor, uint32_t dim) {
  FxScalar scalar{};
  scalar.source = FX_SCALAR_DIM;
  scalar.tensor = tensor;
  scalar.dim = dim;
  return bind(symbol, scalar);
}

FxWord ScalarBuilder::bind_input(StringId symbol, FxScalarType type) {
  FxScalar scalar{};
  scalar.source = FX_SCALAR_INPUT;
  scalar.type = static_cast<uint8_t>(type);
  return bind(symbol, scalar);
}

FxWord ScalarBuilder::bind_step(StringId symbol, FxScalarType type, uint32_t ready) {
  FxScalar scalar{};
  scalar.source = FX_SCALAR_STEP;
  scalar.type = static_cast<uint8_t>(type);
  scalar.ready = ready;
  return bind(symbol, scalar);
}

FxWord ScalarBuilder::bind_outer(StringId symbol) {
  FxScalar scalar{};
  scalar.source = FX_SCALAR_OUTER;
  return bind(symbol, scalar);
}

FxWord ScalarBuilder::add_step(FxScalarType type, uint32_t ready) {
  FxScalar scalar{};
  scalar.source = FX_SCALAR_STEP;
  scalar.type = static_cast<uint8_t>(type);
  scalar.ready = ready;
  return add(scalar);
}

StringId ScalarBuilder::symbol_of(ExprId expr) const {
  const Expr& known = module_.exprs[expr];
  return known.kind == ExprKind::kSymbol ? known.name : StringId();
}

uint32_t ScalarBuilder::ready(FxWord word) const {
  return kind_of(word) == FX_WORD_SCALAR ? plan_.scalars[index_of(word)].ready : 0;
}

FxWord ScalarBuilder::sum(FxWord a, FxWord b) { return compute(FX_CODE_ADD, std::array{a, b}); }
FxWord ScalarBuilder::product(FxWord a, FxWord b) { return compute(FX_CODE_MUL, std::array{a, b}); }

// (offset + sum((size - 1) * stride) + 1) * element size, or 0 where a size is 0.
FxWord ScalarBuilder::tensor_bytes(const Tensor& tensor) {
  if (const std::optional<int64_t> bytes = storage_bytes(module_, tensor, {})) return plan_.number(*bytes);
  if (!tensor.sizes.is_valid() || !tensor.strides.is_valid() || tensor.dtype == DType::kUnspecified) return kNoWord;
  const std::vector<Dim>&sizes = module_.dims(tensor.sizes), &strides = module_.dims(tensor.strides);
  FxWord last = of(tensor.offset);
  Operands all;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const FxWord size = of(sizes[i]), stride = of(strides[i]);
    if (size == kNoWord || stride == kNoWord || last == kNoWord) return kNoWord;
    all.push_back(size);
    last = sum(last, product(sum(size, plan_.number(-1)), stride));
  }
  const FxWord bytes = product(sum(last, plan_.number(1)), plan_.number(element_size(tensor.dtype)));
  const FxWord least = compute(FX_CODE_MIN, all);
  const FxWord is_empty = compute(FX_CODE_EQ, std::array{least, plan_.number(0)});
  return compute(FX_CODE_WHERE, std::array{is_empty, plan_.number(0), bytes});
}

FxWord ScalarBuilder::room_bytes(const SizeSource& source) {
  FxWord count = plan_.number(1);
  for (const Dim& dim : source.room.sizes) {
    const FxWord size = of(dim);
    if (size == kNoWord) return kNoWord;
    count = product(count, size);
  }
  return product(sum(count, plan_.number(source.room.more)), plan_.number(element_size(source.tensor->dtype)));
}

FxWord ScalarBuilder::bytes_of(const SizeSource& source) {
  if (const std::optional<int64_t> bytes = evaluate_size(module_, source, {})) return plan_.number(*bytes);
  const auto recorded = [&] {
    if (source.bytes.expr.is_valid()) return of(source.bytes.expr);
    return source.bytes.value.has_value() ? plan_.number(*source.bytes.value) : tensor_bytes(*source.tensor);
  };
  switch (source.kind) {
    case SizeKind::kRecorded:
      return recorded();
    case SizeKind::kTensor:
      return tensor_bytes(*source.tensor);
    case SizeKind::kRoom: {
      const FxWord file = recorded(), room = room_bytes(source);
      return file == kNoWord || room == kNoWord ? kNoWord : compute(FX_CODE_MAX, std::array{file, room});
    }
    case SizeKind::kNothing:
    case SizeKind::kUnknown:
    case SizeKind::kLike:
      break;
  }
  return kNoWord;
}

}  // namespace fxopt
