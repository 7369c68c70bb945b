#include "runtime/run/inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "ir/graph/types.h"
#include "ir/ops/op.h"
#include "ir/values/values.h"
#include "runtime/ops/coverage.h"
#include "runtime/ops/kernels/random.h"
#include "runtime/ops/rows.h"
#include "runtime/plan/plan.h"
#include "runtime/run/tensors.h"

namespace fxopt {
namespace {

// Returns the 64-bit FNV-1a hash.
uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// Stores x, or `whole` if the dtype is not real, as an element. Converts the number as kernels do.
void put(DType dtype, std::byte* bytes, int64_t element, double x, int64_t whole) {
  FxView view{};
  view.data = bytes;
  view.dtype = static_cast<uint8_t>(dtype);
  if (is_floating(dtype))
    kernels::store_one<double>(view, element, x);
  else
    kernels::store_one<int64_t>(view, element, whole);
}

}  // namespace

std::string_view bare_name(const FxPlan& plan, uint64_t input) {
  const std::string_view name = text_at(plan, plan.inputs[input].name);
  return name.substr(name.rfind('.') + 1);
}

std::array<std::string_view, 3> names_of(const FxPlan& plan, uint64_t input) {
  return {text_at(plan, plan.inputs[input].fqn), bare_name(plan, input), text_at(plan, plan.inputs[input].name)};
}

std::string_view input_key(const FxPlan& plan, uint64_t input) {
  const std::string_view fqn = text_at(plan, plan.inputs[input].fqn);
  return fqn.empty() ? bare_name(plan, input) : fqn;
}

std::optional<Fill> fill_by_name(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"random", "ramp", "zeros", "ones"};
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? std::nullopt : std::optional(static_cast<Fill>(found - kNames.begin() + 1));
}

class InputBinder {
 public:
  InputBinder(const FxPlan& plan, const InputOptions& options)
      : plan_(plan), options_(options), inputs_(new StepInputs(plan)), sources_(plan.num_inputs) {}

  Result<std::unique_ptr<StepInputs>> run() {
    find_sources();
    if (!error_) bind_symbols();
    if (!error_) check_shapes();
    if (!error_) find_memory();
    if (error_) return *std::move(error_);
    return std::move(inputs_);
  }

 private:
  std::string name_of_input(uint64_t i) const { return std::string(text_at(plan_, plan_.inputs[i].name)); }

  void fail(ErrorCode code, uint64_t input, std::string message, std::string hint = "") {
    if (error_) return;
    error_ = Error{code, std::move(message), std::move(hint), {}};
    if (sources_[input] != nullptr) error_->where.file = sources_[input]->from;
    error_->where.node = name_of_input(input);
  }

  void find_sources() {
    std::vector<bool> is_used(options_.given.size(), false);
    for (uint64_t i = 0; i < plan_.num_inputs; ++i) {
      for (const std::string_view name : names_of(plan_, i)) {
        const auto found = name.empty() ? options_.given.end() : options_.given.find(name);
        if (found == options_.given.end()) continue;
        sources_[i] = &found->second;
        is_used[static_cast<size_t>(std::distance(options_.given.begin(), found))] = true;
      }
      const bool is_needed = kind_of(plan_.inputs[i].value) != FX_WORD_NONE;
      if (is_needed && sources_[i] == nullptr && options_.fill == Fill::kNone && !is_told_by_another(i)) {
        fail(ErrorCode::kBadInput, i, "no value is given for the input",
             "give --input NAME=FILE:KEY, or --fill random for all missing inputs");
      }
    }
    size_t place = 0;
    for (const auto& [name, source] : options_.given) {
      if (is_used[place++] || error_) continue;
      error_ = Error{
          ErrorCode::kBadInput, "the step has no input '" + name + "'", "its inputs are " + names_of_inputs(), {}};
      error_->where.file = source.from;
    }
  }

  // Returns true for a symbol that the size of another input determines.
  bool is_told_by_another(uint64_t i) const {
    const FxWord value = plan_.inputs[i].value;
    return kind_of(value) == FX_WORD_SCALAR && plan_.scalars[index_of(value)].source == FX_SCALAR_DIM;
  }

