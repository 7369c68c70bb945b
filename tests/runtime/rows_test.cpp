// Rows of operators: their rules against recorded values, promotion, and host arithmetic.

#include <array>
#include <limits>

#include "ir/ops/op.h"
#include "ir/prepare.h"
#include "runtime/cpu/isa.h"
#include "runtime/ops/coverage.h"
#include "runtime/ops/promote.h"
#include "runtime/ops/rules.h"
#include "runtime/plan/lower.h"
#include "runtime/plan/plan.h"
#include "tests/catch.h"
#include "tests/parse.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

TEST_CASE("rows: operators of the table, their inputs are arguments of its schema") {
  for (const KernelRow& row : op_rows()) {
    CAPTURE(row.name);
    CHECK(find_op_row(row.name) == &row);
    const Op* op = find_builtin_op(row.name);
    REQUIRE(op != nullptr);
    std::string_view names = row.inputs;
    while (!names.empty()) {
      const size_t end = std::min(names.find(' '), names.size());
      const std::string_view name = names.substr(0, end);
      CHECK(std::any_of(op->schema->args.begin(), op->schema->args.end(),
                        [&](const SchemaArg& arg) { return arg.name == name; }));
      names.remove_prefix(std::min(end + 1, names.size()));
    }
    CHECK((row.k == 0) == row.scale.empty());
    CHECK_FALSE(row.read_in.empty());
  }
  CHECK(find_op_row("aten.nothing.default") == nullptr);
}

TEST_CASE("rows: rules give what is recorded in all of testdata") {
  size_t checked = 0;
  for (const std::string& name : testdata_files()) {
    const std::unique_ptr<Module> module = load_testdata(name);
    prepare(*module);
    const std::unique_ptr<Plan> plan = lower_step(*module).value();
    const RowCheck check = check_rows(plan->view());
    checked += check.checked;
    for (const RowDifference& difference : check.differences) {
      const FxStep& step = difference.plan->steps[difference.step];
      const std::string_view op = op_name(*difference.plan, step);
      // The kernel makes a contiguous gradient. The fake kernel at recording time used the strides
      // of the input.
      const bool is_known = name.starts_with("gpu/swin_joint") && op == "aten.native_layer_norm_backward.default";
      if (is_known && difference.is_chosen) continue;
      FAIL_CHECK(name << " %" << text_at(*difference.plan, difference.plan->nodes[step.node].name) << ": "
                      << shape_text(*difference.recorded) << " recorded, "
                      << (difference.rule.has_value() ? shape_text(*difference.rule) : "none") << " by the rule");
    }
  }
  if (has_all_testdata()) CHECK(checked > 40000);
}

TEST_CASE("rows: each has a kernel on the CPU, for every instruction set") {
  for (const std::string_view isa : cpu_isas()) {
    for (const KernelRow& row : op_rows()) {
      CAPTURE(isa, row.name, row.body);
      CHECK(find_kernel(**cpu_kernels(isa), row.body) != nullptr);
    }
  }
}

// A kernel converts its operands by promotion, and the plan is checked against the rule.
TEST_CASE("rows: promotion and rule give one dtype") {
  size_t compared = 0;
  for (const std::string& name : testdata_files()) {
    const std::unique_ptr<Module> module = load_testdata(name);
    prepare(*module);
    const std::unique_ptr<Plan> plan = lower_step(*module).value();
    const FxPlan& view = plan->view();
    const ScalarValues values = ScalarValues::by_symbols(view, no_symbol_value);
    for (uint64_t i = 0; i < view.num_steps; ++i) {
      const std::string_view op = op_name(view, view.steps[i]);
      const KernelRow* row = find_op_row(op);
      if (row == nullptr || row->inputs.empty()) continue;
      const StepCall call(view, values, view.steps[i], find_builtin_op(op));
      const std::optional<DType> dtype = rules::promoted_dtype(call, *row);
      const std::optional<TensorShape> recorded = call.result(0);
      if (!dtype.has_value() || !recorded.has_value()) continue;
      ++compared;
      CAPTURE(name, op);
      if (*dtype != recorded->dtype) FAIL_CHECK(name << " " << op);
    }
  }
  if (has_all_testdata()) CHECK(compared > 40000);
}

