#include "ir/ops/describe.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace fxopt {
namespace {

// Whether two annotations have an alias set in common, such as "a" and "a|b".
bool share_set(std::string_view left, std::string_view right) {
  while (!left.empty()) {
    const size_t end = std::min(left.find('|'), left.size());
    const std::string_view name = left.substr(0, end);
    for (std::string_view rest = right; !rest.empty();) {
      const size_t stop = std::min(rest.find('|'), rest.size());
      if (rest.substr(0, stop) == name) return true;
      rest.remove_prefix(std::min(stop + 1, rest.size()));
    }
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return false;
}

int16_t aliased_arg(const Schema& schema, const SchemaArg& value) {
  for (size_t i = 0; i < schema.args.size(); ++i) {
    if (share_set(value.alias_set, schema.args[i].alias_set)) return static_cast<int16_t>(i);
  }
  return -1;
}

ViewKind view_of_annotations(const Schema& schema, const std::vector<int16_t>& aliases) {
  if (aliases.size() != 1 || aliases[0] != 0) return ViewKind::kNone;
  if (schema.args[0].is_write) return ViewKind::kIdentity;
  return schema.returns[0].is_tensor_list() ? ViewKind::kMultiView : ViewKind::kView;
}

}  // namespace

void read_schema(const Schema& schema, Op& op) {
  op.schema = schema;
  for (size_t i = 0; i < schema.args.size(); ++i) {
    if (schema.args[i].is_write) op.writes.push_back(static_cast<uint8_t>(i));
    if (schema.args[i].type == "Tensor?[]" && schema.args[i].name == "indices") op.mask_arg = static_cast<int16_t>(i);
  }
  if (!op.writes.empty()) op.effects = op.effects | Effect::kMutates;
  for (const SchemaArg& value : schema.returns) {
    op.aliases.push_back(aliased_arg(schema, value));
    op.is_multi_output |= schema.returns.size() > 1 || value.type.find('[') != std::string::npos;
    // An Op cannot express a return that may alias anything.
    if (value.is_wildcard && value.alias_set.empty()) op.effects = op.effects | kUndescribed;
  }
  // A result that may also contain other arguments is not a view.
  if (op.hands_on == HandsOn::kNothing) op.view = view_of_annotations(schema, op.aliases);
  if (op.has(Effect::kRandom)) op.dropout_arg = schema.find_arg("dropout_p");
}

bool Op::leaves_wait_to_graph() const {
  return has(Effect::kCollective) && (name.starts_with("_c10d_functional") || name.starts_with("c10d_functional"));
}

bool Op::yields_tensor() const {
  return !schema.has_value() ||
         std::any_of(schema->returns.begin(), schema->returns.end(), [this](const SchemaArg& item) {
           return item.is_tensor() || (item.is_object() && hands_on == HandsOn::kAnything);
         });
}

Op describe_op(std::string_view name, const Schema& schema, const std::vector<std::string_view>& tags,
               std::optional<bool> pure, std::optional<bool> effectful) {
  const auto has_tag = [&tags](std::string_view tag) { return std::find(tags.begin(), tags.end(), tag) != tags.end(); };
  Op op;
  op.name = name;
  if (has_tag("nondeterministic_seeded")) {
    op.effects = op.effects | Effect::kRandom;
    op.sets = op.sets | OpSet::kSeeded;
  }
  if (has_tag("pointwise")) op.sets = op.sets | OpSet::kPointwiseTag;
  if (has_tag("data_dependent_output") || has_tag("dynamic_output_shape")) op.effects = op.effects | Effect::kHostSync;
  op.changes_metadata = has_tag("inplace_view");
  if (has_tag("nondeterministic_bitwise")) op.effects = op.effects | Effect::kNondeterministic;
  const bool makes_object =
      std::any_of(schema.returns.begin(), schema.returns.end(), [](const SchemaArg& item) { return item.is_object(); });
  if (makes_object) op.hands_on = HandsOn::kAnything;
  read_schema(schema, op);
  if (effectful.value_or(false)) op.effects = op.effects | Effect::kBarrier;
  if (!pure.value_or(false) || effectful.value_or(false)) op.effects = op.effects | Effect::kOpaque;
  if (has_tag("maybe_aliasing_or_mutating")) op.effects = op.effects | kUndescribed;
  if (op.view == ViewKind::kView || op.view == ViewKind::kMultiView) {
    op.compute = ComputeClass::kView;
  } else if (has_tag("pointwise")) {
    op.compute = ComputeClass::kPointwise;
  } else if (has_tag("reduction")) {
    op.compute = ComputeClass::kReduction;
  }
  return op;
}

const Op& opaque_op() {
  static const Op op = [] {
    Op unknown;
    unknown.effects = kUndescribed;
    return unknown;
  }();
  return op;
}

}  // namespace fxopt
