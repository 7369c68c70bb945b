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

// One way to change one field: "value", "default", "absent", "empty", "append", "remove", "swap",
// "chosen" for an alternative that was not chosen before, "=" and its name for an enumerator.
struct FieldEdit {
  const google::protobuf::FieldDescriptor* field = nullptr;
  std::string kind;

  std::string name() const;  // "Symbol.kind =SYMBOL_KIND_RANK"
};

// The edits that the field's declaration permits, whether or not some message allows them.
std::vector<FieldEdit> edits_of(const google::protobuf::FieldDescriptor& field);

// A message inside a module, by the fields on the path to it.
class MessagePath {
 public:
  MessagePath then(const google::protobuf::FieldDescriptor& field, int index) const;
  google::protobuf::Message& in(schema::Module& module) const;
  std::string text() const;     // "graphs[0].nodes[2].value."
  std::string context() const;  // the same without indices

 private:
  struct Step {
    const google::protobuf::FieldDescriptor* field;
    int index;  // -1: not repeated
  };
  std::vector<Step> steps_;
};

// Calls visit(path) for every message of the module, the module first.
void visit_messages(const schema::Module& module, const std::function<void(const MessagePath&)>& visit);

// Makes the edit in the message at `path`, and changes the fields that must follow for the module
// to stay legal: a stride beside a new size, a fresh name for a copied node. Returns the prefixes
// of the lines of module_lines() that may change. Returns none if the message does not allow the
// edit: the value is already set, or there is nothing to remove.
std::vector<std::string> apply_edit(schema::Module& module, const MessagePath& path, const FieldEdit& edit);

// The sample module (tests/ir/sample_module.h) plus everything the edits need.
schema::Module make_editable_module();

}  // namespace fxopt
