#include "ir/step/origins.h"

#include <algorithm>

namespace fxopt {

bool is_recomputed(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph.extra(node);
  return extra != nullptr && std::ranges::any_of(extra->origins, [](const Origin& origin) {
           return origin.kind == OriginKind::kRecomputed;
         });
}

}  // namespace fxopt
