#include "runtime/ops/bind.h"

#include <algorithm>
#include <utility>

#include "ir/ops/op.h"
#include "ir/values/values.h"
#include "runtime/ops/promote.h"
#include "runtime/ops/rows.h"
#include "runtime/plan/plan.h"

namespace fxopt {
namespace {

using Sizes = std::vector<int64_t>;

FxNumber number_of(const ScalarValue& value) {
  FxNumber number{};
  number.integer = value.integer;
  number.real = value.as_real();
  number.kind = value.type == FX_SCALAR_FLOAT  ? FX_NUMBER_REAL
                : value.type == FX_SCALAR_BOOL ? FX_NUMBER_BOOL
                                               : FX_NUMBER_INT;
  return number;
}
FxNumber whole(int64_t value) { return number_of(ScalarValue::of(value)); }

// The types that kernels load and store (ops/kernels/dtype.h).
bool has_loads(DType dtype) {
  constexpr DType kLoaded[] = {DType::kUint8,   DType::kInt8,     DType::kInt16,   DType::kInt32,   DType::kInt64,
                               DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64, DType::kBool};
  return std::ranges::find(kLoaded, dtype) != std::end(kLoaded);
}

FxCompute compute_of(DType dtype) {
  if (dtype == DType::kFloat64) return FX_COMPUTE_DOUBLE;
  return is_floating(dtype) ? FX_COMPUTE_FLOAT : FX_COMPUTE_INT64;
}

// Sizes and strides of a view. The rank may be above FX_MAX_RANK.
struct Strided {
  Sizes sizes, strides;
};

// Simplifies views that are iterated together. Removes dimensions of size 1 and joins neighbouring
// dimensions that are contiguous in every view. Linear indices keep their order. Dimensions below
// `split` are not joined with other dimensions. Returns the number of remaining dimensions below
// `split`.
size_t join_dims(std::vector<Strided*> views, size_t split) {
  Strided& lead = *views.front();
  std::vector<size_t> kept;  // the last of each group of joined dimensions
  size_t new_split = 0;
  const auto joins = [&](size_t outer, size_t inner) {
    return std::all_of(views.begin(), views.end(), [&](const Strided* view) {
      return view->strides[outer] == view->strides[inner] * view->sizes[inner];
    });
  };
  for (size_t d = 0; d < lead.sizes.size(); ++d) {
    if (lead.sizes[d] == 1) continue;
    const bool is_new_part = kept.empty() || (d >= split && kept.back() < split);
    if (!is_new_part && joins(kept.back(), d)) {
      for (Strided* view : views) view->sizes[d] *= view->sizes[kept.back()];
      kept.back() = d;
    } else {
      kept.push_back(d);
    }
  }
  for (const size_t d : kept) new_split += d < split ? 1 : 0;
  for (Strided* view : views) {
    Strided joined;
    for (const size_t d : kept) {
      joined.sizes.push_back(view->sizes[d]);
      joined.strides.push_back(view->strides[d]);
    }
    *view = std::move(joined);
  }
  return new_split;
}

FxView view_of(const Strided& layout, DType dtype, void* data) {
  FxView view{};
  view.data = data;
  view.dtype = static_cast<uint8_t>(dtype);
  view.rank = static_cast<uint8_t>(std::min<size_t>(layout.sizes.size(), FX_MAX_RANK));
  for (size_t d = 0; d < view.rank; ++d) {
    view.size[d] = layout.sizes[d];
    view.stride[d] = layout.strides[d];
  }
  return view;
}

FxView number_view(const FxNumber& number) {
  FxView view{};
  view.number = number;
  view.is_number = 1;
  return view;
}

// Returns the layout of an operand over the dimensions to which it is broadcast.
Strided broadcast_to(const TensorShape& from, const Sizes& sizes) {
  Strided layout{sizes, Sizes(sizes.size(), 0)};
  const size_t shift = sizes.size() - std::min(sizes.size(), from.rank());
  if (from.rank() > sizes.size()) layout.sizes.clear();  // ViewGroup::finish() then fails
  for (size_t d = 0; d < from.rank() && d < sizes.size(); ++d) {
    if (from.sizes[d] != 1 && from.sizes[d] != sizes[shift + d]) layout.sizes.clear();
  }
  for (size_t d = 0; d < from.rank() && d < layout.sizes.size(); ++d) {
    if (from.sizes[d] != 1) layout.strides[shift + d] = from.strides[d];
  }
  return layout;
}

Strided layout_of(const TensorShape& shape) { return {shape.sizes, shape.strides}; }

FxView view_of(const Operand& operand) { return view_of(layout_of(operand.shape), operand.shape.dtype, operand.data); }

// Returns false if the layout has more dimensions than an FxView can have.
bool has_room(const Strided& layout, std::string& why) {
  if (layout.sizes.size() <= FX_MAX_RANK) return true;
  why = "more than " + std::to_string(FX_MAX_RANK) + " non-contiguous dimensions";
  return false;
}

// Returns false if the sizes differ, or if there is not one stride for each size.
bool are_alike(const std::vector<Strided*>& layouts) {
  return std::all_of(layouts.begin(), layouts.end(), [&](const Strided* layout) {
    return layout->sizes == layouts.front()->sizes && layout->strides.size() == layout->sizes.size();
  });
}

// Makes the views of tensors that are iterated together.
class ViewGroup {
 public:
  void add(const Operand& operand) { add(layout_of(operand.shape), operand); }
  void add(Strided layout, const Operand& operand) {
    items_.push_back({std::move(layout), operand.shape.dtype, operand.data, {}, false});
  }
  void add_number(const FxNumber& number) { items_.push_back({{}, DType::kUnspecified, nullptr, number, true}); }
  // Returns false if sizes differ, or if more than FX_MAX_RANK dimensions remain. See join_dims()
  // for `split`.
  bool finish(BoundCall& bound, std::string& why, size_t split = 0, size_t* new_split = nullptr) {
    std::vector<Strided*> layouts;
    for (Item& item : items_) {
      if (!item.is_number) layouts.push_back(&item.layout);
    }
    if (!are_alike(layouts)) {
      why = "the sizes of its operands do not match its result";
      return false;
    }
    const size_t joined = layouts.empty() ? 0 : join_dims(layouts, split);
    if (new_split != nullptr) *new_split = joined;
    for (const Item& item : items_) {
      if (!has_room(item.layout, why)) return false;
      bound.views.push_back(item.is_number ? number_view(item.number) : view_of(item.layout, item.dtype, item.data));
    }
    return true;
  }

