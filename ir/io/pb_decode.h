#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.h"
#include "ir/graph/module.h"
#include "ir/io/io.h"
#include "ir/io/pb_unknown.h"
#include "ir/io/record_pb.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace fxopt::schema {
class Arg;
class ArgDict;
class ArgList;
class Int;
class IntList;
class MetaEntry;
class NamedArg;
class Node;
class Region;
class Source;
class Tensor;
class Value;
}  // namespace fxopt::schema

namespace fxopt {

// Converts protobuf messages to the components of a module: strings, expressions, records,
// arguments, values. A function that fails returns nullopt or false and sets error(). The callers
// then call in() to put their own fields in front of the error's field path. For example,
// in("args", 1) changes the path "list[0]" to "args[1].list[0]".
class PbDecoder {
 public:
  PbDecoder(Module& module, const ReadLimits& limits) : module_(&module), limits_(limits) { enter(module.pool, 0); }

  // Sets the pool for the arguments and values that are decoded after this call. Later node
  // references must be less than `num_nodes`.
  void enter(Pool& pool, size_t num_nodes);

  // Sets the offsets that are added to uids and storage ids. These offsets are needed if a module
  // is read into another module.
  void set_bases(uint64_t uid, uint64_t storage) {
    uid_base_ = uid;
    storage_base_ = storage;
  }

  Error& error() { return error_; }
  bool fail(ErrorCode code, std::string message, std::string hint = std::string());
  // Puts `step`, a field of the message, in front of the field path of the error. Always returns
  // false.
  bool in(std::string_view step);
  bool in(std::string_view step, size_t index);

  bool add_string(std::string_view text);
  size_t num_strings() const { return strings_.size(); }
  // Returns the string at `index` of the table.
  std::optional<StringId> string(uint32_t index);
  // Like string(), but returns an invalid id for index 0. Index 0 is the empty string, and a field
  // without a value also has index 0. Use optional_string() for fields in which an empty string and
  // a missing value both mean that there is no string.
  std::optional<StringId> optional_string(uint32_t index);
  // Stores the result of optional_string(index) in `to`. `name` is the field of the record that
  // contains the index. If the index is invalid, puts `name` in front of the error's field path.
  bool text(uint32_t index, StringId& to, std::string_view name);
  std::optional<ExprId> expr(uint32_t index);
  std::optional<TargetId> target(uint32_t index);
  // Returns the node at `position` of the graph. The node need not have been read before.
  std::optional<NodeId> node_id(uint32_t position);
  template <class E>
  std::optional<E> enumeration(int number) {
    if (!is_enum_number(number)) return std::nullopt;
    return static_cast<E>(number);
  }

  // Stores `from` in `to`. Returns false if `from` is empty.
  template <class T, class To>
  static bool set(std::optional<T> from, To& to) {
    if (from.has_value()) to = *std::move(from);
    return from.has_value();
  }
  // Like set(). If `from` is empty, puts `name` in front of the error's field path.
  template <class T, class To>
  bool store(std::optional<T> from, To& to, std::string_view name) {
    return set(std::move(from), to) || in(name);
  }

  // Appends the arguments to the pool as one range.
  std::optional<ArgRange> args(const google::protobuf::RepeatedPtrField<schema::Arg>& items);
  std::optional<ArgRange> kwargs(const google::protobuf::RepeatedPtrField<schema::NamedArg>& items);
  // Metadata must not refer to nodes.
  std::optional<ArgRange> meta(const google::protobuf::RepeatedPtrField<schema::MetaEntry>& items);
  // Returns an invalid id for an absent value.
  std::optional<ValueId> value(const schema::Value& value);

  template <IsRecord Record>
  std::optional<Record> record(const google::protobuf::Message& message) {
    Record result;
    const std::vector<PbField>& fields = record_fields<Record>();
    size_t next = 0;
    bool ok = true;
    bool is_plain = !has_own_unknown(message, *fields.front().reflection);
    Record::visit(result, [&](const char* name, auto& member) {
      const PbField& field = fields[next++];
      if (ok && !read(message, field, member)) ok = in(name);
      if constexpr (std::is_same_v<decltype(member), Integer&>)
        is_plain &= !has_own_unknown(pb_submessage(message, field));
    });
    if (!ok) return std::nullopt;
    if (!is_plain) result.unknown = unknown_fragment(message);
    return result;
  }
  // source() and region() read two types of records that most nodes have. They return the same as
  // record(), but are faster because they read the known fields without reflection.
  std::optional<Source> source(const schema::Source& message);
  std::optional<Region> region(const schema::Region& message);
  // Reads a repeated field of records.
  template <IsRecord Record, class Message>
  bool records(const google::protobuf::RepeatedPtrField<Message>& items, std::vector<Record>& to,
               std::string_view name) {
    to.reserve(static_cast<size_t>(items.size()));
    for (const Message& item : items) {
      if (!set(record<Record>(item), to.emplace_back())) return in(name, to.size() - 1);
    }
    return true;
  }
  template <class Indices>
  bool strings(const Indices& indices, std::vector<StringId>& to, std::string_view name) {
    for (const uint32_t index : indices) {
      if (!set(string(index), to.emplace_back())) return in(name, to.size() - 1);
    }
    return true;
  }

