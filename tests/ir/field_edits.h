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

// One way to change one field: "value", "default", "absent", "empty", "append", "remove", "swap", "chosen" for an
// alternative that was another one before, "=" and its name for an enumerator.
struct FieldEdit {
  const google::protobuf::FieldDescriptor* field = nullptr;
  std::string kind;

  std::string name() const;  // "Symbol.kind =SYMBOL_KIND_RANK"
};

// The edits the field has by its declaration, whether or not some message allows them.
std::vector<FieldEdit> edits_of(const google::protobuf::FieldDescriptor& field);

// A message inside a module, by the fields that lead there.
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

// Makes the edit in the message at `path`; fields that must follow for the module to stay legal (a stride beside a new
// size, a fresh name for a copied node) follow. Returns the prefixes of the lines of module_lines() that may change;
// none when the message does not allow the edit: the value is there already, or there is nothing to remove.
std::vector<std::string> apply_edit(schema::Module& module, const MessagePath& path, const FieldEdit& edit);

// The sample module (tests/ir/sample_module.h) and what the edits need beside it.
schema::Module make_editable_module();

}  // namespace fxopt
