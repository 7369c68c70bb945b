#pragma once

#include <string>
#include <vector>

namespace fxopt {

// The possible words at the end of a line, for the scripts of `fxopt completion`. `words`: the
// words after "fxopt"; the last one is incomplete, perhaps empty. Returns lines
// "WORD<tab>DESCRIPTION"; the word ':' represents paths. O(options + topics).
std::string completions(std::vector<std::string> words);

}  // namespace fxopt
