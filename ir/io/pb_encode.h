#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "ir/graph/module.h"
#include "ir/io/record_pb.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace fxopt::schema {
class Arg;
class MetaEntry;
class NamedArg;
class Tensor;
class Value;
}  // namespace fxopt::schema

namespace fxopt {

// Converts the components of a module to protobuf messages, as the inverse of PbDecoder. The
// encoder adds strings to the string table in the order of first use. Therefore the table depends
// only on the content. error() keeps the first error. Messages that are filled after the first
// error must not be used.
class PbEncoder {
 public:
  explicit PbEncoder(const Module& module);

  // Selects the pool for the arguments and values that are encoded after this call. This is the
  // pool of `graph`, or the module's own pool if `graph` is nullptr.
  void enter(const Graph* graph);

  std::optional<Error>& error() { return error_; }
  // Returns the string table. It is valid while the encoder and the module exist.
  const std::vector<std::string_view>& strings() const { return table_; }

  // Returns the index in the string table, or 0 for an invalid id.
  uint32_t string(StringId id);
  uint32_t string(const std::string& text);
  uint32_t expr(ExprId id);

  void args(ArgRange range, google::protobuf::RepeatedPtrField<schema::Arg>& to);
  void kwargs(ArgRange range, google::protobuf::RepeatedPtrField<schema::NamedArg>& to);
  void meta(ArgRange range, google::protobuf::RepeatedPtrField<schema::MetaEntry>& to);
  void value(ValueId id, schema::Value& to) { value(id, to, 1); }
  // Adds the unknown fields in `fragment` (pb_unknown.h) to `message`.
  void restore(google::protobuf::Message& message, std::string_view fragment);

  template <IsRecord Record>
  void record(const Record& record, google::protobuf::Message& message) {
    const std::vector<PbField>& fields = record_fields<Record>();
    size_t next = 0;
    Record::visit(record, [&](const char*, const auto& member) { write(message, fields[next++], member); });
    if (!record.unknown.empty()) restore(message, record.unknown);
  }

 private:
  using Message = google::protobuf::Message;

  template <class T>
  requires(std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t> ||
           std::is_same_v<T, uint32_t> ||
           std::is_same_v<T, std::string>) void write(Message& message, const PbField& field, const T& member) {
    pb_set(message, field, member);
  }
  template <class E>
  requires std::is_enum_v<E>
  void write(Message& message, const PbField& field, E member) {
    pb_set_enum(message, field, static_cast<int>(member));
  }
  template <IsRecord Record>
  void write(Message& message, const PbField& field, const Record& member) {
    record(member, pb_mutable_submessage(message, field));
  }
  template <class T>
  void write(Message& message, const PbField& field, const std::optional<T>& member) {
    if (member.has_value()) write(message, field, *member);
  }
  template <IsRecord Record>
  void write(Message& message, const PbField& field, const std::vector<Record>& member) {
    for (const Record& item : member) record(item, pb_add_submessage(message, field));
  }
  void write(Message& message, const PbField& field, const std::vector<int64_t>& member);
  void write(Message& message, const PbField& field, const std::vector<StringId>& member);
  void write(Message& message, const PbField& field, StringId member);
  void write(Message& message, const PbField& field, ExprField member);
  void write(Message& message, const PbField& field, const Integer& member);
  void write(Message& message, const PbField& field, ValueId member);
  void write(Message& message, const PbField& field, MetaRange member);

  void fail(ErrorCode code, std::string message, std::string hint);
  uint32_t add(std::string_view text);
  bool is_depth(uint32_t depth);

  void arg(ArgIndex index, schema::Arg& to, uint32_t depth);
  // `kept` is the fragment of unknown fields (pb_unknown.h) that the caller will restore in `to`.
  // It is nullptr if there is no fragment. A list of integers can be written as the message IntList
  // or ArgList. If `kept` contains an IntList or ArgList, the encoder writes that message type if
  // possible, because the unknown fields belong to that type.
  void fill(const Arg& arg, schema::Arg& to, uint32_t depth, const schema::Arg* kept);
  void fill_list(const Arg& arg, schema::Arg& to, uint32_t depth, const schema::Arg* kept);
  void fill_dict(const Arg& arg, schema::Arg& to, uint32_t depth);
  void fill_parts(const Arg& arg, schema::Arg& to);
  void fill_name(const Arg& arg, schema::Arg& to);
  void fill_children(ArgRange range, google::protobuf::RepeatedPtrField<schema::Arg>& to, uint32_t depth);

  void value(ValueId id, schema::Value& to, uint32_t depth);
  void fill(const Value& value, ValueId id, schema::Value& to, uint32_t depth);
  void children(const Value& value, google::protobuf::RepeatedPtrField<schema::Value>& to, uint32_t depth);
  void tensor(const Tensor& tensor, schema::Tensor& to);

  const Module& module_;
  const Graph* graph_ = nullptr;
  const Pool* pool_;
  std::optional<Error> error_;
  std::vector<std::string_view> table_;
  std::deque<std::string> texts_;                           // names in table_ that are not interned
  std::vector<uint32_t> by_id_;                             // StringId -> index, 0 if not added
  std::vector<uint32_t> by_expr_;                           // ExprId -> index
  std::unordered_map<std::string_view, uint32_t> by_text_;  // text in texts_ -> index in table_
};

}  // namespace fxopt
