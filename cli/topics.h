#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

// A concept that `fxopt help` explains: a page of cli/topics.
struct Topic {
  std::string_view name;
  std::string_view summary;
  std::string_view page;  // Markdown, without the first line

  std::string text() const;  // for a terminal
};

// A section of the topic warnings.
struct WarningText {
  std::string_view code;  // "no-layers"
  std::string_view page;  // Markdown

  std::string text() const;  // for a terminal
};

// Sorted by code.
const std::vector<WarningText>& warning_table();
// Null if no warning has this code.
const WarningText* find_warning(std::string_view code);

// Sorted by name. Commands, passes and error codes are topics too, from their own tables.
const std::vector<Topic>& topics();

}  // namespace fxopt
