#include "passes/pipeline/decisions.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "ir/step/marks.h"
#include "ir/step/phases.h"

namespace fxopt {
namespace {

bool is_taken_over(const std::optional<TagSource>& source) { return source.has_value() && source->is_copied; }

void add_marks(const Graph& graph, std::vector<std::string>& marks) {
  if (!holds_marks(graph)) return;
  const MarkMap found = find_marks(graph, resolve_phases(graph));
  std::set<std::string> names;  // two getitems of the same result are one value
  for (const NodeId value : found.values) {
    for (std::string& name : marked_names(graph, value)) names.insert(std::move(name));
  }
  marks.insert(marks.end(), names.begin(), names.end());
}

}  // namespace

Decisions find_decisions(const Module& module) {
  Decisions found;
  for (const GraphId id : module.graphs()) {
    const Graph& graph = module.graph(id);
    for (const NodeId node : graph.nodes()) {
      if (graph[node].tag == Tag::kNone || !graph[node].runs()) continue;
      const NodeExtra* extra = graph.extra(node);
      if (extra == nullptr || !is_taken_over(extra->tag_source)) found.tags.push_back(graph[node].uid);
    }
    add_marks(graph, found.marks);
  }
  for (const ErasedNode& erased : module.erased) {
    if (erased.is_mark) {
      found.marks.emplace_back(module.text(erased.name));
    } else if (!is_taken_over(erased.tag_source)) {
      found.tags.push_back(erased.uid);
    }
  }
  if (!std::is_sorted(found.tags.begin(), found.tags.end())) std::sort(found.tags.begin(), found.tags.end());
  std::sort(found.marks.begin(), found.marks.end());
  return found;
}

std::string broken_decision(const Decisions& before, const Decisions& after) {
  std::vector<uint64_t> tags;
  std::set_difference(before.tags.begin(), before.tags.end(), after.tags.begin(), after.tags.end(),
                      std::back_inserter(tags));
  if (!tags.empty()) return "node uid " + std::to_string(tags.front()) + ": its tag is missing";
  std::vector<std::string> marks;
  std::set_difference(before.marks.begin(), before.marks.end(), after.marks.begin(), after.marks.end(),
                      std::back_inserter(marks));
  if (!marks.empty()) return "the mark (ap_must_save) of '" + marks.front() + "' is missing";
  const auto twice = std::adjacent_find(after.tags.begin(), after.tags.end());
  const bool was_twice = std::adjacent_find(before.tags.begin(), before.tags.end()) != before.tags.end();
  if (twice != after.tags.end() && !was_twice) {
    return "node uid " + std::to_string(*twice) + ": its tag is listed twice";
  }
  return "";
}

}  // namespace fxopt
