#pragma once

#include <functional>
#include <string>
#include <vector>

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace fxopt::schema {
class Module;
}

namespace fxopt {

// A way to change a field: "value", "default", "absent", "empty", "append", "remove" or "swap".
// "chosen" selects an alternative that was not selected before. "=" followed by a name sets that
// enumerator.
struct FieldEdit {
  const google::protobuf::FieldDescriptor* field = nullptr;
  std::string kind;

  std::string name() const;  // "Symbol.kind =SYMBOL_KIND_RANK"
};

// Returns the edits that the declaration of the field permits. A given message may not allow every
// edit.
std::vector<FieldEdit> edits_of(const google::protobuf::FieldDescriptor& field);

// A message inside a module, identified by the fields on the path to the message.
class MessagePath {
 public:
  MessagePath then(const google::protobuf::FieldDescriptor& field, int index) const;
  google::protobuf::Message& in(schema::Module& module) const;
  std::string text() const;     // "graphs[0].nodes[2].value."
  std::string context() const;  // the same text without indices

 private:
  struct Step {
    const google::protobuf::FieldDescriptor* field;
    int index;  // -1: not repeated
  };
  std::vector<Step> steps_;
};

// Calls visit(path) for every message of the module. The module comes first.
void visit_messages(const schema::Module& module, const std::function<void(const MessagePath&)>& visit);

// Makes the edit in the message at `path`, and changes other fields so that the module stays legal.
// Examples are a stride for a new size, and a fresh name for a copied node. Returns the prefixes of
// the lines of module_lines() that may change. Returns nothing if the message does not allow the
// edit, for example because the value is already set.
std::vector<std::string> apply_edit(schema::Module& module, const MessagePath& path, const FieldEdit& edit);

// Returns the sample module (tests/ir/sample_module.h) with additional content that the edits need.
schema::Module make_editable_module();

}  // namespace fxopt
