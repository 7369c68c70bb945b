#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/check/equivalence/claims.h"
#include "ir/graph/module.h"

// Proves that two modules compute the same results. The proof covers outputs, writes into inputs
// and attributes, shared memory, random draws, collectives, assertions and other effects. The
// module before a pass is called the input module, and the module after the pass is called the
// output module. Both modules are executed symbolically (execution.h). The proof uses no rule of
// any pass and no sizes that a pass recorded.

namespace fxopt {

struct PhaseMap;

enum class ProofAnswer : uint8_t {
  kProved,
  kDiffers,    // a result or an effect differs, see ModuleProof
  kUndecided,  // a fact that the proof needs is missing
};

// A difference between the results or effects of two graphs.
struct ProofDifference {
  // The name of the graph in the output module. Invalid if the difference belongs to no graph of
  // the output module.
  StringId graph;
  std::string what;  // the differing value: "output 3", "the value of input w at the end"
  NodeId node;       // producer of the value in the output module
};

struct ModuleProof {
  ProofAnswer answer = ProofAnswer::kProved;
  // The differences of one graph are adjacent. Differences of the graph's outputs come before
  // differences of its effects.
  std::vector<ProofDifference> differences;
  // Whether one module has top-level graphs that the other module lacks. Only graphs that have the
  // same name in both modules were compared.
  bool has_other_graphs = false;
  // The first new call: `graph` is the name of the output graph that contains the call, and
  // `first_new` is the call. A call is new if no call of the input graph has the same value number
  // (claims.h). If no call is new, both members are invalid. This happens, for example, if only two
  // outputs are exchanged.
  StringId graph;
  NodeId first_new;
  // Whether the input graph has a call with the same uid (Node::uid) as the call `first_new`, and
  // how the two calls differ.
  enum class Change : uint8_t {
    kAdded,      // the input graph has no call with this uid
    kArguments,  // the two calls differ in target, arguments, constants or sizes
    kData,       // target and arguments are equal, but contents of operands or other state differ
  };
  Change change = Change::kAdded;
  std::string missing;  // the missing fact, for kUndecided
  // Messages about the refused claims (claims.h), such as "part at %slice_2: ...".
  std::vector<std::string> refused_claims;
  // With ProofOptions::as_step: a module that contains the output module's training step as one
  // graph. The graphs and nodes in the other members then belong to this module.
  std::shared_ptr<const Module> step;
};

// A hash that identifies the computation of a module. Two modules with the same outputs and effects
// have the same hash, even if the names of their nodes differ.
struct ModuleName {
  std::string text;           // 32 hexadecimal digits
  size_t recorded_views = 0;  // number of views whose sizes come only from the file
  // Number of calls for which only recorded storage ids show whether the call returns a view or a
  // copy.
  size_t storage_id_views = 0;
};

// Options of a proof. Each `allow` option accepts one kind of difference.
struct ProofOptions {
  bool allow_dead_draws = false;
  bool allow_dead_collectives = false;
  bool allow_dead_assertions = false;
  // For joint graphs in the input module, and only with as_step. The proof compares only the
  // inputs, outputs and effects of the forward half (joint_halves()).
  bool allow_no_backward = false;
  // Whether the two modules come from separate traces. A size or stride that only one module
  // records is then not a difference.
  bool recorded_apart = false;
  // Number of bits in the hashes of calls. Tests use a value of 64 or less to provoke collisions.
  uint32_t key_bits = 128;
  // The largest numeric change that the prover accepts from a claim (claims.h).
  Numerics numerics = Numerics::kExact;
  // Compares the training steps of the modules (find_step()) instead of the modules' individual
  // graphs. A joint graph is then equal to the forward and backward graphs into which it was split.
  // Inputs are compared by name, and outputs in the order in which the graphs of the step return
  // them.
  bool as_step = false;
};

// A kind of computation that passes may omit if the user permits it, for example random draws
// whose results are unused.
struct ProofAllowance {
  std::string_view word;       // name of the kind on the command line (`verify --allow`)
  bool ProofOptions::*option;  // the option that permits the omission
};
inline constexpr ProofAllowance kProofAllowances[] = {{"dead-draws", &ProofOptions::allow_dead_draws},
                                                      {"dead-collectives", &ProofOptions::allow_dead_collectives},
                                                      {"dead-assertions", &ProofOptions::allow_dead_assertions},
                                                      {"no-backward", &ProofOptions::allow_no_backward}};

// Permits in `options` the omissions that a certificate permits. Each word in `certificate.allowed`
// stands for a kind of computation that passes may omit (ProofAllowance::word). For each known
// word, this function sets the member of `options` that permits the omission. `module` is the
// module that contains the certificate.
void allow(ProofOptions& options, const Module& module, const Certificate& certificate);

// Returns the phases of a graph as resolve_phases() does. Provers need the phases to find out
// whether autograd may differentiate the graph.
using PhasesOf = std::function<const PhaseMap&(const Graph&)>;

// Executes a module symbolically once, and proves that other modules are equal to this module. The
// module may change after construction. Without ProofOptions::as_step, the module must exist until
// the last call of prove(), because prove() reads the module's rank.
class Prover {
 public:
  // Executes all top-level graphs of `before`. With ProofOptions::as_step, executes the step of
  // `before` instead. Refuses a claim if the claim's rewrite rule changes numerics more than
  // `options.numerics` allows. If `phases` is empty, the constructor computes the phases of the
  // graphs itself. It also does so if ProofOptions::as_step is set. Otherwise `phases` must return
  // the phases of the current graphs of `before`. O(nodes + arguments + tensors).
  explicit Prover(const Module& before, const ProofOptions& options = ProofOptions(), std::vector<Claim> claims = {},
                  const PhasesOf& phases = PhasesOf());
  ~Prover();
  Prover(const Prover&) = delete;
  Prover& operator=(const Prover&) = delete;

  // Returns the hash of the computation of the module that was proved last. If no module was
  // proved, returns the hash for the input module. Must not be called with ProofOptions::as_step.
  // O(graphs).
  ModuleName name() const;

  // Whether a new Prover for `module` would return the same name() as this Prover. `module` must be
  // the module that was proved last. name() also hashes whether autograd may differentiate each
  // graph. The Prover decides this once, from the graphs of the input module. A graph that contains
  // backward nodes is not differentiated. If passes removed all backward nodes, a new Prover may
  // decide that autograd may differentiate the graph. The names then differ. `phases` is as in the
  // constructor, for the graphs of `module`. O(nodes + edges).
  bool is_named_alike(const Module& module, const PhasesOf& phases = PhasesOf()) const;

  // Compares the graphs of `after` with the graphs of the input module by name. `after` is another
  // module, or the input module after a change. The answer is kUndecided if steps are compared and
  // a module contains no step. The complexity is that of the constructor.
  //
  // `is_known` is used only if `after` is the same object as the constructor's argument `before`.
  // The vector has one entry for each graph id. An entry is true if the graph has not changed since
  // the last successful proof. If no subgraph has changed, prove() executes only the changed
  // top-level graphs. If `is_known` is empty, all graphs are executed.
  ModuleProof prove(const Module& after, const std::vector<bool>& is_known = std::vector<bool>());

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fxopt