  std::string names_of_inputs() const {
    std::string names;
    for (uint64_t i = 0; i < plan_.num_inputs && i < 12; ++i) names += (i > 0 ? ", " : "") + name_of_input(i);
    return plan_.num_inputs > 12 ? names + ", ..." : names;
  }

  // -- symbols

  void bind_symbols() {
    std::vector<uint64_t> input_of(plan_.num_tensors, plan_.num_inputs);
    for (uint64_t i = 0; i < plan_.num_inputs; ++i) {
      if (kind_of(plan_.inputs[i].value) == FX_WORD_TENSOR) input_of[index_of(plan_.inputs[i].value)] = i;
    }
    for (uint32_t s = 0; s < plan_.num_scalars && !error_; ++s) {
      const FxScalar& scalar = plan_.scalars[s];
      std::optional<ScalarValue> value;
      if (scalar.source == FX_SCALAR_CODE) {
        value = inputs_->values_.compute(s);
      } else if (scalar.source == FX_SCALAR_DIM && scalar.tensor < plan_.num_tensors) {
        value = told_by(input_of[scalar.tensor], scalar);
      } else if (scalar.source == FX_SCALAR_INPUT) {
        value = number_of(s);
      }
      if (!value.has_value() && scalar.source != FX_SCALAR_CODE && scalar.source != FX_SCALAR_STEP)
        value = symbol_value(plan_, scalar, options_.symbols ? options_.symbols : no_symbol_value);
      inputs_->values_.set(s, value);
      if (value.has_value() && value->type == FX_SCALAR_INT &&
          (value->integer < scalar.min || value->integer > scalar.max)) {
        error_ = Error{ErrorCode::kBadInput,
                       "the symbol " + std::string(text_at(plan_, scalar.name)) + " is " +
                           std::to_string(value->integer) + ", but the graph was traced for " +
                           std::to_string(scalar.min) + " to " + std::to_string(scalar.max),
                       "trace the graph again with these sizes",
                       {}};
      }
    }
  }

  std::optional<ScalarValue> told_by(uint64_t input, const FxScalar& scalar) const {
    if (input >= plan_.num_inputs || sources_[input] == nullptr || sources_[input]->tensor == nullptr)
      return std::nullopt;
    const std::vector<int64_t>& sizes = sources_[input]->tensor->sizes;
    const size_t rank = plan_.tensors[scalar.tensor].rank;
    // Only sizes come from the given tensor. Strides come from the plan.
    if (sizes.size() != rank || scalar.dim >= rank) return std::nullopt;
    return ScalarValue::of(sizes[scalar.dim]);
  }

  std::optional<ScalarValue> number_of(uint32_t scalar) const {
    for (uint64_t i = 0; i < plan_.num_inputs; ++i) {
      if (plan_.inputs[i].value == make_word(FX_WORD_SCALAR, scalar) && sources_[i] != nullptr)
        return sources_[i]->number;
    }
    return std::nullopt;
  }

  // -- tensors

  void check_shapes() {
    tensors_.resize(plan_.num_inputs);
    for (uint64_t i = 0; i < plan_.num_inputs && !error_; ++i) {
      const FxWord value = plan_.inputs[i].value;
      if (kind_of(value) != FX_WORD_TENSOR) continue;
      std::optional<PlacedTensor> wanted = placed_tensor(plan_, inputs_->values_, index_of(value));
      if (!wanted.has_value()) {
        fail(ErrorCode::kUnknownSize, i, "a size of the input is unknown", "give the input, or --symbol NAME=VALUE");
        return;
      }
      tensors_[i] = *std::move(wanted);
      if (sources_[i] == nullptr) continue;
      if (sources_[i]->tensor == nullptr) {
        fail(ErrorCode::kBadInput, i, "the input is a tensor, but a number is given");
        return;
      }
      const SafetensorsTensor& given = *sources_[i]->tensor;
      const TensorShape& shape = tensors_[i].shape;
      if (given.dtype == shape.dtype && given.sizes == shape.sizes) continue;
      fail(ErrorCode::kBadInput, i,
           shape_text(contiguous(given.dtype, given.sizes)) + " is given for an input of " +
               shape_text(contiguous(shape.dtype, shape.sizes)),
           given.dtype != shape.dtype ? "convert the tensor: `fxopt run` does not change the dtype of an input" : "");
    }
  }

