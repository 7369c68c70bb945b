#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/check/equivalence/claims.h"
#include "ir/graph/module.h"

// Proof that a module computes what another one does: outputs, what is written into inputs and attributes, which of them
// share memory, random draws, collectives, assertions and other effects. Both are run on names (execution.h), which takes
// no rule of any pass and no sizes that a pass recorded.

namespace fxopt {

enum class ProofAnswer : uint8_t {
  kProved,
  kDiffers,    // it computes something that the module before does not
  kUndecided,  // a fact is missing that would tell
};

// Where two graphs end differently.
struct ProofDifference {
  StringId graph;    // of the module after; invalid where it has none of that name
  std::string what;  // "output 3 (%mul)", "what input w holds at the end", "the order of random draws"
  NodeId node;       // that yields it, of the graph after
};

struct ModuleProof {
  ProofAnswer answer = ProofAnswer::kProved;
  std::vector<ProofDifference> differences;  // the outputs first
  // There are top-level graphs that the module before does not have, or it has ones that are gone: nothing was compared
  // but those of the same name.
  bool has_other_graphs = false;
  // The first call of the graph after that no call of the graph before computes; invalid where there is none, as where
  // two outputs are exchanged.
  StringId graph;
  NodeId first_new;
  // What became of the call of that uid in the graph before.
  enum class Change : uint8_t {
    kAdded,      // there was none
    kArguments,  // it is called otherwise: with other arguments, constants or sizes
    kData,       // it is called alike, and what it is given holds, or what it depends on is, something else
  };
  Change change = Change::kAdded;
  std::string missing;  // kUndecided: which fact
  // Claims that their laws do not bear out, in the graph before or after: "part at %slice_2: ...".
  std::vector<std::string> refused_claims;
  // Of ProofOptions::as_step: the module that the graphs and nodes above are of, the step as one graph in it.
  std::shared_ptr<const Module> step;
};

// What a module computes, by name: the same for modules that end alike, whatever their nodes are called.
struct ModuleName {
  std::string text;             // 32 hexadecimal digits
  size_t recorded_views = 0;    // views whose sizes nobody calculated: they are taken as recorded
  size_t storage_id_views = 0;  // views that may be copies, told by the file's storage ids alone
};

// What the caller allows the module after to leave out.
struct ProofOptions {
  bool allow_dead_draws = false;
  bool allow_dead_collectives = false;
  bool allow_dead_assertions = false;
  // With as_step: of joint graphs before, what is compared is the forward half (joint_halves()): its inputs, outputs and effects.
  bool allow_no_backward = false;
  // The two modules were recorded apart: what one records and the other does not is no difference.
  bool recorded_apart = false;
  // Of the names of calls: fewer, up to 64, show what collisions do.
  uint32_t key_bits = 128;
  // How much claims may change.
  Numerics numerics = Numerics::kExact;
  // What is compared is the step that a module holds (find_step()), run by run, and not each of its graphs: a joint graph
  // equals the forward and backward graphs that it is cut into. Inputs are compared by name, outputs in the order in which
  // the runs return them.
  bool as_step = false;
};

// What may be left out, as users write it.
struct ProofAllowance {
  std::string_view word;
  bool ProofOptions::*option;
};
inline constexpr ProofAllowance kProofAllowances[] = {{"dead-draws", &ProofOptions::allow_dead_draws},
                                                      {"dead-collectives", &ProofOptions::allow_dead_collectives},
                                                      {"dead-assertions", &ProofOptions::allow_dead_assertions},
                                                      {"no-backward", &ProofOptions::allow_no_backward}};

// Allows what a certificate says was allowed.
void allow(ProofOptions& options, const Module& module, const Certificate& certificate);

// Keeps what a module computes, to prove others equal to it. The module may change or go once this is made.
class Prover {
 public:
  // Runs all top-level graphs of `before`, or its step. Claims of a law that changes more than `options.numerics` are
  // refused. O(nodes + arguments + tensors).
  explicit Prover(const Module& before, const ProofOptions& options = ProofOptions(), std::vector<Claim> claims = {});
  ~Prover();
  Prover(const Prover&) = delete;
  Prover& operator=(const Prover&) = delete;

  // Of the module that was proved last; of that before where none was. Not with ProofOptions::as_step. O(graphs).
  ModuleName name() const;

  // Graphs are compared by name. `after` is another module, or the same one after a change. Undecided where one of the two
  // modules holds no step and one was asked for. O(the same).
  // `is_known`: where `after` is the module that this was made of, by graph id those that have not changed since the last
  // proof that held; they are not run again. Empty: none.
  ModuleProof prove(const Module& after, const std::vector<bool>& is_known = std::vector<bool>());

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fxopt
