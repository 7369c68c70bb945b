#include "runtime/ops/coverage.h"

#include <array>
#include <map>
#include <numeric>

#include "ir/ops/op.h"
#include "runtime/plan/evaluate.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/walk.h"

namespace fxopt {
namespace {

bool needs_kernel(const FxStep& step) {
  return step.kind == FX_STEP_KERNEL || is_exchange(step) || step.kind == FX_STEP_CALL;
}

KernelProvider provider_of(const OpCoverage& op, const FxStep& step) {
  if (op.row != nullptr) return KernelProvider::kOwn;
  const Op* known = find_builtin_op(op.name);
  if (known == nullptr || !op.name.starts_with("aten.")) return KernelProvider::kNone;
  const bool is_cuda = text_at(*op.plan, device_of(*op.plan, step)).starts_with("cuda");
  return known->in(is_cuda ? OpSet::kNoCudaKernel : OpSet::kNoCpuKernel) ? KernelProvider::kNone
                                                                         : KernelProvider::kPyTorch;
}

Remedy remedy_of(const OpCoverage& op, const FxStep& step) {
  if (op.row != nullptr) return Remedy::kNothing;
  if (is_exchange(step)) return Remedy::kRanks;
  const Op* known = find_builtin_op(op.name);
  if (known != nullptr && known->in(OpSet::kDecomposes)) return Remedy::kDecompose;
  if (op.provider == KernelProvider::kPyTorch) return Remedy::kPyTorch;
  if (known == nullptr || known->in(OpSet::kOtherLibrary)) return Remedy::kTraceBody;
  if (step.kind == FX_STEP_CALL)
    return known->compute == ComputeClass::kAttention ? Remedy::kAttention : Remedy::kGraphs;
  const bool has_other = !known->in(OpSet::kNoCpuKernel) || !known->in(OpSet::kNoCudaKernel);
  return op.name.starts_with("aten.") && has_other ? Remedy::kOtherDevice : Remedy::kRow;
}

void cover(const FxPlan& plan, std::map<std::string_view, OpCoverage>& rows) {
  for (uint32_t i = 0; i < plan.num_steps; ++i) {
    const FxStep& step = plan.steps[i];
    if (!needs_kernel(step)) continue;
    const std::string_view name = op_name(plan, step);
    const auto [row, is_new] = rows.try_emplace(name);
    OpCoverage& op = row->second;
    ++op.calls;
    if (!is_new) continue;
    op.name = name;
    op.row = find_op_row(name);
    op.plan = &plan;
    op.step = i;
    op.provider = provider_of(op, step);
    op.remedy = remedy_of(op, step);
  }
  for (uint64_t i = 0; i < plan.num_graphs; ++i) cover(*plan.graphs[i], rows);
}

void check_step(const FxPlan& plan, const ScalarValues& values, uint32_t number, const KernelRow& row,
                RowCheck& check) {
  const FxStep& step = plan.steps[number];
  const StepCall call(plan, values, step, find_builtin_op(row.name));
  const std::optional<std::vector<TensorShape>> results = row.rule(call);
  for (uint32_t i = 0; i < step.num_results; ++i) {
    const FxWord word = plan.words[step.results + i];
    if (kind_of(word) != FX_WORD_TENSOR) continue;
    const std::optional<TensorShape> recorded = call.result(i);
    if (!results.has_value() || !recorded.has_value()) {
      ++check.unknown[row.name];
      continue;
    }
    ++check.checked;
    const std::optional<TensorShape> rule = i < results->size() ? std::optional((*results)[i]) : std::nullopt;
    if (rule.has_value() && same_layout(*rule, *recorded)) continue;
    const bool is_chosen = (plan.tensors[index_of(word)].flags & FX_TENSOR_CHOSEN) != 0;
    check.differences.push_back({&plan, number, i, rule, recorded, is_chosen});
  }
}

void check_rows(const FxPlan& plan, const ScalarValues::SymbolOf& symbols, RowCheck& check) {
  const ScalarValues values = ScalarValues::by_symbols(plan, symbols);
  for (uint32_t i = 0; i < plan.num_steps; ++i) {
    if (!needs_kernel(plan.steps[i])) continue;
    if (const KernelRow* row = find_op_row(op_name(plan, plan.steps[i]))) check_step(plan, values, i, *row, check);
  }
  for (uint64_t i = 0; i < plan.num_graphs; ++i) check_rows(*plan.graphs[i], symbols, check);
}

}  // namespace

std::string_view provider_name(KernelProvider provider) {
  constexpr std::array<std::string_view, 3> kNames = {"own", "pytorch", "none"};
  return kNames[static_cast<size_t>(provider)];
}

namespace {

struct RemedyText {
  std::string_view name, hint;
};
constexpr std::array<RemedyText, kNumRemedies> kRemedies = {
    {{"", ""},
     {"decompose",
      "trace with make_fx(step, decomposition_table=torch._decomp.core_aten_decompositions()), or give AOTAutograd "
      "decompositions=; the graph then has core aten operators"},
     {"PyTorch's kernel", "PyTorch has a kernel for this device, but this version does not call PyTorch's kernels"},
     {"another device", "PyTorch has a kernel for CUDA or for the CPU, but not for the traced device"},
     {"trace its body",
      "give make_fx decomposition_table={operator: its Python function}; the graph then has the operators of the "
      "function"},
     {"other attention",
      "flex attention is compiled, so no library has a kernel for it; use scaled_dot_product_attention, which traces "
      "to operators of PyTorch"},
     {"its graphs",
      "the operator runs graphs; trace without this operator, so that the calls of these graphs are inlined"},
     {"several ranks", "the step communicates with other ranks, but a plan is for one rank"},
     {"a kernel of fxopt", "runtime/README.md explains how to add a row to the kernel table"}}};

}  // namespace

std::string_view remedy_name(Remedy remedy) { return kRemedies[static_cast<size_t>(remedy)].name; }
std::string_view remedy_hint(Remedy remedy) { return kRemedies[static_cast<size_t>(remedy)].hint; }

std::vector<OpCoverage> cover(const FxPlan& plan) {
  std::map<std::string_view, OpCoverage> rows;
  cover(plan, rows);
  std::vector<OpCoverage> list;
  for (const auto& [name, row] : rows) list.push_back(row);
  return list;
}

size_t RowCheck::num_unknown() const {
  return std::accumulate(unknown.begin(), unknown.end(), size_t{0},
                         [](size_t sum, const auto& row) { return sum + row.second; });
}

RowCheck check_rows(const FxPlan& plan, const ScalarValues::SymbolOf& symbols) {
  RowCheck check;
  check_rows(plan, symbols, check);
  return check;
}

std::string shape_text(const TensorShape& shape) {
  const auto list = [](const std::vector<int64_t>& numbers) {
    std::string text;
    for (const int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
    return text;
  };
  std::string text = std::string(name_of(shape.dtype)) + "[" + list(shape.sizes) + "]";
  return is_contiguous(shape) ? text : text + "(" + list(shape.strides) + ")";
}

}  // namespace fxopt