 private:
  struct Item {
    Strided layout;
    DType dtype;
    void* data;
    FxNumber number;
    bool is_number;
  };
  std::vector<Item> items_;
};

// Adds the view of one operand, which is not iterated together with other views.
bool add_alone(BoundCall& bound, const Operand& operand, std::string& why) {
  ViewGroup group;
  group.add(operand);
  return group.finish(bound, why);
}

bool add_params(const Binder& binder, BoundCall& bound, std::string& why) {
  bool all_known = true;
  for_each_name(binder.row().params, [&](std::string_view name) {
    const std::optional<ScalarValue> value = binder.call().number(name);
    if (!value.has_value()) why = "the number '" + std::string(name) + "' is not known";
    all_known &= value.has_value();
    bound.params.push_back(number_of(value.value_or(ScalarValue{})));
  });
  return all_known;
}

// Gives all views an integer dtype of the same element size, so that a copied NaN keeps its bits.
void keep_bits(BoundCall& bound) {
  constexpr DType kBySize[] = {DType::kUnspecified, DType::kInt8,        DType::kInt16,
                               DType::kUnspecified, DType::kInt32,       DType::kUnspecified,
                               DType::kUnspecified, DType::kUnspecified, DType::kInt64};
  for (FxView& view : bound.views) {
    const auto dtype = static_cast<DType>(view.dtype);
    if (has_loads(dtype)) view.dtype = static_cast<uint8_t>(kBySize[element_size(dtype)]);
  }
  bound.compute = FX_COMPUTE_INT64;
}

// Returns a call without views.
BoundCall empty_call(uint32_t num_results, DType dtype) { return {{}, num_results, {}, compute_of(dtype)}; }

int64_t wrap(int64_t dim, size_t rank) { return dim < 0 ? dim + static_cast<int64_t>(rank) : dim; }

// Moves the dimensions whose entry in `moved` is true to the end. Otherwise the order of dimensions
// does not change.
Strided move_to_end(const Strided& layout, const std::vector<bool>& moved) {
  Strided result;
  for (const bool wanted : {false, true}) {
    for (size_t d = 0; d < layout.sizes.size(); ++d) {
      if (moved[d] != wanted) continue;
      result.sizes.push_back(layout.sizes[d]);
      result.strides.push_back(layout.strides[d]);
    }
  }
  return result;
}

std::vector<bool> last_dims(size_t rank, size_t count) {
  std::vector<bool> moved(rank, false);
  std::fill(moved.end() - static_cast<ptrdiff_t>(std::min(rank, count)), moved.end(), true);
  return moved;
}

// Returns the reason if the recorded sizes differ from the sizes that the operator computes. A
// kernel would then access memory out of bounds. The operator's rule (KernelRow::rule) may return
// nothing for some calls, such as `arange` over reals. For three families, the binder then compares
// the sizes itself.
std::optional<std::string> misfit(const KernelRow& row, const StepCall& call) {
  const std::optional<std::vector<TensorShape>> results = row.rule(call);
  if (!results.has_value()) {
    const bool checks_itself = row.family == KernelFamily::kCopy || row.family == KernelFamily::kFill ||
                               row.family == KernelFamily::kPointwise;
    return checks_itself ? std::nullopt : std::optional<std::string>("its arguments do not match the operator");
  }
  for (uint32_t i = 0; i < call.step().num_results && i < results->size(); ++i) {
    const std::optional<TensorShape> recorded = call.result(i);
    if (recorded.has_value() && recorded->sizes != (*results)[i].sizes)
      return "the recorded sizes of result " + std::to_string(i) + " differ from the sizes that the operator computes";
  }
  return std::nullopt;
}

// The range of bytes from a view's first element to the end of its last element.
struct Extent {
  const char* first = nullptr;
  const char* end = nullptr;
};
Extent extent_of(const FxView& view) {
  if (view.data == nullptr) return {};
  int64_t first = 0, last = 0;
  for (int d = 0; d < view.rank; ++d) {
    if (view.size[d] == 0) return {};
    (view.stride[d] < 0 ? first : last) += (view.size[d] - 1) * view.stride[d];
  }
  const int64_t size = element_size(static_cast<DType>(view.dtype));
  const char* data = static_cast<const char*>(view.data);
  return {data + first * size, data + (last + 1) * size};
}

bool same_elements(const FxView& a, const FxView& b) {
  if (a.data != b.data || a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int d = 0; d < a.rank; ++d) {
    if (a.size[d] != b.size[d] || a.stride[d] != b.stride[d]) return false;
  }
  return true;
}

// Returns true if a result overlaps itself or an operand, because a kernel could then load elements
// that it has overwritten. As in PyTorch (ATen/MemoryOverlap.cpp), an operand may be the result
// itself. Interleaved views are refused even if they share no element.
bool overlaps_itself(const BoundCall& bound) {
  for (uint32_t r = 0; r < bound.num_results; ++r) {
    const FxView& result = bound.views[r];
    const Extent written = extent_of(result);
    if (written.first == nullptr) continue;
    for (int d = 0; d < result.rank; ++d) {
      if (result.size[d] > 1 && result.stride[d] == 0) return true;
    }
    for (size_t k = bound.num_results; k < bound.views.size(); ++k) {
      const Extent read = extent_of(bound.views[k]);
      const bool meet = read.first != nullptr && read.first < written.end && written.first < read.end;
      if (meet && !same_elements(result, bound.views[k])) return true;
    }
  }
  return false;
}

}  // namespace

FxCall BoundCall::call(void* workspace, FxDrawState draw, int64_t* error) const {
  FxCall call{};
  call.views = views.data();
  call.num_results = num_results;
  call.num_operands = num_operands();
  call.params = params.data();
  call.num_params = static_cast<uint32_t>(params.size());
  call.compute = compute;
  call.workspace = workspace;
  call.draw = draw;
  call.error = error;
  return call;
}

std::optional<Operand> Binder::of_word(FxWord word) const {
  if (word == kNoWord) return Operand{{}, nullptr, true};
  std::optional<TensorShape> shape = call_.shape_of(word);
  if (!shape.has_value()) return std::nullopt;
  const FxTensor& tensor = call_.plan().tensors[index_of(word)];
  const std::optional<int64_t> offset = values_.integer(tensor.offset);
  if (!offset.has_value() || tensor.storage == FX_NONE) return std::nullopt;
  Operand operand{*std::move(shape), address_(tensor.storage), false};
  if (operand.data != nullptr) {
    const int64_t bytes = *offset * element_size(operand.shape.dtype);
    operand.data = static_cast<char*>(operand.data) + bytes;
  }
  return operand;
}

std::optional<Operand> Binder::tensor(std::string_view name) const { return of_word(call_.word(name)); }
std::optional<Operand> Binder::result(uint32_t index) const {
  if (index >= call_.step().num_results) return Operand{{}, nullptr, true};
  return of_word(call_.plan().words[call_.step().results + index]);
}

Result<BoundCall> bind_step(const FxPlan& plan, const ScalarValues& values, uint32_t number, const AddressOf& address,
                            const void* drawn) {
  const FxStep& step = plan.steps[number];
  const std::string_view name = op_name(plan, step);
  const KernelRow* row = find_op_row(name);
  const auto refuse = [&](const std::string& why) {
    Error error{ErrorCode::kUnsupportedOp, std::string(name) + " has no kernel for this call: " + why, "", {}};
    if (step.node != FX_NONE) error.where.node = text_at(plan, plan.nodes[step.node].name);
    return error;
  };
  if (row == nullptr) return refuse("fxopt has no kernel for the operator");
  const StepCall call(plan, values, step, find_builtin_op(name));
  if (const std::optional<std::string> wrong = misfit(*row, call)) return refuse(*wrong);
  std::string why = "one of its sizes, numbers or tensors is unknown";
  std::optional<BoundCall> bound = row->bind(Binder(call, *row, values, address, drawn), why);
  if (!bound.has_value()) return refuse(why);
  if (overlaps_itself(*bound)) return refuse("its result overlaps an operand or itself in memory");
  for (const FxView& view : bound->views) {
    if (view.is_number == 0 && view.dtype != 0 && !has_loads(static_cast<DType>(view.dtype)))
      return refuse("dtype " + std::string(name_of(static_cast<DType>(view.dtype))));
  }
  return *std::move(bound);
}

namespace bindings {

std::optional<BoundCall> pointwise(const Binder& binder, std::string& why) {
  const std::optional<Operand> result = binder.result(0);
  if (!result.has_value() || result->is_absent) return std::nullopt;
  BoundCall bound;
  bound.num_results = 1;
  ViewGroup group;
  group.add(*result);
  ResultType common;
  bool is_known = true;
  for_each_name(binder.row().inputs, [&](std::string_view name) {
    const bool is_projection = name != "condition" && name != "mask";
    const std::optional<ScalarValue> number = binder.call().number(name);
    if (number.has_value()) {
      common.add_number(dtype_of_number(number->type));
      group.add_number(number_of(*number));
      return;
    }
    const std::optional<Operand> operand = binder.tensor(name);
    is_known &= operand.has_value() && !operand->is_absent;
    if (!is_known) return;
    if (is_projection) common.add_tensor(operand->shape.dtype, operand->shape.rank() > 0);
    group.add(broadcast_to(operand->shape, result->shape.sizes), *operand);
  });
  if (!is_known) return std::nullopt;
  const DType computes_in = common.get().value_or(result->shape.dtype);
  const bool is_widened = binder.row().promotion == Promotion::kReal && compute_of(computes_in) == FX_COMPUTE_INT64;
  bound.compute = is_widened ? FX_COMPUTE_FLOAT : compute_of(computes_in);
  if (!add_params(binder, bound, why) || !group.finish(bound, why)) return std::nullopt;
  return bound;
}

std::optional<BoundCall> dropout(const Binder& binder, std::string& why) {
  const std::optional<Operand> result = binder.result(0), mask = binder.result(1), x = binder.tensor("input");
  if (!result.has_value() || !mask.has_value() || !x.has_value() || mask->is_absent) return std::nullopt;
  BoundCall bound = empty_call(2, x->shape.dtype);
  ViewGroup group;
  group.add(*result);
  group.add(*mask);
  group.add(*x);
  if (binder.drawn() != nullptr) {
    const TensorShape shape = contiguous(DType::kBool, mask->shape.sizes);
    group.add(layout_of(shape), {shape, const_cast<void*>(binder.drawn()), false});
  }
  bound.params.push_back(number_of(binder.call().number("p").value_or(ScalarValue{})));
  // If `train` is None, the mode is training.
  bound.params.push_back(whole(binder.call().is_given("train") ? binder.call().integer("train").value_or(1) : 1));
  if (!group.finish(bound, why)) return std::nullopt;
  return bound;
}

namespace {

std::optional<BoundCall> copy_from(const Binder& binder, std::string_view name, std::string& why) {
  const std::optional<Operand> result = binder.result(0), from = binder.tensor(name);
  if (!result.has_value() || !from.has_value()) return std::nullopt;
  BoundCall bound = empty_call(1, from->shape.dtype);
  ViewGroup group;
  group.add(*result);
  group.add(broadcast_to(from->shape, result->shape.sizes), *from);
  if (!group.finish(bound, why)) return std::nullopt;
  if (from->shape.dtype == result->shape.dtype) keep_bits(bound);
  return bound;
}

}  // namespace

std::optional<BoundCall> copy(const Binder& binder, std::string& why) { return copy_from(binder, "self", why); }
std::optional<BoundCall> copy_into(const Binder& binder, std::string& why) { return copy_from(binder, "src", why); }

std::optional<BoundCall> cat(const Binder& binder, std::string& why) {
  const std::optional<Operand> result = binder.result(0);
  const FxWord list = binder.call().word("tensors");
  if (!result.has_value() || kind_of(list) != FX_WORD_LIST) return std::nullopt;
  const auto dim =
      static_cast<size_t>(wrap(binder.call().integer("dim").value_or(0), std::max<size_t>(result->shape.rank(), 1)));
  std::vector<FxView> to, from;
  bool is_real = false, is_double = false;
  int64_t filled = 0;
  Operand part = *result;
  for (const FxWord item : items_of(binder.call().plan(), list)) {
    const std::optional<Operand> operand = binder.of_word(item);
    if (!operand.has_value() || operand->is_absent) return std::nullopt;
    // torch.cat ignores 1-D tensors without elements.
    if (operand->shape.rank() == 1 && operand->shape.sizes[0] == 0) continue;
    if (operand->shape.rank() != result->shape.rank() || dim >= result->shape.rank()) return std::nullopt;
    part.shape.sizes[dim] = operand->shape.sizes[dim];
    filled += operand->shape.sizes[dim];
    BoundCall pair;
    ViewGroup group;
    group.add(part);
    group.add(*operand);
    if (!group.finish(pair, why)) return std::nullopt;
    to.push_back(pair.views[0]);
    from.push_back(pair.views[1]);
    is_real |= compute_of(operand->shape.dtype) != FX_COMPUTE_INT64;
    is_double |= operand->shape.dtype == DType::kFloat64;
    if (part.data != nullptr) {
      const int64_t step = operand->shape.sizes[dim] * result->shape.strides[dim];
      part.data = static_cast<char*>(part.data) + step * element_size(result->shape.dtype);
    }
  }
  if (!to.empty() && filled != result->shape.sizes[dim]) {
    why = "the sizes of its operands do not match its result";
    return std::nullopt;
  }
  const auto num_results = static_cast<uint32_t>(to.size());
  to.insert(to.end(), from.begin(), from.end());
  return BoundCall{std::move(to),
                   num_results,
                   {},
                   is_double ? FX_COMPUTE_DOUBLE
                   : is_real ? FX_COMPUTE_FLOAT
                             : FX_COMPUTE_INT64};
}

std::optional<BoundCall> slice_backward(const Binder& binder, std::string& why) {
  const std::optional<Operand> result = binder.result(0), gradient = binder.tensor("grad_output");
  if (!result.has_value() || !gradient.has_value() || gradient->shape.rank() != result->shape.rank())
    return std::nullopt;
  const size_t rank = result->shape.rank();
  const std::optional<int64_t> dim = binder.call().integer("dim"), start = binder.call().integer("start"),
                               step = binder.call().integer("step");
  if (!dim.has_value() || !start.has_value() || !step.has_value() || rank == 0) return std::nullopt;
  const auto d = static_cast<size_t>(wrap(*dim, rank));
  if (d >= rank) return std::nullopt;
  for (size_t other = 0; other < rank; ++other) {
    if (other != d && gradient->shape.sizes[other] != result->shape.sizes[other]) return std::nullopt;
  }
  const int64_t size = result->shape.sizes[d];
  const int64_t first = std::clamp<int64_t>(*start < 0 ? *start + size : *start, 0, size);
  const int64_t count = gradient->shape.sizes[d];
  const int64_t end = binder.call().integer("end").value_or(size);
  const int64_t last = std::clamp<int64_t>(end < 0 ? end + size : end, first, size);
  if (*step < 1 || count != (last - first) / *step + ((last - first) % *step != 0 ? 1 : 0)) return std::nullopt;
  Operand part = *result;
  part.shape.sizes = gradient->shape.sizes;
  const int64_t element = element_size(result->shape.dtype);
  if (part.data != nullptr) part.data = static_cast<char*>(part.data) + first * part.shape.strides[d] * element;
  part.shape.strides[d] *= *step;
  BoundCall bound = empty_call(2, gradient->shape.dtype);
  ViewGroup group;
  group.add(part);
  group.add(*gradient);
  if (!add_alone(bound, *result, why) || !group.finish(bound, why)) return std::nullopt;
  return bound;
}

std::optional<BoundCall> fill(const Binder& binder, std::string& why) {
  const std::optional<Operand> result = binder.result(0);
  if (!result.has_value()) return std::nullopt;
  BoundCall bound = empty_call(1, result->shape.dtype);
  std::optional<ScalarValue> value = ScalarValue::of(binder.row().name.starts_with("aten.ones") ? 1 : 0);
  if (binder.call().is_given("s")) value = binder.call().number("s");
  if (!value.has_value()) return std::nullopt;
  bound.params.push_back(number_of(*value));
  if (!add_alone(bound, *result, why)) return std::nullopt;
  return bound;
}

std::optional<BoundCall> iota(const Binder& binder, std::string& why) {
  const std::optional<Operand> result = binder.result(0);
  if (!result.has_value()) return std::nullopt;
  BoundCall bound;
  bound.num_results = 1;
  bound.compute = compute_of(result->shape.dtype) == FX_COMPUTE_INT64 ? FX_COMPUTE_INT64 : FX_COMPUTE_DOUBLE;
  bound.params = {number_of(binder.call().number("start").value_or(ScalarValue::of(0))),
                  number_of(binder.call().number("step").value_or(ScalarValue::of(1)))};
  if (!add_alone(bound, *result, why)) return std::nullopt;
  return bound;
}

std::optional<BoundCall> reduction(const Binder& binder, std::string& why) {
  const std::optional<Operand> result = binder.result(0), from = binder.tensor("self");
  if (!result.has_value() || !from.has_value()) return std::nullopt;
  const size_t rank = from->shape.rank();
  const std::optional<Sizes> dims = binder.call().is_given("dim") ? binder.call().integers("dim") : Sizes();
  if (!dims.has_value()) return std::nullopt;
  std::vector<bool> is_reduced(rank, dims->empty());
  for (const int64_t dim : *dims) {
    if (rank > 0) is_reduced[static_cast<size_t>(wrap(dim, rank))] = true;
  }
  BoundCall bound = empty_call(1, result->shape.dtype);
  if (!add_alone(bound, *result, why)) return std::nullopt;
  const auto reduced = static_cast<size_t>(std::count(is_reduced.begin(), is_reduced.end(), true));
  ViewGroup group;
  group.add(move_to_end(layout_of(from->shape), is_reduced), *from);
  size_t split = 0;
  if (!group.finish(bound, why, rank - reduced, &split)) return std::nullopt;
  bound.params.push_back(whole(bound.views.back().rank - static_cast<int64_t>(split)));
  return bound;
}

std::optional<BoundCall> softmax(const Binder& binder, std::string& why) {
  const std::optional<Operand> result = binder.result(0);
  const std::optional<int64_t> dim = binder.call().integer("dim");
  if (!result.has_value() || !dim.has_value()) return std::nullopt;
  const size_t rank = result->shape.rank();
  std::vector<bool> is_row(rank, false);
  const auto row = static_cast<size_t>(wrap(*dim, rank));
  if (rank > 0 && row >= rank) return std::nullopt;
  if (rank > 0) is_row[row] = true;
  BoundCall bound;
  bound.num_results = 1;
  ViewGroup group;
  group.add(move_to_end(layout_of(result->shape), is_row), *result);
  bool is_known = true;
  for_each_name(binder.row().inputs, [&](std::string_view name) {
    const std::optional<Operand> operand = binder.tensor(name);
    is_known &= operand.has_value() && operand->shape.sizes == result->shape.sizes;
    if (!is_known) return;
    bound.compute = compute_of(operand->shape.dtype);
    group.add(move_to_end(layout_of(operand->shape), is_row), *operand);
  });
  size_t split = 0;
  if (!is_known || !group.finish(bound, why, rank == 0 ? 0 : rank - 1, &split)) return std::nullopt;
  bound.params.push_back(whole(bound.views[0].rank - static_cast<int64_t>(split)));
  return bound;
}

namespace {

// The kind of a norm's tensor: all elements, one statistic for each row, or one parameter for each
// element of a row.
enum class RowPart : uint8_t { kWhole, kStatistic, kParameter };
struct RowItem {
  const Operand& operand;
  RowPart part;
  double number = 0;  // replaces a parameter that is None
};

// Adds the views of `items` to a call. The last `row_rank` dimensions of `shape` are a row.
std::optional<BoundCall> with_rows(BoundCall bound, const TensorShape& shape, size_t row_rank,
                                   const std::vector<RowItem>& items, std::string& why) {
  // Broadcasts parameters over rows and statistics over the elements of a row, so that every layout
  // has the sizes of `shape`.
  std::vector<Strided> layouts;
  for (const RowItem& item : items) {
    const TensorShape& own = item.operand.shape;
    layouts.push_back(item.part == RowPart::kWhole ? layout_of(own) : broadcast_to(own, shape.sizes));
  }
  std::vector<Strided*> used;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].operand.is_absent) used.push_back(&layouts[i]);
  }
  for (const Strided* layout : used) {
    if (layout->sizes == used.front()->sizes && layout->sizes.size() == shape.rank()) continue;
    why = "the sizes of its operands do not match each other";
    return std::nullopt;
  }
  const size_t split = join_dims(used, shape.rank() - row_rank);
  for (size_t i = 0; i < items.size(); ++i) {
    const RowItem& item = items[i];
    Strided& layout = layouts[i];
    if (item.operand.is_absent) {
      const bool has_number = item.part == RowPart::kParameter;
      bound.views.push_back(has_number ? number_view(number_of(ScalarValue::of_real(item.number))) : FxView{});
      continue;
    }
    if (!has_room(layout, why)) return std::nullopt;
    for (Sizes* of : {&layout.sizes, &layout.strides}) {
      if (item.part == RowPart::kStatistic) of->resize(split);
      if (item.part == RowPart::kParameter) of->erase(of->begin(), of->begin() + static_cast<ptrdiff_t>(split));
    }
    bound.views.push_back(view_of(layout, item.operand.shape.dtype, item.operand.data));
  }
  bound.params.insert(bound.params.begin(), whole(static_cast<int64_t>(used.front()->sizes.size() - split)));
  return bound;
}

}  // namespace

