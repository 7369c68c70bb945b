#include "ir/alias/regions.h"

#include <algorithm>
#include <span>

#include "ir/alias/storages.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

constexpr std::string_view kRegionCall = "higher_order.invoke_subgraph";

class BodyReader {
 public:
  BodyReader(const Graph& body, const StorageMap& storages)
      : body_(body), storages_(storages), operands_(placeholders_of(body)) {}

  std::vector<RegionResult> read() {
    if (body_.output().is_valid()) collect(body_[body_.output()].args);
    return std::move(results_);
  }

 private:
  void collect(ArgRange range) {
    for (const Arg& arg : body_.pool().args(range)) {
      if (arg.is(ArgKind::kNode)) {
        for (const BufferId id : storages_.buffers(arg.as_node())) results_.push_back(locate(id));
      } else if (arg.has_children()) {
        collect(arg.range());  // recursion is safe: file readers limit the nesting
      }
    }
  }

  RegionResult locate(BufferId id) const {
    RegionResult result;
    if (!id.is_valid()) return result;
    result.made = static_cast<uint32_t>(id.index());
    for (uint32_t i = 0; i < operands_.size(); ++i) {
      const std::span<const BufferId> given = storages_.buffers(operands_[i]);
      const auto found = std::ranges::find(given, id);
      if (found != given.end()) {
        result.operand = i;
        result.tensor = static_cast<uint32_t>(found - given.begin());
        return result;
      }
      const bool may_share =
          any_buffer(given, [&](BufferId each) { return storages_.alias_class(each) == storages_.alias_class(id); });
      if (may_share) result.may_share.push_back(i);
    }
    return result;
  }

  const Graph& body_;
  const StorageMap& storages_;
  std::vector<NodeId> operands_;
  std::vector<RegionResult> results_;
};

}  // namespace

bool has_regions(const Module& module) { return module.find_target(kRegionCall).is_valid(); }

bool calls_region(const Graph& graph, NodeId node) {
  return graph[node].kind == NodeKind::kCallFunction && graph[node].target == graph.module().find_target(kRegionCall);
}

bool may_be_of_region(const Graph& graph, NodeId placeholder) {
  if (!has_regions(graph.module())) return false;
  const InputRole role = recorded_role(graph, placeholder);
  return role == InputRole::kUnspecified || role == InputRole::kSavedValue;
}

const RegionBodies::Results* RegionBodies::find(StringId name) {
  const auto [found, is_new] = bodies_.emplace(name, nullptr);
  if (!is_new) return found->second.get();
  const GraphId id = module_->find_graph(name);
  if (!id.is_valid() || depth_ >= kMaxDepth) return nullptr;
  ++depth_;
  const Graph& graph = module_->graph(id);
  auto results = std::make_unique<const Results>(BodyReader(graph, StorageMap(graph, *this)).read());
  --depth_;
  return (bodies_[name] = std::move(results)).get();
}

}  // namespace fxopt
