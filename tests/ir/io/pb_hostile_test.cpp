// Damaged, truncated and malicious files.

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <sys/mman.h>

#include "fxgraph.pb.h"

#include "ir/io/io.h"
#include "ir/io/pb_envelope.h"
#include "tests/catch.h"
#include "tests/fuzz/mutate.h"
#include "tests/ir/sample_module.h"
#include "tests/must.h"

namespace fxopt {
namespace {

using ModuleEdit = std::function<void(schema::Module&)>;

schema::Module chain(size_t num_nodes) {
  schema::File file;
  REQUIRE(file.ParseFromString(*print_pb(*make_chain_module(num_nodes))));
  return file.module();
}

std::string encoded_module(const schema::Module& module) { return seal(module.SerializeAsString()); }

Error error_of(std::string_view bytes, const ReadLimits& limits = {}) {
  const Error error = parse_pb(bytes, "case.pb", limits).error();
  CHECK(error.where.file == "case.pb");
  CHECK_FALSE(error.message.empty());
  return error;
}

// The error for a chain of three nodes after one edit of its message.
Error error_after(const ModuleEdit& edit, const ReadLimits& limits = {}) {
  schema::Module module = chain(3);
  edit(module);
  return error_of(encoded_module(module), limits);
}

schema::Node& node(schema::Module& module, int index) { return *module.mutable_graphs(0)->mutable_nodes(index); }

TEST_CASE("every truncation is rejected", "[pb]") {
  const std::string bytes = *print_pb(*make_sample_module());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Result<std::unique_ptr<Module>> module = parse_pb(std::string_view(bytes).substr(0, size), "case.pb");
    if (module.ok() || module.error().code != ErrorCode::kTruncated) FAIL("read with " << size << " bytes");
  }
}

TEST_CASE("every flip of one bit is rejected", "[pb]") {
  std::string bytes = *print_pb(*make_sample_module());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const char plain = bytes[bit / 8];
    bytes[bit / 8] = static_cast<char>(static_cast<unsigned char>(plain) ^ (1U << (bit % 8)));
    const Result<std::unique_ptr<Module>> module = parse_pb(bytes, "case.pb");
    if (module.ok()) FAIL("read with bit " << bit << " changed");
    if (error_info(module.error().code).exit != ExitCode::kInputRejected) FAIL("bit " << bit << " blames another");
    bytes[bit / 8] = plain;
  }
}

TEST_CASE("other files are told by name", "[pb]") {
  CHECK(error_of("").code == ErrorCode::kTruncated);
  for (const std::string_view bytes :
       {"fxg 0\ngraph @g {}\n", "PK\x03\x04 and so on", "\x1f\x8b\x08 packed", "{}", "\x80\x02}q\x01.",
        "\x0a\x03"
        "abc"}) {
    INFO(bytes);
    const Error error = error_of(bytes);
    CHECK(error.code == ErrorCode::kNotAFile);
    CHECK_FALSE(error.hint.empty());
  }
  CHECK(error_of("PK\x03\x04").hint.find("zip") != std::string::npos);
}

