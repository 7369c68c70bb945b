// Fields of a newer schema survive, at every level.
#include "ir/io/pb_unknown.h"

#include <string>

#include "fxgraph.pb.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include "ir/io/io.h"
#include "ir/io/pb_envelope.h"
#include "tests/catch.h"
#include "tests/ir/sample_module.h"
#include "tests/must.h"

namespace fxopt {
namespace {

// Adds an unknown field to `message` and to every message inside. Returns their number.
int add_unknown(google::protobuf::Message& message, int number) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  google::protobuf::UnknownFieldSet& unknown = *reflection.MutableUnknownFields(&message);
  if (number % 3 == 0) unknown.AddGroup(5000)->AddVarint(1, static_cast<uint64_t>(number));
  if (number % 3 == 1) unknown.AddLengthDelimited(5001, "bytes of " + std::to_string(number));
  unknown.AddVarint(6000 + number, 1);
  int added = 1;
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr) continue;
    if (!field->is_repeated()) added += add_unknown(*reflection.MutableMessage(&message, field), number + added);
    for (int i = 0; field->is_repeated() && i < reflection.FieldSize(message, field); ++i) {
      added += add_unknown(*reflection.MutableRepeatedMessage(&message, field, i), number + added);
    }
  }
  return added;
}

struct Newer {
  std::string bytes;
  int fields = 0;
};

// The sample module as written by a newer version.
Newer make_newer() {
  schema::File file;
  REQUIRE(file.ParseFromString(*print_pb(*make_sample_module())));
  Newer newer;
  newer.fields = add_unknown(*file.mutable_module(), 0);
  const PbCounts counts{file.counts().graphs(), file.counts().nodes(), file.counts().strings(),
                        file.counts().storages()};
  newer.bytes = *write_envelope(counts, {file.module().SerializeAsString()});
  return newer;
}

TEST_CASE("unknown fields in every message come back where they were", "[pb]") {
  const Newer newer = make_newer();
  CHECK(newer.fields > 200);
  CHECK((must(print_pb(*must(parse_pb(newer.bytes, "newer.pb")))) == newer.bytes));
}

TEST_CASE("unknown fields come through JSON", "[json]") {
  const Newer newer = make_newer();
  const std::string json = print_json(*parse_pb(newer.bytes, "newer.pb").value()).value();
  CHECK((*print_pb(*must(parse_json(json, "newer.json"))) == newer.bytes));
}

TEST_CASE("a fragment holds nothing but unknown fields", "[pb]") {
  schema::Arg arg;
  arg.mutable_list()->add_items()->set_int_value(1);
  arg.mutable_list()->set_type(3);
  CHECK(unknown_fragment(arg).empty());
  google::protobuf::UnknownFieldSet& unknown = *arg.list().GetReflection()->MutableUnknownFields(arg.mutable_list());
  unknown.AddVarint(99, 7);
  schema::Arg expected;
  expected.mutable_list()->GetReflection()->MutableUnknownFields(expected.mutable_list())->AddVarint(99, 7);
  CHECK(unknown_fragment(arg) == expected.SerializeAsString());

  schema::Arg target;
  target.mutable_list();
  CHECK(restore_unknown(target, unknown_fragment(arg)));
  CHECK(target.SerializeAsString() == expected.SerializeAsString());
}

TEST_CASE("a fragment whose place is gone is dropped, one that is none is refused", "[pb]") {
  schema::Arg fragment;
  fragment.mutable_list()->GetReflection()->MutableUnknownFields(fragment.mutable_list())->AddVarint(99, 7);
  schema::Arg number;
  number.set_int_value(4);
  CHECK(restore_unknown(number, fragment.SerializeAsString()));
  CHECK(number.int_value() == 4);
  CHECK_FALSE(restore_unknown(number, number.SerializeAsString()));
  CHECK_FALSE(restore_unknown(number, "\xFF"));
}

}  // namespace
}  // namespace fxopt
