#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/error.h"

namespace fxopt {

// {file, line, column, byte, graph, node, field, module_path, source}: every key is present, null
// if unknown.
nlohmann::ordered_json where_json(const Where& where);

// {code, message, hint, where}.
nlohmann::ordered_json error_json(const Error& error);

// Indents by two spaces, keeps keys in the order they were set, and ends with a line feed. Invalid
// UTF-8 becomes the replacement character, since names come from files.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace fxopt
