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

// What is open when a pipeline begins, and which some pass decides for good. A pass that needs it open must stand before
// those that end it.
enum class OpenQuestion : uint8_t {
  kPhases,  // which nodes are forward and which are backward, where a graph marks neither
  kTags,    // which tags the nodes carry
};
template <>
struct EnumNames<OpenQuestion> {
  static constexpr EnumName<OpenQuestion> kAll[] = {{OpenQuestion::kPhases, "open-phases"},
                                                    {OpenQuestion::kTags, "open-tags"}};
};

// What a pass may do to what the graph computes, always or where an option has a value.
enum class ProofTerm : uint8_t {
  kMarksOnly,         // it changes phases, tags and other marks: the next pass is proved with it
  kDropsDraws,        // it leaves out random draws, so that those after them draw other numbers
  kDropsCollectives,  // collectives and waits that nobody reads
  kDropsAssertions,
  kDropsBackward,  // backward of a joint graph, with all that it returns and does
  kClaims,         // it puts expressions in place of others, and claims that they are equal by laws
  kImitates,       // it does what another program does, right or wrong: a difference is a warning
};
struct ProofRule {
  ProofTerm term;
  std::string_view option;  // empty: always
  std::string_view value;
};

struct PassRules {
  struct End {
    OpenQuestion question;
    std::string_view why;  // what the pass does that decides it: "remat carries out the tags"
  };
  std::vector<OpenQuestion> needs;
  std::vector<End> ends;
  std::vector<ProofRule> proof = {};
};

struct PassOptionInfo {
  std::string name;
  std::string type;  // "bool", "int", "float", "bytes", "string", "pattern", "enum", or one of these and " list"
  std::string default_value;
  std::vector<std::string> choices;  // of an enum
  std::string help;
};

// Options of a pass as a pipeline writes them: name and value.
using OptionTexts = std::vector<std::pair<std::string, std::string>>;

template <class Subject>
using PassRun = std::function<Result<PassResult>(Subject&, PassContext&)>;

// A pass with its options set: what a pipeline runs, on each graph or once on the module.
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
  // Binds options given as (name, value) text. Errors: kUnknownOption, kBadOptionValue, with the option's name in
  // Where.field.
  std::function<Result<BoundPass>(const OptionTexts&)> bind;
};

// Why `later` must not stand after `earlier` in a pipeline, as in "it needs open-tags, and remat carries out the tags";
// empty where it may.
std::string order_conflict(const PassInfo& earlier, const PassInfo& later);

// Sorted by name.
const std::vector<PassInfo>& pass_registry();
const PassInfo* find_pass(std::string_view name);

}  // namespace fxopt