std::optional<BoundCall> layer_norm(const Binder& binder, std::string& why) {
  const std::optional<Operand> y = binder.result(0), mean = binder.result(1), rstd = binder.result(2);
  const std::optional<Operand> x = binder.tensor("input"), w = binder.tensor("weight"), b = binder.tensor("bias");
  const std::optional<Sizes> row = binder.call().integers("normalized_shape");
  const std::optional<ScalarValue> eps = binder.call().number("eps");
  if (!y || !mean || !rstd || !x || !w || !b || !row || !eps || row->size() > x->shape.rank()) return std::nullopt;
  BoundCall bound = empty_call(3, x->shape.dtype);
  bound.params.push_back(number_of(*eps));
  using enum RowPart;
  return with_rows(
      std::move(bound), x->shape, row->size(),
      {{*y, kWhole}, {*mean, kStatistic}, {*rstd, kStatistic}, {*x, kWhole}, {*w, kParameter, 1}, {*b, kParameter}},
      why);
}

std::optional<BoundCall> layer_norm_backward(const Binder& binder, std::string& why) {
  const std::optional<Operand> dx = binder.result(0), dw = binder.result(1), db = binder.result(2);
  const std::optional<Operand> g = binder.tensor("grad_out"), x = binder.tensor("input"), mean = binder.tensor("mean"),
                               rstd = binder.tensor("rstd"), w = binder.tensor("weight");
  const std::optional<Sizes> row = binder.call().integers("normalized_shape");
  if (!dx || !dw || !db || !g || !x || !mean || !rstd || !w || !row || row->size() > x->shape.rank())
    return std::nullopt;
  using enum RowPart;
  return with_rows(empty_call(3, x->shape.dtype), x->shape, row->size(),
                   {{*dx, kWhole},
                    {*dw, kParameter},
                    {*db, kParameter},
                    {*g, kWhole},
                    {*x, kWhole},
                    {*mean, kStatistic},
                    {*rstd, kStatistic},
                    {*w, kParameter, 1}},
                   why);
}