 private:
  using Message = google::protobuf::Message;

  template <class T>
  requires(std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t> ||
           std::is_same_v<T, uint32_t> ||
           std::is_same_v<T, std::string>) bool read(const Message& message, const PbField& field, T& member) {
    pb_get(message, field, member);
    return true;
  }
  template <class E>
  requires std::is_enum_v<E>
  bool read(const Message& message, const PbField& field, E& member) {
    return set(enumeration<E>(pb_get_enum(message, field)), member);
  }
  template <IsRecord Record>
  bool read(const Message& message, const PbField& field, Record& member) {
    return set(record<Record>(pb_submessage(message, field)), member);
  }
  template <class T>
  bool read(const Message& message, const PbField& field, std::optional<T>& member) {
    return !pb_has(message, field) || read(message, field, member.emplace());
  }
  template <IsRecord Record>
  bool read(const Message& message, const PbField& field, std::vector<Record>& member) {
    for (int i = 0; i < pb_count(message, field); ++i) {
      if (!set(record<Record>(pb_submessage(message, field, i)), member.emplace_back())) return at(member.size() - 1);
    }
    return true;
  }
  bool read(const Message& message, const PbField& field, std::vector<int64_t>& member);
  bool read(const Message& message, const PbField& field, std::vector<StringId>& member);
  bool read(const Message& message, const PbField& field, StringId& member);
  bool read(const Message& message, const PbField& field, ExprField& member);
  bool read(const Message& message, const PbField& field, Integer& member);
  bool read(const Message& message, const PbField& field, ValueId& member);
  bool read(const Message& message, const PbField& field, MetaRange& member);

  bool at(size_t index);
  bool is_enum_number(int number);
  bool is_depth(uint32_t depth);

  bool push_arg(const schema::Arg& arg, uint32_t depth, std::string unknown);
  bool push_args(const google::protobuf::RepeatedPtrField<schema::Arg>& items, uint32_t depth, std::string_view name);
  bool push_children(const schema::Arg& arg, uint32_t depth, std::string unknown);
  bool push_list(ArgKind kind, const schema::ArgList& list, std::string_view name, uint32_t depth, std::string unknown);
  bool push_ints(ArgKind kind, const schema::IntList& list, std::string unknown);
  bool push_dict(const schema::ArgDict& dict, uint32_t depth, std::string unknown);
  bool push_enum(const schema::Arg& arg, std::string unknown);
  bool push_opaque(const schema::Arg& arg, std::string unknown);
  template <class Entry>
  bool push_key(uint32_t name, const Entry& entry);
  std::optional<Arg> leaf(const schema::Arg& arg, uint32_t depth);
  std::optional<Arg> simple_leaf(const schema::Arg& arg);
  std::optional<Arg> named(ArgKind kind, uint32_t index);
  std::optional<Arg> node(uint32_t position);
  static std::string arg_unknown(const schema::Arg& arg);

  bool push_value(const schema::Value& value, uint32_t depth);
  std::optional<Value> convert(const schema::Value& value, uint32_t depth);
  std::optional<Value> convert_dict(const schema::Value& value, uint32_t depth);
  std::optional<Value> convert_name(const schema::Value& value);
  std::optional<Value> convert_opaque(const schema::Value& value);
  template <class Items>
  std::optional<Value> convert_children(ValueKind kind, const Items& items, std::string_view name, uint32_t depth);
  ValueId take_values(size_t mark);
  std::optional<Tensor> tensor(const schema::Tensor& tensor);
  bool tensor_strides(const schema::Tensor& tensor, Tensor& to);
  bool tensor_placements(const schema::Tensor& tensor, Tensor& to);
  bool tensor_offset(const schema::Int& offset, Dim& to);
  template <class Values, class Entries>
  std::optional<DimsId> dims(const Values& values, const Entries& symbolic, std::string_view name);
  static std::string value_unknown(const schema::Value& value);

  Module* module_;
  ReadLimits limits_;
  uint64_t uid_base_ = 0, storage_base_ = 0;
  Error error_;

  std::vector<StringId> strings_;
  // Caches for strings that are expressions or names. exprs_[i] is the expression in the text
  // strings_[i]. targets_[i] is the call target whose name is strings_[i]. An id is invalid until
  // the expression or target is needed for the first time.
  std::vector<ExprId> exprs_;
  std::vector<TargetId> targets_;
  IdMap<DimsId, DimsId> contiguous_;

  Pool* pool_ = nullptr;
  std::optional<ArgStack> stack_;
  size_t num_nodes_ = 0;
  bool edges_allowed_ = false;
  std::vector<Value> values_;                                   // complete, not yet in the pool
  std::vector<std::pair<size_t, std::string>> values_unknown_;  // index in values_, and the unknown fields as a
                                                                // fragment; ascending
  std::vector<Dim> dims_;
};

}  // namespace fxopt
