#include "ir/alias/view_geometry.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "ir/graph/module.h"
#include "ir/ops/op.h"
#include "ir/values/call_args.h"

namespace fxopt {
namespace {

using Outcome = ViewGeometry::Outcome;

ViewGeometry answer(Outcome outcome) { return {outcome, {}}; }
// Returns kImpossible if a size is negative.
ViewGeometry view(Geometry geometry) {
  const bool is_negative =
      std::ranges::any_of(geometry.sizes, [](const SymInt& size) { return size.is_static() && size.value() < 0; });
  if (is_negative) return answer(Outcome::kImpossible);
  ViewGeometry out = answer(Outcome::kView);
  out.tensors.push_back(std::move(geometry));
  return out;
}

// A call whose first argument is `from`.
struct Call {
  const Graph& graph;
  const Geometry& from;
  CallArgs args;
  const SymIntOfNode& integer_of;

  // Returns the integer of a node. Returns nothing for any other argument.
  std::optional<SymInt> operator()(const Arg& arg) const {
    return arg.is(ArgKind::kNode) ? integer_of(arg.as_node()) : std::nullopt;
  }
  std::optional<SymInt> integer(size_t position) const { return args[position].sym_int(*this); }
  std::optional<SymInt> integer(size_t position, int64_t otherwise) const {
    return args[position].sym_int_or(otherwise, *this);
  }
  std::optional<std::vector<SymInt>> integers(size_t position) const { return args[position].sym_ints(*this); }
};

// A dimension counted from the front, or the outcome of the call if the dimension is invalid or
// unknown.
struct Dimension {
  std::optional<size_t> at;
  Outcome otherwise = Outcome::kUnknown;
};
Dimension find_dimension(const SymInt& dim, size_t rank) {
  if (!dim.is_static()) return {};
  const int64_t count = std::max<int64_t>(static_cast<int64_t>(rank), 1);
  const int64_t at = dim.value() < 0 ? dim.value() + count : dim.value();
  if (at < 0 || at >= count) return {std::nullopt, Outcome::kImpossible};
  return {static_cast<size_t>(at), Outcome::kUnknown};
}
// The dimension at argument `position`, or 0 if the argument is absent.
Dimension dimension(const Call& call, size_t position, size_t rank) {
  const std::optional<SymInt> dim = call.integer(position, 0);
  return dim.has_value() ? find_dimension(*dim, rank) : Dimension();
}

// Applies `rule` to the dimension that argument `position` gives.
template <ViewGeometry (*rule)(const Call&, size_t), size_t position>
ViewGeometry along(const Call& call) {
  const Dimension dim = dimension(call, position, call.from.rank());
  if (!dim.at.has_value()) return answer(dim.otherwise);
  return call.from.rank() == 0 ? answer(Outcome::kImpossible) : rule(call, *dim.at);
}

ViewGeometry alias(const Call& call) { return view(call.from); }

ViewGeometry swap_dimensions(const Geometry& from, size_t a, size_t b) {
  Geometry out = from;
  if (out.rank() > 0) {
    std::swap(out.sizes[a], out.sizes[b]);
    std::swap(out.strides[a], out.strides[b]);
  }
  return view(std::move(out));
}

ViewGeometry t(const Call& call) {
  if (call.from.rank() > 2) return answer(Outcome::kImpossible);
  return call.from.rank() == 2 ? swap_dimensions(call.from, 0, 1) : view(call.from);
}

ViewGeometry transpose(const Call& call) {
  std::array<size_t, 2> dims = {};
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<SymInt> given = call.integer(1 + i);
    if (!given.has_value()) return answer(Outcome::kUnknown);
    const Dimension dim = find_dimension(*given, call.from.rank());
    if (!dim.at.has_value()) return answer(dim.otherwise);
    dims[i] = *dim.at;
  }
  return swap_dimensions(call.from, dims[0], dims[1]);
}

ViewGeometry permute(const Call& call) {
  const std::optional<std::vector<SymInt>> order = call.integers(1);
  if (!order.has_value()) return answer(Outcome::kUnknown);
  if (order->size() != call.from.rank()) return answer(Outcome::kImpossible);
  Geometry out = call.from;
  std::vector<bool> is_taken(call.from.rank());
  for (size_t i = 0; i < order->size(); ++i) {
    const Dimension dim = find_dimension((*order)[i], call.from.rank());
    if (!dim.at.has_value()) return answer(dim.otherwise);
    if (is_taken[*dim.at]) return answer(Outcome::kImpossible);
    is_taken[*dim.at] = true;
    out.sizes[i] = call.from.sizes[*dim.at];
    out.strides[i] = call.from.strides[*dim.at];
  }
  return view(std::move(out));
}

// Clamps a bound of a slice to [0, size] as Python does. Returns nothing if the result depends on
// the values of symbols.
std::optional<SymInt> clamp(const SymInt& bound, const SymInt& size) {
  if (bound == size) return size;
  if (bound.is(0) || bound.is(std::numeric_limits<int64_t>::max())) return bound.is(0) ? bound : size;
  if (!bound.is_static() || !size.is_static()) return std::nullopt;
  const int64_t at = bound.value() < 0 ? bound.value() + size.value() : bound.value();
  return std::clamp<int64_t>(at, 0, size.value());
}

// Keeps the elements start, start + step, ... below `end` of a dimension. Negative bounds count
// from the end, as in Python.
Outcome take_slice(Geometry& out, size_t at, const std::optional<SymInt>& given_start,
                   const std::optional<SymInt>& given_end, const std::optional<SymInt>& step) {
  if (!given_start.has_value() || !given_end.has_value() || !step.has_value() || !step->is_static()) {
    return Outcome::kUnknown;
  }
  if (step->value() <= 0) return Outcome::kImpossible;
  const SymInt size = out.sizes[at];
  const std::optional<SymInt> start = clamp(*given_start, size), end = clamp(*given_end, size);
  if (!start.has_value() || !end.has_value()) return Outcome::kUnknown;
  SymInt length = *end - *start;
  if (length.is_static()) {
    length = (std::max<int64_t>(length.value(), 0) + step->value() - 1) / step->value();
  } else if (!start->is(0) || !step->is(1)) {
    return Outcome::kUnknown;
  }
  out.offset = out.offset + *start * out.strides[at];
  out.strides[at] = out.strides[at] * *step;
  out.sizes[at] = length;
  return Outcome::kView;
}

ViewGeometry slice(const Call& call, size_t dim) {
  Geometry out = call.from;
  const Outcome outcome = take_slice(out, dim, call.integer(2, 0), call.integer(3, std::numeric_limits<int64_t>::max()),
                                     call.integer(4, 1));
  return outcome == Outcome::kView ? view(std::move(out)) : answer(outcome);
}

Geometry without_dimension(const Geometry& from, size_t at) {
  Geometry out = from;
  out.sizes.erase(out.sizes.begin() + static_cast<std::ptrdiff_t>(at));
  out.strides.erase(out.strides.begin() + static_cast<std::ptrdiff_t>(at));
  return out;
}

// Inserts a dimension of one element.
void insert_dimension(Geometry& out, size_t at) {
  const std::ptrdiff_t place = static_cast<std::ptrdiff_t>(at);
  const SymInt stride = at == out.rank() ? SymInt(1) : out.sizes[at] * out.strides[at];
  out.sizes.insert(out.sizes.begin() + place, SymInt(1));
  out.strides.insert(out.strides.begin() + place, stride);
}

ViewGeometry select(const Call& call, size_t dim) {
  const std::optional<SymInt> index = call.integer(2);
  if (!index.has_value() || !index->is_static()) return answer(Outcome::kUnknown);
  const SymInt size = call.from.sizes[dim];
  const SymInt at = index->value() < 0 ? size + *index : *index;
  if (at.is_static() && (at.value() < 0 || (size.is_static() && at.value() >= size.value()))) {
    return answer(Outcome::kImpossible);
  }
  Geometry out = without_dimension(call.from, dim);
  out.offset = out.offset + at * call.from.strides[dim];
  return view(std::move(out));
}

// Handles a tensor that is indexed by integers, slices, None and Ellipsis. The outcome of any other
// index is kUnknown.
ViewGeometry getitem(const Call& call) {
  const CallArg index = call.args[1];
  if (!index.is_given()) return answer(Outcome::kUnknown);
  const std::span<const Arg> parts = index.given()->is(ArgKind::kTuple) ? index.items() : std::span(index.given(), 1);
  if (std::ranges::any_of(parts, [](const Arg& part) { return part.is(ArgKind::kBool); })) {
    return answer(Outcome::kUnknown);
  }
  size_t left = 0;  // dimensions that the index parts consume
  for (const Arg& part : parts) left += part.is(ArgKind::kNone) || part.is(ArgKind::kEllipsis) ? 0 : 1;
  Geometry out = call.from;
  if (left > out.rank()) return answer(Outcome::kImpossible);
  size_t at = 0;
  for (const Arg& part : parts) {
    if (part.is(ArgKind::kEllipsis)) {
      at = out.rank() - left;
      continue;
    }
    if (part.is(ArgKind::kNone)) {
      insert_dimension(out, at++);
      continue;
    }
    --left;
    const SymInt size = out.sizes[at];
    if (part.is(ArgKind::kInt)) {
      if (!size.is_static()) return answer(Outcome::kUnknown);
      const int64_t given = part.as_int() < 0 ? part.as_int() + size.value() : part.as_int();
      if (given < 0 || given >= size.value()) return answer(Outcome::kImpossible);
      out.offset = out.offset + SymInt(given) * out.strides[at];
      out = without_dimension(out, at);
      continue;
    }
    if (!part.is(ArgKind::kSlice)) return answer(Outcome::kUnknown);
    const std::span<const Arg> bounds = call.graph.pool().children(part);
    const auto bound = [&](size_t i, int64_t otherwise) -> std::optional<SymInt> {
      return bounds[i].is(ArgKind::kNone) ? SymInt(otherwise) : sym_int_of(bounds[i], call);
    };
    const Outcome outcome =
        take_slice(out, at, bound(0, 0), bound(1, std::numeric_limits<int64_t>::max()), bound(2, 1));
    if (outcome != Outcome::kView) return answer(outcome);
    ++at;
  }
  return view(std::move(out));
}

ViewGeometry squeeze_where(const Geometry& from, const std::vector<bool>& is_asked) {
  Geometry out = from;
  out.sizes.clear();
  out.strides.clear();
  for (size_t i = 0; i < from.rank(); ++i) {
    if (is_asked[i] && !from.sizes[i].is_static()) return answer(Outcome::kUnknown);
    if (is_asked[i] && from.sizes[i].is(1)) continue;
    out.sizes.push_back(from.sizes[i]);
    out.strides.push_back(from.strides[i]);
  }
  return view(std::move(out));
}

ViewGeometry squeeze(const Call& call) { return squeeze_where(call.from, std::vector<bool>(call.from.rank(), true)); }

ViewGeometry squeeze_dimensions(const Call& call) {
  std::optional<std::vector<SymInt>> dims = call.integers(1);
  if (!dims.has_value()) {
    const std::optional<SymInt> one = call.integer(1);
    if (!one.has_value()) return answer(Outcome::kUnknown);
    dims = {*one};
  }
  std::vector<bool> is_asked(std::max<size_t>(call.from.rank(), 1));
  for (const SymInt& dim : *dims) {
    const Dimension found = find_dimension(dim, call.from.rank());
    if (!found.at.has_value()) return answer(found.otherwise);
    is_asked[*found.at] = true;
  }
  return squeeze_where(call.from, is_asked);
}

ViewGeometry unsqueeze(const Call& call) {
  const Dimension dim = dimension(call, 1, call.from.rank() + 1);
  if (!dim.at.has_value()) return answer(dim.otherwise);
  Geometry out = call.from;
  insert_dimension(out, *dim.at);
  return view(std::move(out));
}

ViewGeometry expand(const Call& call) {
  const std::optional<std::vector<SymInt>> sizes = call.integers(1);
  if (!sizes.has_value()) return answer(Outcome::kUnknown);
  if (sizes->size() < call.from.rank()) return answer(Outcome::kImpossible);
  const size_t added = sizes->size() - call.from.rank();
  Geometry out = call.from;
  out.sizes = *sizes;
  out.strides.assign(sizes->size(), SymInt(0));
  for (size_t i = 0; i < sizes->size(); ++i) {
    const SymInt& wanted = (*sizes)[i];
    if (i < added) {
      if (wanted.is(-1)) return answer(Outcome::kImpossible);
      continue;
    }
    const SymInt& size = call.from.sizes[i - added];
    const bool is_kept = wanted.is(-1) || wanted == size;
    if (is_kept) {
      out.sizes[i] = size;
      out.strides[i] = call.from.strides[i - added];
    } else if (!size.is(1)) {
      return answer(size.is_static() && wanted.is_static() ? Outcome::kImpossible : Outcome::kUnknown);
    }
  }
  return view(std::move(out));
}

ViewGeometry as_strided(const Call& call) {
  const std::optional<std::vector<SymInt>> sizes = call.integers(1), strides = call.integers(2);
  const std::optional<SymInt> offset = call.args[3].is_absent() ? call.from.offset : call.integer(3);
  if (!sizes.has_value() || !strides.has_value() || !offset.has_value()) return answer(Outcome::kUnknown);
  if (sizes->size() != strides->size()) return answer(Outcome::kImpossible);
  Geometry out = call.from;
  out.sizes = *sizes;
  out.strides = *strides;
  out.offset = *offset;
  return view(std::move(out));
}

constexpr int64_t kMaxParts = 1 << 20;  // a split into more parts is not computed

// Splits a dimension into consecutive slices of the given `lengths`.
ViewGeometry cut(const Geometry& from, size_t dim, const std::vector<int64_t>& lengths) {
  ViewGeometry out = answer(Outcome::kView);
  SymInt offset = from.offset;
  for (const int64_t length : lengths) {
    Geometry part = from;
    part.sizes[dim] = length;
    part.offset = offset;
    offset = offset + from.strides[dim] * SymInt(length);
    out.tensors.push_back(std::move(part));
  }
  return out;
}

// Splits a dimension of `size` elements into slices of `step` elements. The last slice may have
// fewer.
ViewGeometry cut_evenly(const Geometry& from, size_t dim, int64_t size, int64_t step) {
  if (size / step >= kMaxParts) return answer(Outcome::kUnknown);
  std::vector<int64_t> lengths;
  for (int64_t at = 0; at < size; at += step) lengths.push_back(std::min(step, size - at));
  if (lengths.empty()) lengths.push_back(0);
  return cut(from, dim, lengths);
}

ViewGeometry narrow(const Call& call, size_t dim) {
  const std::optional<SymInt> given = call.integer(2);
  const std::optional<SymInt> length = call.integer(3);
  const SymInt size = call.from.sizes[dim];
  if (!given.has_value() || !given->is_static() || !length.has_value() || !length->is_static() || !size.is_static()) {
    return answer(Outcome::kUnknown);
  }
  const int64_t start = given->value() < 0 ? given->value() + size.value() : given->value();
  if (start < 0 || start > size.value() || length->value() < 0 || length->value() > size.value() - start) {
    return answer(Outcome::kImpossible);
  }
  Geometry out = call.from;
  out.offset = out.offset + SymInt(start) * out.strides[dim];
  out.sizes[dim] = *length;
  return view(std::move(out));
}

// Leaves a tensor unchanged if it already has the requested sizes. Otherwise, makes it contiguous
// from its offset.
ViewGeometry resize(const Call& call) {
  const std::optional<std::vector<SymInt>> sizes = call.integers(1);
  if (!sizes.has_value() || !call.args[2].is_absent()) return answer(Outcome::kUnknown);
  Geometry out = call.from;
  const bool is_static = std::ranges::all_of(*sizes, [](const SymInt& size) { return size.is_static(); }) &&
                         std::ranges::all_of(out.sizes, [](const SymInt& size) { return size.is_static(); });
  if (!is_static) return answer(Outcome::kUnknown);
  if (std::ranges::any_of(*sizes, [](const SymInt& size) { return size.value() < 0; })) {
    return answer(Outcome::kImpossible);
  }
  if (*sizes == out.sizes) return view(std::move(out));
  out.sizes = *sizes;
  out.strides = row_major_strides(out.sizes);
  return view(std::move(out));
}

ViewGeometry split(const Call& call, size_t dim) {
  const SymInt size = call.from.sizes[dim];
  const std::optional<SymInt> length = call.integer(1);
  if (!size.is_static() || !length.has_value() || !length->is_static()) return answer(Outcome::kUnknown);
  if (length->value() < 0 || (length->value() == 0 && size.value() != 0)) return answer(Outcome::kImpossible);
  return cut_evenly(call.from, dim, size.value(), std::max<int64_t>(length->value(), 1));
}

ViewGeometry chunk(const Call& call, size_t dim) {
  const SymInt size = call.from.sizes[dim];
  const std::optional<SymInt> count = call.integer(1);
  if (!size.is_static() || size.value() == 0 || !count.has_value() || !count->is_static()) {
    return answer(Outcome::kUnknown);
  }
  if (count->value() <= 0) return answer(Outcome::kImpossible);
  return cut_evenly(call.from, dim, size.value(), (size.value() - 1) / count->value() + 1);
}

// Makes windows of `size` elements along a dimension, at a distance of `step` elements. A new last
// dimension indexes the elements of a window.
ViewGeometry unfold(const Call& call) {
  const Dimension dim = dimension(call, 1, call.from.rank());
  if (!dim.at.has_value()) return answer(dim.otherwise);
  const std::optional<SymInt> size = call.integer(2);
  const std::optional<SymInt> step = call.integer(3);
  if (call.from.rank() == 0 || !size.has_value() || !size->is_static() || !step.has_value() || !step->is_static()) {
    return answer(Outcome::kUnknown);
  }
  const SymInt all = call.from.sizes[*dim.at];
  if (size->value() < 0 || step->value() <= 0) return answer(Outcome::kImpossible);
  if (!all.is_static()) return answer(Outcome::kUnknown);
  if (size->value() > all.value()) return answer(Outcome::kImpossible);
  Geometry out = call.from;
  out.sizes[*dim.at] = (all.value() - size->value()) / step->value() + 1;
  out.strides[*dim.at] = call.from.strides[*dim.at] * *step;
  out.sizes.push_back(*size);
  out.strides.push_back(call.from.strides[*dim.at]);
  return view(std::move(out));
}

ViewGeometry split_with_sizes(const Call& call) {
  const Dimension dim = dimension(call, 2, call.from.rank());
  if (!dim.at.has_value()) return answer(dim.otherwise);
  const std::optional<std::vector<SymInt>> given = call.integers(1);
  if (!given.has_value()) return answer(Outcome::kUnknown);
  if (call.from.rank() == 0) return answer(Outcome::kImpossible);
  std::vector<int64_t> lengths;
  SymInt total = 0;
  for (const SymInt& length : *given) {
    if (!length.is_static()) return answer(Outcome::kUnknown);
    if (length.value() < 0) return answer(Outcome::kImpossible);
    lengths.push_back(length.value());
    total = total + length;
  }
  const SymInt size = call.from.sizes[*dim.at];
  if (!size.is_static()) return answer(Outcome::kUnknown);
  return total == size ? cut(call.from, *dim.at, lengths) : answer(Outcome::kImpossible);
}

ViewGeometry unbind(const Call& call, size_t dim) {
  const SymInt size = call.from.sizes[dim];
  if (!size.is_static() || size.value() > kMaxParts) return answer(Outcome::kUnknown);
  ViewGeometry out = answer(Outcome::kView);
  for (int64_t i = 0; i < size.value(); ++i) {
    Geometry part = without_dimension(call.from, dim);
    part.offset = part.offset + SymInt(i) * call.from.strides[dim];
    out.tensors.push_back(std::move(part));
  }
  return out;
}

// Replaces -1 in `sizes` by the inferred size. Returns kView on success.
Outcome infer_size(const Geometry& from, std::vector<SymInt>& sizes) {
  SymInt product = 1;
  std::optional<size_t> inferred;
  std::vector<SymInt> left = from.sizes;  // factors of the element count that `sizes` does not contain yet
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].is(-1)) {
      if (inferred.has_value()) return Outcome::kImpossible;
      inferred = i;
      continue;
    }
    if (sizes[i].is_static() && sizes[i].value() < 0) return Outcome::kImpossible;
    product = product * sizes[i];
    const auto same = std::ranges::find(left, sizes[i]);
    if (same != left.end()) left.erase(same);
  }
  const SymInt count = from.num_elements();
  if (!inferred.has_value()) {
    if (count == product) return Outcome::kView;
    return count.is_static() && product.is_static() ? Outcome::kImpossible : Outcome::kUnknown;
  }
  if (count.is_static() && product.is_static()) {
    if (product.value() == 0 || count.value() % product.value() != 0) return Outcome::kImpossible;
    sizes[*inferred] = count.value() / product.value();
    return Outcome::kView;
  }
  SymInt rest = 1;
  for (const SymInt& factor : left) rest = rest * factor;
  if (!(rest * product == count)) return Outcome::kUnknown;
  sizes[*inferred] = rest;
  return Outcome::kView;
}

