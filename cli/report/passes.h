#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/error.h"
#include "passes/pipeline/registry.h"

namespace fxopt {

// One line for each pass, and the default pipeline.
std::string pass_list_text();

// Every property of one pass in the registry.
std::string pass_text(const PassInfo& pass);
nlohmann::ordered_json pass_json(const PassInfo& pass);

// kUnknownPass, with a near match.
Error unknown_pass(std::string_view name);

}  // namespace fxopt
