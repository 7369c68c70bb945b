// No field of the schema hides in a blob: an edit of each field, made in the binary form, shows in
// the text and is restored from it.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fxgraph.pb.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "ir/io/io.h"
#include "ir/io/pb_ids.h"
#include "tests/catch.h"
#include "tests/fuzz/mutate.h"
#include "tests/ir/field_edits.h"
#include "tests/ir/module_lines.h"
#include "tests/must.h"

namespace fxopt {
namespace {

using google::protobuf::Descriptor;

// Edits that are not made: alone they change no meaning, or are illegal.
struct NotAlone {
  const char* field;
  const char* kind;
  const char* reason;
};
constexpr NotAlone kNotAlone[] = {
    {"Module.strings", "", "the table is the sum of what the other fields name"},
    {"Module.counters", "absent", "it is then derived, and written as it was"},
    {"Int.value", "absent", "an Int without a number is the absent Int, which every field of that type tries"},
    {"Int.expr", "absent", "as Int.value"},
    {"Storage.bytes", "empty", "as Int.value"},
    {"Invocation.stage", "empty", "as Int.value"},
    {"Invocation.microbatch", "empty", "as Int.value"},
    {"Invocation.peer", "empty", "as Int.value"},
    {"RngUse.seed", "empty", "as Int.value"},
    {"RngUse.offset", "empty", "as Int.value"},
    {"RngUse.increment", "empty", "as Int.value"},
    {"Node.value", "empty", "a Value without an alternative is the absent Value"},
    {"NamedArg.arg", "absent", "an Arg without an alternative is one of a newer schema"},
    {"NamedArg.arg", "empty", "as NamedArg.arg absent"},
    {"MetaEntry.value", "absent", "as NamedArg.arg absent"},
    {"MetaEntry.value", "empty", "as NamedArg.arg absent"},
    {"ArgItem.key", "absent", "as NamedArg.arg absent"},
    {"ArgItem.key", "empty", "as NamedArg.arg absent"},
    {"ArgItem.value", "absent", "as NamedArg.arg absent"},
    {"ArgItem.value", "empty", "as NamedArg.arg absent"},
    {"Arg.none", "value", "always true"},
    {"Arg.ellipsis", "value", "always true"},
    {"Value.none", "value", "always true"},
    {"Module.profile", "empty", "Profile has no fields yet, so it is present or absent"},
    {"Module.memory_plan", "empty", "as Module.profile"},
    {"Node.uid", "absent", "an id that counts up says the same when it is left out"},
    {"Storage.id", "absent", "as Node.uid"},
    {"Node.phase_markers", "swap", "a set, written in ascending order"},
};

// Edits that the reader refuses. `always`: in every message; otherwise some messages accept them.
struct Refused {
  const char* field;
  const char* kind;
  ErrorCode code;
  bool always;
  const char* reason;
};
constexpr Refused kRefused[] = {
    {"Arg.none", "default", ErrorCode::kBadValue, true, "always true"},
    {"Arg.ellipsis", "default", ErrorCode::kBadValue, true, "always true"},
    {"Value.none", "default", ErrorCode::kBadValue, true, "always true"},
    {"Arg.expr", "default", ErrorCode::kBadExpression, true, "no expression is empty"},
    {"Arg.group_expr", "default", ErrorCode::kBadExpression, true, "no expression is empty"},
    {"Int.expr", "default", ErrorCode::kBadExpression, true, "no expression is empty"},
    {"Symbolic.expr", "default", ErrorCode::kBadExpression, true, "no expression is empty"},
    {"SymbolicEntry.expr", "default", ErrorCode::kBadExpression, true, "no expression is empty"},
    {"Module.counters", "empty", ErrorCode::kBadValue, true, "below numbers that are taken"},
    {"Counters.next_uid", "default", ErrorCode::kBadValue, true, "below numbers that are taken"},
    {"Counters.next_storage", "default", ErrorCode::kBadValue, true, "below numbers that are taken"},
    {"Counters.names", "swap", ErrorCode::kBadValue, true, "sorted"},
    {"Tensor.symbolic_sizes", "swap", ErrorCode::kBadValue, true, "sorted"},
    {"Tensor.symbolic_strides", "swap", ErrorCode::kBadValue, true, "sorted"},
    {"NameCounter.graph", "value", ErrorCode::kBadValue, false, "the counters would not be sorted"},
    {"Arg.node", "chosen", ErrorCode::kBadValue, false, "metadata uses no node"},
    {"ArgList.items", "append", ErrorCode::kBadValue, false, "a slice has three items"},
    {"ArgList.items", "remove", ErrorCode::kBadValue, false, "a slice has three items"},
    {"SymbolicEntry.index", "value", ErrorCode::kBadValue, false, "a number stands there"},
    {"SymbolicEntry.index", "default", ErrorCode::kBadValue, false, "a number stands there"},
    {"Tensor.symbolic_sizes", "append", ErrorCode::kBadValue, false, "a number stands there, or nothing"},
    {"Tensor.symbolic_strides", "append", ErrorCode::kBadValue, false, "a number stands there, or nothing"},
    {"Tensor.sizes", "remove", ErrorCode::kBadValue, false, "a symbolic entry stands for it"},
    {"Tensor.sizes", "swap", ErrorCode::kBadValue, false, "a symbolic entry stands for one of them"},
    {"Tensor.strides", "remove", ErrorCode::kBadValue, false, "a symbolic entry stands for it"},
    {"Tensor.strides", "swap", ErrorCode::kBadValue, false, "a symbolic entry stands for one of them"},
    {"Tensor.offset", "empty", ErrorCode::kBadValue, true, "neither a number nor an expression"},
};

bool matches(const char* field, const char* kind, const std::string& edit) {
  return edit.starts_with(std::string(field) + " " + kind);
}

std::string encode(const schema::Module& module) { return seal(module.SerializeAsString()); }

size_t count_blobs(const std::string& text) {
  size_t count = 0;
  for (const char* blob : {"unknown", "~base64"}) {
    for (size_t at = text.find(blob); at != std::string::npos; at = text.find(blob, at + 1)) ++count;
  }
  return count;
}

class FieldEdits {
 public:
  FieldEdits() : original_(make_editable_module()), lines_(module_lines(original_)) {
    text_ = print_text(*must(parse_pb(encode(original_), "original.pb")));
    REQUIRE(is_kept(original_, text_));
    const Descriptor& root = *schema::Module::descriptor();
    const google::protobuf::FileDescriptor& file = *root.file();
    for (int i = 0; i < file.message_type_count(); ++i) {
      const Descriptor& type = *file.message_type(i);
      if (type.name() == "File" || type.name() == "Counts") continue;  // the envelope, below
      for (int f = 0; f < type.field_count(); ++f) {
        for (const FieldEdit& edit : edits_of(*type.field(f))) by_type_[type.name()].push_back(edit);
      }
    }
  }