TEST_CASE("rows: a result that is not what the rule says is found") {
  const std::unique_ptr<Module> module = load_testdata("gpt2_flb_twin.pb.zst");
  prepare(*module);
  const std::unique_ptr<Plan> plan = lower_step(*module).value();
  for (FxTensor& tensor : plan->tensors) {
    if (tensor.dtype == static_cast<uint8_t>(DType::kBool)) tensor.dtype = static_cast<uint8_t>(DType::kUint8);
  }
  CHECK_FALSE(check_rows(plan->view()).differences.empty());
}

// Results of PyTorch 2.15 on the CPU.
TEST_CASE("rows: reductions without a dtype of their own, copies of operands that are not dense, subtraction") {
  const std::unique_ptr<Module> module = parse(R"(fxg 0
graph @g {kind=forward} {
  %x: i32[4, 3] = placeholder() {input={role=input}}
  %y: f32[4, 1] = placeholder() {input={role=input}}
  %first: i32[3] = aten.amax.default(%x, [0])
  %last: i32[4, 1] = aten.amax.default(%x, [-1], True)
  %all: i32[] = aten.amax.default(%x)
  %none: i32[1, 1] = aten.amax.default(%x, [], True)
  %turned: i32[3, 4](1, 3) = aten.permute.default(%x, [1, 0])
  %kept: i64[3, 4](1, 3) = aten._to_copy.default(%turned, dtype=dtype(i64))
  %plain: i32[3, 4] = aten._to_copy.default(%turned, memory_format=memory_format(contiguous))
  %spread: f32[4, 3](1, 0) = aten.expand.default(%y, [4, 3])
  %dense: bf16[4, 3] = aten._to_copy.default(%spread, dtype=dtype(bf16))
  %real: f32[3, 4](1, 3) = aten.sub.Tensor(%turned, 2.5)
  %mixed: f32[4, 3] = aten.sub.Tensor(%x, %y, alpha=2)
  return (%first, %last, %all, %none, %kept, %plain, %dense, %real, %mixed)
}
)");
  prepare(*module);
  const std::unique_ptr<Plan> plan = lower_step(*module).value();
  const RowCheck check = check_rows(plan->view());
  for (const RowDifference& difference : check.differences) {
    const FxStep& step = difference.plan->steps[difference.step];
    FAIL_CHECK("%" << text_at(*difference.plan, difference.plan->nodes[step.node].name) << ": "
                   << (difference.rule.has_value() ? shape_text(*difference.rule) : "none") << " by the rule");
  }
  CHECK(check.checked == 9);
  CHECK(check.num_unknown() == 0);
}

TEST_CASE("rows: the layout of a result whose operands lie differently") {
  const auto strides = [](const std::vector<TensorShape>& operands) {
    return rules::broadcast(DType::kFloat32, operands)->strides;
  };
  using Numbers = std::vector<int64_t>;
  const TensorShape plain{DType::kFloat32, {4, 3}, {3, 1}}, turned{DType::kFloat32, {4, 3}, {1, 4}};
  const TensorShape sliced{DType::kFloat32, {4, 3}, {6, 2}}, number{DType::kFloat32, {}, {}};
  const TensorShape row{DType::kFloat32, {3}, {1}}, spread{DType::kFloat32, {4, 3}, {0, 1}};
  CHECK(strides({plain, plain}) == Numbers{3, 1});
  CHECK(strides({turned, turned}) == Numbers{1, 4});
  CHECK(strides({plain, turned}) == Numbers{3, 1});
  CHECK(strides({turned, plain}) == Numbers{1, 4});
  CHECK(strides({turned, number}) == Numbers{1, 4});
  CHECK(strides({turned, row}) == Numbers{1, 4});
  CHECK(strides({sliced, number}) == Numbers{3, 1});
  CHECK(strides({spread, turned}) == Numbers{1, 4});
  CHECK_FALSE(rules::broadcast(DType::kFloat32, {plain, TensorShape{DType::kFloat32, {2}, {1}}}).has_value());
}

