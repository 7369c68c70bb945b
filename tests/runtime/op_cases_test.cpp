// Every kernel of the CPU against float64 by PyTorch. tests/cases/ops has calls by family
// (scripts/make_op_cases.py). A result may be wrong by k eps S, with the k of the operator's row
// and the S of the file.

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "ir/io/io.h"
#include "ir/io/safetensors.h"
#include "ir/prepare.h"
#include "runtime/cpu/isa.h"
#include "runtime/ops/rows.h"
#include "runtime/plan/lower.h"
#include "runtime/plan/plan.h"
#include "runtime/run/compare.h"
#include "runtime/run/host_program.h"
#include "runtime/run/inputs.h"
#include "runtime/run/tensors.h"
#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/must.h"
#include "tests/runtime/cuda/emulated_kernels.h"

namespace fxopt {
namespace {

const std::string kFolder = std::string(FXOPT_SOURCE_DIR "/tests/cases/ops/");

struct OpCase {
  std::string name, text;
};

std::vector<OpCase> cases_of(const std::string& family) {
  std::vector<OpCase> cases;
  const std::string whole = read_text(kFolder + family + ".fxg");
  for (size_t at = whole.find("graph @"); at != std::string::npos;) {
    const size_t next = whole.find("graph @", at + 1);
    const std::string text = whole.substr(at, next == std::string::npos ? next : next - at);
    cases.push_back({text.substr(7, text.find(' ', 7) - 7), text});
    at = next;
  }
  return cases;
}

// A case, ready to run on any table of kernels.
struct LoweredCase {
  std::unique_ptr<Module> module;
  std::unique_ptr<Plan> plan;
  std::unique_ptr<StepInputs> inputs;

  const FxPlan& view() { return plan->view(); }
};

LoweredCase lower_case(const OpCase& op_case, const Safetensors& data) {
  LoweredCase lowered;
  lowered.module = must(parse_module("fxg 0\n" + op_case.text, Format::kText, op_case.name));
  for (const Error& error : prepare(*lowered.module).broken) FAIL(format_error(error));
  lowered.plan = must(lower_step(*lowered.module));
  InputOptions options;
  const FxPlan& view = lowered.view();
  for (uint64_t i = 0; i < view.num_inputs; ++i) {
    const SafetensorsTensor* tensor = data.find(op_case.name + "/in" + std::to_string(i));
    REQUIRE(tensor != nullptr);
    options.given[std::string(text_at(view, view.inputs[i].name))] = {tensor, std::nullopt, ""};
  }
  lowered.inputs = must(StepInputs::bind(view, options));
  return lowered;
}

struct Got {
  DType dtype;
  std::vector<std::byte> bytes;
};

std::vector<Got> run_case(LoweredCase& lowered, const FxKernelTable& kernels, uint32_t threads) {
  ThreadPool pool(threads);
  ExecuteOptions options;
  options.kernels = &kernels;
  options.threads = &pool;
  options.alone_elements = 0;
  options.given = lowered.inputs->given();
  lowered.inputs->restore();  // undoes in-place writes of earlier runs
  const FxPlan& plan = lowered.view();
  const std::unique_ptr<HostProgram> program = must(HostProgram::prepare(plan, lowered.inputs->values(), options));
  must(program->run());
  std::vector<Got> results;
  for (uint64_t i = 0; i < plan.num_outputs; ++i) {
    const std::optional<PlacedTensor> tensor =
        placed_tensor(plan, lowered.inputs->values(), index_of(plan.outputs[i].value));
    REQUIRE(tensor.has_value());
    results.push_back({tensor->shape.dtype, copy_out(*tensor, program->bytes_of(tensor->storage))});
  }
  return results;
}

struct Limits {
  double eps, smallest, largest;
};
Limits limits_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return {0x1p-23, 0x1p-149, 0x1.fffffep127};
    case DType::kBfloat16:
      return {0x1p-7, 0x1p-133, 0x1.fep127};
    case DType::kFloat16:
      return {0x1p-10, 0x1p-24, 65504};
    default:
      return {0x1p-52, 0x1p-1074, std::numeric_limits<double>::max()};
  }
}

bool is_good(double ours, double exact, double bound, const Limits& limits) {
  if (bound == 0 && exact == 0 && ours == 0) return std::signbit(ours) == std::signbit(exact);
  if (std::isnan(exact)) return std::isnan(ours);
  if (std::isinf(exact)) return ours == exact;
  if (std::isinf(ours))
    return (ours > 0) == (exact > 0) && std::fabs(exact) + bound >= limits.largest * (1 + limits.eps / 4);
  return std::fabs(ours - exact) <= bound;
}