// Binds mm, bmm and addmm. A matrix without a batch dimension gets a batch of size 1.
std::optional<BoundCall> product(const Binder& binder, std::string&) {
  const bool is_added = binder.row().body == "addmm";
  const std::optional<Operand> result = binder.result(0), a = binder.tensor(is_added ? "mat1" : "self"),
                               b = binder.tensor("mat2");
  if (!result || !a || !b || result->shape.rank() < 2 || result->shape.rank() > 3) return std::nullopt;
  BoundCall bound = empty_call(1, result->shape.dtype);
  const auto add = [&](Strided layout, const Operand& operand) {
    if (layout.sizes.size() == 2) {
      layout.sizes.insert(layout.sizes.begin(), 1);
      layout.strides.insert(layout.strides.begin(), 0);
    }
    bound.views.push_back(view_of(layout, operand.shape.dtype, operand.data));
  };
  add(layout_of(result->shape), *result);
  add(layout_of(a->shape), *a);
  add(layout_of(b->shape), *b);
  if (!is_added) return bound;
  const std::optional<Operand> c = binder.tensor("self");
  const std::optional<ScalarValue> beta = binder.call().number("beta"), alpha = binder.call().number("alpha");
  if (!c || !beta || !alpha) return std::nullopt;
  Strided spread = broadcast_to(c->shape, result->shape.sizes);
  if (spread.sizes != result->shape.sizes) return std::nullopt;
  add(std::move(spread), *c);
  bound.params = {number_of(*beta), number_of(*alpha)};
  return bound;
}

