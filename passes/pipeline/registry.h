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

// A property that is open when a pipeline begins and that some pass settles. A pass that needs it
// open must come before the passes that end it.
enum class OpenQuestion : uint8_t {
  kPhases,  // which nodes are forward and which backward, in a graph that marks neither
  kTags,    // which tags the nodes carry
};
template <>
struct EnumNames<OpenQuestion> {
  static constexpr EnumName<OpenQuestion> kAll[] = {{OpenQuestion::kPhases, "open-phases"},
                                                    {OpenQuestion::kTags, "open-tags"}};
};

// How a pass may change the computation, always or if an option has a value.
enum class ProofTerm : uint8_t {
  kMarksOnly,         // it changes phases, tags and other marks: proved together with the next pass
  kDropsDraws,        // it leaves out random draws, so later draws yield other numbers
  kDropsCollectives,  // it leaves out unused collectives and waits
  kDropsAssertions,
  kDropsBackward,  // it drops backward of a joint graph, with all its outputs and effects
  kClaims,         // it replaces expressions by others, and claims rewrite rules as the reason
  kImitates,       // it reproduces another program, right or wrong: a difference is a warning
};
struct ProofRule {
  ProofTerm term;
  std::string_view option;  // empty: always
  std::string_view value;
};

struct PassRules {
  struct End {
    OpenQuestion question;
    std::string_view why;  // how the pass settles it: "remat carries out the tags"
  };
  std::vector<OpenQuestion> needs;
  std::vector<End> ends;
  std::vector<ProofRule> proof = {};
};

struct PassOptionInfo {
  std::string name;
  // "bool", "int", "float", "share", "bytes", "string", "pattern", "enum", or one of these and
  // " list".
  std::string type;
  std::string default_value;
  std::vector<std::string> choices;  // for an enum
  std::string help;
};

// Options of a pass as in a pipeline: name and value.
using OptionTexts = std::vector<std::pair<std::string, std::string>>;

template <class Subject>
using PassRun = std::function<Result<PassResult>(Subject&, PassContext&)>;

// A pass with its options set, ready to run on each graph or once on the module.
struct BoundPass {
  std::variant<PassRun<Graph>, PassRun<Module>> run;
  OptionTexts options;  // that differ from their defaults, each in its one spelling
};

// One row per pass: feeds --help, `fxopt passes`, the README table and the tests.
struct PassInfo {
  std::string_view name;
  std::string_view summary;
  Numerics numerics = Numerics::kExact;  // how far it may change results
  PassRules rules;
  bool is_on_module = false;  // it may add, replace and remove graphs
  std::vector<PassOptionInfo> options;
  // Binds options given as (name, value) text. Errors: kUnknownOption, kBadOptionValue, with the
  // option's name in Where.field.
  std::function<Result<BoundPass>(const OptionTexts&)> bind;
};

// Why `later` must not come after `earlier` in a pipeline, as in "it needs open-tags, but remat
// carries out the tags"; empty if it may.
std::string order_conflict(const PassInfo& earlier, const PassInfo& later);

// Sorted by name.
const std::vector<PassInfo>& pass_registry();
const PassInfo* find_pass(std::string_view name);

}  // namespace fxopt
