#include "runtime/ops/coverage.h"

#include <map>
#include <numeric>

#include "ir/ops/op.h"
#include "runtime/plan/evaluate.h"
#include "runtime/plan/plan.h"

namespace fxopt {
namespace {

bool needs_kernel(const FxStep& step) {
  return step.kind == FX_STEP_KERNEL || step.kind == FX_STEP_COLLECTIVE || step.kind == FX_STEP_MESSAGE ||
         step.kind == FX_STEP_CALL;
}

void cover(const FxPlan& plan, std::map<std::string_view, OpCoverage>& rows) {
  for (uint32_t i = 0; i < plan.num_steps; ++i) {
    if (!needs_kernel(plan.steps[i])) continue;
    const std::string_view name = op_name(plan, plan.steps[i]);
    const auto [row, is_new] = rows.try_emplace(name);
    if (is_new) row->second = {name, find_op_row(name), 0, &plan, i};
    ++row->second.calls;
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