TEST_CASE("rows: promotion") {
  const auto types = [](DType a, DType b) { return *promote_types(a, b); };
  CHECK(types(DType::kBfloat16, DType::kFloat16) == DType::kFloat32);
  CHECK(types(DType::kUint8, DType::kInt8) == DType::kInt16);
  CHECK(types(DType::kInt64, DType::kBfloat16) == DType::kBfloat16);
  CHECK(types(DType::kComplex64, DType::kFloat64) == DType::kComplex128);
  CHECK(types(DType::kComplex64, DType::kInt64) == DType::kComplex64);
  CHECK(types(DType::kBool, DType::kUint8) == DType::kUint8);
  CHECK_FALSE(promote_types(DType::kUint16, DType::kInt32).has_value());
  ResultType half_and_scalar;
  half_and_scalar.add_tensor(DType::kBfloat16, true);
  half_and_scalar.add_tensor(DType::kFloat64, false);
  half_and_scalar.add_number(DType::kFloat64);
  CHECK(half_and_scalar.get() == DType::kBfloat16);
  ResultType integer_and_float;
  integer_and_float.add_tensor(DType::kInt32, true);
  integer_and_float.add_number(DType::kFloat64);
  CHECK(integer_and_float.get() == DType::kFloat32);
  ResultType bool_and_integer;
  bool_and_integer.add_tensor(DType::kBool, true);
  bool_and_integer.add_number(DType::kInt64);
  CHECK(bool_and_integer.get() == DType::kInt64);
}

TEST_CASE("scalar code: integers are Python's") {
  const auto apply = [](FxCodeOp op, int64_t a, int64_t b) -> std::optional<int64_t> {
    const std::array operands{ScalarValue::of(a), ScalarValue::of(b)};
    const std::optional<ScalarValue> value = apply_code(op, operands.data());
    return value.has_value() ? std::optional(value->integer) : std::nullopt;
  };
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  CHECK(apply(FX_CODE_FLOORDIV, -7, 2) == -4);
  CHECK(apply(FX_CODE_FLOORDIV, 7, -2) == -4);
  CHECK(apply(FX_CODE_MOD, -7, 3) == 2);
  CHECK(apply(FX_CODE_MOD, 7, -3) == -2);
  CHECK(apply(FX_CODE_CEILDIV, 7, 2) == 4);
  CHECK(apply(FX_CODE_CEILDIV, -7, 2) == -3);
  CHECK_FALSE(apply(FX_CODE_FLOORDIV, 7, 0).has_value());
  CHECK_FALSE(apply(FX_CODE_MOD, 7, 0).has_value());
  CHECK_FALSE(apply(FX_CODE_FLOORDIV, kLeast, -1).has_value());
  CHECK(apply(FX_CODE_MOD, kLeast, -1) == 0);
  CHECK_FALSE(apply(FX_CODE_ADD, kMost, 1).has_value());
  CHECK_FALSE(apply(FX_CODE_MUL, kLeast, -1).has_value());
  CHECK(apply(FX_CODE_POW, -3, 3) == -27);
  CHECK_FALSE(apply(FX_CODE_POW, 2, 63).has_value());
  CHECK(apply(FX_CODE_POW, 2, 62) == int64_t{1} << 62);
}

TEST_CASE("scalar code: reals are Python's") {
  const auto apply = [](FxCodeOp op, double a, double b) {
    const std::array operands{ScalarValue::of_real(a), ScalarValue::of_real(b)};
    return apply_code(op, operands.data());
  };
  CHECK(apply(FX_CODE_FLOORDIV, 1.0, 0.1)->real == 9.0);  // 1.0 / 0.1 is 10.0
  CHECK(apply(FX_CODE_MOD, -1.0, 3.0)->real == 2.0);
  CHECK(std::signbit(apply(FX_CODE_MOD, -6.0, 3.0)->real) == false);
  CHECK_FALSE(apply(FX_CODE_TRUEDIV, 1.0, 0.0).has_value());
  const std::array integers{ScalarValue::of(1), ScalarValue::of(2)};
  CHECK(apply_code(FX_CODE_TRUEDIV, integers.data())->real == 0.5);
}

}  // namespace
}  // namespace fxopt
