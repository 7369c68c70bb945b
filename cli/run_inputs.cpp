#include "cli/run_inputs.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "cli/arguments.h"
#include "cli/print/table.h"
#include "cli/take.h"
#include "core/text.h"
#include "ir/graph/types.h"
#include "runtime/plan/plan.h"
#include "runtime/run/tensors.h"

namespace fxopt {
namespace {

// Parses a number of the command line. Without a point, an exponent, "nan" or "inf", the number is
// an integer.
std::optional<ScalarValue> number_of(const std::string& text) {
  char* end = nullptr;
  const double real = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return std::nullopt;
  const bool is_whole = text.find_first_of(".eEnN") == std::string::npos;
  return is_whole ? ScalarValue::of(std::strtoll(text.c_str(), nullptr, 10)) : ScalarValue::of_real(real);
}

}  // namespace

Status RunInputs::bind() {
  if (const Status status = open_files(); !status.ok()) return status;
  options_.fill = fill_by_name(flags_.fill).value_or(Fill::kNone);
  options_.seed = flags_.seed;
  options_.symbols = symbols_;
  if (const Status status = take(inputs_, StepInputs::bind(plan_, options_)); !status.ok()) return status;
  return find_draws();
}

Status RunInputs::open_files() {
  std::vector<std::string> paths = flags_.inputs;
  if (!flags_.state.empty()) paths.push_back(flags_.state);
  for (const std::string& path : paths) {
    const Result<const SafetensorsFile*> file = open(path);
    if (!file.ok()) return file.error();
    // Other tensors of the file are ignored. Examples are expected outputs and parameters of other
    // steps.
    size_t used = 0;
    for (const SafetensorsTensor& tensor : (*file)->content.tensors()) {
      if (!is_input(tensor.name)) continue;
      options_.given[tensor.name] = {&tensor, std::nullopt, path};
      ++used;
    }
    const size_t all = (*file)->content.tensors().size();
    if (used == 0) {
      return Error{ErrorCode::kBadInput,
                   "no tensor of " + path + " has the name of an input, such as '" +
                       (plan_.num_inputs > 0 ? std::string(input_key(plan_, 0)) : "") + "'",
                   all > 0 ? "the file has '" + (*file)->content.tensors().front().name + "' and " +
                                 std::to_string(all - 1) + " more"
                           : "the file has no tensor",
                   {}};
    }
    used_.push_back(std::to_string(used) + " of " + count_text(all, "tensor") + " of " + path);
  }
  for (const std::string& text : flags_.input) {
    if (const Status status = add_input(text); !status.ok()) return status;
  }
  return ok_status();
}

Result<const SafetensorsFile*> RunInputs::open(const std::string& path) {
  if (const auto known = files_.find(path); known != files_.end()) return &known->second;
  Result<SafetensorsFile> file = load_safetensors(path);
  if (!file.ok()) return file.error();
  return &files_.emplace(path, *std::move(file)).first->second;
}

bool RunInputs::is_input(std::string_view name) const {
  for (uint64_t i = 0; i < plan_.num_inputs; ++i) {
    const std::array<std::string_view, 3> names = names_of(plan_, i);
    if (std::find(names.begin(), names.end(), name) != names.end()) return true;
  }
  return false;
}

// Adds one --input: NAME=FILE.npy, NAME=FILE.safetensors:KEY or NAME=NUMBER.
Status RunInputs::add_input(const std::string& text) {
  const auto misread = [&](std::string hint) {
    return bad_value_error("--input takes NAME=FILE.npy, NAME=FILE.safetensors:KEY or NAME=NUMBER, not '" + text + "'",
                           std::move(hint));
  };
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return misread(text.ends_with(".safetensors") ? "--inputs takes a whole file: --inputs " + text
                   : is_input(text)               ? "give its value: --input " + text + "=FILE.npy"
                                                  : "name the input: --input NAME=" + text);
  }
  const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  if (const std::optional<ScalarValue> number = number_of(value); number.has_value()) {
    options_.given[name] = {nullptr, number, "--input"};
    return ok_status();
  }
  if (value.ends_with(".npy")) {
    Result<NpyFile> array = load_npy(value);
    if (!array.ok()) return array.error();
    arrays_.push_back(std::make_unique<NpyFile>(*std::move(array)));
    options_.given[name] = {&arrays_.back()->tensor, std::nullopt, value};
    return ok_status();
  }
  const size_t colon = value.rfind(':');
  if (colon == std::string::npos) {
    return misread(value.ends_with(".safetensors") ? "name one of its tensors: " + text + ":KEY" : "");
  }
  const std::string path = value.substr(0, colon), key = value.substr(colon + 1);
  const Result<const SafetensorsFile*> file = open(path);
  if (!file.ok()) return file.error();
  const SafetensorsTensor* tensor = (*file)->content.find(key);
  if (tensor == nullptr) return Error{ErrorCode::kBadInput, path + " has no tensor '" + key + "'", "", {}};
  options_.given[name] = {tensor, std::nullopt, path};
  return ok_status();
}

std::optional<int64_t> RunInputs::symbol_value(std::string_view name) const {
  for (uint32_t i = 0; i < plan_.num_scalars; ++i) {
    const FxScalar& scalar = plan_.scalars[i];
    if (scalar.name == FX_NONE || text_at(plan_, scalar.name) != name) continue;
    return inputs_->values().integer(make_word(FX_WORD_SCALAR, i));
  }
  return symbols_(name);
}

SymbolValues RunInputs::symbols() const {
  SymbolValues found;
  for (const Symbol& symbol : module_.symbols) {
    if (const std::optional<int64_t> value = symbol_value(module_.text(symbol.name))) found[symbol.name] = *value;
  }
  return found;
}

// Finds the mask of each dropout step in --draws, by the name of the step's node. Checks the sizes.
Status RunInputs::find_draws() {
  if (flags_.draws.empty()) return ok_status();
  const Result<const SafetensorsFile*> file = open(flags_.draws);
  if (!file.ok()) return file.error();
  for (uint32_t i = 0; i < plan_.num_steps; ++i) {
    const FxStep& step = plan_.steps[i];
    if (step.draw == FX_NONE || step.num_results < 2) continue;
    const std::string name(text_at(plan_, plan_.nodes[step.node].name));
    const SafetensorsTensor* mask = (*file)->content.find(name);
    const std::optional<PlacedTensor> wanted =
        placed_tensor(plan_, inputs_->values(), index_of(plan_.words[step.results + 1]));
    if (mask != nullptr && wanted.has_value() && mask->dtype == DType::kBool && mask->sizes == wanted->shape.sizes) {
      drawn_[i] = mask->bytes.data();
      continue;
    }
    return Error{ErrorCode::kBadInput,
                 flags_.draws + (mask == nullptr ? " has no mask" : " has a mask that is not bool or has other sizes") +
                     " for '" + name + "'",
                 "--save-draws writes the mask of each dropout node",
                 {}};
  }
  return ok_status();
}

const void* RunInputs::drawn(uint32_t step) const {
  const auto found = drawn_.find(step);
  return found == drawn_.end() ? nullptr : found->second;
}

}  // namespace fxopt
