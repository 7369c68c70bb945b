#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/error.h"
#include "passes/pipeline/registry.h"

namespace fxopt {

// Returns one line for each pass, and a line for the default pipeline.
std::string pass_list_text();

// Returns every property that the registry has for one pass.
std::string pass_text(const PassInfo& pass);
nlohmann::ordered_json pass_json(const PassInfo& pass);

// Returns the error kUnknownPass with a near match.
Error unknown_pass(std::string_view name);

}  // namespace fxopt