std::optional<BoundCall> gather_rows(const Binder& binder, std::string& why) {
  const std::optional<Operand> result = binder.result(0), weight = binder.tensor("weight"),
                               indices = binder.tensor("indices");
  if (!result || !weight || !indices || weight->shape.rank() != 2) return std::nullopt;
  BoundCall bound = empty_call(1, weight->shape.dtype);
  if (!add_alone(bound, *result, why)) return std::nullopt;
  bound.views.push_back(view_of(*weight));
  if (!add_alone(bound, *indices, why)) return std::nullopt;
  return bound;
}

std::optional<BoundCall> add_rows(const Binder& binder, std::string& why) {
  const std::optional<Operand> result = binder.result(0), g = binder.tensor("grad_output"),
                               indices = binder.tensor("indices");
  const std::optional<int64_t> padding = binder.call().integer("padding_idx");
  if (!result || !g || !indices || !padding || g->shape.rank() == 0) return std::nullopt;
  if (binder.call().integer("scale_grad_by_freq").value_or(0) != 0) {
    why = "scale_grad_by_freq";
    return std::nullopt;
  }
  BoundCall bound = empty_call(1, g->shape.dtype);
  bound.views.push_back(view_of(*result));
  ViewGroup group;
  group.add(move_to_end(layout_of(g->shape), last_dims(g->shape.rank(), 1)), *g);
  BoundCall rows;
  size_t split = 0;
  if (!group.finish(rows, why, g->shape.rank() - 1, &split)) return std::nullopt;
  FxView& view = rows.views.front();
  if (split == view.rank) {  // join_dims() has removed a single column
    view.size[view.rank] = 1;
    view.stride[view.rank] = 1;
    ++view.rank;
  }
  bound.views.push_back(view);
  Sizes of_rows = g->shape.sizes;
  of_rows.pop_back();
  if (of_rows != indices->shape.sizes) return std::nullopt;
  if (!add_alone(bound, *indices, why)) return std::nullopt;
  bound.params.push_back(whole(*padding));
  return bound;
}

