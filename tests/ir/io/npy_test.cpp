// .npy files: numpy's own output, and malformed files.

#include "ir/io/npy.h"

#include <random>

#include "tests/catch.h"

namespace fxopt {
namespace {

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string text = std::string("\x93NUMPY", 6) + version + '\0';
  text += static_cast<char>(header.size() % 256);
  text += static_cast<char>(header.size() / 256);
  if (version > 1) text += std::string(2, '\0');
  return text + header + data;
}

Result<SafetensorsTensor> parse(const std::string& text) { return parse_npy(std::as_bytes(std::span(text)), "x.npy"); }

const std::string kHeader = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n";
const std::string kData(24, '\1');

TEST_CASE("npy: arrays that numpy writes") {
  for (const char version : {'\1', '\2', '\3'}) {
    const std::string text = npy(kHeader, kData, version);
    const SafetensorsTensor tensor = parse(text).value();
    CHECK(tensor.dtype == DType::kFloat32);
    CHECK(tensor.sizes == std::vector<int64_t>{2, 3});
    CHECK(tensor.bytes.size() == 24);
  }
  const std::string scalar = npy("{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n", std::string(8, '\0'));
  CHECK(parse(scalar)->sizes.empty());
  const std::string row = npy("{'descr': '|b1', 'fortran_order': True, 'shape': (5,), }\n", std::string(5, '\0'));
  CHECK(parse(row)->sizes == std::vector<int64_t>{5});
  const std::string empty = npy("{'shape': (0, 9223372036854775807), 'descr': \"<f8\", 'fortran_order': False}\n", "");
  CHECK(parse(empty)->bytes.empty());
}

TEST_CASE("npy: what is not one, or not whole, is refused with the reason") {
  const auto code = [](const std::string& text) {
    const Result<SafetensorsTensor> tensor = parse(text);
    return tensor.ok() ? std::string("ok") : code_name(tensor.error().code);
  };
  const auto with = [&](const std::string& header) { return code(npy(header, kData)); };
  CHECK(code("") == "FX0301");
  CHECK(code("PK\3\4 an archive, .npz") == "FX0301");
  CHECK(code(npy(kHeader, kData, 4)) == "FX0302");
  CHECK(code(npy(kHeader, kData).substr(0, 9)) == "FX0305");
  CHECK(code(npy(kHeader, kData).substr(0, 40)) == "FX0305");
  CHECK(code(npy(kHeader, kData.substr(1))) == "FX0305");
  CHECK(code(npy(kHeader, kData + "x")) == "FX0312");
  CHECK(with("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}") == "FX0311");
  CHECK(with("{'descr': '|V2', 'fortran_order': False, 'shape': (2, 6)}") == "FX0311");
  CHECK(with("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}") == "FX0311");
  CHECK(with("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}") == "FX0309");
  for (const char* header : {"", "{", "{}", "[1]", "{'descr': '<f4', 'shape': (2, 3)}",
                             "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
                             "{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}"}) {
    CAPTURE(header);
    CHECK(with(header) == "FX0304");
  }
}

TEST_CASE("npy: mutations are read or refused, and nothing beyond the file is") {
  std::mt19937 dice(1);
  const std::string text = npy(kHeader, kData);
  size_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string other = text;
    for (size_t k = 0; k <= dice() % 3; ++k) other[dice() % other.size()] = static_cast<char>(dice());
    if (dice() % 4 == 0) other.resize(dice() % other.size());
    const std::vector<char> exact(other.begin(), other.end());  // no byte follows
    const Result<SafetensorsTensor> tensor = parse_npy(std::as_bytes(std::span(exact)), "x.npy");
    refused += tensor.ok() ? 0 : 1;
    if (!tensor.ok()) CHECK_FALSE(tensor.error().message.empty());
  }
  CHECK(refused > 10000);
}

}  // namespace
}  // namespace fxopt
