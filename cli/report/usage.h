#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fxopt {

// The help of a command, or of fxopt itself. Written here rather than by CLI11, whose layout changes between versions.
std::string usage_text(const CLI::App& app);

// "-o" and "--output", in this order.
std::vector<std::string> option_names(const CLI::Option& option);

// "-o, --output OUT", "--json[=FILE]", "IN...".
std::string option_text(const CLI::Option& option);

// True for a flag that takes a value only behind '=', such as --json[=FILE].
bool has_optional_value(const CLI::Option& option);

// `text` in lines of at most 100 columns, all but the first indented by `indent`. Line feeds in `text` are kept.
std::string wrap(std::string_view text, size_t indent);

}  // namespace fxopt
