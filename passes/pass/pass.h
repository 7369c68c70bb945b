#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "ir/check/equivalence/claims.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// The code of the warning about a name in a pass option, if the name matches no node of the graph.
inline constexpr std::string_view kNamesNothing = "no-match";
// The code of the warning on a value that compat=torch recomputes because PyTorch recomputes the
// value. The recompute may be wrong in two ways:
// - The recomputed copy has other values than the original.
// - The recomputed copy has its own memory, although the original shares memory with another
//   tensor.
inline constexpr std::string_view kNotExact = "not-exact";
// The code of the warning on a graph that lacks some marked values. An earlier compilation wrote
// the save mark `ap_must_save` on these values (ir/step/marks.h).
inline constexpr std::string_view kMarksLost = "marks-lost";
// The code of a remark on recompute tags in a graph without backward nodes.
inline constexpr std::string_view kNoBackward = "no-backward";

// The reason why a pass did not do something, or did something unexpected.
struct PassRemark {
  StringId graph;
  // Valid at the end of the pass. A later pass may erase the node.
  NodeId node;
  std::string node_name;
  std::string code;  // stable; words joined by dashes: "untagged-alias"
  std::string text;
  bool is_warning = false;  // reported by default
};

// The effects of one run of a pass. changed() is derived from the counters. The pass manager
// compares changed() with a structural hash of the module, so a pass cannot misreport whether it
// changed something.
class PassResult {
 public:
  // Adds to a counter of changes to the graph.
  void count(std::string_view counter, int64_t amount = 1) {
    if (amount != 0) counters_[std::string(counter)] += amount;
  }
  // Adds to a counter of observations. Observations are not changes.
  void note(std::string_view counter, int64_t amount = 1) {
    if (amount != 0) notes_[std::string(counter)] += amount;
  }
  void remark(const Graph& graph, NodeId node, std::string_view code, std::string text) {
    remarks_.push_back({graph.name(), node, std::string(graph.name_of(node)), std::string(code), std::move(text)});
  }
  // Adds a remark that is reported by default. Use warn() if the pass changed nothing, did only
  // part of the work, or returned an inexact result.
  void warn(const Graph& graph, NodeId node, std::string_view code, std::string text) {
    remark(graph, node, code, std::move(text));
    remarks_.back().is_warning = true;
  }
  // Adds a remark on the graph as a whole.
  void remark(const Graph& graph, std::string_view code, std::string text) {
    remarks_.push_back({graph.name(), NodeId(), std::string(), std::string(code), std::move(text)});
  }
  void warn(const Graph& graph, std::string_view code, std::string text) {
    remark(graph, code, std::move(text));
    remarks_.back().is_warning = true;
  }

  // Warns (code kNamesNothing) about each name that matches no node, because the name is probably a
  // typo. A name matches a node if matches(node, name) is true. `names` is the value of the option
  // `option`. O(nodes * names).
  template <class Matches>
  void remark_unmatched(const Graph& graph, std::string_view option, const std::vector<std::string>& names,
                        const Matches& matches) {
    for (const std::string& name : names) {
      bool is_met = false;
      for (const NodeId node : graph.nodes()) is_met = is_met || matches(node, name);
      if (is_met) continue;
      warn(graph, kNamesNothing,
           "no node of this graph matches '" + name + "' of option " + std::string(option) + near_name(graph, name));
    }
  }

  // Asks the prover to apply a rewrite rule to the node's value (a claim: see claims.h). The node
  // may be in the input graph or in the output graph of the pass. The claim records the uid of the
  // node.
  void claim(const Graph& graph, NodeId node, RewriteRule rule) {
    claims_.push_back({std::string(graph.module().text(graph.name())), graph[node].uid, rule});
  }

  // Adds the result of another run of the same pass on another graph.
  void merge(PassResult&& other) {
    for (const auto& [counter, amount] : other.counters_) count(counter, amount);
    for (const auto& [counter, amount] : other.notes_) note(counter, amount);
    for (PassRemark& remark : other.remarks_) remarks_.push_back(std::move(remark));
    for (Claim& claim : other.claims_) claims_.push_back(std::move(claim));
  }

  bool changed() const { return !counters_.empty(); }
  const std::map<std::string, int64_t>& counters() const { return counters_; }
  const std::map<std::string, int64_t>& notes() const { return notes_; }
  const std::vector<PassRemark>& remarks() const { return remarks_; }
  const std::vector<Claim>& claims() const { return claims_; }

 private:
  // Returns "; did you mean 'aten.silu.default'?", with the closest operator or module of the
  // graph. Returns "" if no name is close. O(nodes * length^2).
  static std::string near_name(const Graph& graph, const std::string& name);

  std::map<std::string, int64_t> counters_;
  std::map<std::string, int64_t> notes_;
  std::vector<PassRemark> remarks_;
  std::vector<Claim> claims_;
};

// The value of the option `compat` of a pass. With kFxopt, the pass decides by the rules of fxopt.
// With kTorch, the pass follows the decisions of PyTorch, even wrong decisions.
enum class Compat : uint8_t {
  kFxopt,
  kTorch,
};
template <>
struct EnumNames<Compat> {
  static constexpr EnumName<Compat> kAll[] = {{Compat::kFxopt, "fxopt"}, {Compat::kTorch, "torch"}};
};

// Returns a text for a remark. The text contains a number of things (`count`), a phrase about the
// things, and the name of the first thing (`first`). The phrase is `one` if `count` is 1, and
// otherwise `many`. Both phrases begin with a space. Examples:
//
//   count_with_first(1, " slice stays", " slices stay", "%a") == "1 slice stays: %a"
//   count_with_first(3, " slice stays", " slices stay", "%a") == "3 slices stay. The first is %a"
std::string count_with_first(int64_t count, std::string_view one, std::string_view many, const std::string& first);

// A pass works on one graph (`Graph&`). It works on the module (`Module&`) if it adds, replaces or
// removes graphs, or reads several graphs. Every pass first makes a plan on const data. Applying
// the plan cannot fail. Errors are reserved for input that the pass must refuse, such as a tag that
// cannot be carried out. If a pass merely leaves something unchanged, it writes a remark.
//
//   struct FooOptions {
//     Bytes cap{25 << 20};
//     template <class Self, class Field>
//     static void visit(Self& self, Field&& field) {
//       field("cap", self.cap, "Largest merged payload.");
//     }
//
//     // Optional. Checks the ranges of the values. `where.field` of a returned error must be the
//     // name of the option.
//     Status check() const;
//   };
//   Result<PassResult> foo(Graph& graph, const FooOptions& options, PassContext& context);
//
// options.h lists the types of option fields.

}  // namespace fxopt
