#pragma once

#include <string>
#include <vector>

namespace google::protobuf {
class Message;
}

namespace fxopt::schema {
class Module;
}

namespace fxopt {

// Returns the content of a module as sorted lines, one line for each present field. Strings replace
// the indices into the string table.
std::vector<std::string> module_lines(const schema::Module& module);

// Writes lists and tuples of plain integers in their packed form, as print_pb() does.
void pack_lists(google::protobuf::Message& message);

}  // namespace fxopt
