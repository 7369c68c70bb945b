#include "ir/step/origins.h"

#include <algorithm>

namespace fxopt {

bool is_recomputed(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph.extra(node);
  return extra != nullptr && std::any_of(extra->origins.begin(), extra->origins.end(),
                                         [](const Origin& origin) { return origin.kind == OriginKind::kRecomputed; });
}

}  // namespace fxopt
