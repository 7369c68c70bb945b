#include "ir/io/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "tests/catch.h"
#include "tests/core/temp_folder.h"
#include "tests/count.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/safetensors_laws.h"

namespace fxopt {
namespace {

constexpr const char* kFile = "case.safetensors";

const std::vector<std::pair<DType, std::string>>& format_dtypes() {
  static const std::vector<std::pair<DType, std::string>> kAll = {
      {DType::kBool, "BOOL"},
      {DType::kUint8, "U8"},
      {DType::kInt8, "I8"},
      {DType::kUint16, "U16"},
      {DType::kInt16, "I16"},
      {DType::kUint32, "U32"},
      {DType::kInt32, "I32"},
      {DType::kUint64, "U64"},
      {DType::kInt64, "I64"},
      {DType::kFloat16, "F16"},
      {DType::kBfloat16, "BF16"},
      {DType::kFloat32, "F32"},
      {DType::kFloat64, "F64"},
      {DType::kComplex64, "C64"},
      {DType::kFloat8E4m3fn, "F8_E4M3"},
      {DType::kFloat8E5m2, "F8_E5M2"},
      {DType::kFloat8E4m3fnuz, "F8_E4M3FNUZ"},
      {DType::kFloat8E5m2fnuz, "F8_E5M2FNUZ"},
      {DType::kFloat8E8m0fnu, "F8_E8M0"},
      {DType::kFloat4E2m1fnX2, "F4"},
  };
  return kAll;
}

// Tensors that own their bytes.
class Tensors {
 public:
  void add(std::string name, DType dtype, std::vector<int64_t> sizes) {
    size_t count = static_cast<size_t>(element_size(dtype));
    for (const int64_t size : sizes) count *= static_cast<size_t>(size);
    std::vector<std::byte>& bytes = storage_.emplace_back(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(next_++ * 37 % 251);
    list_.push_back({std::move(name), dtype, std::move(sizes), bytes});
  }
  std::vector<SafetensorsTensor>& list() { return list_; }

 private:
  std::vector<std::vector<std::byte>> storage_;  // moving a vector keeps its address
  std::vector<SafetensorsTensor> list_;
  unsigned next_ = 1;
};

// A file with exactly this header and `data_bytes` zero bytes of data.
std::string file_of(std::string_view header, size_t data_bytes) {
  std::string file;
  for (size_t i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> 8 * i & 0xff);
  return file + std::string(header) + std::string(data_bytes, '\0');
}

// Copies the bytes to memory of exactly their size, so that a sanitizer detects a read beyond the
// end.
std::vector<std::byte> exact(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// Reads the file and checks the invariants. Returns the error, or code kInternal if the file is
// accepted.
Error read(std::string_view file, const SafetensorsLimits& limits = {}) {
  const std::vector<std::byte> bytes = exact(file);
  const Result<Safetensors> result = parse_safetensors(bytes, kFile, limits);
  CHECK(broken_law(bytes, kFile, result) == "");
  return result.ok() ? Error{} : result.error();
}

bool accepts(std::string_view file, const SafetensorsLimits& limits = {}) {
  const Error error = read(file, limits);
  UNSCOPED_INFO(format_error(error));
  return error.code == ErrorCode::kInternal;
}
bool accepts(std::string_view header, size_t data_bytes) { return accepts(file_of(header, data_bytes)); }

// The error of a header, as "FX0311 where: message", or "accepted".
std::string refusal(std::string_view file, const SafetensorsLimits& limits = {}) {
  const Error error = read(file, limits);
  if (error.code == ErrorCode::kInternal) return "accepted";
  const std::string place = error.where.has_byte ? "byte " + std::to_string(error.where.byte) : error.where.field;
  return code_name(error.code) + " " + place + ": " + error.message;
}
std::string refusal(std::string_view header, size_t data_bytes) { return refusal(file_of(header, data_bytes)); }

// A header with one tensor w and these texts as its fields.
std::string header_of(const std::string& shape, const std::string& offsets, const std::string& dtype = "U8") {
  return "{\"w\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
}

TEST_CASE("safetensors: every dtype of the format is read back as it was written", "[safetensors]") {
  Tensors tensors;
  for (const auto& [dtype, name] : format_dtypes()) tensors.add("t." + name, dtype, {3, 2});
  const std::string bytes = print_safetensors(tensors.list()).value();
  const Safetensors content = parse_safetensors(bytes_of(bytes), kFile).value();
  REQUIRE(content.tensors().size() == format_dtypes().size());
  for (size_t i = 0; i < tensors.list().size(); ++i) {
    const SafetensorsTensor& expected = tensors.list()[i];
    const SafetensorsTensor& actual = content.tensors()[i];
    CHECK(actual.name == expected.name);
    CHECK(actual.dtype == expected.dtype);
    CHECK(actual.sizes == expected.sizes);
    CHECK(std::equal(actual.bytes.begin(), actual.bytes.end(), expected.bytes.begin(), expected.bytes.end()));
    CHECK(bytes.find("\"dtype\":\"" + format_dtypes()[i].second + "\"") != std::string::npos);
    // Each offset is a multiple of the element size.
    CHECK(static_cast<uint64_t>(actual.bytes.data() - bytes_of(bytes).data()) %
              static_cast<uint64_t>(element_size(actual.dtype)) ==
          0);
  }
  CHECK(bytes.find("[3,4]") != std::string::npos);  // F4: the format counts single values
}

TEST_CASE("safetensors: the header lists tensors as given, data is ordered by element size", "[safetensors]") {
  Tensors tensors;
  tensors.add("b", DType::kUint8, {1});
  tensors.add("z", DType::kFloat32, {1});
  tensors.add("a", DType::kInt32, {1});
  tensors.add("c", DType::kFloat64, {});
  const std::string expected =
      "{\"__metadata__\":{\"k\":\"v\"},\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[16,17]},"
      "\"z\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
      "\"a\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[12,16]},"
      "\"c\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}}";
  const std::string bytes = print_safetensors(tensors.list(), {{"k", "v"}}).value();
  CHECK(bytes.substr(8, expected.size()) == expected);
  const size_t data = bytes.size() - 17;
  CHECK(data % 8 == 0);
  CHECK(bytes.substr(8 + expected.size(), data - 8 - expected.size()) == std::string(data - 8 - expected.size(), ' '));
  CHECK(static_cast<unsigned char>(bytes[0]) + 256 * bytes[1] == static_cast<int>(data - 8));
  CHECK(print_safetensors(tensors.list(), {{"k", "v"}}).value() == bytes);
}

// These bytes come from the reference implementation's own tests.
TEST_CASE("safetensors: files without tensors are those of the reference", "[safetensors]") {
  CHECK(print_safetensors({}).value() == std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  CHECK(print_safetensors({}, {{"framework", "pt"}}).value() ==
        std::string("\x28\0\0\0\0\0\0\0{\"__metadata__\":{\"framework\":\"pt\"}}     ", 48));
  CHECK(accepts("{}", 0));
  CHECK(accepts("{}   \n\t ", 0));
  CHECK(accepts("{\"__metadata__\":{}}", 0));
}

TEST_CASE("safetensors: names, metadata and shapes of every kind come back from a file", "[safetensors]") {
  const TempFolder folder;
  Tensors tensors;
  tensors.add("scalar", DType::kInt64, {});
  tensors.add("nothing", DType::kFloat32, {0});
  tensors.add("no rows", DType::kBfloat16, {0, 5});
  tensors.add("no columns", DType::kFloat4E2m1fnX2, {7, 0});
  tensors.add("\"quoted\" \\ \n\t\x01 \xc3\xa9 \xf0\x9f\x98\x80", DType::kUint8, {3});
  tensors.add(std::string("zero \0 byte", 11), DType::kBool, {1, 1, 1});
  tensors.add("__metadata", DType::kInt8, std::vector<int64_t>(64, 1));
  const SafetensorsMetadata metadata = {{"", ""}, {"format", "pt"}, {"k\n", "\xc3\xa9 \"\\"}};
  REQUIRE(save_safetensors(folder / "a.safetensors", tensors.list(), metadata).ok());
  SafetensorsFile loaded = load_safetensors(folder / "a.safetensors").value();
  const SafetensorsFile file = std::move(loaded);  // moving keeps the spans valid
  CHECK(file.content.metadata() == metadata);
  REQUIRE(file.content.tensors().size() == tensors.list().size());
  for (const SafetensorsTensor& expected : tensors.list()) {
    const SafetensorsTensor* const actual = file.content.find(expected.name);
    REQUIRE(actual != nullptr);
    CHECK(actual->sizes == expected.sizes);
    CHECK(std::equal(actual->bytes.begin(), actual->bytes.end(), expected.bytes.begin(), expected.bytes.end()));
  }
  for (const char* name : {"", "scala", "scalar ", "__metadata__", "zero "}) CHECK(file.content.find(name) == nullptr);
  const Result<std::string> printed = print_safetensors(tensors.list(), metadata);
  CHECK(read_file(folder / "a.safetensors").value() == printed.value());
  CHECK(folder.num_entries() == 1);

  // Rewrites a file from its own mapping.
  REQUIRE(save_safetensors(folder / "a.safetensors", file.content.tensors(), {}).ok());
  CHECK(load_safetensors(folder / "a.safetensors")->content.metadata().empty());
}

TEST_CASE("safetensors: many tensors are found by name", "[safetensors]") {
  Tensors tensors;
  for (int i = 0; i < 20000; ++i) tensors.add("layer." + std::to_string(i * 7919 % 20000), DType::kUint16, {i % 3});
  const std::string bytes = print_safetensors(tensors.list()).value();
  const Result<Safetensors> content = parse_safetensors(bytes_of(bytes), kFile);
  CHECK(broken_law(bytes_of(bytes), kFile, content) == "");
  CHECK(content->tensors().size() == 20000);
}

TEST_CASE("safetensors: data may lie in any order and at any address", "[safetensors]") {
  const std::string header =
      "{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[3,11]}, \"b\":{\"data_offsets\":[0,3],\"shape\":[3],"
      "\"dtype\":\"U8\"}}";
  REQUIRE(header.size() % 8 != 0);
  std::string file = file_of(header, 11);
  const double value = 1.5;
  std::memcpy(file.data() + file.size() - 8, &value, 8);
  const Safetensors content = parse_safetensors(bytes_of(file), kFile).value();
  CHECK(content.tensors().front().name == "a");  // as in the header
  double read_back = 0;
  std::memcpy(&read_back, content.find("a")->bytes.data(), 8);
  CHECK(read_back == value);
}

TEST_CASE("safetensors: a file that ends inside its head is truncated", "[safetensors]") {
  CHECK(refusal("") == "FX0305 byte 0: the file ends after 0 bytes, inside the header's length");
  const std::string file = file_of("{}", 0);
  CHECK(refusal(file.substr(0, 7)) == "FX0305 byte 7: the file ends after 7 bytes, inside the header's length");
  CHECK(refusal(file.substr(0, 9)) == "FX0305 byte 9: the file ends inside its header, which has 2 bytes");
  CHECK(accepts(file));
  CHECK(refusal(std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10)) ==
        "FX0309 byte 0: the header has 100000001 bytes, above the limit of 100000000");
  CHECK(refusal(std::string("\x00\xe1\xf5\x05\0\0\0\0{}", 10)) ==
        "FX0305 byte 10: the file ends inside its header, which has 100000000 bytes");
  CHECK(refusal(std::string(8, '\xff') + "{}").starts_with("FX0309 byte 0: the header has 18446744073709551615 bytes"));
}

TEST_CASE("safetensors: limits hold on both sides", "[safetensors]") {
  SafetensorsLimits limits;
  limits.max_header_bytes = 50;
  CHECK(accepts(file_of("{}" + std::string(48, ' '), 0), limits));
  CHECK(refusal(file_of("{}" + std::string(49, ' '), 0), limits) ==
        "FX0309 byte 0: the header has 51 bytes, above the limit of 50");

  limits = {};
  limits.max_tensors = 2;
  Tensors tensors;
  tensors.add("a", DType::kUint8, {1});
  tensors.add("b", DType::kUint8, {1});
  CHECK(accepts(print_safetensors(tensors.list()).value(), limits));
  tensors.add("c", DType::kUint8, {1});
  CHECK(refusal(print_safetensors(tensors.list()).value(), limits) == "FX0309 \"c\": the file has more than 2 tensors");

  const auto ones = [](int rank) {
    std::string text = "[1";
    for (int i = 1; i < rank; ++i) text += ",1";
    return text + "]";
  };
  CHECK(accepts(header_of(ones(64), "[0,1]"), 1));
  CHECK(refusal(header_of(ones(65), "[0,1]"), 1) == "FX0309 \"w\".shape[64]: more than 64 sizes");
}

TEST_CASE("safetensors: a header of 100 MB is read, one byte more is not", "[safetensors]") {
  std::string header = "{\"__metadata__\":{\"k\":\"" + std::string(99'999'900, 'x') + "\"}}";
  header.resize(100'000'000, ' ');
  CHECK(parse_safetensors(bytes_of(file_of(header, 0)), kFile).ok());
  header += ' ';
  CHECK(parse_safetensors(bytes_of(file_of(header, 0)), kFile).error().code == ErrorCode::kLimit);
  // Messages stay short, and nesting uses no stack.
  for (const std::string& text :
       {"{\"" + std::string(1'000'000, 'x'), "{\"w\":" + std::string(1'000'000, '['), "{" + std::string(1'000'000, '{'),
        "{\"w\":{\"" + std::string(1'000'000, 'x') + "\":1}}", "{\"" + std::string(1'000'000, 'x') + "\":1}"}) {
    CHECK(refusal(text, 0).size() < 500);
  }
}

TEST_CASE("safetensors: a header that is not a JSON object is malformed", "[safetensors]") {
  for (const std::string_view header : {"", " {}", "[]", "1", "\"w\"", "null", "\xef\xbb\xbf{}"}) {
    CHECK(refusal(header, 0) == "FX0304 byte 8: the header does not begin with '{'");
  }
  CHECK(refusal("{", 0).starts_with("FX0304 byte 9: the header is not JSON: syntax error"));
  CHECK(refusal("{}}", 0).starts_with("FX0304 byte 10: the header is not JSON: syntax error"));
  CHECK(refusal("{\"__metadata__\":{},}", 0).starts_with("FX0304 byte 27: the header is not JSON: syntax error"));
  CHECK(refusal("{'w':1}", 0).starts_with("FX0304 byte 9: the header is not JSON"));
  CHECK(refusal("{}//", 0).starts_with("FX0304 byte 10: the header is not JSON"));
  CHECK(refusal(std::string_view("{}\0\0", 4), 0) == "FX0304 byte 10: the header contains a zero byte");
  CHECK(refusal(std::string_view("{\"\0\":1}", 7), 0) == "FX0304 byte 10: the header contains a zero byte");
  CHECK(refusal("{\"__metadata__\":{\"k\":\"\\ud800\"}}", 0).starts_with("FX0304 byte "));
  CHECK(accepts("{\"__metadata__\":{\"k\":\"\\ud83d\\ude00\\u0000\"}}", 0));
  CHECK(refusal("{\"__metadata__\":{\"k\":1e999}}", 0).starts_with("FX0304 byte "));
}

TEST_CASE("safetensors: a header that is not UTF-8 is malformed", "[safetensors]") {
  const auto with_text = [](std::string_view text) {
    return "{\"__metadata__\":{\"k\":\"" + std::string(text) + "\"}}";
  };
  CHECK(accepts(with_text("\xc3\xa9 \xef\xbf\xbf \xf4\x8f\xbf\xbf"), 0));
  for (const std::string_view text : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3"}) {
    CHECK(refusal(with_text(text), 0) == "FX0304 byte 30: the header is not UTF-8");
  }
}

TEST_CASE("safetensors: nothing may occur twice", "[safetensors]") {
  const std::string record = "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
  CHECK(accepts("{\"a\":" + record + ",\"A\":" + record + "}", 0));
  CHECK(refusal("{\"a\":" + record + ",\"b\":" + record + ",\"a\":" + record + "}", 0) ==
        "FX0308 \"a\": two tensors have this name");
  CHECK(refusal("{\"a\":" + record + ",\"\\u0061\":" + record + "}", 0) == "FX0308 \"a\": two tensors have this name");
  CHECK(refusal("{\"__metadata__\":{},\"__metadata__\":{}}", 0) ==
        "FX0308 \"__metadata__\": the header has this key twice");
  CHECK(accepts("{\"__metadata__\":{\"k\":\"1\",\"K\":\"1\"}}", 0));
  CHECK(refusal("{\"__metadata__\":{\"k\":\"1\",\"k\":\"1\"}}", 0) ==
        "FX0308 __metadata__.\"k\": the metadata has this key twice");
  for (const std::string field : {"\"dtype\":\"U8\"", "\"shape\":[0]", "\"data_offsets\":[0,0]"}) {
    CHECK(
        refusal("{\"a\":{" + field + "," + record.substr(1) + "}", 0).starts_with("FX0308 \"a\": the record has the"));
  }
}

TEST_CASE("safetensors: a record has its three keys and no other", "[safetensors]") {
  CHECK(accepts(header_of("[2]", "[0,2]"), 2));
  CHECK(refusal("{\"w\":{}}", 0) == "FX0311 \"w\": the record has no \"dtype\"");
  CHECK(refusal("{\"w\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}", 0) == "FX0311 \"w\": the record has no \"shape\"");
  CHECK(refusal("{\"w\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0) == "FX0311 \"w\": the record has no \"data_offsets\"");
  CHECK(refusal("{\"w\":{\"dtype\":\"U8\",\"size\":1}}", 0) == "FX0311 \"w\": the record has the unknown key \"size\"");
  CHECK(refusal("{\"\":{}}", 0) == "FX0311 \"\": the name of a tensor is empty");
  CHECK(refusal(header_of("[2]", "[0]"), 2) ==
        "FX0311 \"w\".data_offsets[1]: the list must have two offsets, but has 1");
  CHECK(refusal(header_of("[2]", "[0,2,2]"), 2) == "FX0311 \"w\".data_offsets[2]: more than two offsets");
}

TEST_CASE("safetensors: a value of another kind is refused at its place", "[safetensors]") {
  const std::vector<std::string> values = {"null", "true", "1", "-1", "1.0", "1e2", "\"x\"", "[]", "[[]]", "{}"};
  for (const std::string& value : values) {
    INFO(value);
    if (value != "{}") CHECK(refusal("{\"w\":" + value + "}", 0).starts_with("FX0311 \"w\": "));
    if (value != "{}") CHECK(refusal("{\"__metadata__\":" + value + "}", 0).starts_with("FX0311 \"__metadata__\": "));
    if (value != "\"x\"") {
      CHECK(refusal("{\"__metadata__\":{\"k\":" + value + "}}", 0).starts_with("FX0311 __metadata__.\"k\": "));
      CHECK(refusal("{\"w\":{\"dtype\":" + value + "}}", 0).starts_with("FX0311 \"w\".dtype: "));
    }
    if (value[0] != '[') {
      CHECK(refusal(header_of(value, "[0,0]"), 0).starts_with("FX0311 \"w\".shape: "));
      CHECK(refusal(header_of("[0]", value), 0).starts_with("FX0311 \"w\".data_offsets: "));
    }
    if (value != "1") {
      CHECK(refusal(header_of("[0," + value + "]", "[0,0]"), 0).starts_with("FX0311 \"w\".shape[1]: "));
      CHECK(refusal(header_of("[0]", "[0," + value + "]"), 0).starts_with("FX0311 \"w\".data_offsets[1]: "));
    }
  }
  CHECK(refusal(header_of("[-1]", "[0,0]"), 0) == "FX0311 \"w\".shape[0]: the size -1 is negative");
  CHECK(refusal(header_of("[-0]", "[0,0]"), 0) == "FX0311 \"w\".shape[0]: the size -0 is negative");
  CHECK(refusal(header_of("[0]", "[-8,0]"), 0) == "FX0311 \"w\".data_offsets[0]: the offset -8 is negative");
}

TEST_CASE("safetensors: dtypes without a counterpart are refused by name", "[safetensors]") {
  for (const char* name : {"F6_E2M3", "F6_E3M2", "F128", "f32", "", "F32 "}) {
    const Error error = read(file_of(header_of("[0]", "[0,0]", name), 0));
    CHECK(error.code == ErrorCode::kBadValue);
    CHECK(error.message == "the dtype \"" + std::string(name) + "\" is not supported");
    CHECK(error.where.field == "\"w\".dtype");
  }
  CHECK(read(file_of(header_of("[0]", "[0,0]", "BF61"), 0)).hint == "did you mean 'BF16'?");
  // Two values of four bits share a byte.
  CHECK(accepts(header_of("[3,2]", "[0,3]", "F4"), 3));
  const std::string refused = "FX0311 \"w\".shape: the last size of an F4 tensor is not a multiple of 2";
  CHECK(refusal(header_of("[2,3]", "[0,3]", "F4"), 3) == refused);
  CHECK(refusal(header_of("[]", "[0,1]", "F4"), 1) == refused);
}

TEST_CASE("safetensors: a shape has less than 2^63 bytes", "[safetensors]") {
  const std::string refused = "FX0309 \"w\".shape: the shape has 2^63 bytes or more";
  CHECK(refusal(header_of("[9223372036854775807]", "[0,9223372036854775807]"), 1) ==
        "FX0305 \"w\".data_offsets: the data ends at 9223372036854775807, but the file has only 1 bytes of data");
  CHECK(refusal(header_of("[9223372036854775808]", "[0,0]"), 0) ==
        "FX0309 \"w\".shape[0]: the size 9223372036854775808 needs more than 63 bits");
  CHECK(refusal(header_of("[18446744073709551616]", "[0,0]"), 0) ==
        "FX0311 \"w\".shape[0]: the number 18446744073709551616 in place of a size");
  CHECK(refusal(header_of("[4294967296,4294967296]", "[0,0]"), 0) == refused);  // 2^64, 0 in 64 bits
  CHECK(refusal(header_of("[4294967296,2147483648]", "[0,0]"), 0) == refused);  // 2^63
  CHECK(refusal(header_of("[4611686018427387904]", "[0,0]", "U16"), 0) == refused);
  // Strides of a tensor without elements must fit as well.
  CHECK(accepts(header_of("[0,4294967296,2147483647]", "[0,0]"), 0));
  CHECK(refusal(header_of("[0,4294967296,2147483648]", "[0,0]"), 0) == refused);
}

TEST_CASE("safetensors: offsets enclose the bytes of the shape", "[safetensors]") {
  CHECK(accepts(header_of("[2,3]", "[0,24]", "F32"), 24));
  CHECK(refusal(header_of("[2,3]", "[0,23]", "F32"), 23) ==
        "FX0312 \"w\".data_offsets: the offsets enclose 23 bytes, but the shape and dtype need 24");
  CHECK(refusal(header_of("[2,3]", "[0,25]", "F32"), 25) ==
        "FX0312 \"w\".data_offsets: the offsets enclose 25 bytes, but the shape and dtype need 24");
  CHECK(refusal(header_of("[2,3]", "[24,0]", "F32"), 24) ==
        "FX0311 \"w\".data_offsets: the data begins at 24 and ends at 0");
  CHECK(refusal(header_of("[1]", "[0,18446744073709551615]"), 1) ==
        "FX0312 \"w\".data_offsets: the offsets enclose 18446744073709551615 bytes, but the shape and dtype need 1");
  CHECK(refusal(header_of("[1]", "[18446744073709551614,18446744073709551615]"), 1)
            .starts_with("FX0305 \"w\".data_offsets: the data ends at 18446744073709551615"));
  CHECK(refusal(header_of("[2,3]", "[0,24]", "F32"), 23) ==
        "FX0305 \"w\".data_offsets: the data ends at 24, but the file has only 23 bytes of data");
  const std::string header = header_of("[2,3]", "[0,24]", "F32");
  CHECK(refusal(header, 25) ==
        "FX0312 byte " + std::to_string(8 + header.size() + 24) + ": 1 bytes follow the last tensor");
  CHECK(refusal("{}", 1) == "FX0312 byte 10: 1 bytes follow the last tensor");
}

TEST_CASE("safetensors: tensors cover the data once", "[safetensors]") {
  const auto two = [](int begin, int end, int first = 0, int first_end = 4) {
    const auto record = [](int from, int to) {
      return "{\"dtype\":\"U8\",\"shape\":[" + std::to_string(to - from) + "],\"data_offsets\":[" +
             std::to_string(from) + "," + std::to_string(to) + "]}";
    };
    return "{\"a\":" + record(first, first_end) + ",\"b\":" + record(begin, end) + "}";
  };
  CHECK(accepts(two(4, 8), 8));
  CHECK(refusal(two(5, 8), 8) ==
        "FX0311 \"b\".data_offsets: the data begins at 5: bytes 4 to 4 before it belong to no tensor");
  CHECK(refusal(two(3, 8), 8) == "FX0311 \"b\".data_offsets: the data begins at 3, before the data of \"a\" ends at 4");
  CHECK(refusal(two(0, 4), 4) == "FX0311 \"b\".data_offsets: the data begins at 0, before the data of \"a\" ends at 4");
  CHECK(refusal(two(5, 8, 1, 5), 8) ==
        "FX0311 \"a\".data_offsets: the data begins at 1: bytes 0 to 0 before it belong to no tensor");
  // Empty tensors are accepted between others.
  for (const int place : {0, 4}) CHECK(accepts(two(place, place), 4));
  CHECK(refusal(two(2, 2), 4) == "FX0311 \"b\".data_offsets: the data begins at 2, before the data of \"a\" ends at 4");
  CHECK(refusal(two(5, 5), 4).starts_with("FX0305 \"b\""));
  CHECK(refusal(two(5, 5), 5) ==
        "FX0311 \"b\".data_offsets: the data begins at 5: bytes 4 to 4 before it belong to no tensor");
}

TEST_CASE("safetensors: the writer refuses what the format cannot hold", "[safetensors]") {
  const TempFolder folder;
  const std::string path = folder / "a.safetensors";
  const auto message = [&](std::vector<SafetensorsTensor>& tensors, const SafetensorsMetadata& metadata = {}) {
    const Status status = save_safetensors(path, tensors, metadata);
    if (status.ok()) return std::string("written");
    CHECK(status.error().code == ErrorCode::kFileWrite);
    CHECK(status.error().where.file == path);
    CHECK_FALSE(status.error().hint.empty());
    CHECK(folder.num_entries() == 0);
    return status.error().where.field + ": " + status.error().message;
  };
  for (const std::string name : {"", "__metadata__", "\xff"}) {
    Tensors tensors;
    tensors.add(name, DType::kUint8, {1});
    CHECK(message(tensors.list()).ends_with("a safetensors file cannot have a tensor of this name"));
  }
  size_t num_refused = 0;
  for (const EnumName<DType>& row : EnumNames<DType>::kAll) {
    const bool is_known = std::any_of(format_dtypes().begin(), format_dtypes().end(),
                                      [&](const auto& pair) { return pair.first == row.value; });
    if (is_known) continue;
    Tensors tensors;
    tensors.add("w", row.value, {1});
    CHECK(message(tensors.list()) == "\"w\": safetensors files have no dtype for " + std::string(row.name));
    ++num_refused;
  }
  CHECK(num_refused == 8);
  Tensors twice;
  twice.add("w", DType::kUint8, {1});
  twice.add("v", DType::kUint8, {1});
  twice.add("w", DType::kInt8, {1});
  CHECK(message(twice.list()) == ": two tensors have the name \"w\"");
  Tensors deep;
  deep.add("w", DType::kUint8, std::vector<int64_t>(65, 1));
  CHECK(message(deep.list()) == "\"w\": the tensor has more than 64 dimensions");
  Tensors pair;
  pair.add("w", DType::kFloat4E2m1fnX2, {});
  CHECK(message(pair.list()) == "\"w\": the format cannot express the shape of this float4 tensor");
  pair.list()[0].sizes = {0, int64_t{1} << 62};
  pair.list()[0].bytes = {};
  CHECK(message(pair.list()) == "\"w\": the format cannot express the shape of this float4 tensor");
  Tensors good;
  good.add("w", DType::kUint8, {1});
  CHECK(message(good.list(), {{"\xff", ""}}) == ": the metadata \"\\xff\" is not UTF-8");
  CHECK(message(good.list(), {{"k", "\xff"}}) == ": the metadata \"k\" is not UTF-8");
  CHECK(message(good.list(), {{"k", std::string(100'000'000, 'x')}}).find("above the limit of 100000000") !=
        std::string::npos);
  CHECK(save_safetensors(path + ".zst", good.list()).error().code == ErrorCode::kFileWrite);
  CHECK(save_safetensors(folder / "no/such/a", good.list()).error().code == ErrorCode::kFileWrite);
  good.list()[0].sizes = {2};
  CHECK_THROWS_AS(save_safetensors(path, good.list()), InternalError);
  good.list()[0].sizes = {-1, -1};
  CHECK_THROWS_AS(save_safetensors(path, good.list()), InternalError);
  good.list()[0].sizes = {1};
  CHECK(message(good.list()) == "written");
}

TEST_CASE("safetensors: a file that cannot be mapped is named", "[safetensors]") {
  const TempFolder folder;
  CHECK(load_safetensors(folder / "missing").error().code == ErrorCode::kFileOpen);
  CHECK(load_safetensors("/dev/null").error().code == ErrorCode::kFileRead);
  REQUIRE(write_file(folder / "empty", "").ok());
  const Error empty = load_safetensors(folder / "empty").error();
  CHECK(empty.code == ErrorCode::kTruncated);
  CHECK(empty.where.file == (folder / "empty"));
}

// The mutations' starting files.
std::vector<std::string> base_files() {
  Tensors small;
  small.add("w", DType::kFloat32, {2, 3});
  Tensors empty;
  empty.add("zero", DType::kFloat32, {0, 5});
  empty.add("scalar", DType::kInt64, {});
  empty.add("other", DType::kBool, {0});
  Tensors all;
  for (const auto& [dtype, name] : format_dtypes()) all.add("t." + name, dtype, {1, 2});
  Tensors deep;
  for (int i = 0; i < 6; ++i) {
    deep.add("\xc3\xa9\"\\." + std::to_string(i), DType::kBfloat16, std::vector<int64_t>(static_cast<size_t>(i), 2));
  }
  return {print_safetensors({}).value(), print_safetensors(small.list()).value(),
          print_safetensors(empty.list(), {{"format", "pt"}, {"k", "v"}}).value(),
          print_safetensors(all.list(), {{"a", "\n"}}).value(), print_safetensors(deep.list()).value()};
}

uint64_t header_bytes_of(std::string_view file) {
  uint64_t size = 0;
  for (size_t i = 0; i < 8; ++i) size |= uint64_t{static_cast<unsigned char>(file[i])} << 8 * i;
  return size;
}

// Replaces a number of the header by a neighbour, another number of the header, or a hostile one.
void edit_number(Random& random, std::string& header) {
  std::vector<std::pair<size_t, size_t>> numbers;  // begin, size
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i] < '0' || header[i] > '9') continue;
    size_t end = i;
    while (end < header.size() && header[end] >= '0' && header[end] <= '9') ++end;
    numbers.emplace_back(i, end - i);
    i = end;
  }
  if (numbers.empty()) return;
  static constexpr const char* kHostile[] = {"-1",
                                             "-0",
                                             "1.0",
                                             "1e3",
                                             "00",
                                             "9223372036854775807",
                                             "9223372036854775808",
                                             "18446744073709551615",
                                             "18446744073709551616",
                                             "4294967296",
                                             "[]",
                                             ""};
  const auto [begin, size] = numbers[random.below(numbers.size())];
  const uint64_t number = std::strtoull(header.substr(begin, size).c_str(), nullptr, 10);
  const auto [other, other_size] = numbers[random.below(numbers.size())];
  const uint64_t kind = random.below(4);
  if (kind == 0) header.replace(begin, size, std::to_string(number + random.below(9) - 4));
  if (kind == 1) header.replace(begin, size, header.substr(other, other_size));
  if (kind == 2) header.replace(begin, size, kHostile[random.below(std::size(kHostile))]);
  if (kind == 3) header.replace(begin, size, std::to_string(number) + "," + std::to_string(random.below(3)));
}

// Copies, removes or repeats a range of `text`, or inserts a range of `other`.
void splice(Random& random, std::string& text, std::string_view other) {
  const size_t begin = random.below(text.size() + 1);
  const size_t size = random.below(std::min<size_t>(text.size() - begin, 40) + 1);
  const size_t from = random.below(other.size() + 1);
  const uint64_t kind = random.below(3);
  if (kind == 0) text.erase(begin, size);
  if (kind == 1) text.insert(begin, text.substr(begin, size));
  if (kind == 2) text.replace(begin, size, other.substr(from, random.below(80)));
}

void flip_bit(Random& random, std::string& text) {
  if (text.empty()) return;
  char& byte = text[random.below(text.size())];
  byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1U << random.below(8)));
}

