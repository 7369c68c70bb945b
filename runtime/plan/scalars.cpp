#include "runtime/plan/scalars.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace fxopt {
namespace {

constexpr int64_t kNoNumber = std::numeric_limits<int64_t>::min();

// Functions of expressions, see ir/graph/expr.h.
constexpr std::pair<std::string_view, FxCodeOp> kFunctions[] = {
    {"Max", FX_CODE_MAX},
    {"Min", FX_CODE_MIN},
    {"CeilDiv", FX_CODE_CEILDIV},
    {"Mod", FX_CODE_MOD},
    {"Abs", FX_CODE_ABS},
    {"And", FX_CODE_AND},
    {"Or", FX_CODE_OR},
    {"Not", FX_CODE_NOT},
    {"Where", FX_CODE_WHERE},
    {"ModularIndexing", FX_CODE_INDEXING},
    {"Pow2Floor", FX_CODE_POW2FLOOR},
};

constexpr std::pair<ExprKind, FxCodeOp> kOperators[] = {
    {ExprKind::kAdd, FX_CODE_ADD}, {ExprKind::kSub, FX_CODE_SUB},
    {ExprKind::kMul, FX_CODE_MUL}, {ExprKind::kFloorDiv, FX_CODE_FLOORDIV},
    {ExprKind::kMod, FX_CODE_MOD}, {ExprKind::kTrueDiv, FX_CODE_TRUEDIV},
    {ExprKind::kPow, FX_CODE_POW}, {ExprKind::kNeg, FX_CODE_NEG},
    {ExprKind::kEq, FX_CODE_EQ},   {ExprKind::kNe, FX_CODE_NE},
    {ExprKind::kLe, FX_CODE_LE},   {ExprKind::kGe, FX_CODE_GE},
    {ExprKind::kLt, FX_CODE_LT},   {ExprKind::kGt, FX_CODE_GT},
};

std::optional<FxCodeOp> op_of(const Expr& expr, std::string_view function) {
  for (const auto& [kind, op] : kOperators) {
    if (kind == expr.kind) return op;
  }
  for (const auto& [name, op] : kFunctions) {
    if (expr.kind == ExprKind::kCall && name == function && ExprTable::takes(function, expr.inputs.size())) return op;
  }
  return std::nullopt;
}

bool is_boolean(FxCodeOp op) { return op >= FX_CODE_EQ && op <= FX_CODE_NOT; }

// Returns true for functions with any number of operands. The code operators take two operands, so
// such a function needs several.
bool folds(FxCodeOp op) { return op == FX_CODE_MAX || op == FX_CODE_MIN || op == FX_CODE_AND || op == FX_CODE_OR; }

}  // namespace

ScalarBuilder::ScalarBuilder(const Module& module, Plan& plan) : module_(module), plan_(plan) {
  for (uint32_t i = 0; i < module.symbols.size(); ++i) rows_.emplace(module.symbols[i].name, i);
}

FxWord ScalarBuilder::of(const Dim& dim) { return dim.is_static() ? plan_.number(dim.value) : of(dim.expr); }

