#pragma once

#include <string>
#include <string_view>

namespace fxopt {

// Where two serialized modules (schema::Module, without the file around it) differ in what they say, the first
// difference, else empty. Indices are replaced by the strings they name; what the schema lets one say in two ways
// (strides that follow from the sizes, packed lists of integers, an offset of 0, spellings of an expression, an empty
// message where one must stand) counts as the same. Counters that the first one leaves out are not compared.
std::string first_difference(std::string_view first, std::string_view second);

}  // namespace fxopt
