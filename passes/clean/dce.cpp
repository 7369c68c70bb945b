// Dead-code elimination.
//
// A node is live if it is
//   a placeholder or the output   the signature must not change
//   read by a live node           by value, or by a control dependency other than pure order
//   visible                       opaque, a barrier or an event. By default also an assertion, a
//                                 wait, a collective, and a random op without recorded draws
//   a visible write               to memory of the caller, or to memory that a live node reads
//                                 later. A wait counts as the write of the buffers that its
//                                 collective fills
//   the source of an unbacked     if the symbol occurs in sizes or arguments of a live node
//     symbol
//
// One sweep from the last node to the first suffices, because only later nodes make a node live. A
// write counts as a write to all memory that may alias the written tensor. The pass does not detect
// overwritten data, so it may keep a useless write. Graph::prune_control() later rewires order-only
// control dependencies on erased nodes.

#include "passes/clean/dce.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/alias/collectives.h"
#include "ir/alias/effect_map.h"
#include "ir/alias/effects.h"
#include "ir/alias/order.h"
#include "ir/alias/sizes.h"
#include "ir/alias/storages.h"
#include "ir/graph/module.h"
#include "ir/values/elements.h"
#include "ir/values/values.h"
#include "passes/pass/replacer.h"

namespace fxopt {
namespace {

constexpr std::string_view kDce = "dce";
class Liveness {
 public:
  Liveness(Facts& facts, const DceOptions& options, PassResult& result)
      : graph_(facts.graph()), options_(options), result_(result), effects_(facts.effects()) {
    for (const Symbol& symbol : graph_.module().symbols) {
      if (symbol.kind != SymbolKind::kUnbacked || symbol.graph != graph_.name()) continue;
      const NodeId source = graph_.find(symbol.node);
      if (source.is_valid()) defined_.emplace_back(source, symbol.name);
    }
    std::sort(defined_.begin(), defined_.end());
    if (!any_fills_memory()) return;
    storages_ = &facts.storages();
    read_later_ = IdMap<BufferId, bool>(storages_->num_buffers(), false);
  }

  // Returns the dead nodes, last first.
  std::vector<NodeId> run() {
    std::vector<NodeId> dead;
    note_reads_to_the_end();
    for (NodeId node = graph_.last(); node.is_valid(); node = graph_.prev(node)) {
      if (live_.get(node) || is_root(node)) {
        visit_live(node);
      } else {
        dead.push_back(node);
      }
    }
    keep_waits(dead);
    return dead;
  }

 private:
  // If one result of a collective is read, the call stays. The waits for its other results then
  // stay as well.
  void keep_waits(std::vector<NodeId>& dead) {
    for (const NodeId node : dead) {
      if (!graph_[node].is_call() || !effects_.has(node, Effect::kWaits)) continue;
      const NodeId given = first_argument(graph_, node), start = given.is_valid() ? start_of(given) : NodeId();
      if (start.is_valid() && live_.get(start)) live_[node] = live_[given] = true;
    }
    std::erase_if(dead, [this](NodeId node) { return live_.get(node); });
  }

  // A collective without a wait may read its inputs until the graph ends.
  void note_reads_to_the_end() {
    if (storages_ == nullptr) return;
    IdMap<NodeId, bool> is_awaited(graph_.num_ids(), false);
    for (const NodeId node : graph_.nodes()) {
      if (!effects_.has(node, Effect::kWaits)) continue;
      graph_.for_each_input(node, [&](NodeId input) {
        if (const NodeId start = start_of(input); start.is_valid()) is_awaited[start] = true;
      });
    }
    for (const NodeId node : graph_.nodes()) {
      if (effects_.has(node, Effect::kCollective) && !is_awaited.get(node)) note_reads(node);
    }
  }

