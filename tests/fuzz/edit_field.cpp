#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "fxgraph.pb.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "tests/fuzz/mutate.h"

namespace fxopt {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr uint64_t kDeepest = 90;  // deeper than readers accept

// All messages of a tree, by type, in order of first appearance.
class Tree {
 public:
  explicit Tree(Message& root) { add(root); }

  // Picks a message of a random type half of the time, and any message otherwise.
  Message& pick(Random& random) const {
    if (random.chance(50)) {
      const std::vector<Message*>& kind = by_type_[random.below(by_type_.size())];
      return *kind[random.below(kind.size())];
    }
    return *all_[random.below(all_.size())];
  }

 private:
  void add(Message& message) {
    const auto [found, is_new] = index_.try_emplace(message.GetDescriptor()->index(), by_type_.size());
    if (is_new) by_type_.emplace_back();
    by_type_[found->second].push_back(&message);
    all_.push_back(&message);
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      if (field->message_type() == nullptr) continue;
      if (!field->is_repeated()) {
        add(*reflection.MutableMessage(&message, field));
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        add(*reflection.MutableRepeatedMessage(&message, field, i));
      }
    }
  }

  std::map<int, size_t> index_;  // by the type's place in its file
  std::vector<std::vector<Message*>> by_type_;
  std::vector<Message*> all_;
};

// Changes one field of one message.
class FieldEdit {
 public:
  FieldEdit(Random& random, const schema::Module& module, Message& message)
      : random_(random), module_(module), message_(message), reflection_(*message.GetReflection()) {}

  std::string run() {
    if (nest()) return message_.GetTypeName() + ": nested deeper";
    field_ = pick_field();
    const std::string name = message_.GetTypeName() + "." + field_->name() + ": ";
    if (field_->is_repeated()) return name + edit_list();
    if (field_->message_type() != nullptr) return name + edit_message();
    return name + edit_scalar();
  }

 private:
  const FieldDescriptor* pick_field() {
    std::vector<const FieldDescriptor*> fields;
    reflection_.ListFields(message_, &fields);
    if (!fields.empty() && random_.chance(70)) return fields[random_.below(fields.size())];
    const Descriptor& type = *message_.GetDescriptor();
    return type.field(static_cast<int>(random_.below(static_cast<uint64_t>(std::max(type.field_count(), 1)))));
  }

  bool nest();
  std::string edit_list();
  std::string edit_message();
  std::string edit_scalar();
  void add_element();
  void copy_element(int index);
  void set_element(int index);
  void set_scalar();

  uint32_t number32(uint32_t old);
  uint64_t number64(uint64_t old);
  int enumerator();
  std::string text(std::string old);

  Random& random_;
  const schema::Module& module_;
  Message& message_;
  const Reflection& reflection_;
  const FieldDescriptor* field_ = nullptr;
};

// Sometimes wraps an argument or a value in lists.
bool FieldEdit::nest() {
  if (!random_.chance(4)) return false;
  const uint64_t depth = 1 + random_.below(kDeepest);
  if (message_.GetDescriptor() == schema::Arg::descriptor()) {
    schema::Arg& arg = static_cast<schema::Arg&>(message_);
    for (uint64_t i = 0; i < depth; ++i) {
      schema::Arg inner = std::move(arg);
      arg = schema::Arg();
      *(i % 2 == 0 ? arg.mutable_list() : arg.mutable_tuple())->add_items() = std::move(inner);
    }
    return true;
  }
  if (message_.GetDescriptor() == schema::Value::descriptor()) {
    schema::Value& value = static_cast<schema::Value&>(message_);
    for (uint64_t i = 0; i < depth; ++i) {
      schema::Value inner = std::move(value);
      value = schema::Value();
      *value.mutable_tuple()->add_items() = std::move(inner);
    }
    return true;
  }
  return false;
}

// ---- numbers and strings

uint32_t FieldEdit::number32(uint32_t old) {
  const google::protobuf::FieldOptions& options = field_->options();
  if (options.GetExtension(schema::interned) || options.GetExtension(schema::expression)) {
    const uint64_t size = static_cast<uint64_t>(module_.strings_size());
    return static_cast<uint32_t>(random_.chance(90) ? random_.below(size) : size + random_.below(3));
  }
  if (options.GetExtension(schema::node_index) && random_.chance(80)) {
    return static_cast<uint32_t>(random_.below(uint64_t{old} + 8));
  }
  return static_cast<uint32_t>(number64(old));
}

uint64_t FieldEdit::number64(uint64_t old) {
  const uint64_t kind = random_.below(8);
  if (kind == 0) return 0;
  if (kind == 1) return old + 1;
  if (kind == 2) return old - 1;
  if (kind == 3) return random_.below(10);
  if (kind == 4) return random_.next();
  if (kind == 5) return uint64_t{1} << random_.below(64);
  if (kind == 6) return static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + random_.below(2);
  return std::numeric_limits<uint64_t>::max() - random_.below(2);
}

int FieldEdit::enumerator() {
  const google::protobuf::EnumDescriptor& type = *field_->enum_type();
  if (random_.chance(80)) {
    return type.value(static_cast<int>(random_.below(static_cast<uint64_t>(type.value_count()))))->number();
  }
  constexpr int kStrange[] = {-1, 31, 32, 255, 256, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()};
  return kStrange[random_.below(std::size(kStrange))];
}