ViewGeometry reshape_to(const Call& call, Outcome without_view) {
  std::optional<std::vector<SymInt>> sizes = call.integers(1);
  if (!sizes.has_value()) return answer(Outcome::kUnknown);
  const Outcome inferred = infer_size(call.from, *sizes);
  if (inferred != Outcome::kView) return answer(inferred);
  Geometry out = call.from;
  const Restride how = restride(call.from, *sizes, out.strides);
  out.sizes = std::move(*sizes);
  if (how == Restride::kView) return view(std::move(out));
  if (how == Restride::kUnknown || without_view == Outcome::kImpossible) {
    return answer(how == Restride::kUnknown ? Outcome::kUnknown : Outcome::kImpossible);
  }
  out.strides = row_major_strides(out.sizes);
  out.offset = 0;
  ViewGeometry copy = answer(Outcome::kCopy);
  copy.tensors.push_back(std::move(out));
  return copy;
}

ViewGeometry view_as_sizes(const Call& call) { return reshape_to(call, Outcome::kImpossible); }
ViewGeometry reshape(const Call& call) { return reshape_to(call, Outcome::kCopy); }

ViewGeometry view_as_dtype(const Call& call) {
  const std::optional<DType> dtype = call.args[1].as_dtype();
  if (!dtype.has_value()) return answer(Outcome::kUnknown);
  if (element_size(*dtype) != element_size(call.from.dtype) || call.from.conjugate || call.from.negative) {
    return answer(Outcome::kUnknown);
  }
  Geometry out = call.from;
  out.dtype = *dtype;
  return view(std::move(out));
}