namespace {

FxView weights_of(const Operand& weight) { return weight.is_absent ? number_view(whole(1)) : view_of(weight); }

// Adds a batch dimension of size 1 if the shape has one dimension less than `rank`.
TensorShape as_batch(TensorShape shape, size_t rank) {
  if (shape.rank() + 1 == rank) {
    shape.sizes.insert(shape.sizes.begin(), 1);
    shape.strides.insert(shape.strides.begin(), 0);
  }
  return shape;
}

bool fits_batch(const TensorShape& batch, const TensorShape& targets, const Operand& weight) {
  if (batch.rank() != 2 || targets.rank() != 1 || targets.sizes[0] != batch.sizes[0]) return false;
  return weight.is_absent || (weight.shape.rank() == 1 && weight.shape.sizes[0] == batch.sizes[1]);
}

}  // namespace

std::optional<BoundCall> nll_loss(const Binder& binder, std::string& why) {
  const std::optional<Operand> loss = binder.result(0), total = binder.result(1), x = binder.tensor("self"),
                               target = binder.tensor("target"), weight = binder.tensor("weight");
  if (!loss || !total || !x || !target || !weight) return std::nullopt;
  BoundCall bound = empty_call(2, x->shape.dtype);
  const TensorShape batch = as_batch(x->shape, 2), targets = as_batch(target->shape, 1);
  if (!fits_batch(batch, targets, *weight)) return std::nullopt;
  bound.views = {view_of(*loss), view_of(*total), view_of(layout_of(batch), batch.dtype, x->data),
                 view_of(layout_of(targets), targets.dtype, target->data), weights_of(*weight)};
  if (!add_params(binder, bound, why)) return std::nullopt;
  return bound;
}

std::optional<BoundCall> nll_loss_backward(const Binder& binder, std::string& why) {
  const std::optional<Operand> result = binder.result(0), g = binder.tensor("grad_output"),
                               target = binder.tensor("target"), weight = binder.tensor("weight"),
                               total = binder.tensor("total_weight");
  if (!result || !g || !target || !weight || !total) return std::nullopt;
  BoundCall bound = empty_call(1, result->shape.dtype);
  const TensorShape batch = as_batch(result->shape, 2), targets = as_batch(target->shape, 1);
  if (!fits_batch(batch, targets, *weight) || (g->shape.rank() > 0 && g->shape.sizes != targets.sizes))
    return std::nullopt;
  bound.views = {view_of(layout_of(batch), batch.dtype, result->data), view_of(*g),
                 view_of(layout_of(targets), targets.dtype, target->data), weights_of(*weight), view_of(*total)};
  if (!add_params(binder, bound, why)) return std::nullopt;
  return bound;
}

}  // namespace bindings
}  // namespace fxopt