std::string FieldEdit::text(std::string old) {
  constexpr std::string_view kPieces[] = {"", "x", "s0", "*2", "\"", "\n", "é", " ", "0", "\\", "%", "\xff"};
  const std::string_view piece = kPieces[random_.below(std::size(kPieces))];
  if (old.empty() || random_.chance(20)) return std::string(piece);
  if (random_.chance(50)) return old.insert(random_.below(old.size() + 1), piece);
  return old.replace(random_.below(old.size()), 1, piece);
}

// ---- fields

std::string FieldEdit::edit_message() {
  const bool was_set = reflection_.HasField(message_, field_);
  if (was_set && random_.chance(60)) {
    reflection_.ClearField(&message_, field_);
    return "cleared";
  }
  reflection_.MutableMessage(&message_, field_)->Clear();
  return was_set ? "emptied" : "added empty";
}

std::string FieldEdit::edit_scalar() {
  if (reflection_.HasField(message_, field_) && random_.chance(20)) {
    reflection_.ClearField(&message_, field_);
    return "cleared";
  }
  set_scalar();
  return "changed";
}

void FieldEdit::set_scalar() {
  switch (field_->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection_.SetBool(&message_, field_, !reflection_.GetBool(message_, field_));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection_.SetEnumValue(&message_, field_, enumerator());
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection_.SetUInt32(&message_, field_, number32(reflection_.GetUInt32(message_, field_)));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection_.SetUInt64(&message_, field_, number64(reflection_.GetUInt64(message_, field_)));
    case FieldDescriptor::CPPTYPE_INT64: {
      const uint64_t old = static_cast<uint64_t>(reflection_.GetInt64(message_, field_));
      return reflection_.SetInt64(&message_, field_, static_cast<int64_t>(number64(old)));
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection_.SetString(&message_, field_, text(reflection_.GetString(message_, field_)));
    default:
      return reflection_.ClearField(&message_, field_);  // the schema has no other types
  }
}

std::string FieldEdit::edit_list() {
  const int size = reflection_.FieldSize(message_, field_);
  if (size == 0) {
    add_element();
    return "added an element";
  }
  const int at = static_cast<int>(random_.below(static_cast<uint64_t>(size)));
  const int other = static_cast<int>(random_.below(static_cast<uint64_t>(size)));
  switch (random_.below(5)) {
    case 0:
      for (int i = at; i + 1 < size; ++i) reflection_.SwapElements(&message_, field_, i, i + 1);
      reflection_.RemoveLast(&message_, field_);
      return "removed element " + std::to_string(at);
    case 1:
      copy_element(at);
      return "repeated element " + std::to_string(at);
    case 2:
      reflection_.SwapElements(&message_, field_, at, other);
      return "swapped elements " + std::to_string(at) + " and " + std::to_string(other);
    case 3:
      set_element(at);
      return "changed element " + std::to_string(at);
    default:
      add_element();
      return "added an element";
  }
}

void FieldEdit::add_element() {
  switch (field_->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      reflection_.AddMessage(&message_, field_);
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection_.AddEnumValue(&message_, field_, enumerator());
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection_.AddUInt32(&message_, field_, number32(0));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection_.AddInt64(&message_, field_, static_cast<int64_t>(number64(1)));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection_.AddString(&message_, field_, text("new"));
    default:
      return;
  }
}

void FieldEdit::copy_element(int index) {
  switch (field_->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      const std::unique_ptr<Message> copy(reflection_.GetRepeatedMessage(message_, field_, index).New());
      copy->CopyFrom(reflection_.GetRepeatedMessage(message_, field_, index));
      reflection_.AddMessage(&message_, field_)->CopyFrom(*copy);
      return;
    }
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection_.AddEnumValue(&message_, field_, reflection_.GetRepeatedEnumValue(message_, field_, index));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection_.AddUInt32(&message_, field_, reflection_.GetRepeatedUInt32(message_, field_, index));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection_.AddInt64(&message_, field_, reflection_.GetRepeatedInt64(message_, field_, index));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection_.AddString(&message_, field_, reflection_.GetRepeatedString(message_, field_, index));
    default:
      return;
  }
}

void FieldEdit::set_element(int index) {
  switch (field_->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return reflection_.MutableRepeatedMessage(&message_, field_, index)->Clear();
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection_.SetRepeatedEnumValue(&message_, field_, index, enumerator());
    case FieldDescriptor::CPPTYPE_UINT32: {
      const uint32_t old = reflection_.GetRepeatedUInt32(message_, field_, index);
      return reflection_.SetRepeatedUInt32(&message_, field_, index, number32(old));
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      const uint64_t old = static_cast<uint64_t>(reflection_.GetRepeatedInt64(message_, field_, index));
      return reflection_.SetRepeatedInt64(&message_, field_, index, static_cast<int64_t>(number64(old)));
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection_.SetRepeatedString(&message_, field_, index,
                                           text(reflection_.GetRepeatedString(message_, field_, index)));
    default:
      return;
  }
}

}  // namespace

std::string edit_field(Random& random, Message& module) {
  const Tree tree(module);
  for (;;) {
    Message& message = tree.pick(random);
    if (message.GetDescriptor()->field_count() == 0) continue;  // a message type without fields
    return FieldEdit(random, static_cast<const schema::Module&>(module), message).run();
  }
}

}  // namespace fxopt
