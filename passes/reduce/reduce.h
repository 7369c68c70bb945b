#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {

// A failing case: a graph as text and, optionally, the failing pipeline.
struct ReduceCase {
  std::string graph;
  std::optional<std::string> passes;
};

// The checker's answer for a case.
enum class Interest : uint8_t {
  kInteresting,    // the case fails in the expected way
  kUninteresting,  // the case does not fail in the expected way
  // The case was not checked. The search ends with the smallest case so far.
  kStop,
};
using Judge = std::function<Interest(const ReduceCase&)>;

struct ReduceReport {
  size_t nodes = 0;         // number of nodes of the smallest case so far, over all graphs
  size_t judged = 0;        // number of cases that were checked
  size_t repeated = 0;      // number of cases that occurred again, and for which the earlier answer was used
  size_t invalid = 0;       // number of edits whose result broke an invariant and was not checked
  bool is_complete = true;  // false if the checker ended the search
};

struct ReduceOptions {
  // Called before each case is checked. The arguments are the kind of item that is being removed
  // ("outputs") and the progress.
  std::function<void(std::string_view, const ReduceReport&)> observer;
};

// Makes a failing case smaller by delta debugging. The case must stay interesting: it must fail in
// the expected way. Repeats the removal of the following items until no item can be removed. Tries
// to remove large groups of items first.
//
// - passes and their options
// - outputs
// - nodes of an nn.Module, outer nn.Modules first
// - sequences of nodes, then single nodes
// - the last calls before the outputs
// - named entries of the module, such as symbols and process groups
// - metadata of nodes and of the module
//
// The sizes, dtypes and names of nodes are not changed. Only cases that pass the verifier are
// checked, and no case is checked twice. The result depends only on the case and on the checker's
// answers.
//
// `smallest` must be interesting and valid. Its text must parse and pass the verifier, and its
// pipeline must parse. The result replaces `smallest`. Errors: those of parse_text() and
// parse_pipeline().
//
// Complexity: if only k of n nodes cause the failure, O(k log n) cases are checked. In the worst
// case, each round of delta debugging (core/delta_debug.h) checks O(n) cases. Each case costs
// O(nodes + edges), plus the checker.
Result<ReduceReport> reduce_case(ReduceCase& smallest, const Judge& judge, const ReduceOptions& options = {});

}  // namespace fxopt