// Compares with the result of PyTorch, and returns the worst |error| / (eps S).
double check_result(const OpCase& op_case, size_t place, const Got& got, const Safetensors& data, double k) {
  const SafetensorsTensor* expected = data.find(op_case.name + "/out" + std::to_string(place));
  REQUIRE(expected != nullptr);
  CAPTURE(op_case.text, place);
  const std::vector<double> exact = as_doubles(expected->dtype, expected->bytes),
                            ours = as_doubles(got.dtype, got.bytes);
  REQUIRE(ours.size() == exact.size());
  const SafetensorsTensor* scale = data.find(op_case.name + "/scale" + std::to_string(place));
  const std::vector<double> scales =
      scale == nullptr ? std::vector<double>(exact.size(), 0) : as_doubles(scale->dtype, scale->bytes);
  const bool is_real = got.dtype == DType::kFloat32 || got.dtype == DType::kFloat64 || got.dtype == DType::kBfloat16 ||
                       got.dtype == DType::kFloat16;
  const Limits limits = limits_of(got.dtype);
  double worst = 0;
  size_t wrong = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double scale_here = std::isfinite(scales[i]) ? scales[i] : 0;
    const double bound = is_real && scale != nullptr ? k * limits.eps * scale_here + limits.smallest : 0;
    if (is_good(ours[i], exact[i], bound, limits)) {
      if (scale_here > 0 && std::isfinite(ours[i]))
        worst = std::max(worst, (std::fabs(ours[i] - exact[i]) - limits.smallest) / (limits.eps * scale_here));
      continue;
    }
    if (++wrong == 1) FAIL_CHECK("element " << i << ": " << ours[i] << ", exactly " << exact[i] << ", bound " << bound);
  }
  return worst;
}

std::string operator_of(const OpCase& op_case) {
  const size_t at = op_case.text.find("= aten.") + 2;
  return op_case.text.substr(at, op_case.text.find('(', at) - at);
}

void check_family(const std::string& family, std::set<std::string>& operators) {
  const SafetensorsFile file = load_safetensors(kFolder + family + ".safetensors").value();
  const Safetensors& data = file.content;
  std::map<std::string, double> worst;
  for (const OpCase& op_case : cases_of(family)) {
    CAPTURE(op_case.text);
    LoweredCase lowered = lower_case(op_case, data);
    const std::string name = operator_of(op_case);
    operators.insert(name);
    const KernelRow* row = find_op_row(name);
    REQUIRE(row != nullptr);
    const std::vector<Got> first = run_case(lowered, **cpu_kernels("base"), 1);
    for (size_t i = 0; i < first.size(); ++i) {
      double& known = worst[name];
      known = std::max(known, check_result(op_case, i, first[i], data, row->k));
    }
    const char* orders = std::getenv("FXOPT_TEST_ORDERS");  // scripts/long.sh
    for (uint64_t order = 0; order <= (orders == nullptr ? 3 : std::strtoull(orders, nullptr, 10)); ++order) {
      set_emulated_order(order);
      const std::vector<Got> emulated = run_case(lowered, emulated_table(), 2);
      for (size_t i = 0; i < first.size(); ++i) CHECK(emulated[i].bytes == first[i].bytes);
    }
    for (const std::string_view isa : cpu_isas()) {
      for (const uint32_t threads : {1u, 3u}) {
        const std::vector<Got> again = run_case(lowered, **cpu_kernels(isa), threads);
        for (size_t i = 0; i < first.size(); ++i) CHECK(again[i].bytes == first[i].bytes);
      }
    }
  }
  std::string text;
  for (const auto& [name, error] : worst) {
    char number[40];
    std::snprintf(number, sizeof number, " %.2f", error);
    if (error > 0) text += (text.empty() ? "" : ", ") + name + number;
  }
  WARN(family << ": worst |error| / (eps S): " << text);
}

TEST_CASE(
    "op cases: every kernel is within its bound of float64, with the same bits on every instruction set and on an "
    "emulated GPU") {
  std::set<std::string> operators;
  for (const char* family : {"pointwise", "copies", "reductions", "norms", "products", "indexed"})
    check_family(family, operators);
  // Dropout draws, so it has no expected result. See tests/runtime/draws_test.cpp and
  // random_test.cpp.
  for (const KernelRow& row : op_rows()) {
    CAPTURE(row.name);
    CHECK((operators.count(std::string(row.name)) > 0 || row.name == "aten.native_dropout.default"));
  }
}

}  // namespace
}  // namespace fxopt