// One to three changes of one kind, to the whole file or to the header with its length corrected.
std::string mutate(Random& random, const std::vector<std::string>& bases) {
  const std::string& base = bases[random.below(bases.size())];
  const std::string& other = bases[random.below(bases.size())];
  const bool is_sealed = random.chance(70);
  const uint64_t header_bytes = header_bytes_of(base);
  std::string text = is_sealed ? base.substr(8, header_bytes) : base;
  const uint64_t kind = random.below(4);
  for (uint64_t i = random.below(3) + 1; i > 0; --i) {
    if (kind == 0) flip_bit(random, text);
    if (kind == 1 && random.chance(50)) text.resize(random.below(text.size() + 1));
    if (kind == 1) text.resize(text.size() + random.below(3), ' ');
    if (kind == 2) splice(random, text, other);
    if (kind == 3) edit_number(random, text);
  }
  if (!is_sealed) return text;
  std::string file = file_of(text, 0) + base.substr(8 + header_bytes);
  if (random.chance(10)) file.resize(file.size() - random.below(std::min<size_t>(file.size(), 4) + 1));
  return file;
}

// FXOPT_MUTATIONS sets the number of files. The number of a mutation determines it.
TEST_CASE("safetensors: mutated files are refused or obey the laws", "[safetensors][fuzz]") {
  const std::vector<std::string> bases = base_files();
  for (const std::string& base : bases) CHECK(accepts(base));
  const uint64_t count = count_given("FXOPT_MUTATIONS", 10000);
  std::map<ErrorCode, uint64_t> refused;
  uint64_t num_loaded = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Random random(seed);
    const std::vector<std::byte> bytes = exact(mutate(random, bases));
    const Result<Safetensors> result = parse_safetensors(bytes, kFile);
    const std::string broken = broken_law(bytes, kFile, result);
    if (!broken.empty()) FAIL_CHECK("mutation " << seed << ": " << broken);
    if (result.ok()) {
      ++num_loaded;
    } else {
      ++refused[result.error().code];
    }
  }
  std::printf("safetensors: %llu loaded", static_cast<unsigned long long>(num_loaded));
  for (const auto& [code, number] : refused) {
    std::printf(", %s %llu", code_name(code).c_str(), static_cast<unsigned long long>(number));
  }
  std::printf("\n");
  CHECK(num_loaded * 50 > count);
  CHECK((count < 10000 || refused.size() == 6));
}

}  // namespace
}  // namespace fxopt
