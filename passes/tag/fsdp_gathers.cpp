// Recompute tags on FSDP all-gathers.
//
//   %p = placeholder() {role=parameter}
//   %c = _to_copy(%p)                        tagged
//   %a = all_gather_into_tensor(%c)          tagged
//   %w = wait_tensor(%a)                     tagged
//   %s = split(%w)  ...  %u = cat([...])     tagged, with through=chain
//   %t = t(%u)                               tagged, with through=chain. Otherwise it is saved
//   %y = mm(%x, %t)
//
// The pass classifies values by the source of their data, not by names: shards of parameters,
// gathered parameters, or other data. Activations that tensor parallelism gathers are other data.

#include "passes/tag/fsdp_gathers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/step/phases.h"
#include "ir/step/unshard.h"
#include "passes/pass/nodes.h"

namespace fxopt {
namespace {

class GatherTagger {
 public:
  GatherTagger(Graph& graph, Facts& facts, const FsdpGathersOptions& options, PassResult& result)
      : graph_(graph), facts_(facts), options_(options), result_(result) {}

  void run() {
    result_.note("gathers", unshards_.gathers);
    if (unshards_.gathers == 0) {
      result_.warn(graph_, "no-gathers", "nothing is tagged: no all-gather in forward has only parameters as input");
      return;
    }
    options_.policy == GatherPolicy::kRecompute ? tag_all() : tag_memory();
    policy_.finish();
  }

 private:
  bool is_gathered(NodeId node) const { return unshards_.content.get(node) == UnshardContent::kGathered; }
  bool is_reached(NodeId node) const {
    return options_.through == GatherReach::kChain || !unshards_.is_past_wait.get(node);
  }

  void tag_all() {
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call()) continue;
      if (unshards_.is_part(node) && (!is_gathered(node) || is_reached(node))) tag(node, Tag::kMustRecompute);
    }
  }

  // Tags the producers of the memory of gathered values that other calls read.
  void tag_memory() {
    const StorageMap& storages = facts_.storages();
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || !is_gathered(node) || !is_reached(node)) continue;
      bool is_last = false;
      for_each_user(graph_, node, [&](NodeId user) { is_last = is_last || !is_gathered(user) || !is_reached(user); });
      if (!is_last) continue;
      for (const BufferId id : storages.buffers(node)) {
        if (!id.is_valid() || storages.buffer(id).source != BufferSource::kNode) continue;
        const NodeId maker = storages.buffer(id).producer;
        if (is_gathered(maker)) tag(maker, Tag::kMustSave);
      }
    }
  }

  void tag(NodeId node, Tag wanted) {
    const Tag tag = with_strength(wanted, options_.strength);
    if (graph_[node].tag == tag) return;
    if (graph_[node].tag == Tag::kMustSave) {
      result_.remark(graph_, node, "kept-tag", "its tag MUST_SAVE stays");
      return;
    }
    policy_.tag(node, tag);
  }

  Graph& graph_;
  Facts& facts_;
  const FsdpGathersOptions& options_;
  PassResult& result_;
  const PhaseMap& phases_ = facts_.phases();
  PolicyTagger policy_{graph_, phases_, options_.marked, "fsdp-gathers", result_};
  UnshardMap unshards_ = find_unshards(graph_, parameters_of(graph_, facts_.storages(), false),
                                       [this](NodeId node) { return !phases_.is_backward(node); });
};

}  // namespace

Status FsdpGathersOptions::check() const {
  if (std::optional<Error> error = check_policy("fsdp-gathers", strength, marked)) return *std::move(error);
  return ok_status();
}

Result<PassResult> fsdp_gathers(Graph& graph, const FsdpGathersOptions& options, PassContext& context) {
  PassResult result;
  GatherTagger(graph, context.facts.of(graph), options, result).run();
  return result;
}

}  // namespace fxopt
