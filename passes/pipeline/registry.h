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

// A question that is open at the beginning of a pipeline, until some pass settles it. A pass that
// needs the open question must come before the passes that settle the question.
enum class OpenQuestion : uint8_t {
  kPhases,  // which nodes are forward or backward, in a graph without phase markers
  kTags,    // which tags the nodes carry
};
template <>
struct EnumNames<OpenQuestion> {
  static constexpr EnumName<OpenQuestion> kAll[] = {{OpenQuestion::kPhases, "open-phases"},
                                                    {OpenQuestion::kTags, "open-tags"}};
};

// How a pass may change the computation. A term applies always, or only if an option has a certain
// value.
enum class ProofTerm : uint8_t {
  // The pass changes only phases, tags and other marks. These changes are proved together with
  // those of the next pass.
  kMarksOnly,
  // The pass leaves out random draws, so later draws return other numbers.
  kDropsDraws,
  // The pass leaves out unused collectives and waits.
  kDropsCollectives,
  kDropsAssertions,
  // The pass drops backward of a joint graph, with all outputs and effects of backward.
  kDropsBackward,
  // The pass replaces expressions by other expressions, and claims rewrite rules as the reason.
  kClaims,
  // The pass reproduces the decisions of another program, even wrong decisions. A difference is
  // therefore only a warning.
  kImitates,
};
struct ProofRule {
  ProofTerm term;
  std::string_view option;  // empty if the term always applies
  std::string_view value;
};

struct PassRules {
  struct End {
    OpenQuestion question;
    std::string_view why;  // how the pass settles the question: "remat carries out the tags"
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

// One row per pass. The rows are the source for --help, `fxopt passes`, the README table and the
// tests.
struct PassInfo {
  std::string_view name;
  std::string_view summary;
  Numerics numerics = Numerics::kExact;  // how far the pass may change results
  PassRules rules;
  bool is_on_module = false;  // the pass may add, replace and remove graphs
  std::vector<PassOptionInfo> options;
  // Binds options that are given as texts: pairs of name and value. Errors: kUnknownOption and
  // kBadOptionValue, with the option's name in Where.field.
  std::function<Result<BoundPass>(const OptionTexts&)> bind;
};

// Returns the reason why `later` must not come after `earlier` in a pipeline, such as "it needs
// open-tags, but remat carries out the tags". Returns "" if this order is allowed.
std::string order_conflict(const PassInfo& earlier, const PassInfo& later);

// All passes, sorted by name.
const std::vector<PassInfo>& pass_registry();
const PassInfo* find_pass(std::string_view name);

}  // namespace fxopt
