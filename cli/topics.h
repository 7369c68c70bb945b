#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

// A concept `fxopt help` explains.
struct Topic {
  std::string_view name;
  std::string_view summary;
  std::string text;
};

// In the order help lists them. Commands, passes and error codes are topics too, from their own tables.
const std::vector<Topic>& topics();

}  // namespace fxopt