  // The collective that returned `given`, which is a result or the list of all results. Invalid if
  // no collective returned `given`.
  NodeId start_of(NodeId given) const {
    const bool is_part = graph_[given].is_call() && graph_.op(given).view == ViewKind::kProjection;
    const NodeId start = is_part ? first_argument(graph_, given) : given;
    return start.is_valid() && graph_[start].is_call() && effects_.has(start, Effect::kCollective) ? start : NodeId();
  }

  // Whether any node may fill memory. Otherwise reads of memory need not be analyzed.
  bool any_fills_memory() {
    constexpr Effect kFills = Effect::kMutates | Effect::kUnknownWrites | Effect::kWaits | Effect::kCollective;
    return std::ranges::any_of(graph_.nodes(), [this](NodeId node) { return effects_.has(node, kFills); });
  }

  bool is_root(NodeId node) {
    const NodeKind kind = graph_[node].kind;
    if (kind == NodeKind::kPlaceholder || kind == NodeKind::kOutput) return true;
    if (has_events(graph_, node) || defines_live_symbol(node)) return true;
    const Effect effects = effects_.of(node);
    if (has_effect(effects, Effect::kOpaque | Effect::kBarrier)) return true;
    if (has_effect(effects, Effect::kAsserts) && options_.assertions == DeadPolicy::kKeep) return true;
    if (has_effect(effects, Effect::kMutates) && writes_something_seen(node)) return true;
    return is_kept_random(node, effects) || is_kept_collective(node, effects);
  }

  bool writes_something_seen(NodeId node) const {
    if (options_.compat == Compat::kTorch) return true;
    const std::span<const BufferId> writes = storages_->writes(node);
    if (writes.empty()) return true;  // it writes, but the written memory is not known
    return std::ranges::any_of(writes, [this](BufferId buffer) { return is_seen(buffer); });
  }

  bool is_kept_random(NodeId node, Effect effects) {
    if (!has_effect(effects, Effect::kRandom) || options_.random == DeadPolicy::kRemove) return false;
    if (is_recorded_draw(graph_, node)) return false;
    result_.remark(graph_, node, "random-kept", "unused, but later random ops would draw other numbers without it");
    return true;
  }

  bool is_kept_collective(NodeId node, Effect effects) {
    const bool collective = has_effect(effects, Effect::kCollective);
    const bool waits = has_effect(effects, Effect::kWaits);
    if (!collective && !waits) return false;
    if (waits && fills_something_read(node)) return true;
    if (!is_message(graph_, node)) {  // the peer of a send or receive runs another program
      if (options_.collectives == DeadPolicy::kRemove) return false;
      if (options_.compat == Compat::kTorch && !waits) return false;
    }
    const std::string bytes = collective ? bytes_text(node) : "";
    result_.remark(graph_, node, "collective-kept", "unused" + bytes + ", but other ranks take part in it");
    return true;
  }

  // The bytes of the results, as " (622854144 B)"; empty if a size is not known.
  std::string bytes_text(NodeId node) const {
    const SymbolValues values = symbol_values(graph_.module(), {});
    int64_t sum = 0;
    for (const BufferId buffer : storages_->buffers(node)) {
      if (!buffer.is_valid()) continue;
      const SizeSource source = size_source(graph_, *storages_, buffer);
      const std::optional<int64_t> bytes =
          source.kind == SizeKind::kLike ? std::nullopt : evaluate_size(graph_.module(), source, values);
      if (!bytes.has_value() || __builtin_add_overflow(sum, *bytes, &sum)) return "";
    }
    return " (" + std::to_string(sum) + " B)";
  }

  // A wait also counts as a write to the buffers of its collective, through which later nodes may
  // read the data.
  bool fills_something_read(NodeId node) const {
    return std::ranges::any_of(storages_->reads(node), [this](BufferId buffer) { return is_seen(buffer); });
  }

  bool is_seen(BufferId buffer) const {
    if (!buffer.is_valid()) return true;
    return storages_->is_external(buffer) || read_later_[storages_->alias_class(buffer)];
  }

