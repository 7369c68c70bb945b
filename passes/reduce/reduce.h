#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {

// A failing case: a graph as text, and the failing pipeline, if any.
struct ReduceCase {
  std::string graph;
  std::optional<std::string> passes;
};

// The checker's answer for a case.
enum class Interest : uint8_t {
  kInteresting,    // it fails in the expected way
  kUninteresting,  // it does not
  kStop,           // not checked: ends the search with the smallest case so far
};
using Judge = std::function<Interest(const ReduceCase&)>;

struct ReduceReport {
  size_t nodes = 0;         // nodes of the smallest case so far, over all graphs
  size_t judged = 0;        // cases given to the checker
  size_t repeated = 0;      // repeated cases, answered from memory
  size_t invalid = 0;       // edits whose result broke an invariant: not checked
  bool is_complete = true;  // false: the checker ended the search
};

struct ReduceOptions {
  // Called before each case is checked, with the kind of thing being removed ("outputs") and the
  // progress.
  std::function<void(std::string_view, const ReduceReport&)> observer;
};

// Makes an interesting case as small as possible while it stays interesting, by delta debugging.
// Repeats these steps, the largest pieces first, until nothing can be removed:
//
//   passes and their options; outputs; modules, outer ones first; runs of nodes, then single nodes;
//   the last steps before the outputs; named records; metadata of nodes and the module
//
// Sizes, dtypes and names of nodes stay. Every checked case passes the verifier, and none is
// checked twice. The result is deterministic for the same case and answers.
//
// `smallest` must be interesting and valid (text that parses and passes the verifier, a pipeline
// that parses). It is replaced by the result. Errors: those of parse_text() and parse_pipeline().
// Checks O(k log n) cases for a result of k out of n nodes if the checker ignores the other nodes,
// O(n) per round at worst. Each case costs O(nodes + edges) besides the checker.
Result<ReduceReport> reduce_case(ReduceCase& smallest, const Judge& judge, const ReduceOptions& options = {});

}  // namespace fxopt
