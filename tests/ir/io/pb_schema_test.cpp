// The structs of ir/graph name every field and enumerator of the schema.
#include <algorithm>
#include <set>
#include <string>

#include "fxgraph.pb.h"
#include <google/protobuf/descriptor.h>

#include "ir/graph/records.h"
#include "ir/io/pb_envelope.h"
#include "tests/catch.h"

namespace fxopt {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// fits(field, member): whether the field's type matches the C++ type of the record's member.

bool is_scalar(const FieldDescriptor& field, FieldDescriptor::CppType type) {
  return field.cpp_type() == type && !field.is_repeated();
}
bool is_message(const FieldDescriptor& field, const char* name) {
  return field.message_type() != nullptr && field.message_type()->name() == name;
}
bool is_interned(const FieldDescriptor& field) { return field.options().GetExtension(schema::interned); }

bool fits(const FieldDescriptor& field, bool) { return is_scalar(field, FieldDescriptor::CPPTYPE_BOOL); }
bool fits(const FieldDescriptor& field, int64_t) { return is_scalar(field, FieldDescriptor::CPPTYPE_INT64); }
bool fits(const FieldDescriptor& field, uint64_t) { return is_scalar(field, FieldDescriptor::CPPTYPE_UINT64); }
bool fits(const FieldDescriptor& field, uint32_t) {
  return is_scalar(field, FieldDescriptor::CPPTYPE_UINT32) && !is_interned(field);
}
bool fits(const FieldDescriptor& field, const std::string&) { return field.type() == FieldDescriptor::TYPE_BYTES; }
bool fits(const FieldDescriptor& field, StringId) { return is_interned(field) && !field.is_repeated(); }
bool fits(const FieldDescriptor& field, const ExprField&) { return field.options().GetExtension(schema::expression); }
bool fits(const FieldDescriptor& field, const Integer&) { return is_message(field, "Int"); }
bool fits(const FieldDescriptor& field, ValueId) { return is_message(field, "Tensor"); }
bool fits(const FieldDescriptor& field, const MetaRange&) {
  return is_message(field, "MetaEntry") && field.is_repeated();
}
bool fits(const FieldDescriptor& field, const std::vector<int64_t>&) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 && field.is_repeated();
}
bool fits(const FieldDescriptor& field, const std::vector<StringId>&) {
  return is_interned(field) && field.is_repeated();
}
template <class T>
requires std::is_enum_v<T>
bool fits(const FieldDescriptor& field, T) { return is_scalar(field, FieldDescriptor::CPPTYPE_ENUM); }
template <class T>
requires requires { T::kMessage; }
bool fits(const FieldDescriptor& field, const std::vector<T>&) {
  return is_message(field, T::kMessage) && field.is_repeated();
}
template <class T>
bool fits(const FieldDescriptor& field, const std::optional<T>&) {
  if constexpr (requires { T::kMessage; }) {
    return is_message(field, T::kMessage) && !field.is_repeated();
  } else {
    return field.has_presence() && fits(field, T());
  }
}

template <class Record>
void check_record() {
  const Descriptor* message = schema::Module::descriptor()->file()->FindMessageTypeByName(Record::kMessage);
  INFO(Record::kMessage);
  REQUIRE(message != nullptr);
  std::set<std::string> names;
  Record record;
  Record::visit(record, [&](const char* name, const auto& member) {
    INFO(name);
    CHECK(names.insert(name).second);
    const FieldDescriptor* field = message->FindFieldByName(name);
    REQUIRE(field != nullptr);
    CHECK(fits(*field, member));
  });
  CHECK(names.size() == static_cast<size_t>(message->field_count()));
}

template <class... Records>
void check_records() {
  (check_record<Records>(), ...);
}

TEST_CASE("each record visits every field of its schema message, with its type", "[pb]") {
  check_records<Producer, Symbol, Assertion, StorageRecord, ProcessGroup, DeviceMesh, OpSchemaRecord, Constant, RngSlot,
                Stream, RankContext, TagVerdict, TagSource, Region, Origin, Source, Bucket, Remark, RngUse, ErasedNode,
                InputSpec, OutputSpec, SubclassLayout, OpaqueRecord, Attribute, Binding, Invocation, ProvedStep,
                Certificate>();
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return text;
}

// `has_own_names`: the text form abbreviates names, so they are not compared.
template <class E>
void check_enum(const char* name, bool has_own_names = false) {
  const EnumDescriptor* type = schema::Module::descriptor()->file()->FindEnumTypeByName(name);
  INFO(name);
  REQUIRE(type != nullptr);
  REQUIRE(static_cast<size_t>(type->value_count()) == std::size(EnumNames<E>::kAll));
  for (int i = 0; i < type->value_count(); ++i) {
    const EnumName<E>& entry = EnumNames<E>::kAll[static_cast<size_t>(i)];
    INFO(type->value(i)->name());
    CHECK(type->value(i)->number() == static_cast<int>(entry.value));
    if (!has_own_names) CHECK(lower(type->value(i)->name()).ends_with("_" + lower(std::string(entry.name))));
  }
}

TEST_CASE("enumerations have the numbers and names of the schema", "[pb]") {
  check_enum<SymbolKind>("SymbolKind");
  check_enum<SymbolType>("SymbolType");
  check_enum<DType>("DType", true);
  check_enum<Layout>("Layout");
  check_enum<MemoryFormat>("MemoryFormat");
  check_enum<PlacementKind>("PlacementKind");
  check_enum<NodeKind>("NodeKind");
  check_enum<Phase>("Phase");
  check_enum<PhaseMarker>("PhaseMarker");
  check_enum<Tag>("Tag");
  check_enum<Verdict>("Verdict");
  check_enum<ProofVerdict>("ProofVerdict");
  check_enum<OriginKind>("OriginKind");
  check_enum<ControlKind>("ControlKind");
  check_enum<Capture>("Capture");
  check_enum<GraphKind>("GraphKind");
  check_enum<InputRole>("InputRole");
  check_enum<OutputRole>("OutputRole");
  check_enum<RngState>("RngState");
  CHECK(schema::Module::descriptor()->file()->enum_type_count() == 20);
}

TEST_CASE("the envelope is message File of the schema", "[pb]") {
  const std::string bytes = write_envelope(PbCounts{1, 2, 3, 4}, {std::string("\x10\x01", 2)}).value();
  schema::File file;
  REQUIRE(file.ParseFromString(bytes));
  CHECK(file.GetReflection()->GetUnknownFields(file).empty());
  CHECK(file.magic() == kPbMagic);
  CHECK(file.version() == kPbVersion);
  CHECK(file.module_xxh64() != 0);
  CHECK(file.counts().graphs() == 1);
  CHECK(file.counts().nodes() == 2);
  CHECK(file.counts().strings() == 3);
  CHECK(file.counts().storages() == 4);
  CHECK(file.module().name() == 1);
  CHECK(file.SerializeAsString() == bytes);
}

}  // namespace
}  // namespace fxopt