template <bool Geometry::*bit>
ViewGeometry flip(const Call& call) {
  Geometry out = call.from;
  out.*bit = !(out.*bit);
  return view(std::move(out));
}

// Returns the type of a complex number's components, or kUnspecified for other types.
DType part_of(DType dtype) {
  return dtype == DType::kComplex32    ? DType::kFloat16
         : dtype == DType::kComplex64  ? DType::kFloat32
         : dtype == DType::kComplex128 ? DType::kFloat64
                                       : DType::kUnspecified;
}

ViewGeometry view_as_real(const Call& call) {
  if (call.from.conjugate || part_of(call.from.dtype) == DType::kUnspecified) return answer(Outcome::kImpossible);
  Geometry out = call.from;
  out.dtype = part_of(call.from.dtype);
  for (SymInt& stride : out.strides) stride = stride * 2;
  out.offset = out.offset * 2;
  out.sizes.emplace_back(2);
  out.strides.emplace_back(1);
  return view(std::move(out));
}

// Halves each integer. Returns false if an integer is odd or unknown.
bool halve(std::vector<SymInt>& list) {
  for (SymInt& item : list) {
    if (!item.is_static() || item.value() % 2 != 0) return false;
    item = item.value() / 2;
  }
  return true;
}

ViewGeometry view_as_complex(const Call& call) {
  Geometry out = call.from;
  for (const DType dtype : {DType::kComplex32, DType::kComplex64, DType::kComplex128}) {
    if (part_of(dtype) == call.from.dtype) out.dtype = dtype;
  }
  if (out.dtype == call.from.dtype || out.rank() == 0) return answer(Outcome::kImpossible);
  if (!out.sizes.back().is(2) || !out.strides.back().is(1)) {
    return answer(out.sizes.back().is_static() && out.strides.back().is_static() ? Outcome::kImpossible
                                                                                 : Outcome::kUnknown);
  }
  out.sizes.pop_back();
  out.strides.pop_back();
  std::vector<SymInt> offset = {out.offset};
  if (!halve(out.strides) || !halve(offset)) return answer(Outcome::kUnknown);
  out.offset = offset[0];
  return view(std::move(out));
}