  void find_memory() {
    inputs_->given_.assign(plan_.num_storages, nullptr);
    std::vector<std::vector<uint64_t>> inputs_on(plan_.num_storages);
    for (uint64_t i = 0; i < plan_.num_inputs; ++i) {
      if (kind_of(plan_.inputs[i].value) == FX_WORD_TENSOR && tensors_[i].storage != FX_NONE)
        inputs_on[tensors_[i].storage].push_back(i);
    }
    bounds_ = index_bounds(plan_, inputs_->values_);
    for (uint32_t s = 0; s < plan_.num_storages && !error_; ++s) {
      if (!inputs_on[s].empty()) fill_storage(s, inputs_on[s]);
    }
  }

  // Returns true if the storage can be read in place: no step writes the storage, and one given
  // tensor covers the storage in the plan's layout.
  bool lies_as_given(uint32_t storage, const std::vector<uint64_t>& inputs, int64_t bytes) const {
    if (inputs.size() != 1 || sources_[inputs.front()] == nullptr) return false;
    const PlacedTensor& tensor = tensors_[inputs.front()];
    const std::span<const std::byte> given = sources_[inputs.front()]->tensor->bytes;
    const bool is_aligned =
        reinterpret_cast<uintptr_t>(given.data()) % static_cast<uintptr_t>(element_size(tensor.shape.dtype)) == 0;
    return (plan_.storages[storage].flags & FX_STORAGE_WRITTEN) == 0 && tensor.offset == 0 &&
           is_contiguous(tensor.shape) && static_cast<int64_t>(given.size()) == bytes && is_aligned;
  }

  void fill_storage(uint32_t storage, const std::vector<uint64_t>& inputs) {
    const std::optional<int64_t> bytes = inputs_->values_.integer(plan_.storages[storage].bytes);
    if (!bytes.has_value())
      return fail(ErrorCode::kUnknownSize, inputs.front(), "the size of the input's storage is unknown");
    if (lies_as_given(storage, inputs, *bytes)) {
      inputs_->given_[storage] = const_cast<std::byte*>(sources_[inputs.front()]->tensor->bytes.data());
      return;
    }
    HostBlock block(*bytes);
    if (*bytes > 0 && block.data() == nullptr)
      return fail(ErrorCode::kOutOfMemory, inputs.front(),
                  "cannot allocate " + std::to_string(*bytes) + " bytes for the input");
    if (*bytes > 0) std::memset(block.data(), 0, static_cast<size_t>(*bytes));
    inputs_->copied_ += *bytes;
    // Inputs may share memory. Generated values are stored first, so given values overwrite these
    // values. Among generated values, those of the first input are stored last.
    for (size_t k = inputs.size(); k-- > 0;) {
      if (sources_[inputs[k]] == nullptr) make_up(inputs[k], storage, block.data());
    }
    for (const uint64_t i : inputs) {
      if (sources_[i] != nullptr) copy_in(tensors_[i], sources_[i]->tensor->bytes, block.data());
    }
    if ((plan_.storages[storage].flags & FX_STORAGE_WRITTEN) != 0)
      inputs_->written_.push_back({block.data(), std::vector<std::byte>(block.data(), block.data() + *bytes)});
    inputs_->given_[storage] = block.data();
    inputs_->blocks_.push_back(std::move(block));
  }

  // -- made up inputs

