#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/result.h"
#include "ir/check/equivalence/claims.h"
#include "ir/graph/types.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

// Data that some passes of a pipeline write, and that later passes rely on. The data is open while
// passes may still write the data: until the first pass that relies on the data. The lists
// PassRules::needs and PassRules::ends restrict the order of passes:
// - `needs` lists the data that must still be open at the first run of the pass, because the pass
//   writes the data.
// - `ends` lists the data that is no longer open after the pass, because the pass relies on the
//   data.
//
// For example, `sac` writes tags, and has kTags in `needs`. `remat` carries out tags, and has kTags
// in `ends`. Therefore, the first run of `sac` must not come after `remat`. Later runs of `sac` may
// come after `remat`.
enum class OpenQuestion : uint8_t {
  kPhases,  // the phases of nodes, in a graph without phase markers
  kTags,    // the tags of nodes
};
template <>
struct EnumNames<OpenQuestion> {
  static constexpr EnumName<OpenQuestion> kAll[] = {{OpenQuestion::kPhases, "open-phases"},
                                                    {OpenQuestion::kTags, "open-tags"}};
};

// How a pass may change the computation. A term applies always, or only if an option has a certain
// value.
enum class ProofTerm : uint8_t {
  // The pass changes only phases, tags and other annotations. The runner usually skips the proof
  // after this pass. The next proof then covers the changes of this pass and of the next pass. The
  // runner does not skip the proof in two cases:
  // - No pass follows.
  // - The proof of the next pass may compare with the module from directly before the next pass.
  kMarksOnly,
  // The pass leaves out random draws, so later draws return other numbers.
  kDropsDraws,
  // The pass removes collectives whose results are unused, and the calls that wait for them.
  kDropsCollectives,
  kDropsAssertions,
  // The pass drops backward of a joint graph, with all outputs and effects of backward.
  kDropsBackward,
  // The pass replaces expressions by other expressions, and names the rewrite rules that make them
  // equal (claims.h).
  kClaims,
  // The pass reproduces the decisions of another program, even wrong decisions. If the output of
  // the pass computes something different from its input, the runner therefore only warns.
  kImitates,
};
// `term` applies to a pass if `option` has the value `value`.
struct ProofRule {
  ProofTerm term;
  std::string_view option;  // empty if the term always applies
  std::string_view value;
};

struct PassRules {
  struct End {
    OpenQuestion question;
    // The part of an error message that states how the pass relies on `question`. For example,
    // `remat` and kTags have the text "remat carries out the tags".
    std::string_view why;
  };
  std::vector<OpenQuestion> needs = {};
  std::vector<End> ends = {};
  std::vector<ProofRule> proof = {};
};

struct PassOptionInfo {
  std::string name;
  // "bool", "int", "float", "share", "bytes", "string", "pattern", "enum", or one of these names
  // followed by " list".
  std::string type;
  std::string default_value;
  std::vector<std::string> choices;  // for an enum
  std::string help;
};

// Options of a pass as in a pipeline: pairs of name and value.
using OptionTexts = std::vector<std::pair<std::string, std::string>>;

template <class Subject>
using PassRun = std::function<Result<PassResult>(Subject&, PassContext&)>;

// A pass with its options set. The pass is ready to run on each graph, or once on the module.
struct BoundPass {
  std::variant<PassRun<Graph>, PassRun<Module>> run;
  OptionTexts options;  // the options that differ from their defaults, in canonical spelling
};

// The description of one pass. The tests, --help, `fxopt passes` and the README's table of passes
// are made from these descriptions.
struct PassInfo {
  std::string_view name;
  std::string_view summary;
  Numerics numerics = Numerics::kExact;  // how much the pass may change results
  PassRules rules;
  bool is_on_module = false;  // the pass may add, replace and remove graphs
  std::vector<PassOptionInfo> options;
  // Parses the options, and returns the pass with these options set. Errors: kUnknownOption and
  // kBadOptionValue, with the option's name in Where.field.
  std::function<Result<BoundPass>(const OptionTexts&)> bind;
};

// Returns the reason why `later` must not come after `earlier` in a pipeline. Returns "" if this
// order is allowed. For example, the following text is the reason why `sac` must not come after
// `remat`:
//
//   "the later pass writes tags, but remat carries out the tags"
std::string order_conflict(const PassInfo& earlier, const PassInfo& later);

// All passes, sorted by name.
const std::vector<PassInfo>& pass_registry();
const PassInfo* find_pass(std::string_view name);

}  // namespace fxopt
