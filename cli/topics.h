#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

// A concept that `fxopt help` explains. Its text is a page of cli/topics.
struct Topic {
  std::string_view name;
  std::string_view summary;
  std::string_view page;  // Markdown, without the first line

  std::string text() const;  // for a terminal
};

// A section of the topic "warnings".
struct WarningText {
  std::string_view code;  // "no-layers"
  std::string_view page;  // Markdown

  std::string text() const;  // for a terminal
};

// Returns the explanations of all warnings, sorted by code.
const std::vector<WarningText>& warning_table();
// Returns the explanation of the warning with this code, or null if no warning has the code.
const WarningText* find_warning(std::string_view code);

// Returns the pages of cli/topics, sorted by name. `fxopt help` also explains commands, passes and
// error codes, which have their own tables.
const std::vector<Topic>& topics();

}  // namespace fxopt