  void make_up(uint64_t i, uint32_t storage, std::byte* data) {
    ++inputs_->made_up_;
    const PlacedTensor& tensor = tensors_[i];
    const int64_t count = tensor.shape.elements();
    std::vector<std::byte> bytes(static_cast<size_t>(count * element_size(tensor.shape.dtype)));
    const int64_t bound = bounds_[storage] == INT64_MAX ? 2 : std::max<int64_t>(bounds_[storage], 1);
    const double scale = scale_of(i, tensor.shape);
    const uint64_t slot = fnv1a(input_key(plan_, i));
    for (int64_t e = 0; e < count; ++e) {
      double x = options_.fill == Fill::kOnes ? 1 : 0;
      int64_t whole = options_.fill == Fill::kOnes ? std::min<int64_t>(1, bound - 1) : 0;
      if (options_.fill == Fill::kRamp) {
        x = static_cast<double>(e % 256) / 256;
        whole = e % bound;
      } else if (options_.fill == Fill::kRandom) {
        uint32_t words[4];
        kernels::philox(options_.seed, slot, static_cast<uint64_t>(e / 4), words);
        const uint32_t word = words[e % 4];
        const double u = static_cast<double>(word >> 8) * 0x1p-24;
        x = is_state(i) ? u * scale : (2 * u - 1) * scale;
        whole = static_cast<int64_t>((uint64_t{word} * static_cast<uint64_t>(bound)) >> 32);
      }
      put(tensor.shape.dtype, bytes.data(), e, x, whole);
    }
    copy_in(tensor, bytes, data);
  }

  bool is_state(uint64_t i) const { return plan_.inputs[i].role == static_cast<uint32_t>(InputRole::kOptimizerState); }

  // Returns the scale of generated values. For a matrix, this is 1 / sqrt(last size), so that
  // activations keep their magnitude from layer to layer.
  double scale_of(uint64_t i, const TensorShape& shape) const {
    if (is_state(i)) return 0.01;
    if (plan_.inputs[i].role != static_cast<uint32_t>(InputRole::kParameter)) return 1;
    return shape.rank() < 2 ? 0.5 : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(shape.sizes.back(), 1)));
  }

  const FxPlan& plan_;
  const InputOptions& options_;
  std::unique_ptr<StepInputs> inputs_;
  std::vector<const GivenInput*> sources_;  // by input
  std::vector<PlacedTensor> tensors_;       // by input
  std::vector<int64_t> bounds_;             // by storage
  std::optional<Error> error_;
};

Result<std::unique_ptr<StepInputs>> StepInputs::bind(const FxPlan& plan, const InputOptions& options) {
  return InputBinder(plan, options).run();
}

void StepInputs::restore() {
  for (const Written& written : written_) std::memcpy(written.data, written.before.data(), written.before.size());
}

std::vector<int64_t> index_bounds(const FxPlan& plan, const ScalarValues& values) {
  std::vector<int64_t> bounds(plan.num_storages, INT64_MAX);
  const auto storage_of = [&](FxWord word) {
    return kind_of(word) == FX_WORD_TENSOR ? plan.tensors[index_of(word)].storage : FX_NONE;
  };
  // Visits steps from last to first, because the bound of a copy's result also applies to the
  // copy's operand.
  for (uint64_t s = plan.num_steps; s-- > 0;) {
    const FxStep& step = plan.steps[s];
    const KernelRow* row = find_op_row(op_name(plan, step));
    if (row == nullptr) continue;
    const StepCall call(plan, values, step, find_builtin_op(row->name));
    const auto limit = [&](std::string_view indices, std::optional<int64_t> bound) {
      const uint32_t storage = storage_of(call.word(indices));
      if (storage != FX_NONE && bound.has_value()) bounds[storage] = std::min(bounds[storage], *bound);
    };
    const auto last_size = [&](std::string_view name) -> std::optional<int64_t> {
      const std::optional<TensorShape> shape = call.tensor(name);
      return shape.has_value() && shape->rank() > 0 ? std::optional(shape->sizes.back()) : std::nullopt;
    };
    if (row->body == "gather_rows") {
      const std::optional<TensorShape> weight = call.tensor("weight");
      limit("indices", weight.has_value() && weight->rank() > 0 ? std::optional(weight->sizes[0]) : std::nullopt);
    }
    if (row->body == "add_rows") limit("indices", call.integer("num_weights"));
    if (row->family == KernelFamily::kLoss) limit("target", last_size("self"));
    if (row->body == "copy" && step.num_results == 1) {
      const uint32_t result = storage_of(plan.words[step.results]);
      if (result != FX_NONE && bounds[result] != INT64_MAX) limit("self", bounds[result]);
    }
  }
  return bounds;
}

}  // namespace fxopt