FxWord ScalarBuilder::of(ExprId expr) {
  if (words_.get(expr) != kNoWord) return words_.get(expr);
  // Uses an explicit stack, because expressions that the program builds may be nested deeply.
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
    return found == symbols_.end() ? bind_rank(expr.name) : found->second;
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

FxWord ScalarBuilder::compute(FxCodeOp op, std::span<const FxWord> operands) {
  // Saves the unfinished code of a size that contains this expression.
  std::vector<FxCode> outer = std::exchange(pending_, {});
  FxScalarType type = FX_SCALAR_INT;
  for (size_t i = 0; i < operands.size(); ++i) {
    const FxWord word = operands[i];
    const bool is_real = kind_of(word) == FX_WORD_DOUBLE ||
                         (kind_of(word) == FX_WORD_SCALAR && plan_.scalars[index_of(word)].type == FX_SCALAR_FLOAT);
    if (is_real) type = FX_SCALAR_FLOAT;
    push(word);
    if (folds(op) && i > 0) apply(op);
  }
  if (!folds(op)) apply(op);
  if (op == FX_CODE_TRUEDIV) type = FX_SCALAR_FLOAT;
  const FxWord word = take(is_boolean(op) ? FX_SCALAR_BOOL : type);
  pending_ = std::move(outer);
  return word;
}

FxWord ScalarBuilder::add(FxScalar scalar) {
  scalar.name = scalar.tensor = FX_NONE;
  scalar.min = scalar.hint = kNoNumber;
  scalar.max = std::numeric_limits<int64_t>::max();
  plan_.scalars.push_back(scalar);
  return make_word(FX_WORD_SCALAR, plan_.scalars.size() - 1);
}

FxWord ScalarBuilder::bind(StringId symbol, FxScalarSource source, FxScalarType type, uint32_t ready) {
  FxScalar scalar{};
  scalar.source = static_cast<uint8_t>(source);
  scalar.type = static_cast<uint8_t>(type);
  scalar.ready = ready;
  const FxWord word = add(scalar);
  if (!symbol.is_valid()) return word;
  FxScalar& added = plan_.scalars.back();
  added.name = plan_.add_string(module_.text(symbol));
  if (const auto row = rows_.find(symbol); row != rows_.end()) {
    const Symbol& known = module_.symbols[row->second];
    added.min = known.min.value_or(added.min);
    added.max = known.max.value_or(added.max);
    added.hint = known.hint.value_or(kNoNumber);
  }
  symbols_.emplace(symbol, word);
  return word;
}

FxWord ScalarBuilder::bind_rank(StringId symbol) {
  const auto row = rows_.find(symbol);
  const bool is_rank = row != rows_.end() && module_.symbols[row->second].kind == SymbolKind::kRank;
  return is_rank ? bind(symbol, FX_SCALAR_RANK) : kNoWord;
}

StringId ScalarBuilder::symbol_of(ExprId expr) const {
  const Expr& known = module_.exprs[expr];
  return known.kind == ExprKind::kSymbol ? known.name : StringId();
}

uint32_t ScalarBuilder::ready(FxWord word) const {
  return kind_of(word) == FX_WORD_SCALAR ? plan_.scalars[index_of(word)].ready : 0;
}

void ScalarBuilder::push(FxWord word) { pending_.push_back({word, FX_CODE_PUSH, 0}); }
void ScalarBuilder::apply(FxCodeOp op) { pending_.push_back({kNoWord, static_cast<uint32_t>(op), 0}); }
void ScalarBuilder::apply(FxCodeOp op, FxWord last) {
  push(last);
  apply(op);
}

// Turns the code in pending_ into one scalar, or reuses the scalar with the same code. Clears
// pending_.
FxWord ScalarBuilder::take(FxScalarType type) {
  std::vector<uint64_t> key;
  FxScalar scalar{};
  for (const FxCode& code : pending_) {
    key.push_back(code.push);
    key.push_back(code.op);
    scalar.ready = std::max(scalar.ready, ready(code.push));
  }
  const auto [found, is_new] = by_code_.emplace(std::move(key), kNoWord);
  if (is_new) {
    scalar.source = FX_SCALAR_CODE;
    scalar.type = static_cast<uint8_t>(type);
    scalar.code = static_cast<uint32_t>(plan_.code.size());
    scalar.num_code = static_cast<uint32_t>(pending_.size());
    plan_.code.insert(plan_.code.end(), pending_.begin(), pending_.end());
    found->second = add(scalar);
  }
  pending_.clear();
  return found->second;
}

// Pushes the number of bytes: (offset + sum((size - 1) * stride) + 1) * element size, or 0 if a
// size is 0. Constant terms are added before code is pushed.
bool ScalarBuilder::push_tensor_bytes(const Tensor& tensor) {
  if (!tensor.sizes.is_valid() || !tensor.strides.is_valid() || tensor.dtype == DType::kUnspecified) return false;
  const std::vector<Dim>&sizes = module_.dims(tensor.sizes), &strides = module_.dims(tensor.strides);
  const FxWord offset = of(tensor.offset);
  if (offset == kNoWord || sizes.size() != strides.size()) return false;
  std::vector<std::pair<FxWord, FxWord>> open;  // sizes and strides that are not both known
  std::vector<FxWord> lengths;                  // unknown sizes
  int64_t known = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const FxWord size = of(sizes[i]), stride = of(strides[i]);
    if (size == kNoWord || stride == kNoWord) return false;
    if (kind_of(size) == FX_WORD_SCALAR) lengths.push_back(size);
    int64_t extent = 0;
    const bool is_number = sizes[i].is_static() && strides[i].is_static();
    if (!is_number || __builtin_mul_overflow(sizes[i].value - 1, strides[i].value, &extent) ||
        __builtin_add_overflow(known, extent, &known)) {
      open.emplace_back(size, stride);
    }
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    push(lengths[i]);
    if (i > 0) apply(FX_CODE_MIN);
  }
  if (!lengths.empty()) {
    apply(FX_CODE_EQ, plan_.number(0));
    push(plan_.number(0));
  }
  push(plan_.number(known));
  if (offset != plan_.number(0)) apply(FX_CODE_ADD, offset);
  for (const auto& [size, stride] : open) {
    push(size);
    apply(FX_CODE_ADD, plan_.number(-1));
    apply(FX_CODE_MUL, stride);
    apply(FX_CODE_ADD);
  }
  apply(FX_CODE_MUL, plan_.number(element_size(tensor.dtype)));
  if (!lengths.empty()) apply(FX_CODE_WHERE);
  return true;
}

bool ScalarBuilder::push_room_bytes(const SizeSource& source) {
  push(plan_.number(1));
  for (const Dim& dim : source.room.sizes) {
    const FxWord size = of(dim);
    if (size == kNoWord) return false;
    apply(FX_CODE_MUL, size);
  }
  apply(FX_CODE_ADD, plan_.number(source.room.more));
  apply(FX_CODE_MUL, plan_.number(element_size(source.tensor->dtype)));
  return true;
}

bool ScalarBuilder::push_recorded_bytes(const SizeSource& source) {
  if (!source.bytes.is_known()) return push_tensor_bytes(*source.tensor);
  const FxWord word = source.bytes.expr.is_valid() ? of(source.bytes.expr) : plan_.number(*source.bytes.value);
  push(word);
  return word != kNoWord;
}

FxWord ScalarBuilder::bytes_of(const SizeSource& source) {
  if (const std::optional<int64_t> bytes = evaluate_size(module_, source, {})) return plan_.number(*bytes);
  bool is_said = false;
  if (source.kind == SizeKind::kRecorded) return source.bytes.expr.is_valid() ? of(source.bytes.expr) : kNoWord;
  if (source.kind == SizeKind::kTensor) is_said = push_tensor_bytes(*source.tensor);
  if (source.kind == SizeKind::kRoom) {
    is_said = push_recorded_bytes(source) && push_room_bytes(source);
    apply(FX_CODE_MAX);
  }
  if (is_said) return take(FX_SCALAR_INT);
  pending_.clear();
  return kNoWord;
}

}  // namespace fxopt
