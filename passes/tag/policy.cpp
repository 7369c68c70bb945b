#include "passes/tag/policy.h"

#include <string>

#include "ir/graph/module.h"
#include "ir/step/tags.h"

namespace fxopt {

std::optional<Error> check_policy(std::string_view pass, TagStrength strength, MarkedValues marked) {
  if (marked == MarkedValues::kKeep || strength == TagStrength::kPrefer) return std::nullopt;
  Error error{
      ErrorCode::kBadOptionValue,
      "'marked=override' of '" + std::string(pass) +
          "' has no effect without strength=prefer: the mark ap_must_save wins over the MUST_RECOMPUTE of a policy",
      "write " + std::string(pass) + "{strength=prefer,marked=override}",
      {}};
  error.where.field = "marked";
  return error;
}

Tag with_strength(Tag tag, TagStrength strength) {
  if (strength == TagStrength::kMust) return tag;
  if (tag == Tag::kMustRecompute) return Tag::kPreferRecompute;
  return tag == Tag::kMustSave ? Tag::kPreferSave : tag;
}

PolicyTagger::PolicyTagger(Graph& graph, const PhaseMap& phases, MarkedValues marked, std::string_view pass,
                           PassResult& result)
    : graph_(graph),
      result_(result),
      pass_(graph.module().intern(pass)),
      marks_(find_marks(graph, phases)),
      keeps_(marked == MarkedValues::kKeep) {}

bool PolicyTagger::tag(NodeId node, Tag tag, bool is_policy) {
  if (is_kept(node)) {
    result_.remark(graph_, node, "marked",
                   "not tagged " + std::string(name_of(tag)) + ": the value is marked (ap_must_save)");
    if (num_kept_++ == 0) first_ = node;
    return false;
  }
  graph_[node].tag = tag;
  if (is_policy) {
    graph_.mutable_extra(node).tag_source = TagSource{pass_, false, ""};
  } else if (graph_.extra(node) != nullptr) {
    graph_.mutable_extra(node).tag_source.reset();
  }
  result_.count(wants_recompute(tag) ? "tagged-recompute" : "tagged-save");
  return true;
}

void PolicyTagger::finish() {
  if (num_kept_ == 0) return;
  result_.remark(
      graph_, first_, "marks-kept",
      count_with_first(num_kept_, " value with the mark ap_must_save gets no tag",
                       " values with the mark ap_must_save get no tags", "%" + std::string(graph_.name_of(first_))) +
          ". To tag such values, set strength=prefer,marked=override");
}

}  // namespace fxopt