TEST_CASE("the binary form ends at 2 GiB, for reading and writing", "[pb]") {
  constexpr uint64_t kLargest = (uint64_t{1} << 31) - 2;
  CHECK_FALSE(refuse_pb_size(kLargest).has_value());
  REQUIRE(refuse_pb_size(kLargest + 1).has_value());
  CHECK(refuse_pb_size(kLargest + 1)->code == ErrorCode::kFileTooLarge);
  CHECK_FALSE(refuse_pb_size(kLargest + 1)->hint.empty());

  // Reserves address space only: no page is touched.
  void* const space = mmap(nullptr, kLargest + 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(space != MAP_FAILED);
  CHECK(read_envelope({static_cast<const char*>(space), kLargest + 1}).error().code == ErrorCode::kFileTooLarge);
  CHECK(read_envelope({static_cast<const char*>(space), kLargest}).error().code != ErrorCode::kFileTooLarge);
  munmap(space, kLargest + 1);
}

TEST_CASE("the envelope is guarded", "[pb]") {
  const std::string bytes = encoded_module(chain(2));
  schema::File file;
  REQUIRE(file.ParseFromString(bytes));
  const auto after = [&file](const std::function<void(schema::File&)>& edit) {
    schema::File changed = file;
    edit(changed);
    return error_of(changed.SerializeAsString());
  };
  CHECK(after([](schema::File& f) { f.set_magic(1); }).code == ErrorCode::kNotAFile);
  CHECK(after([](schema::File& f) { f.set_version(3); }).code == ErrorCode::kVersion);
  CHECK(after([](schema::File& f) { f.set_version(3); }).message.find("version 3") != std::string::npos);
  CHECK(after([](schema::File& f) { f.set_module_xxh64(1); }).code == ErrorCode::kHashMismatch);
  CHECK(after([](schema::File& f) { f.clear_module(); }).code == ErrorCode::kTruncated);
  CHECK(after([](schema::File& f) { f.mutable_counts()->set_nodes(3); }).code == ErrorCode::kCountMismatch);
  CHECK(after([](schema::File& f) { f.mutable_counts()->set_strings(1); }).code == ErrorCode::kCountMismatch);
  CHECK(after([](schema::File& f) { f.clear_counts(); }).code == ErrorCode::kCountMismatch);
  CHECK(error_of(bytes + "\x30\x01").code == ErrorCode::kMalformed);    // field 6
  CHECK(parse_pb(bytes + std::string("\x10\x00", 2), "case.pb").ok());  // the version, explicit
  CHECK(error_of(bytes + bytes).code == ErrorCode::kMalformed);         // everything twice
}

TEST_CASE("references to nothing name their place", "[pb]") {
  const Error error =
      error_after([](schema::Module& m) { node(m, 2).add_args()->mutable_list()->add_items()->set_node(3); });
  CHECK(error.code == ErrorCode::kBadReference);
  CHECK(error.where.graph == "main");
  CHECK(error.where.node == "n2");
  CHECK(error.where.field == "args[1].list[0]");
  CHECK(error.where.has_byte);
  CHECK(error_after([](schema::Module& m) { node(m, 1).set_target(100); }).where.field == "target");
  CHECK(error_after([](schema::Module& m) { node(m, 1).set_name(100); }).where.node == "#1");
  CHECK(error_after([](schema::Module& m) { node(m, 1).add_control()->set_node(9); }).where.field == "control[0]");
  CHECK(error_after([](schema::Module& m) { node(m, 1).mutable_value()->mutable_tensor()->set_storage(5); }).code ==
        ErrorCode::kBadReference);
  CHECK(error_after([](schema::Module& m) { m.mutable_graphs(0)->set_name(77); }).code == ErrorCode::kBadReference);
  CHECK(error_after([](schema::Module& m) { m.add_symbols()->add_key_path(1000); }).where.field ==
        "symbols[0].key_path[0]");
  CHECK(error_after([](schema::Module& m) { m.mutable_counters()->add_names()->set_graph(1); }).code ==
        ErrorCode::kBadReference);
  CHECK(error_after([](schema::Module& m) { node(m, 0).add_meta()->mutable_value()->set_node(0); }).where.field ==
        "meta[0]");
}

TEST_CASE("names and ids occur once", "[pb]") {
  CHECK(error_after([](schema::Module& m) { node(m, 2).set_name(node(m, 1).name()); }).code ==
        ErrorCode::kDuplicateName);
  CHECK(error_after([](schema::Module& m) { m.add_graphs()->set_name(m.graphs(0).name()); }).code ==
        ErrorCode::kDuplicateName);
  CHECK(error_after([](schema::Module& m) {
          m.add_storages()->set_id(4);
          m.add_storages()->set_id(4);
        }).code == ErrorCode::kDuplicateName);
  CHECK(error_after([](schema::Module& m) {
          m.mutable_counters()->add_names();
          m.mutable_counters()->add_names();
        }).code == ErrorCode::kDuplicateName);
}

TEST_CASE("values that make no sense are rejected", "[pb]") {
  const auto tensor = [](schema::Module& m) -> schema::Tensor& {
    return *node(m, 1).mutable_value()->mutable_tensor();
  };
  CHECK(error_after([&](schema::Module& m) { tensor(m).add_strides(1); }).where.field == "value.tensor.strides");
  CHECK(error_after([&](schema::Module& m) { tensor(m).add_symbolic_sizes()->set_index(0); }).code ==
        ErrorCode::kBadValue);
  CHECK(error_after([&](schema::Module& m) { tensor(m).add_symbolic_sizes()->set_index(7); }).code ==
        ErrorCode::kBadValue);
  CHECK(error_after([&](schema::Module& m) { tensor(m).mutable_offset(); }).code == ErrorCode::kBadValue);
  CHECK(error_after([](schema::Module& m) { node(m, 1).add_args()->set_none(false); }).code == ErrorCode::kBadValue);
  CHECK(error_after([](schema::Module& m) { node(m, 1).add_args()->mutable_slice(); }).where.field == "args[1].slice");
  CHECK(error_after([](schema::Module& m) { node(m, 1).mutable_value()->mutable_dict()->add_keys(0); }).code ==
        ErrorCode::kBadValue);
  CHECK(error_after([](schema::Module& m) { node(m, 1).add_args()->set_expr(0); }).code == ErrorCode::kBadExpression);
  CHECK(error_after([](schema::Module& m) { m.set_strings(0, "x"); }).code == ErrorCode::kBadValue);
  CHECK(error_after([](schema::Module& m) { m.mutable_counters()->set_next_uid(1); }).code == ErrorCode::kBadValue);
  CHECK(error_after([](schema::Module& m) {
          m.add_storages()->mutable_bytes()->set_value(1);
          m.mutable_storages(0)->mutable_bytes()->set_expr(1);
        }).where.field == "storages[0].bytes");
}

TEST_CASE("numbers of enumerations are kept up to 255", "[pb]") {
  schema::Module module = chain(2);
  node(module, 1).set_phase(static_cast<schema::Phase>(255));
  CHECK(static_cast<int>(parse_pb(encoded_module(module), "case.pb").value()->main()[NodeId(1)].phase) == 255);
  for (const int number : {256, -1}) {
    const Error error =
        error_after([number](schema::Module& m) { node(m, 1).set_phase(static_cast<schema::Phase>(number)); });
    CHECK(error.code == ErrorCode::kLimit);
    CHECK(error.where.field == "phase");
  }
  CHECK(error_after([](schema::Module& m) {
          node(m, 1).add_phase_markers(static_cast<schema::PhaseMarker>(32));
        }).code == ErrorCode::kLimit);
}

// An argument of `depth` nested lists or dicts.
void nest(schema::Arg* arg, uint32_t depth, bool in_dicts) {
  for (uint32_t i = 0; i < depth; ++i) {
    if (in_dicts) {
      schema::ArgItem& item = *arg->mutable_dict()->add_items();
      item.mutable_key()->set_none(true);
      arg = item.mutable_value();
    } else {
      arg = arg->mutable_list()->add_items();
    }
  }
  arg->set_int_value(1);
}

TEST_CASE("nesting is limited, at any depth without harm", "[pb]") {
  const ReadLimits limits;
  for (const bool in_dicts : {false, true}) {
    const auto nested = [in_dicts](uint32_t depth) {
      schema::Module module = chain(2);
      nest(node(module, 1).add_args(), depth, in_dicts);
      return encoded_module(module);
    };
    CHECK(parse_pb(nested(limits.max_depth), "case.pb").ok());
    CHECK(error_of(nested(limits.max_depth + 1)).code == ErrorCode::kLimit);
    CHECK(error_of(nested(4000)).code == ErrorCode::kLimit);
  }
  schema::Module module = chain(2);
  schema::Value* value = node(module, 1).mutable_value();
  for (uint32_t i = 0; i <= limits.max_depth; ++i) value = value->mutable_tuple()->add_items();
  CHECK(error_of(encoded_module(module)).code == ErrorCode::kLimit);
}

TEST_CASE("counts and sizes are limited", "[pb]") {
  ReadLimits limits;
  limits.max_nodes = 2;
  CHECK(error_of(encoded_module(chain(3)), limits).code == ErrorCode::kLimit);
  CHECK(parse_pb(encoded_module(chain(2)), "case.pb", limits).ok());
  limits.max_string_bytes = 10;
  schema::Module module = chain(1);
  module.add_strings("10 letters");
  CHECK(parse_pb(encoded_module(module), "case.pb", limits).ok());
  module.add_strings("11 letters!");
  CHECK(error_of(encoded_module(module), limits).code == ErrorCode::kLimit);
  CHECK(error_after([](schema::Module& m) { node(m, 1).set_uid(UINT64_MAX); }).code == ErrorCode::kLimit);
  CHECK(error_after([](schema::Module& m) { m.add_storages()->set_id(UINT64_MAX); }).code == ErrorCode::kLimit);
}

TEST_CASE("malformed bytes behind a good hash name their place", "[pb]") {
  const auto wrap = [](const std::string& module) { return *write_envelope(PbCounts{1, 1, 1, 0}, {module}); };
  const std::string head("\x0a\x00", 2);                           // the empty string
  const std::string graph("\x22\x06\x1a\x04\x22\x05\x08\x01", 8);  // a node whose argument is longer than the node
  const Error error = error_of(wrap(head + graph));
  CHECK(error.code == ErrorCode::kMalformed);
  CHECK(error.where.field == "nodes[0]");
  CHECK(error.where.has_byte);
  CHECK(error_of(wrap(head + std::string("\x22\x7f", 2))).code == ErrorCode::kMalformed);
  CHECK(error_of(wrap(head + std::string("\x07", 1))).code == ErrorCode::kMalformed);
  CHECK(error_of(wrap("\x0a\x01\xff")).code == ErrorCode::kBadValue);
}

// One to four small edits of a module's bytes.
std::string mutate(std::string bytes, std::mt19937_64& random) {
  const auto below = [&random](size_t limit) { return static_cast<size_t>(random() % limit); };
  for (size_t edits = 1 + below(4); edits > 0 && !bytes.empty(); --edits) {
    const size_t at = below(bytes.size());
    const size_t length = std::min(1 + below(8), bytes.size() - at);
    switch (below(4)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, bytes.substr(below(bytes.size()), length));
        break;
      default:
        bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << below(8)));
    }
  }
  return bytes;
}

TEST_CASE("a mutated module behind a good hash is rejected, or loads and is saved alike from then on", "[pb]") {
  const schema::Module sample = [] {
    schema::File file;
    REQUIRE(file.ParseFromString(*print_pb(*make_sample_module())));
    return file.module();
  }();
  const std::string bytes = sample.SerializeAsString();
  const PbCounts counts{2, 13, static_cast<uint64_t>(sample.strings_size()), 2};
  std::mt19937_64 random(1);
  size_t loaded = 0;
  for (int round = 0; round < 5000; ++round) {
    INFO("round " << round);
    const std::string file = *write_envelope(counts, {mutate(bytes, random)});
    const Result<std::unique_ptr<Module>> module = parse_pb(file, "case.pb");
    if (!module.ok()) {
      REQUIRE(error_info(module.error().code).exit == ExitCode::kInputRejected);
      continue;
    }
    ++loaded;
    const std::string saved = print_pb(**module).value();
    REQUIRE((*print_pb(*must(parse_pb(saved, "case.pb"))) == saved));
  }
  CHECK(loaded > 200);
}

}  // namespace
}  // namespace fxopt
