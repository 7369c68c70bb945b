#include "ir/device/call_symbol.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/text.h"
#include "ir/alias/sizes.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

using Property = CallSymbol::Property;
using Numbers = std::vector<int64_t>;

constexpr std::string_view kOutput = "out";
constexpr std::string_view kDTypePrefix = "is_";
constexpr std::pair<std::string_view, Property> kPlain[] = {
    {"given", Property::kGiven},           {"count", Property::kCount},       {"numel", Property::kNumel},
    {"bytes", Property::kBytes},           {"itemsize", Property::kItemsize}, {"rank", Property::kRank},
    {"contiguous", Property::kContiguous}, {"has_last", Property::kHasLast},  {"blas_ready", Property::kBlasReady},
};

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    const size_t end = text.find('.');
    words.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

std::optional<size_t> small_number(std::string_view text) {
  const std::optional<int64_t> number = parse_int64(text);
  if (!number.has_value() || *number < 0 || *number >= 64) return std::nullopt;
  return static_cast<size_t>(*number);
}

bool read_dtype(std::string_view word, CallSymbol& symbol) {
  if (!word.starts_with(kDTypePrefix)) return false;
  symbol.property = Property::kIsDType;
  const std::optional<DType> dtype = parse_enum<DType>(word.substr(kDTypePrefix.size()));
  symbol.dtype = dtype.value_or(DType::kUnspecified);
  return dtype.has_value();
}

bool read_order(std::span<const std::string_view> words, CallSymbol& symbol) {
  symbol.property = Property::kPermuted;
  for (const std::string_view word : words) {
    const std::optional<size_t> number = small_number(word);
    if (!number.has_value() || *number >= words.size()) return false;
    symbol.order.push_back(*number);
  }
  return true;
}

// Reads the property that `words` name. Returns false if no such property exists.
bool read_property(std::span<const std::string_view> words, const Op& op, CallSymbol& symbol) {
  if (words.empty()) return true;
  if (words.size() == 1) {
    for (const auto& [name, property] : kPlain) {
      if (name != words[0]) continue;
      symbol.property = property;
      return true;
    }
    return read_dtype(words[0], symbol);
  }
  if (words[0] == "contiguous") return read_order(words.subspan(1), symbol);
  if (words.size() != 2) return false;
  const std::optional<size_t> number = small_number(words[1]);
  if (words[0] == "at") {
    symbol.property = Property::kElement;
    symbol.number = number.value_or(0);
    return number.has_value();
  }
  if (words[0] != "size" && words[0] != "last") return false;
  const int16_t argument = op.schema->find_arg(words[1]);
  if (number.has_value()) {
    symbol.property = words[0] == "size" ? Property::kSize : Property::kLast;
    symbol.number = *number;
    return symbol.property == Property::kSize || *number > 0;
  }
  symbol.property = Property::kSizeOf;
  symbol.number = static_cast<size_t>(std::max<int16_t>(argument, 0));
  return words[0] == "size" && argument >= 0;
}

void collect_tensors(const Graph& graph, NodeId node, std::vector<const Tensor*>& tensors) {
  for_each_tensor(graph, graph[node].value, [&tensors](ValueId, const Tensor& tensor) { tensors.push_back(&tensor); });
}

void collect_tensors(const Graph& graph, const Arg& arg, std::vector<const Tensor*>& tensors) {
  if (arg.is(ArgKind::kNode)) return collect_tensors(graph, arg.as_node(), tensors);
  if (!arg.is(ArgKind::kList) && !arg.is(ArgKind::kTuple)) return;
  for (const Arg& child : graph.pool().children(arg)) collect_tensors(graph, child, tensors);
}

bool spans_like_blas(int64_t leading, int64_t unit, int64_t unit_size) {
  return unit == 1 && leading >= std::max<int64_t>(1, unit_size);
}

// Same rules as torch.Tensor.is_contiguous(). Strides of dimensions of size 1 are ignored, and an
// empty tensor is contiguous.
bool is_row_major(const Numbers& sizes, const Numbers& strides) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return true;
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) return false;
    if (__builtin_mul_overflow(expected, sizes[i], &expected)) return i == 0;
  }
  return true;
}

// Whether the tensor is row-major in some order of its dimensions, without gaps and without
// overlap.
bool is_dense(const Numbers& sizes, const Numbers& strides) {
  std::vector<size_t> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  Numbers ordered_sizes, ordered_strides;
  for (const size_t dim : order) {
    if (sizes[dim] == 1) continue;
    ordered_sizes.push_back(sizes[dim]);
    ordered_strides.push_back(strides[dim]);
  }
  return is_row_major(ordered_sizes, ordered_strides);
}

