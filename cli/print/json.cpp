#include "cli/print/json.h"

#include <nlohmann/json.hpp>

namespace fxopt {
namespace {

nlohmann::ordered_json text_or_null(std::string_view text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

nlohmann::ordered_json number_or_null(uint64_t number, bool known) {
  return known ? nlohmann::ordered_json(number) : nlohmann::ordered_json(nullptr);
}

}  // namespace

nlohmann::ordered_json where_json(const Where& where) {
  return {
      {"file", text_or_null(where.file)},
      {"line", number_or_null(where.line, where.line > 0)},
      {"column", number_or_null(where.column, where.column > 0)},
      {"byte", number_or_null(where.byte, where.has_byte)},
      {"graph", text_or_null(where.graph)},
      {"node", text_or_null(where.node)},
      {"field", text_or_null(where.field)},
      {"module_path", text_or_null(where.module_path)},
      {"source", text_or_null(where.source)},
  };
}

nlohmann::ordered_json error_json(const Error& error) {
  return {
      {"code", code_name(error.code)},
      {"message", error.message},
      {"hint", text_or_null(error.hint)},
      {"where", where_json(error.where)},
  };
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fxopt
