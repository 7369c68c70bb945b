#pragma once

#include <string>

#include "ir/check/equivalence/equivalence.h"
#include "ir/graph/module.h"

namespace fxopt {

// Returns "proved", or two lines with the first difference and the first new call.
inline std::string proof_text(const Module& after, const ModuleProof& proof) {
  if (proof.answer == ProofAnswer::kProved) return "proved";
  std::string out = proof.answer == ProofAnswer::kDiffers ? "differs" : "undecided: " + proof.missing;
  for (size_t i = 0; i < proof.differences.size() && i < 4; ++i) out += "\n" + proof.differences[i].what;
  if (proof.first_new.is_valid()) {
    const Graph& graph = after.graph(after.find_graph(proof.graph));
    out += "\nfirst new: %" + std::string(graph.name_of(proof.first_new)) + " = " + graph.op(proof.first_new).name;
  }
  return out;
}

}  // namespace fxopt
