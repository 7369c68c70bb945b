#pragma once

#include <string>
#include <vector>

namespace fxopt {

// The words that can stand at the end of a line, for the scripts of `fxopt completion`. `words`: behind "fxopt", the last one begun, perhaps
// empty. Lines "WORD<tab>DESCRIPTION"; the word ':' stands for paths. O(options + topics).
std::string completions(std::vector<std::string> words);

}  // namespace fxopt
