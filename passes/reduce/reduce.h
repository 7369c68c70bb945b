#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {

// A failing case: a graph in text, and the pipeline it fails with, where one belongs to it.
struct ReduceCase {
  std::string graph;
  std::optional<std::string> passes;
};

// What a judge says of a case.
enum class Interest : uint8_t {
  kInteresting,    // it fails in the way that is looked for
  kUninteresting,  // it does not
  kStop,           // not judged: the search ends with what it has
};
using Judge = std::function<Interest(const ReduceCase&)>;

struct ReduceReport {
  size_t nodes = 0;         // of the smallest case so far, all graphs together
  size_t judged = 0;        // cases given to the judge
  size_t repeated = 0;      // cases met again, answered from memory
  size_t invalid = 0;       // edits whose result broke an invariant: not judged
  bool is_complete = true;  // false: the judge ended the search
};

struct ReduceOptions {
  // Called before each case is judged: what is being left out ("outputs"), and how far the search is.
  std::function<void(std::string_view, const ReduceReport&)> observer;
};

// Makes an interesting case as small as it can, and keeps it interesting: by delta debugging, the largest pieces first:
//
//   passes and their options; outputs; modules, outer ones first; runs of nodes, then single nodes; the last steps of
//   what is returned; records that have names; what nodes and the module carry
//
// and that again until nothing can go. Sizes, dtypes and names of nodes stay. Every case that is judged passes the
// verifier, and none is judged twice. The same case and answers give the same result.
//
// `smallest` is interesting and valid (text that parses and passes the verifier, a pipeline that parses) and is
// replaced by what is found. Errors: those of parse_text() and parse_pipeline(). Judges O(k log n) cases for a result
// of k out of n nodes where the judge does not mind what surrounds them, O(n) per round at worst; each costs O(nodes +
// edges) beside the judge.
Result<ReduceReport> reduce_case(ReduceCase& smallest, const Judge& judge, const ReduceOptions& options = {});

}  // namespace fxopt
