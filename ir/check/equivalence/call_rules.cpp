#include "ir/check/equivalence/call_rules.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string_view>
#include <utility>

#include "ir/alias/effect_map.h"
#include "ir/alias/effects.h"
#include "ir/check/equivalence/keys.h"
#include "ir/graph/module.h"
#include "ir/values/sym_int.h"

namespace fxopt {
namespace {

using Special = CallRule::Special;

constexpr std::pair<std::string_view, Special> kSpecial[] = {{"aten.sym_size.int", Special::kSize},
                                                             {"aten.sym_stride.int", Special::kStride},
                                                             {"aten.sym_storage_offset.default", Special::kOffset},
                                                             {"aten.sym_numel.default", Special::kElements},
                                                             {"aten.view.default", Special::kView},
                                                             {"aten._unsafe_view.default", Special::kView},
                                                             {"aten.reshape.default", Special::kReshape},
                                                             {"aten.cat.default", Special::kConcatenation},
                                                             {"aten.copy_.default", Special::kCopy},
                                                             {"ao.offload.default", Special::kOffload},
                                                             {"ao.reload.default", Special::kReload},
                                                             {"aten.full.default", Special::kFull},
                                                             {"aten.scalar_tensor.default", Special::kScalarTensor},
                                                             {"aten.clone.default", Special::kClone},
                                                             {"aten.add.Tensor", Special::kSum},
                                                             {"aten.sub.Tensor", Special::kSum}};

// Prefixes of operators whose draws depend on the contents of operands. `poisson` may reject drawn
// numbers, and `rrelu` draws only for elements below 0. `bernoulli` raises for invalid
// probabilities. For all other operators, sizes alone determine the number of draws.
constexpr std::string_view kDrawsByData[] = {"aten._sample_dirichlet.", "aten._standard_gamma.", "aten.bernoulli.T",
                                             "aten.bernoulli.default",  "aten.bernoulli.out",    "aten.bernoulli_.T",
                                             "aten.binomial.",          "aten.multinomial.",     "aten.normal.T",
                                             "aten.normal.float_T",     "aten.poisson.",         "aten.rrelu"};

// Returns the words that an argument with this default value adds to a key. Empty if arguments with
// this kind of default are never left out.
std::vector<uint64_t> default_words(const SchemaDefault& value) {
  switch (value.kind) {
    case SchemaDefault::Kind::kNone:
      return {key_tag(KeyKind::kNone)};
    case SchemaDefault::Kind::kBool:
      return {key_tag(KeyKind::kBool), static_cast<uint64_t>(value.integer)};
    case SchemaDefault::Kind::kInt: {
      const Hash128 key = SymInt(value.integer).key();
      return {key_tag(KeyKind::kInt), key.high, key.low};
    }
    case SchemaDefault::Kind::kFloat:
      return {key_tag(KeyKind::kFloat), std::bit_cast<uint64_t>(value.real)};
    case SchemaDefault::Kind::kInts:
      return value.integers.empty() ? std::vector<uint64_t>{key_tag(KeyKind::kList), 0} : std::vector<uint64_t>();
    default:
      return {};
  }
}

CallRule make_rule(const Op& op, std::string_view target) {
  CallRule rule;
  rule.op = &op;
  for (const auto& [name, special] : kSpecial) {
    if (op.name == name) rule.special = special;
  }
  rule.target = hash_text(rule.is_reshape() ? "aten.reshape.default" : target);
  rule.makes_view = rule.is_reshape() || op.name == "aten.ravel.default";  // `ravel` ends in view(-1)
  rule.sees_storage = op.changes_metadata || op.moves_storage || op.clones_storage || op.has_subgraphs ||
                      !op.schema.has_value() || sets_strides(op) || rule.special == Special::kOffset;
  rule.has_own_effects = !effects_depend_on_call(op);
  rule.draws_by_data =
      op.has_subgraphs || !op.is_builtin() ||
      std::ranges::any_of(kDrawsByData, [&op](std::string_view begin) { return op.name.starts_with(begin); });
  rule.only_computes = op.view == ViewKind::kNone && op.writes.empty() && !op.changes_metadata && !op.joins_outputs &&
                       op.shared_arg < 0 && op.hands_on == HandsOn::kNothing && rule.special != Special::kOffload &&
                       rule.special != Special::kReload;
  if (!op.schema.has_value()) return rule;
  for (const SchemaArg& arg : op.schema->args) {
    rule.names.push_back(hash_text(arg.name));
    rule.defaults.push_back(default_words(arg.default_value));
  }
  rule.hands_back = std::ranges::any_of(op.aliases, [](int16_t alias) { return alias >= 0; });
  return rule;
}

}  // namespace

const CallRule& CallRules::add(const Graph& graph, NodeId node, size_t place) {
  if (place >= rules_.size()) rules_.resize(place + 1);
  const Module& module = graph.module();
  const std::string_view target = place == 0 ? std::string_view() : module.text(module.target(graph[node].target).name);
  rules_[place] = std::make_unique<const CallRule>(make_rule(graph.op(node), target));
  return *rules_[place];
}

}  // namespace fxopt