  void visit_live(NodeId node) {
    graph_.for_each_input(node, [this](NodeId input) { live_[input] = true; });
    if (storages_ != nullptr) note_reads(node);
    // A collective reads its inputs until it is waited for.
    if (storages_ != nullptr && effects_.has(node, Effect::kWaits)) {
      graph_.for_each_input(node, [this](NodeId input) {
        const NodeId start = start_of(input);
        if (start.is_valid()) note_reads(start);
      });
    }
    if (const NodeExtra* extra = graph_.extra(node)) {
      for (const ControlDep& dep : extra->control) {
        if (dep.kind != ControlKind::kOrder) live_[dep.node] = true;
      }
    }
    if (defined_.empty()) return;
    note_value(graph_[node].value);
    note_args(graph_[node].args);
    note_args(graph_[node].kwargs);
  }

  void note_reads(NodeId node) {
    for (const BufferId buffer : storages_->reads(node)) {
      if (buffer.is_valid()) read_later_[storages_->alias_class(buffer)] = true;
    }
  }

  // -- unbacked symbols

  bool defines_live_symbol(NodeId node) const {
    const auto first = std::lower_bound(defined_.begin(), defined_.end(), std::pair(node, StringId(0)));
    for (auto it = first; it != defined_.end() && it->first == node; ++it) {
      if (live_symbols_[it->second]) return true;
    }
    return false;
  }

  void note_expr(ExprId id) {
    if (!id.is_valid() || seen_exprs_.get(id)) return;
    seen_exprs_[id] = true;
    for (const StringId symbol : graph_.module().exprs.symbols(id)) live_symbols_[symbol] = true;
  }

  void note_dims(DimsId id) {
    if (!id.is_valid()) return;
    for (const Dim& dim : graph_.module().dims(id)) note_expr(dim.expr);
  }

  void note_value(ValueId id) {
    if (!id.is_valid()) return;
    const Value& value = graph_.pool().value(id);
    if (value.kind == ValueKind::kTensor) {
      const Tensor& tensor = graph_.pool().tensor(value);
      note_dims(tensor.sizes);
      note_dims(tensor.strides);
      note_expr(tensor.offset.expr);
    } else if (value.kind == ValueKind::kSymbolic) {
      note_expr(ExprId(value.first));
    } else if (has_elements(value)) {
      for (uint32_t i = 0; i < value.count; ++i) note_value(ValueId(value.first + i));
    }
  }

  void note_args(ArgRange range) {
    for (const Arg& arg : graph_.pool().args(range)) {
      if (arg.is(ArgKind::kExpr) || arg.is(ArgKind::kGroupExpr)) note_expr(arg.as_expr());
      if (arg.has_children()) note_args(arg.range());
    }
  }

  const Graph& graph_;
  const DceOptions& options_;
  PassResult& result_;
  EffectMap& effects_;
  const StorageMap* storages_ = nullptr;  // null unless any_fills_memory()
  IdMap<NodeId, bool> live_{graph_.num_ids(), false};
  IdMap<BufferId, bool> read_later_;                  // by alias class: a later live node reads it
  std::vector<std::pair<NodeId, StringId>> defined_;  // unbacked symbols and their definitions, sorted
  IdMap<StringId, bool> live_symbols_{graph_.module().strings.size(), false};
  IdMap<ExprId, bool> seen_exprs_{graph_.module().exprs.size(), false};
};

}  // namespace

Result<PassResult> dce(Graph& graph, const DceOptions& options, PassContext& context) {
  PassResult result;
  const std::vector<NodeId> dead = Liveness(context.facts.of(graph), options, result).run();
  Replacer replacer(graph, context.facts.of(graph).phases(), kDce);
  for (const NodeId node : dead) {
    replacer.erase_unread(node);
    result.count("erased");
  }
  replacer.finish();
  return result;
}

}  // namespace fxopt
