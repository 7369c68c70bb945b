// Checks the arguments of calls against schemas. Checks that calls read the result of a collective
// only after a wait.
//
// A functional collective returns at once, and its result may be read only after a wait. Views and
// getitems pass the result on without reading it. One walk over the schedule therefore tracks the
// collective that each node's value still waits for:
//
//   %a = all_reduce(%x)       %a waits for %a
//   %v = view(%a)             %v waits for %a
//   %y = neg(%v)              broken: reads %a before its wait
//   %w = wait_tensor(%v)      completes %a, so %a, %v and %w may be read from here on

#include <algorithm>

#include "ir/check/verifier.h"
#include "ir/values/call_args.h"

namespace fxopt {
namespace {

// A read of this wrapper's result waits for the collective.
constexpr std::string_view kSelfWaiting = "_c10d_functional._wrap_tensor_autograd.default";

bool hands_on(const Op& op) {
  return op.view != ViewKind::kNone && !op.has(Effect::kMutates) && op.name != kSelfWaiting;
}

// True for operators that read elements. Factories and host scalars query only sizes. Unclassified
// operators are assumed to read no elements.
bool reads_elements(const Op& op) {
  switch (op.compute) {
    case ComputeClass::kPointwise:
    case ComputeClass::kReduction:
    case ComputeClass::kContraction:
    case ComputeClass::kAttention:
    case ComputeClass::kConvolution:
    case ComputeClass::kNormalization:
    case ComputeClass::kGatherScatter:
    case ComputeClass::kDataMovement:
    case ComputeClass::kSort:
    case ComputeClass::kCollective:
    case ComputeClass::kOptimizer:
      return true;
    case ComputeClass::kScalar:
      return op.has(Effect::kHostSync);
    default:
      return false;
  }
}

// Whether a wait may complete the result of `op`. False for plain computation. True for copies,
// because offloading waits for copies.
bool can_complete_later(const Op& op) {
  return !op.is_pure() || op.has_subgraphs || op.compute == ComputeClass::kDataMovement ||
         op.compute == ComputeClass::kOther;
}

bool takes_position(const SchemaArg& arg) { return !arg.keyword_only; }

}  // namespace

const Schema* GraphVerifier::schema_of(NodeId id) const {
  const Target& target = module_.target(graph_[id].target);
  const uint32_t index = context_.schema_index(target.name);
  if (index != 0) return &context_.schemas[index - 1];
  return target.op->schema.has_value() ? &*target.op->schema : nullptr;
}

void GraphVerifier::check_schema(NodeId id) {
  const Schema* schema = schema_of(id);
  if (schema == nullptr || schema->variadic) return;
  const size_t given = graph_[id].args.count;
  const size_t positions = static_cast<size_t>(std::count_if(schema->args.begin(), schema->args.end(), takes_position));
  if (given > positions) {
    context_.add(ErrorCode::kVerifyAlias, at(id, "args"),
                 std::to_string(given) + " positional arguments, but the schema takes " + std::to_string(positions));
  }
  std::vector<bool>& has = given_;
  has.assign(schema->args.size(), false);
  std::fill_n(has.begin(), std::min(given, positions), true);
  const std::span<const Arg> entries = graph_.pool().args(graph_[id].kwargs);
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    if (!entries[i].is(ArgKind::kString)) continue;
    const std::string_view name = context_.text(entries[i].as_string());
    const int16_t found = schema->find_arg(name);
    if (found < 0) {
      context_.add(ErrorCode::kVerifyAlias, at(id, "kwargs"), "the schema has no argument " + quoted(name));
      continue;
    }
    const size_t position = static_cast<size_t>(found);
    if (position < given && takes_position(schema->args[position])) {
      context_.add(ErrorCode::kVerifyAlias, at(id, "kwargs"),
                   "argument " + quoted(name) + " is given by position and by keyword");
    }
    has[position] = true;
  }
  for (size_t i = 0; i < has.size(); ++i) {
    if (has[i] || schema->args[i].has_default()) continue;
    context_.add(ErrorCode::kVerifyAlias, at(id, "args"), "argument " + quoted(schema->args[i].name) + " is missing");
  }
}