// Whether a matrix product takes the operand without a copy. ir/device/README.md explains the rule
// (`blas_ready`).
std::optional<int64_t> is_blas_ready(const Numbers& sizes, const Numbers& strides) {
  const size_t rank = sizes.size();
  if (rank != 2 && rank != 3) return std::nullopt;
  const int64_t rows = sizes[rank - 2], columns = sizes[rank - 1];
  const int64_t row_stride = strides[rank - 2], column_stride = strides[rank - 1];
  if (spans_like_blas(row_stride, column_stride, columns) || spans_like_blas(column_stride, row_stride, rows)) return 1;
  if (rank == 2) return is_dense(sizes, strides) ? 1 : 0;
  return is_row_major(sizes, strides) && row_stride != 0 && column_stride != 0 ? 1 : 0;
}

// Computes the value of one symbol in one call.
class Question {
 public:
  Question(const Graph& graph, NodeId node, const CallSymbol& symbol, const SymbolValues& values)
      : graph_(graph), node_(node), args_(graph, node), symbol_(symbol), values_(values) {}

  std::optional<int64_t> answer() const {
    std::vector<const Tensor*> tensors;
    if (symbol_.is_output) {
      collect_tensors(graph_, node_, tensors);
      if (symbol_.position >= tensors.size()) return std::nullopt;
      return of_tensor(*tensors[symbol_.position]);
    }
    const Arg* arg = args_[symbol_.position].given();
    const bool is_given = arg != nullptr && !arg->is(ArgKind::kNone);
    if (symbol_.property == Property::kGiven) return is_given ? 1 : 0;
    if (symbol_.property == Property::kValue) return argument(symbol_.position);
    if (symbol_.property == Property::kHasLast) return is_given ? has_last(*arg) : 1;
    if (!is_given) return 0;
    if (symbol_.property == Property::kElement) return element(*arg);
    collect_tensors(graph_, *arg, tensors);
    if (symbol_.property == Property::kCount) return static_cast<int64_t>(tensors.size());
    const Tensor* tensor = largest(tensors);
    return tensor == nullptr ? std::nullopt : of_tensor(*tensor);
  }

 private:
  std::optional<int64_t> argument(size_t position) const {
    const CallArg arg = args_[position];
    if (arg.is_given()) return number(*arg.given());
    if (arg.is_none()) return 0;
    const std::optional<bool> truth = arg.as_bool();
    return truth.has_value() ? std::optional<int64_t>(*truth ? 1 : 0) : arg.as_int();
  }

  std::optional<int64_t> number(const Arg& arg) const {
    switch (arg.kind()) {
      case ArgKind::kInt:
        return arg.as_int();
      case ArgKind::kBool:
        return arg.as_bool() ? 1 : 0;
      case ArgKind::kNone:
        return 0;
      case ArgKind::kFloat: {
        const double value = arg.as_double();
        const bool is_small = value >= -9e15 && value <= 9e15;
        const int64_t whole = is_small ? static_cast<int64_t>(value) : 0;
        return is_small && static_cast<double>(whole) == value ? std::optional<int64_t>(whole) : std::nullopt;
      }
      case ArgKind::kExpr:
        return graph_.module().exprs.evaluate(arg.as_expr(), values_);
      case ArgKind::kNode: {
        const Value& value = graph_.value(arg.as_node());
        if (value.kind != ValueKind::kSymbolic) return std::nullopt;
        return graph_.module().exprs.evaluate(ExprId(value.first), values_);
      }
      default:
        return std::nullopt;
    }
  }

  std::optional<int64_t> element(const Arg& list) const {
    if (!list.is(ArgKind::kList) && !list.is(ArgKind::kTuple)) return std::nullopt;
    const std::span<const Arg> children = graph_.pool().children(list);
    return symbol_.number < children.size() ? number(children[symbol_.number]) : std::nullopt;
  }

  // Whether a list of dimensions contains the last dimension of the first argument.
  std::optional<int64_t> has_last(const Arg& dims) const {
    const Arg* self = args_[0].given();
    std::vector<const Tensor*> tensors;
    if (self != nullptr) collect_tensors(graph_, *self, tensors);
    if (tensors.empty() || !tensors[0]->sizes.is_valid()) return std::nullopt;
    const int64_t rank = static_cast<int64_t>(graph_.module().dims(tensors[0]->sizes).size());
    if (!dims.is(ArgKind::kList) && !dims.is(ArgKind::kTuple)) {
      const std::optional<int64_t> one = number(dims);
      return one.has_value() ? std::optional<int64_t>(*one == -1 || *one == rank - 1 ? 1 : 0) : std::nullopt;
    }
    const std::span<const Arg> children = graph_.pool().children(dims);
    if (children.empty()) return 1;
    for (const Arg& child : children) {
      const std::optional<int64_t> dim = number(child);
      if (!dim.has_value()) return std::nullopt;
      if (*dim == -1 || *dim == rank - 1) return 1;
    }
    return 0;
  }