  void run() {
    visit_messages(original_, [this](const MessagePath& path) {
      const std::string type = path.in(scratch()).GetTypeName();
      for (const FieldEdit& edit : by_type_[type.substr(type.rfind('.') + 1)]) {
        if (is_listed(edit.name())) continue;
        const std::string context = path.context() + edit.name();
        if (!done_.contains(context) && attempt(path, edit)) done_.insert(context);
      }
    });
    check_lists();
  }

 private:
  schema::Module& scratch() {
    scratch_ = original_;
    return scratch_;
  }

  bool is_listed(const std::string& edit) {
    for (size_t i = 0; i < std::size(kNotAlone); ++i) {
      if (matches(kNotAlone[i].field, kNotAlone[i].kind, edit)) {
        used_not_alone_.insert(i);
        return true;
      }
    }
    return false;
  }

  // Returns true if the reader accepts the edited module.
  bool attempt(const MessagePath& path, const FieldEdit& edit) {
    schema::Module& edited = scratch();
    const std::vector<std::string> changes = apply_edit(edited, path, edit);
    if (changes.empty()) return false;
    INFO(edit.name() << " at " << path.text());
    const Result<std::unique_ptr<Module>> module = parse_pb(encode(edited), "edited.pb");
    if (!module.ok()) {
      refused(edit.name(), module.error());
      return false;
    }
    made_.insert(edit.name());
    check_changes(edited, changes);
    const std::string text = print_text(**module);
    CHECK(text != text_);
    CHECK(count_blobs(text) <= count_blobs(text_));
    CHECK(is_kept(edited, text));
    return true;
  }

  void refused(const std::string& edit, const Error& error) {
    for (size_t i = 0; i < std::size(kRefused); ++i) {
      if (!matches(kRefused[i].field, kRefused[i].kind, edit) || kRefused[i].code != error.code) continue;
      used_refused_.insert(i);
      return;
    }
    INFO(format_error(error));
    CHECK(false);
  }