void GraphVerifier::check_collective(NodeId id) {
  if (!graph_[id].is_call() || !graph_[id].target.is_valid()) {
    completes_later_[id] = true;
    return;
  }
  const Op& op = graph_.op(id);
  const Arg* base = graph_.arg(id, 0);
  const bool has_base = base != nullptr && is_edge(*base);
  const bool base_completes_later = !has_base || completes_later_[base->as_node()];
  completes_later_[id] = can_complete_later(op) || (hands_on(op) && base_completes_later);
  if (op.has(Effect::kWaits)) {
    check_wait(id);
    return;
  }
  check_readers(id, op);
  if (op.leaves_wait_to_graph()) {
    unawaited_[id] = id;
  } else if (hands_on(op) && has_base) {
    const NodeId pending = unawaited_.get(base->as_node());  // a copy, because the next write may move the table
    if (pending.is_valid()) unawaited_[id] = op.view == ViewKind::kProjection ? id : pending;
  }
  if (!op.has(Effect::kCollective) || !op.schema.has_value()) return;
  check_group(id, *op.schema);
  // A wait may take the collective's result, or a tensor that the collective writes.
  for (const uint8_t position : op.writes) {
    const Arg* written = call_argument(graph_, id, position);
    if (written == nullptr) continue;
    if (is_edge(*written)) completes_later_[written->as_node()] = true;
    if (!written->is(ArgKind::kList)) continue;
    for (const Arg& item : graph_.pool().children(*written)) {
      if (is_edge(item)) completes_later_[item.as_node()] = true;
    }
  }
}

void GraphVerifier::check_readers(NodeId id, const Op& op) {
  if (unawaited_.size() == 0 || hands_on(op) || !reads_elements(op)) return;
  const Node& node = graph_[id];
  const bool may_overwrite = op.has(Effect::kCollective) && op.schema.has_value();
  const auto visit = [&](std::string_view label, ArgRange range, ArgWalk::Keys keys) {
    for (args_.start(label, range, keys); args_.next();) {
      const Arg& arg = args_.arg();
      if (!is_edge(arg)) continue;
      const NodeId pending = unawaited_.get(arg.as_node());
      if (!pending.is_valid() || awaited_.get(pending)) continue;
      const bool is_written = may_overwrite && std::any_of(op.writes.begin(), op.writes.end(), [&](uint8_t position) {
                                const Arg* written = call_argument(graph_, id, position);
                                return written == &arg;
                              });
      if (is_written) continue;
      context_.add(ErrorCode::kVerifyCollective, at(id, args_.path()),
                   "reads the result of collective " + quoted_node(collective_of(pending)) + " before a wait",
                   "read the result of a wait_tensor");
    }
  };
  visit("args", node.args, ArgWalk::Keys::kNone);
  visit("kwargs", node.kwargs, ArgWalk::Keys::kEven);
}

// Returns the collective that produced `pending`. `pending` is the collective, or a getitem of its
// results.
NodeId GraphVerifier::collective_of(NodeId pending) const {
  while (graph_.op(pending).view == ViewKind::kProjection) pending = unawaited_[first_argument(graph_, pending)];
  return pending;
}

void GraphVerifier::check_wait(NodeId id) {
  const Arg* waited = graph_.arg(id, 0);
  if (waited == nullptr || !is_edge(*waited)) return;
  const NodeId input = waited->as_node();
  if (const NodeId pending = unawaited_.get(input); pending.is_valid()) awaited_[pending] = true;
  if (completes_later_[input] || !seen_[input]) return;
  context_.add(ErrorCode::kVerifyCollective, at(id, "args[0]"),
               "waits for " + quoted_node(input) + ", the result of " + graph_.op(input).name +
                   ", but no collective fills this result");
}

// Traces give the group by name, often as a plain string, which check_args() does not recognize as
// a group.
void GraphVerifier::check_group(NodeId id, const Schema& schema) {
  const CallArgs args(graph_, id, schema);
  const std::optional<int64_t> size = args.named("group_size").as_int();
  const Arg* group = args.named("group_name").given();
  if (group == nullptr || !(group->is(ArgKind::kGroup) || group->is(ArgKind::kString))) return;
  const StringId uid = group->as_string();
  if (group->is(ArgKind::kString)) {
    context_.check_reference(context_.groups, uid, [&] { return at(id, "group_name"); });
  }
  const size_t ranks = context_.group_size(uid);
  if (!size.has_value() || ranks == 0 || *size == static_cast<int64_t>(ranks)) return;
  context_.add(ErrorCode::kVerifyCollective, at(id, "group_size"),
               "group_size is " + std::to_string(*size) + ", but group " + context_.quoted_name(uid) + " has " +
                   std::to_string(ranks) + " ranks");
}

}  // namespace fxopt
