#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/check/equivalence/claims.h"
#include "ir/graph/module.h"

// Proves that a module computes the same as another: outputs, writes into inputs and attributes,
// shared memory, random draws, collectives, assertions and other effects. Both modules are executed
// symbolically (execution.h). The proof uses no rule of any pass and no sizes that a pass recorded.

namespace fxopt {

enum class ProofAnswer : uint8_t {
  kProved,
  kDiffers,    // it computes a value that the input module does not compute
  kUndecided,  // a fact is missing
};

// A difference between the ends of two graphs.
struct ProofDifference {
  StringId graph;    // in the output module; invalid if it has no graph of that name
  std::string what;  // "output 3", "the value of input w at the end"
  NodeId node;       // its producer in the output graph
};

struct ModuleProof {
  ProofAnswer answer = ProofAnswer::kProved;
  std::vector<ProofDifference> differences;  // outputs first
  // One module has top-level graphs that the other lacks. Only graphs of the same name were
  // compared.
  bool has_other_graphs = false;
  // The first call of the output graph that no call of the input graph computes. Invalid if none
  // exists, for example if two outputs are exchanged.
  StringId graph;
  NodeId first_new;
  // How the call differs from the input graph's call of the same uid.
  enum class Change : uint8_t {
    kAdded,      // the input graph has no such uid
    kArguments,  // other arguments, constants or sizes
    kData,       // same arguments, but other operand contents or other state
  };
  Change change = Change::kAdded;
  std::string missing;  // kUndecided: the missing fact
  // Claims whose rewrite rules do not hold, in either graph: "part at %slice_2: ...".
  std::vector<std::string> refused_claims;
  // ProofOptions::as_step: the module of the graphs and nodes above, which holds the step as one
  // graph.
  std::shared_ptr<const Module> step;
};

// The name of a module's computation. Modules that end alike have the same name, whatever their
// nodes are called.
struct ModuleName {
  std::string text;             // 32 hexadecimal digits
  size_t recorded_views = 0;    // views whose recorded sizes are not calculated
  size_t storage_id_views = 0;  // views or copies told apart only by storage ids
};

// Differences that the caller accepts.
struct ProofOptions {
  bool allow_dead_draws = false;
  bool allow_dead_collectives = false;
  bool allow_dead_assertions = false;
  // With as_step, for joint graphs in the input module: only the forward half is compared, that is,
  // its inputs, outputs and effects (joint_halves()).
  bool allow_no_backward = false;
  // The two modules were recorded separately: a fact recorded in only one is not a difference.
  bool recorded_apart = false;
  // Bits in the names of calls. Fewer, up to 64, show the effect of collisions.
  uint32_t key_bits = 128;
  // The largest numeric change that claims may make.
  Numerics numerics = Numerics::kExact;
  // Compares the steps of the modules (find_step()), run by run, instead of each of their graphs. A
  // joint graph equals the forward and backward graphs that it is split into. Inputs are compared
  // by name, outputs in the order in which the runs return them.
  bool as_step = false;
};

// Permitted omissions, by the words that users write.
struct ProofAllowance {
  std::string_view word;
  bool ProofOptions::*option;
};
inline constexpr ProofAllowance kProofAllowances[] = {{"dead-draws", &ProofOptions::allow_dead_draws},
                                                      {"dead-collectives", &ProofOptions::allow_dead_collectives},
                                                      {"dead-assertions", &ProofOptions::allow_dead_assertions},
                                                      {"no-backward", &ProofOptions::allow_no_backward}};

// Allows everything that a certificate records as allowed.
void allow(ProofOptions& options, const Module& module, const Certificate& certificate);

// Keeps the computation of a module and proves other modules equal to it. The module may change or
// be destroyed after construction.
class Prover {
 public:
  // Executes all top-level graphs of `before`, or its step. Refuses claims of rewrite rules whose
  // class of numerics exceeds `options.numerics`. O(nodes + arguments + tensors).
  explicit Prover(const Module& before, const ProofOptions& options = ProofOptions(), std::vector<Claim> claims = {});
  ~Prover();
  Prover(const Prover&) = delete;
  Prover& operator=(const Prover&) = delete;

  // Returns the name of the module that was proved last, or of the input module if none was. Not
  // with ProofOptions::as_step. O(graphs).
  ModuleName name() const;

  // Compares graphs by name. `after` is another module, or the same one after a change. The answer
  // is kUndecided if a step is to be compared and one of the modules holds none. Complexity as the
  // constructor. `is_known`: if `after` is the module of the constructor, true by graph id for
  // graphs that have not changed since the last successful proof. They are not executed again.
  // Empty: none.
  ModuleProof prove(const Module& after, const std::vector<bool>& is_known = std::vector<bool>());

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fxopt
