#include "ir/io/npy.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace fxopt {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kMaxHeader = 1 << 20;
constexpr size_t kMaxRank = 64;

constexpr EnumName<DType> kDescrs[] = {{DType::kFloat16, "<f2"},   {DType::kFloat32, "<f4"}, {DType::kFloat64, "<f8"},
                                       {DType::kComplex64, "<c8"}, {DType::kInt16, "<i2"},   {DType::kInt32, "<i4"},
                                       {DType::kInt64, "<i8"},     {DType::kUint16, "<u2"},  {DType::kUint32, "<u4"},
                                       {DType::kUint64, "<u8"},    {DType::kInt8, "|i1"},    {DType::kUint8, "|u1"},
                                       {DType::kBool, "|b1"}};

// The header, a Python dict of three entries in any order.
class Header {
 public:
  explicit Header(std::string_view text) : text_(text) {}

  // Returns false for any other text.
  bool parse() {
    if (!take("{")) return false;
    while (!take("}")) {
      const std::optional<std::string_view> key = quoted();
      if (!key.has_value() || !take(":") || !value_of(*key)) return false;
      take(",");
    }
    skip_spaces();
    return text_.empty() && descr.has_value() && is_fortran.has_value() && shape.has_value();
  }

  std::optional<std::string_view> descr;
  std::optional<bool> is_fortran;
  std::optional<std::vector<int64_t>> shape;

 private:
  bool value_of(std::string_view key) {
    if (key == "descr" && !descr.has_value()) return (descr = quoted()).has_value();
    if (key == "fortran_order" && !is_fortran.has_value()) {
      if (take("True"))
        is_fortran = true;
      else if (take("False"))
        is_fortran = false;
      return is_fortran.has_value();
    }
    return key == "shape" && !shape.has_value() && tuple();
  }

  bool tuple() {
    if (!take("(")) return false;
    std::vector<int64_t> sizes;
    while (!take(")")) {
      skip_spaces();
      int64_t size = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0 || sizes.size() == kMaxRank) return false;
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      sizes.push_back(size);
      skip_spaces();
      if (!take(",") && (text_.empty() || text_.front() != ')')) return false;
    }
    shape = std::move(sizes);
    return true;
  }

  std::optional<std::string_view> quoted() {
    skip_spaces();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return std::nullopt;
    const size_t end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }

  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size())); }

  std::string_view text_;
};

// Returns the number of bytes of an array. Returns nothing for 2^63 bytes or more.
std::optional<uint64_t> bytes_of(const std::vector<int64_t>& sizes, int64_t element) {
  uint64_t bytes = static_cast<uint64_t>(element);
  for (const int64_t size : sizes) {
    if (size == 0) return 0;
  }
  for (const int64_t size : sizes) {
    if (bytes > static_cast<uint64_t>(INT64_MAX) / static_cast<uint64_t>(size)) return std::nullopt;
    bytes *= static_cast<uint64_t>(size);
  }
  return bytes;
}

}  // namespace

Result<SafetensorsTensor> parse_npy(std::span<const std::byte> bytes, const std::string& file) {
  const auto refuse = [&](ErrorCode code, std::string message, std::string hint = "") {
    Error error{code, std::move(message), std::move(hint), {}};
    error.where.file = file;
    return error;
  };
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic))
    return refuse(ErrorCode::kNotAFile, "not a numpy file: its first bytes are not \\x93NUMPY");
  if (text.size() < 10) return refuse(ErrorCode::kTruncated, "the file ends inside its header");
  const auto byte = [&](size_t i) { return static_cast<uint64_t>(bytes[i]); };
  const uint64_t version = byte(6);
  if (version < 1 || version > 3)
    return refuse(ErrorCode::kVersion, "unsupported version " + std::to_string(version) + " of numpy's format");
  const size_t begin = version == 1 ? 10 : 12;
  if (text.size() < begin) return refuse(ErrorCode::kTruncated, "the file ends inside its header");
  const uint64_t length = byte(8) | byte(9) << 8 | (version == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > kMaxHeader)
    return refuse(ErrorCode::kLimit, "the header is too large: " + std::to_string(length) + " bytes");
  if (length > text.size() - begin) return refuse(ErrorCode::kTruncated, "the file ends inside its header");
  Header header(text.substr(begin, length));
  if (!header.parse())
    return refuse(ErrorCode::kMalformed, "the header is not a dict of descr, fortran_order and shape");
  const auto* found = std::ranges::find(kDescrs, *header.descr, &EnumName<DType>::name);
  if (found == std::end(kDescrs))
    return refuse(ErrorCode::kBadValue, "unsupported dtype '" + std::string(*header.descr) + "'",
                  "save a supported little-endian dtype, or use safetensors for bfloat16");
  if (*header.is_fortran && header.shape->size() > 1)
    return refuse(ErrorCode::kBadValue, "the array is in Fortran order", "save numpy.ascontiguousarray(x)");
  const std::optional<uint64_t> wanted = bytes_of(*header.shape, element_size(found->value));
  if (!wanted.has_value()) return refuse(ErrorCode::kLimit, "the array has 2^63 bytes or more");
  const uint64_t there = text.size() - begin - length;
  if (there < *wanted)
    return refuse(ErrorCode::kTruncated, "the array takes " + std::to_string(*wanted) + " bytes, but only " +
                                             std::to_string(there) + " are in the file");
  if (there > *wanted)
    return refuse(ErrorCode::kCountMismatch, std::to_string(there - *wanted) + " bytes follow the array");
  return SafetensorsTensor{"", found->value, *std::move(header.shape), bytes.subspan(begin + length)};
}

Result<NpyFile> load_npy(const std::string& path) {
  Result<MappedFile> mapping = MappedFile::open(path);
  if (!mapping.ok()) return mapping.error();
  Result<SafetensorsTensor> tensor = parse_npy(mapping->bytes(), path);
  if (!tensor.ok()) return tensor.error();
  return NpyFile{*std::move(mapping), *std::move(tensor)};
}

}  // namespace fxopt
