#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

// How far a pass may change what the graph computes.
enum class PassClass : uint8_t {
  kExact,  // bitwise the same results
  kReordersReductions,
  kChangesNumerics,
};
std::string_view pass_class_name(PassClass value);

struct PassOptionInfo {
  std::string name;
  std::string type;  // "bool", "int", "string", "enum"
  std::string default_value;
  std::vector<std::string> choices;  // of an enum
  std::string help;
};

// A pass with its options set: what a pipeline runs.
using BoundPass = std::function<Result<PassResult>(Graph&, PassContext&)>;

// Options of a pass as a pipeline writes them: name and value.
using OptionTexts = std::vector<std::pair<std::string, std::string>>;

// One row per pass: feeds --help, `fxopt passes`, the README table and the tests.
struct PassInfo {
  std::string_view name;
  std::string_view summary;
  PassClass pass_class;
  // Names of passes that must not stand before this one in a pipeline, and why.
  std::vector<std::pair<std::string_view, std::string_view>> not_after;
  std::vector<PassOptionInfo> options;
  // Binds options given as (name, value) text. Errors: kUnknownOption, kBadOptionValue, with the option's name in
  // Where.field.
  std::function<Result<BoundPass>(const OptionTexts&)> bind;
};

// Sorted by name.
const std::vector<PassInfo>& pass_registry();
const PassInfo* find_pass(std::string_view name);

}  // namespace fxopt
