#pragma once

#include <nlohmann/json.hpp>

namespace fxopt {

// Returns a JSON array that holds make(row) for each row.
template <class Rows, class Make>
nlohmann::ordered_json json_list(const Rows& rows, const Make& make) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& row : rows) list.push_back(make(row));
  return list;
}

}  // namespace fxopt