  // The text, read back, gives `expected` again.
  static bool is_kept(schema::Module expected, const std::string& text) {
    const Result<std::unique_ptr<Module>> module = parse_text(text, "edited.fxg");
    INFO((module.ok() ? std::string() : format_error(module.error())));
    CHECK(module.ok());
    if (!module.ok()) return false;
    const std::string bytes = print_pb(**module).value();
    schema::File file;
    REQUIRE(file.ParseFromString(bytes));
    pack_lists(expected);
    spell_ids(expected);
    spell_ids(*file.mutable_module());
    const std::vector<std::string> before = module_lines(expected);
    const std::vector<std::string> after = module_lines(file.module());
    std::vector<std::string> lost, added;
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(lost));
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(added));
    CHECK(lost == std::vector<std::string>());
    CHECK(added == std::vector<std::string>());
    return lost.empty() && added.empty();
  }

  // Checks that the edit changed something, and nothing outside its listed changes.
  void check_changes(const schema::Module& edited, const std::vector<std::string>& changes) const {
    const std::vector<std::string> lines = module_lines(edited);
    std::vector<std::string> differing;
    std::set_symmetric_difference(lines.begin(), lines.end(), lines_.begin(), lines_.end(),
                                  std::back_inserter(differing));
    CHECK_FALSE(differing.empty());
    for (const std::string& line : differing) {
      const auto allows = [&line](const std::string& change) {
        return change.starts_with('*') ? line.find(change.substr(1)) != std::string::npos : line.starts_with(change);
      };
      INFO(line);
      CHECK(std::any_of(changes.begin(), changes.end(), allows));
    }
  }

  // Checks that every edit of the schema was made or is listed, and that no list has an unused row.
  void check_lists() {
    for (const auto& [type, edits] : by_type_) {
      for (const FieldEdit& edit : edits) {
        INFO(edit.name());
        bool is_expected = !is_listed(edit.name());
        for (const Refused& row : kRefused) {
          if (row.always && matches(row.field, row.kind, edit.name())) is_expected = false;
        }
        CHECK(made_.contains(edit.name()) == is_expected);
      }
    }
    for (size_t i = 0; i < std::size(kNotAlone); ++i) {
      INFO(kNotAlone[i].field << " " << kNotAlone[i].kind);
      CHECK(used_not_alone_.contains(i));
      CHECK(std::strlen(kNotAlone[i].reason) > 0);
    }
    for (size_t i = 0; i < std::size(kRefused); ++i) {
      INFO(kRefused[i].field << " " << kRefused[i].kind);
      CHECK(used_refused_.contains(i));
      CHECK(std::strlen(kRefused[i].reason) > 0);
    }
  }

  schema::Module original_, scratch_;
  std::vector<std::string> lines_;
  std::string text_;
  std::map<std::string, std::vector<FieldEdit>> by_type_;
  std::set<std::string> made_, done_;
  std::set<size_t> used_not_alone_, used_refused_;
};

TEST_CASE("an edit of each field of the schema shows in the text and comes back from it", "[pb][text]") {
  FieldEdits().run();
}

// The envelope is derived from the module, so any other value in it is refused.
TEST_CASE("an edit of each field of the envelope is refused", "[pb]") {
  const struct {
    const char* message;
    const char* field;
    ErrorCode code;
  } rows[] = {
      {"File", "magic", ErrorCode::kNotAFile},
      {"File", "version", ErrorCode::kVersion},
      {"File", "module_xxh64", ErrorCode::kHashMismatch},
      {"File", "module", ErrorCode::kHashMismatch},
      {"File", "counts", ErrorCode::kCountMismatch},
      {"Counts", "graphs", ErrorCode::kCountMismatch},
      {"Counts", "nodes", ErrorCode::kCountMismatch},
      {"Counts", "strings", ErrorCode::kCountMismatch},
      {"Counts", "storages", ErrorCode::kCountMismatch},
  };
  schema::File original;
  REQUIRE(original.ParseFromString(encode(make_editable_module())));
  CHECK(static_cast<size_t>(schema::File::descriptor()->field_count() + schema::Counts::descriptor()->field_count()) ==
        std::size(rows));
  for (const auto& row : rows) {
    INFO(row.message << "." << row.field);
    schema::File file = original;
    google::protobuf::Message& message =
        std::string(row.message) == "File" ? static_cast<google::protobuf::Message&>(file) : *file.mutable_counts();
    const google::protobuf::FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(row.field);
    REQUIRE(field != nullptr);
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT64) {
      reflection.SetUInt64(&message, field, reflection.GetUInt64(message, field) + 1);
    } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT32) {
      reflection.SetUInt32(&message, field, reflection.GetUInt32(message, field) + 1);
    } else {
      reflection.MutableMessage(&message, field)->Clear();
    }
    CHECK(parse_pb(file.SerializeAsString(), "edited.pb").error().code == row.code);
  }
}

}  // namespace
}  // namespace fxopt
