#pragma once

#include <vector>

#include "ir/analysis/effect_map.h"
#include "ir/analysis/storages.h"
#include "ir/graph/graph.h"

namespace fxopt {

// Which memory is, or may be, written, asked while walking a schedule from its start: besides the known writes of
// StorageMap, an opaque call may write whatever it is given. Answers are by alias class.
class PossibleWrites {
 public:
  // Keeps `storages`. O(nodes + reads + writes).
  PossibleWrites(const Graph& graph, const StorageMap& storages, EffectMap& effects);

  // True when some node of the graph may write the buffer.
  bool ever(BufferId buffer) const { return ever_[storages_->alias_class(buffer)]; }
  // The last node passed that may write the buffer; invalid when there is none.
  NodeId last(BufferId buffer) const { return last_[storages_->alias_class(buffer)]; }
  // Notes that the walk leaves `node` behind.
  void pass(NodeId node);

 private:
  const StorageMap* storages_;
  IdMap<NodeId, std::vector<BufferId>> touched_;  // alias classes
  IdMap<BufferId, bool> ever_;                    // by alias class, as below
  IdMap<BufferId, NodeId> last_;
};

}  // namespace fxopt