  // Returns the first of the largest tensors, or nullptr if a size is unknown.
  const Tensor* largest(const std::vector<const Tensor*>& tensors) const {
    if (tensors.size() == 1) return tensors.front();
    const Tensor* best = nullptr;
    int64_t most = -1;
    for (const Tensor* tensor : tensors) {
      const std::optional<int64_t> elements = tensor_elements(graph_.module(), *tensor, values_);
      if (!elements.has_value()) return nullptr;
      if (*elements > most) best = tensor, most = *elements;
    }
    return best;
  }

  std::optional<Numbers> evaluated(DimsId id) const {
    if (!id.is_valid()) return std::nullopt;
    Numbers numbers;
    for (const Dim& dim : graph_.module().dims(id)) {
      const std::optional<int64_t> value = evaluate_dim(graph_.module(), dim, values_);
      if (!value.has_value()) return std::nullopt;
      numbers.push_back(*value);
    }
    return numbers;
  }

  std::optional<int64_t> of_tensor(const Tensor& tensor) const {
    const Module& module = graph_.module();
    switch (symbol_.property) {
      case Property::kItemsize:
        return element_size(tensor.dtype);
      case Property::kIsDType:
        return tensor.dtype == symbol_.dtype ? 1 : 0;
      case Property::kRank:
        return tensor.sizes.is_valid() ? std::optional<int64_t>(module.dims(tensor.sizes).size()) : std::nullopt;
      case Property::kNumel:
        return tensor_elements(module, tensor, values_);
      case Property::kBytes: {
        const std::optional<int64_t> elements = tensor_elements(module, tensor, values_);
        int64_t bytes = 0;
        if (!elements.has_value() || __builtin_mul_overflow(*elements, element_size(tensor.dtype), &bytes)) {
          return std::nullopt;
        }
        return bytes;
      }
      case Property::kSize:
      case Property::kLast:
      case Property::kSizeOf:
        return size_of(tensor);
      default:
        return layout_of(tensor);
    }
  }

  std::optional<int64_t> size_of(const Tensor& tensor) const {
    if (!tensor.sizes.is_valid()) return std::nullopt;
    const std::vector<Dim>& sizes = graph_.module().dims(tensor.sizes);
    const int64_t rank = static_cast<int64_t>(sizes.size());
    int64_t dim = static_cast<int64_t>(symbol_.number);
    if (symbol_.property == Property::kLast) dim = rank - dim;
    if (symbol_.property == Property::kSizeOf) {
      const std::optional<int64_t> named = argument(symbol_.number);
      if (!named.has_value()) return std::nullopt;
      dim = *named < 0 ? *named + rank : *named;
    }
    if (dim < 0 || dim >= rank) return rank == 0 ? std::optional<int64_t>(1) : std::nullopt;
    return evaluate_dim(graph_.module(), sizes[static_cast<size_t>(dim)], values_);
  }

  std::optional<int64_t> layout_of(const Tensor& tensor) const {
    const std::optional<Numbers> sizes = evaluated(tensor.sizes), strides = evaluated(tensor.strides);
    if (!sizes.has_value() || !strides.has_value()) return std::nullopt;
    if (symbol_.property == Property::kContiguous) return is_row_major(*sizes, *strides) ? 1 : 0;
    if (symbol_.property == Property::kBlasReady) return is_blas_ready(*sizes, *strides);
    if (symbol_.order.size() != sizes->size()) return 0;
    Numbers permuted_sizes, permuted_strides;
    for (const size_t dim : symbol_.order) {
      permuted_sizes.push_back((*sizes)[dim]);
      permuted_strides.push_back((*strides)[dim]);
    }
    return is_row_major(permuted_sizes, permuted_strides) ? 1 : 0;
  }

  const Graph& graph_;
  NodeId node_;
  CallArgs args_;
  const CallSymbol& symbol_;
  const SymbolValues& values_;
};

}  // namespace

std::optional<CallSymbol> find_call_symbol(std::string_view text, const Op& op) {
  if (!op.schema.has_value()) return std::nullopt;
  const std::vector<std::string_view> words = split(text);
  CallSymbol symbol;
  const std::optional<size_t> output = words.size() > 2 && words[0] == kOutput ? small_number(words[1]) : std::nullopt;
  if (output.has_value()) {
    symbol.is_output = true;
    symbol.position = *output;
    return read_property(std::span(words).subspan(2), op, symbol) ? std::optional<CallSymbol>(symbol) : std::nullopt;
  }
  const int16_t argument = op.schema->find_arg(words[0]);
  if (argument < 0 || !read_property(std::span(words).subspan(1), op, symbol)) return std::nullopt;
  symbol.position = static_cast<size_t>(argument);
  return symbol;
}

std::optional<int64_t> value_of(const Graph& graph, NodeId node, const CallSymbol& symbol, const SymbolValues& values) {
  return Question(graph, node, symbol, values).answer();
}

}  // namespace fxopt