ViewGeometry contiguous(const Call& call) {
  const CallArg format = call.args[1];
  const bool is_row_order = format.is_absent() || format.as_memory_format() == MemoryFormat::kContiguous;
  const bool is_same = is_row_order && is_row_major(call.from);
  return answer(is_same ? Outcome::kSame : Outcome::kUnknown);
}

// Returns the argument if it already has the type. Otherwise, returns a copy, which keeps the
// strides if the argument has no gaps.
ViewGeometry to_dtype(const Call& call) {
  const std::optional<DType> dtype = call.args[1].as_dtype();
  const bool may_copy = call.args[3].as_bool() != false;
  if (!dtype.has_value() || !call.args[4].is_absent()) return answer(Outcome::kUnknown);
  if (*dtype == call.from.dtype) return answer(may_copy ? Outcome::kUnknown : Outcome::kSame);
  if (!is_row_major(call.from) || call.from.conjugate || call.from.negative) return answer(Outcome::kUnknown);
  ViewGeometry out = answer(Outcome::kCopy);
  out.tensors.push_back(call.from);
  out.tensors[0].dtype = *dtype;
  out.tensors[0].offset = 0;
  return out;
}

using Rule = ViewGeometry (*)(const Call&);

const IdMap<OpId, Rule>& rules() {
  static constexpr std::pair<std::string_view, Rule> kRules[] = {
      {"aten.alias.default", alias},
      {"aten.detach.default", alias},
      {"aten.detach_.default", alias},
      {"aten.lift_fresh.default", alias},
      {"aten.t.default", t},
      {"aten.t_.default", t},
      {"aten.transpose.int", transpose},
      {"aten.transpose_.default", transpose},
      {"aten.swapaxes.default", transpose},
      {"aten.swapaxes_.default", transpose},
      {"aten.swapdims.default", transpose},
      {"aten.swapdims_.default", transpose},
      {"aten.permute.default", permute},
      {"aten.slice.Tensor", along<slice, 1>},
      {"operator.getitem", getitem},
      {"aten.narrow.default", along<narrow, 1>},
      {"aten.resize_.default", resize},
      {"aten.select.int", along<select, 1>},
      {"aten.squeeze.default", squeeze},
      {"aten.squeeze_.default", squeeze},
      {"aten.squeeze.dim", squeeze_dimensions},
      {"aten.squeeze_.dim", squeeze_dimensions},
      {"aten.squeeze.dims", squeeze_dimensions},
      {"aten.squeeze_.dims", squeeze_dimensions},
      {"aten.unsqueeze.default", unsqueeze},
      {"aten.unsqueeze_.default", unsqueeze},
      {"aten.expand.default", expand},
      {"aten.as_strided.default", as_strided},
      {"aten.as_strided_.default", as_strided},
      {"aten.split.Tensor", along<split, 2>},
      {"aten.chunk.default", along<chunk, 2>},
      {"aten.unfold.default", unfold},
      {"aten.split_with_sizes.default", split_with_sizes},
      {"aten.unbind.int", along<unbind, 1>},
      {"aten.view.default", view_as_sizes},
      {"aten._unsafe_view.default", view_as_sizes},
      {"aten.reshape.default", reshape},
      {"aten.view.dtype", view_as_dtype},
      {"aten.view_as_real.default", view_as_real},
      {"aten.view_as_complex.default", view_as_complex},
      {"aten._conj.default", flip<&Geometry::conjugate>},
      {"aten._neg_view.default", flip<&Geometry::negative>},
      {"aten.contiguous.default", contiguous},
      {"aten.to.dtype", to_dtype},
  };
  static const IdMap<OpId, Rule> kByOp = [] {
    IdMap<OpId, Rule> by_op(num_builtin_ops());
    for (const auto& [name, rule] : kRules) by_op[find_op_id(name)] = rule;
    return by_op;
  }();
  return kByOp;
}

}  // namespace

ViewGeometry view_geometry(const Graph& graph, NodeId node, const Geometry& from, const SymIntOfNode& integer_of) {
  if (!graph[node].is_call() || from.layout != Layout::kStrided || from.sizes.size() != from.strides.size()) {
    return answer(Outcome::kUnknown);
  }
  const Rule rule = rules().get(graph.op(node).id);
  if (rule == nullptr) return answer(Outcome::kUnknown);
  return rule(Call{graph, from, CallArgs(graph, node), integer_of});
}

}  // namespace fxopt
