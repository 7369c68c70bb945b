#pragma once

#include <string>
#include <string_view>

#include "core/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fxopt {

// What a check of a value throws through CLI11, which would make one text of the error.
struct Refusal {
  Error error;
};

// Has CLI11 check every value of every option and argument of `app`, before it is stored: blank values, values of flags
// that take none, options where a value goes, counts (options of type N). What is refused is thrown as a Refusal with
// kBadOptionValue, or kUnknownOption for "-output" in place of "--output". Flags such as --report[=FILE] may then be
// given once, as options. To be called once all options are declared.
void check_values(CLI::App& app);

// True for a whole number from 0 to 1000000000 in plain decimal digits, without sign or leading zeros.
bool is_count(std::string_view text);

// False for "-", which is standard input, and for numbers such as "-5".
bool looks_like_option(const std::string& word);

// The option that a word such as "--passes=cse" or "-oOUT" names; nullptr when there is none.
const CLI::Option* named_option(const CLI::App& app, const std::string& word);

// "-o, --output" and "-o OUT", "--report=FILE", as messages have them.
std::string shown_names(const CLI::Option& option);
std::string shown_use(const CLI::Option& option);

}  // namespace fxopt
