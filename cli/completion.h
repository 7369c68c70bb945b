#pragma once

#include <string>
#include <vector>

namespace fxopt {

// Returns the words that can complete a line, for the scripts of `fxopt completion`. `words` are
// the words after "fxopt". The last word is incomplete and may be empty. Each returned line is
// "WORD<tab>DESCRIPTION". The line ":" makes the script offer paths. O(options + topics).
std::string completions(std::vector<std::string> words);

}  // namespace fxopt
