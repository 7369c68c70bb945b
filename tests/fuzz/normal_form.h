#pragma once

#include <string>
#include <string_view>

namespace fxopt {

// Compares two serialized modules (schema::Module, without the file around it) by meaning. Returns
// the first difference, or an empty string if the modules are equal. Indices are replaced by the
// strings to which they refer. Alternative spellings of the schema are equal: strides that follow
// from the sizes, packed lists of integers, an offset of 0, spellings of an expression, and an
// empty message where one is required. Counters that the first module omits are not compared.
std::string first_difference(std::string_view first, std::string_view second);

}  // namespace fxopt
