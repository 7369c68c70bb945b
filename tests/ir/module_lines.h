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

// The content of a module, one line per present field, with strings in place of indices into the
// table. Sorted.
std::vector<std::string> module_lines(const schema::Module& module);

// Writes lists and tuples of plain integers in their packed form, as print_pb() does.
void pack_lists(google::protobuf::Message& message);

}  // namespace fxopt
