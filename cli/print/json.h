#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/error.h"

namespace fxopt {

// Returns {file, line, column, byte, graph, node, field, module_path, source}. Every key is
// present, and unknown values are null.
nlohmann::ordered_json where_json(const Where& where);

// Returns {code, message, hint, where}.
nlohmann::ordered_json error_json(const Error& error);

// Returns `json` as text that is indented by two spaces and ends with a line feed. Keys keep the
// order in which they were set. Names come from files, so invalid UTF-8 becomes the replacement
// character.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace fxopt
