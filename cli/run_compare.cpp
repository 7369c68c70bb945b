#include "cli/run_compare.h"

#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/print/table.h"
#include "cli/take.h"
#include "core/bytes.h"
#include "core/text.h"
#include "runtime/run/far_step.h"

namespace fxopt {
namespace {

// Node results are compared with float64 only if their total size is at most this many bytes.
constexpr int64_t kMostKept = int64_t{2} << 30;
constexpr size_t kShownSuspects = 5;
constexpr size_t kShownValues = 10;

std::string type_text(DType dtype, const std::vector<int64_t>& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return std::string(name_of(dtype)) + "[" + text + "]";
}

std::string element_text(const std::vector<int64_t>& sizes, size_t element) {
  std::string text;
  for (size_t d = sizes.size(); d-- > 0;) {
    const auto size = static_cast<size_t>(sizes[d]);
    text = std::to_string(element % size) + (text.empty() ? "" : ", ") + text;
    element /= size;
  }
  return "[" + text + "]";
}

}  // namespace

RunComparison::RunComparison(Console& console, const RunFacts& facts, RunTarget& target, Program& program,
                             std::function<ExecuteOptions(const std::vector<void*>&)> options)
    : console_(console),
      facts_(facts),
      plan_(facts.plan),
      target_(target),
      program_(program),
      options_(std::move(options)),
      tolerance_(*parse_tolerance(facts.flags.tolerance)) {}

Status RunComparison::compare(const std::vector<const NamedTensor*>& values, const SafetensorsFile& expected) {
  std::vector<const NamedTensor*> known;
  for (const NamedTensor* value : values) {
    if (expected.content.find(value->name) != nullptr) known.push_back(value);
  }
  if (known.empty()) {
    return Error{ErrorCode::kBadInput,
                 facts_.flags.expect + " has none of the outputs",
                 "`fxopt run --output` writes them under their names",
                 {}};
  }
  Reference reference;
  if (tolerance_.kind == Tolerance::Kind::kAuto) {
    if (const Status status = take(reference, run_in_float64(known)); !status.ok()) return status;
  }
  console_.result()["comparison"] = nlohmann::ordered_json::array();
  std::vector<Compared> compared;
  size_t wrong = 0;
  for (const NamedTensor* value : known) {
    const bool differs = !compare_value(*value, *expected.content.find(value->name), reference);
    compared.push_back({value->output, value->step, differs});
    wrong += differs ? 1 : 0;
  }
  print_uncompared(values, known, expected);
  if (wrong == 0) {
    console_.product() << "  as expected: " << count_text(known.size(), "value") << " within " << facts_.flags.tolerance
                       << '\n';
    return ok_status();
  }
  if (wrong == known.size() && misshapen_ == 0) print_made_up();
  console_.product() << lines_;
  if (shown_ > kShownValues)
    console_.product() << "  and " << count_text(shown_ - kShownValues, "value") << " more; --json lists all\n";
  if (misshapen_ < wrong) {
    print_suspects(compared);
    if (const Status status = print_far_step(); !status.ok()) return status;
  }
  return Error{ErrorCode::kOutputsDiffer,
               std::to_string(wrong) + " of " + count_text(known.size(), "value") +
                   (wrong == 1 ? " differs from " : " differ from ") + facts_.flags.expect,
               "",
               {}};
}

// Prepares the step in float64, with its original inputs.
Result<std::unique_ptr<Program>> RunComparison::prepare_in_float64() {
  const ScalarValues& values = facts_.inputs.values();
  wide_plan_ = widen(plan_, values);
  facts_.inputs.bound().restore();
  const std::vector<void*>& given = facts_.inputs.bound().given();
  const Status status = take(wide_inputs_, WidenedInputs::convert(plan_, wide_plan_->view(), values, given));
  if (!status.ok()) return status.error();
  return target_.prepare_on_host(wide_plan_->view(), values, options_(wide_inputs_->given()));
}

// Runs the step in float64. Returns its outputs, and the results of the plan steps that produce
// `values`.
Result<RunComparison::Reference> RunComparison::run_in_float64(const std::vector<const NamedTensor*>& values) {
  const Result<std::unique_ptr<Program>> program = prepare_in_float64();
  if (!program.ok()) return program.error();
  std::set<uint32_t> steps;
  for (const NamedTensor* value : values) steps.insert(value->step);
  Reference reference;
  const Status status = (*program)->run_watched([&](uint32_t step) {
    if (steps.count(step) == 0) return;
    for (NamedTensor& value : copy_results(**program, facts_.inputs.values(), step))
      reference[value.name] = std::move(value);
  });
  if (!status.ok()) return status.error();
  for (NamedTensor& value : copy_outputs(**program, facts_.inputs.values())) reference[value.name] = std::move(value);
  return reference;
}

// Returns true if the value is as expected. Adds differences to `lines_`.
bool RunComparison::compare_value(const NamedTensor& value, const SafetensorsTensor& expected,
                                  const Reference& reference) {
  nlohmann::ordered_json& list = console_.result()["comparison"];
  const std::string name = printable_line(value.name);
  if (expected.dtype != value.dtype || expected.sizes != value.sizes) {
    if (++shown_ <= kShownValues) {
      lines_ += "  " + name + ": " + type_text(value.dtype, value.sizes) + ", expected " +
                type_text(expected.dtype, expected.sizes) + '\n';
    }
    ++misshapen_;
    list.push_back({{"name", value.name}, {"same_shape", false}});
    return false;
  }
  const auto wide = reference.find(value.name);
  const std::vector<double> exact =
      wide == reference.end() ? std::vector<double>() : as_doubles(wide->second.dtype, wide->second.bytes);
  const Comparison found = fxopt::compare(value.dtype, value.bytes, expected.bytes, exact, tolerance_);
  list.push_back({{"name", value.name},
                  {"elements", found.elements},
                  {"differing", found.differing},
                  {"over", found.over},
                  {"not_finite", found.not_finite}});
  if (found.passes) return true;
  if (++shown_ > kShownValues) return false;
  lines_ += "  " + name + ", " + std::string(name_of(value.dtype)) + ": " + std::to_string(found.differing) + " of " +
            std::to_string(found.elements) + " differ, " + std::to_string(found.over) + " over tolerance, " +
            std::to_string(found.not_finite) + " not finite\n";
  lines_ += "    worst " + element_text(value.sizes, found.worst) + ": " + number_text(found.ours) + ", expected " +
            number_text(found.expected);
  if (found.reference.has_value()) lines_ += ", float64 " + number_text(*found.reference);
  lines_ += '\n';
  return false;
}

// Prints how many outputs and tensors of the file were not compared. They do not affect the
// verdict.
void RunComparison::print_uncompared(const std::vector<const NamedTensor*>& values,
                                     const std::vector<const NamedTensor*>& known, const SafetensorsFile& expected) {
  std::set<std::string_view> names;
  size_t outputs = 0, tensors = 0;
  for (const NamedTensor* value : known) names.insert(value->name);
  for (const NamedTensor* value : values) outputs += value->output != FX_NONE && names.count(value->name) == 0 ? 1 : 0;
  for (const SafetensorsTensor& tensor : expected.content.tensors()) tensors += names.count(tensor.name) == 0 ? 1 : 0;
  console_.result()["not_compared"] = {{"outputs", outputs}, {"tensors_of_file", tensors}};
  if (outputs == 0 && tensors == 0) return;
  console_.product() << "  not compared: " << count_text(outputs, "output") << " missing in the file, "
                     << count_text(tensors, "tensor") << " of the file missing in the step\n";
}

// Prints a likely cause if no value agrees: the two runs had different inputs or random draws.
void RunComparison::print_made_up() {
  const size_t made_up = facts_.inputs.bound().num_made_up();
  const bool has_draws = plan_.num_draws > 0 && !facts_.inputs.has_draws();
  if (made_up == 0 && !has_draws) return;
  const std::string inputs = made_up == 0 ? "" : count_text(made_up, "input") + " of --fill";
  const std::string draws = has_draws ? "random draws" : "";
  console_.product() << "  no value agrees: " << inputs << (made_up > 0 && has_draws ? " and " : "") << draws
                     << " depend on --seed " << facts_.flags.seed << "; was the file made with the same seed?\n";
}

// Runs the step again beside a float64 copy, and prints the first node whose result is far from
// float64. This finds a kernel that is wrong in only one dtype.
Status RunComparison::print_far_step() {
  const int64_t bytes = bytes_of_results(plan_, facts_.inputs.values());
  if (bytes > kMostKept) {
    console_.product() << "  nodes are not compared with float64, because their results are too large: "
                       << size_text(bytes) << '\n';
    return ok_status();
  }
  const Result<std::unique_ptr<Program>> wide = prepare_in_float64();
  if (!wide.ok()) return wide.error();
  if (const Status status = program_.upload(); !status.ok()) return status;
  const Result<std::optional<uint32_t>> found = first_far_step(program_, **wide, facts_.inputs.values());
  if (!found.ok()) return found.error();
  if (!found->has_value()) {
    console_.product() << "  every node is close to its float64 result: the float64 run has the same error, or the "
                          "expected values are wrong\n";
    return ok_status();
  }
  const std::string name(text_at(plan_, plan_.nodes[plan_.steps[**found].node].name));
  console_.result()["first_far_from_float64"] = name;
  console_.product() << "  first node far from its float64 result: %" << printable_line(name) << '\n';
  return ok_status();
}

void RunComparison::print_suspects(const std::vector<Compared>& compared) {
  const std::vector<uint32_t> steps = suspects(plan_, compared);
  std::string names;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string name(text_at(plan_, plan_.nodes[plan_.steps[steps[i]].node].name));
    list.push_back(name);
    if (i < kShownSuspects) names += (i > 0 ? ", %" : "%") + printable_line(name);
  }
  console_.result()["suspects"] = std::move(list);
  if (steps.empty()) {
    console_.product() << "  suspects: no single node explains every difference\n";
  } else {
    console_.product() << "  suspects, the likeliest first: " << names
                       << (steps.size() > kShownSuspects
                               ? " and " + std::to_string(steps.size() - kShownSuspects) + " more"
                               : "")
                       << '\n';
  }
}

}  // namespace fxopt
