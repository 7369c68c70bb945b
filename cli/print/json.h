#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/error.h"

namespace fxopt {

// {file, line, column, byte, graph, node, field, module_path, source}: every key is there, null where nothing is known.
nlohmann::ordered_json where_json(const Where& where);

// {code, message, hint, where}.
nlohmann::ordered_json error_json(const Error& error);

// Two spaces of indentation, keys in the order they were set, a line feed at the end. Bytes that are not UTF-8 become
// the replacement character: names come from files.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace fxopt
