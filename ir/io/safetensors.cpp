#include "ir/io/safetensors.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/bytes.h"
#include "core/check.h"
#include "core/file.h"
#include "ir/io/json.h"

namespace fxopt {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLengthBytes = 8;     // size of the header's length field
constexpr uint64_t kHeaderMultiple = 8;  // the writer pads the header to such a multiple
constexpr size_t kMaxShown = 200;        // longest quote of a name or reason in a message
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr const char* kCheckFile = "check that this is a safetensors file";
constexpr const char* kCopyAgain = "copy the file or write it again";
constexpr const char* kCorrectWriter = "correct the program that wrote the file";

constexpr EnumName<DType> kDTypes[] = {
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
    {DType::kFloat4E2m1fnX2, "F4"},  // the format counts single 4-bit values, fxopt counts pairs
};

std::optional<DType> dtype_of(std::string_view name) {
  for (const EnumName<DType>& row : kDTypes) {
    if (row.name == name) return row.value;
  }
  return std::nullopt;
}

std::string_view format_name(DType dtype) {
  for (const EnumName<DType>& row : kDTypes) {
    if (row.value == dtype) return row.name;
  }
  return {};
}

// Returns the beginning of a text. The text may be as long as the header.
std::string shorten(std::string_view text) {
  if (text.size() <= kMaxShown) return std::string(text);
  size_t size = kMaxShown;
  // Do not cut inside a UTF-8 character.
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return std::string(text.substr(0, size)) + "...";
}

std::string shown(std::string_view name) { return quote(shorten(name)); }

// Returns element_size(dtype) times the product of `sizes`. Returns nothing if the product needs
// more than 63 bits. For this check, a size of 0 is replaced by 1.
std::optional<uint64_t> byte_count(DType dtype, const std::vector<int64_t>& sizes) {
  int64_t count = element_size(dtype);
  bool is_empty = false;
  for (const int64_t size : sizes) {
    is_empty = is_empty || size == 0;
    if (__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count)) return std::nullopt;
  }
  return is_empty ? 0 : static_cast<uint64_t>(count);
}

// The indices of the tensors, sorted by name.
std::vector<uint32_t> sort_by_name(std::span<const SafetensorsTensor> tensors) {
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
  return order;
}

// The first name in sorted order that two tensors share, if any.
std::optional<std::string> repeated_name(std::span<const SafetensorsTensor> tensors,
                                         const std::vector<uint32_t>& by_name) {
  for (size_t i = 1; i < by_name.size(); ++i) {
    if (tensors[by_name[i]].name == tensors[by_name[i - 1]].name) return tensors[by_name[i]].name;
  }
  return std::nullopt;
}

}  // namespace

// Receives the header from the JSON parser. The parser is not recursive, and stops if a function of
// this class returns false. A value in a wrong place stops the parser, so the nesting is at most
// the three levels of the format.
class SafetensorsReader : public nlohmann::json_sax<Json> {
 public:
  SafetensorsReader(std::string_view bytes, const SafetensorsLimits& limits) : bytes_(bytes), limits_(limits) {}

  Status read();
  Safetensors& content() { return content_; }

  bool null() override { return unexpected("null"); }
  bool boolean(bool value) override { return unexpected(value ? "true" : "false"); }
  bool number_integer(int64_t value) override { return negative(value); }
  bool number_unsigned(uint64_t value) override;
  bool number_float(double, const std::string& text) override { return unexpected("the number " + shorten(text)); }
  bool string(std::string& text) override;
  bool binary(Json::binary_t&) override { return unexpected("binary data"); }
  bool start_object(size_t) override;
  bool key(std::string& text) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string& token, const nlohmann::detail::exception& error) override;

 private:
  enum class Place : uint8_t { kRoot, kHeader, kMetadata, kTensor, kShape, kOffsets };
  enum Field : uint8_t { kNoField = 0, kDType = 1, kShapeField = 2, kOffsetsField = 4, kAllFields = 7 };
  struct Offsets {
    uint64_t begin = 0, end = 0;
  };

  Status read_header();
  Status check_tensor(size_t index);
  Status check_data();

  bool fail(ErrorCode code, std::string message, std::string hint = kCorrectWriter);
  bool unexpected(const std::string& found);
  bool negative(int64_t value);
  bool begin_tensor();
  bool set_dtype(const std::string& text);
  std::string field() const;
  Error tensor_error(size_t index, std::string_view part, ErrorCode code, std::string message,
                     std::string hint = kCorrectWriter) const;

  std::string_view bytes_;
  SafetensorsLimits limits_;
  uint64_t header_bytes_ = 0;
  Safetensors content_;
  std::vector<Offsets> offsets_;  // by tensor, in bytes from the start of the data

  Place place_ = Place::kRoot;
  std::string key_;             // the last key of the header or the metadata
  Field field_ = kNoField;      // the last key of a tensor's record
  unsigned fields_ = kNoField;  // all keys of that record
  size_t num_offsets_ = 0;
  bool has_metadata_ = false;
  std::optional<Error> error_;
};

Error SafetensorsReader::tensor_error(size_t index, std::string_view part, ErrorCode code, std::string message,
                                      std::string hint) const {
  Error error{code, std::move(message), std::move(hint), {}};
  error.where.field = shown(content_.tensors_[index].name) + std::string(part);
  return error;
}

// The current place, for errors.
std::string SafetensorsReader::field() const {
  if (place_ == Place::kRoot) return "";
  if (place_ == Place::kHeader) return shown(key_);
  if (place_ == Place::kMetadata) return std::string(kMetadataKey) + "." + shown(key_);
  const SafetensorsTensor& tensor = content_.tensors_.back();
  const std::string name = shown(tensor.name);
  if (place_ == Place::kShape) return name + ".shape[" + std::to_string(tensor.sizes.size()) + "]";
  if (place_ == Place::kOffsets) return name + ".data_offsets[" + std::to_string(num_offsets_) + "]";
  return name + (field_ == kDType ? ".dtype" : field_ == kShapeField ? ".shape" : ".data_offsets");
}

bool SafetensorsReader::fail(ErrorCode code, std::string message, std::string hint) {
  error_ = place_ == Place::kRoot ? byte_error(code, std::move(message), std::move(hint), kLengthBytes)
                                  : Error{code, std::move(message), std::move(hint), {}};
  error_->where.field = field();
  return false;
}

bool SafetensorsReader::unexpected(const std::string& found) {
  if (place_ == Place::kRoot) {
    return fail(ErrorCode::kMalformed, "the header is " + found + ", not an object", kCheckFile);
  }
  const bool is_metadata = place_ == Place::kHeader && key_ == kMetadataKey;
  const char* const wanted = is_metadata                  ? "an object of strings"
                             : place_ == Place::kHeader   ? "a tensor's record"
                             : place_ == Place::kMetadata ? "a string"
                             : place_ == Place::kShape    ? "a size"
                             : place_ == Place::kOffsets  ? "an offset"
                             : field_ == kDType           ? "the name of a dtype"
                             : field_ == kShapeField      ? "a list of sizes"
                                                          : "two offsets";
  return fail(ErrorCode::kBadValue, found + " in place of " + wanted);
}

bool SafetensorsReader::negative(int64_t value) {
  const std::string text = value == 0 ? "-0" : std::to_string(value);
  if (place_ == Place::kShape) return fail(ErrorCode::kBadValue, "the size " + text + " is negative");
  if (place_ == Place::kOffsets) return fail(ErrorCode::kBadValue, "the offset " + text + " is negative");
  return unexpected("the number " + text);
}

bool SafetensorsReader::number_unsigned(uint64_t value) {
  if (place_ == Place::kShape) {
    std::vector<int64_t>& sizes = content_.tensors_.back().sizes;
    if (sizes.size() >= limits_.max_rank) {
      return fail(ErrorCode::kLimit, "more than " + std::to_string(limits_.max_rank) + " sizes", kCheckFile);
    }
    if (value > static_cast<uint64_t>(kMaxInt64)) {
      return fail(ErrorCode::kLimit, "the size " + std::to_string(value) + " needs more than 63 bits");
    }
    sizes.push_back(static_cast<int64_t>(value));
    return true;
  }
  if (place_ == Place::kOffsets) {
    if (num_offsets_ == 2) return fail(ErrorCode::kBadValue, "more than two offsets");
    (num_offsets_ == 0 ? offsets_.back().begin : offsets_.back().end) = value;
    ++num_offsets_;
    return true;
  }
  return unexpected("the number " + std::to_string(value));
}

bool SafetensorsReader::string(std::string& text) {
  if (place_ == Place::kMetadata) {
    if (!content_.metadata_.try_emplace(key_, std::move(text)).second) {
      return fail(ErrorCode::kDuplicateName, "the metadata has this key twice");
    }
    return true;
  }
  if (place_ == Place::kTensor && field_ == kDType) return set_dtype(text);
  return unexpected("the string " + shown(text));
}

bool SafetensorsReader::set_dtype(const std::string& text) {
  const std::optional<DType> dtype = dtype_of(text);
  if (!dtype.has_value()) {
    std::vector<std::string_view> names;
    for (const EnumName<DType>& row : kDTypes) names.push_back(row.name);
    return fail(ErrorCode::kBadValue, "the dtype " + shown(text) + " is not supported",
                suggestion(text, names, "convert the tensor to a supported dtype"));
  }
  content_.tensors_.back().dtype = *dtype;
  return true;
}

bool SafetensorsReader::start_object(size_t) {
  if (place_ == Place::kRoot) {
    place_ = Place::kHeader;
    return true;
  }
  if (place_ != Place::kHeader) return unexpected("an object");
  if (key_ == kMetadataKey) {
    place_ = Place::kMetadata;
    key_.clear();
    return true;
  }
  return begin_tensor();
}

bool SafetensorsReader::begin_tensor() {
  if (content_.tensors_.size() >= limits_.max_tensors) {
    return fail(ErrorCode::kLimit, "the file has more than " + std::to_string(limits_.max_tensors) + " tensors",
                "split the file");
  }
  content_.tensors_.emplace_back().name = std::move(key_);
  key_.clear();
  offsets_.emplace_back();
  place_ = Place::kTensor;
  fields_ = field_ = kNoField;
  num_offsets_ = 0;
  return true;
}

bool SafetensorsReader::key(std::string& text) {
  if (place_ == Place::kTensor) {
    const Field field = text == "dtype"          ? kDType
                        : text == "shape"        ? kShapeField
                        : text == "data_offsets" ? kOffsetsField
                                                 : kNoField;
    const bool is_repeated = (fields_ & field) != 0;
    if (field != kNoField && !is_repeated) {
      field_ = field;
      fields_ |= field;
      return true;
    }
    const std::string message = "the record " + std::string(is_repeated ? "has the key " : "has the unknown key ") +
                                shown(text) + (is_repeated ? " twice" : "");
    error_ = tensor_error(content_.tensors_.size() - 1, "",
                          is_repeated ? ErrorCode::kDuplicateName : ErrorCode::kBadValue, message);
    return false;
  }
  key_ = std::move(text);
  if (place_ == Place::kMetadata) return true;
  if (key_.empty()) return fail(ErrorCode::kBadValue, "the name of a tensor is empty");
  if (key_ == kMetadataKey && std::exchange(has_metadata_, true)) {
    return fail(ErrorCode::kDuplicateName, "the header has this key twice");
  }
  return true;
}

bool SafetensorsReader::end_object() {
  if (place_ == Place::kTensor && fields_ != kAllFields) {
    const char* const missing = (fields_ & kDType) == 0        ? "\"dtype\""
                                : (fields_ & kShapeField) == 0 ? "\"shape\""
                                                               : "\"data_offsets\"";
    error_ = tensor_error(content_.tensors_.size() - 1, "", ErrorCode::kBadValue,
                          std::string("the record has no ") + missing);
    return false;
  }
  place_ = place_ == Place::kHeader ? Place::kRoot : Place::kHeader;
  return true;
}

bool SafetensorsReader::start_array(size_t) {
  if (place_ != Place::kTensor || field_ == kDType) return unexpected("a list");
  place_ = field_ == kShapeField ? Place::kShape : Place::kOffsets;
  return true;
}

bool SafetensorsReader::end_array() {
  if (place_ == Place::kOffsets && num_offsets_ != 2) {
    return fail(ErrorCode::kBadValue, "the list must have two offsets, but has " + std::to_string(num_offsets_));
  }
  place_ = Place::kTensor;
  return true;
}

bool SafetensorsReader::parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
  const uint64_t offset = std::min<uint64_t>(position == 0 ? 0 : position - 1, header_bytes_);
  error_ = byte_error(ErrorCode::kMalformed, "the header is not JSON: " + shorten(json_reason(error.what())),
                      kCheckFile, kLengthBytes + offset);
  return false;
}

Status SafetensorsReader::read_header() {
  if (bytes_.size() < kLengthBytes) {
    return byte_error(ErrorCode::kTruncated,
                      "the file ends after " + std::to_string(bytes_.size()) + " bytes, inside the header's length",
                      kCheckFile, bytes_.size());
  }
  for (size_t i = 0; i < kLengthBytes; ++i) {
    header_bytes_ |= uint64_t{static_cast<unsigned char>(bytes_[i])} << 8 * i;
  }
  if (header_bytes_ > limits_.max_header_bytes) {
    return byte_error(ErrorCode::kLimit,
                      "the header has " + std::to_string(header_bytes_) + " bytes, above the limit of " +
                          std::to_string(limits_.max_header_bytes),
                      kCheckFile, 0);
  }
  if (header_bytes_ > bytes_.size() - kLengthBytes) {
    return byte_error(ErrorCode::kTruncated,
                      "the file ends inside its header, which has " + std::to_string(header_bytes_) + " bytes",
                      kCopyAgain, bytes_.size());
  }
  const std::string_view header = bytes_.substr(kLengthBytes, header_bytes_);
  if (!header.starts_with('{')) {
    return byte_error(ErrorCode::kMalformed, "the header does not begin with '{'", kCheckFile, kLengthBytes);
  }
  // The parser would take a zero byte for the end of its input.
  if (const size_t zero = header.find('\0'); zero != std::string_view::npos) {
    return byte_error(ErrorCode::kMalformed, "the header contains a zero byte", kCheckFile, kLengthBytes + zero);
  }
  if (!is_utf8(header)) {
    size_t at = 0;
    while (const size_t length = utf8_length(header.substr(at))) at += length;
    return byte_error(ErrorCode::kMalformed, "the header is not UTF-8", kCheckFile, kLengthBytes + at);
  }
  const bool is_read = Json::sax_parse(header.begin(), header.end(), this);
  if (error_.has_value()) return *std::move(error_);
  FXOPT_CHECK(is_read, "the JSON parser stopped without an error");
  return ok_status();
}

// Checks size and place of one tensor.
Status SafetensorsReader::check_tensor(size_t index) {
  SafetensorsTensor& tensor = content_.tensors_[index];
  const Offsets offsets = offsets_[index];
  const uint64_t data_bytes = bytes_.size() - kLengthBytes - header_bytes_;
  if (tensor.dtype == DType::kFloat4E2m1fnX2) {
    if (tensor.sizes.empty() || tensor.sizes.back() % 2 != 0) {
      return tensor_error(index, ".shape", ErrorCode::kBadValue, "the last size of an F4 tensor is not a multiple of 2",
                          "pad the last dimension to an even size");
    }
    tensor.sizes.back() /= 2;
  }
  const std::optional<uint64_t> size = byte_count(tensor.dtype, tensor.sizes);
  if (!size.has_value()) {
    return tensor_error(index, ".shape", ErrorCode::kLimit, "the shape has 2^63 bytes or more");
  }
  if (offsets.begin > offsets.end) {
    return tensor_error(
        index, ".data_offsets", ErrorCode::kBadValue,
        "the data begins at " + std::to_string(offsets.begin) + " and ends at " + std::to_string(offsets.end));
  }
  if (offsets.end - offsets.begin != *size) {
    return tensor_error(index, ".data_offsets", ErrorCode::kCountMismatch,
                        "the offsets enclose " + std::to_string(offsets.end - offsets.begin) +
                            " bytes, but the shape and dtype need " + std::to_string(*size));
  }
  if (offsets.end > data_bytes) {
    return tensor_error(index, ".data_offsets", ErrorCode::kTruncated,
                        "the data ends at " + std::to_string(offsets.end) + ", but the file has only " +
                            std::to_string(data_bytes) + " bytes of data",
                        kCopyAgain);
  }
  const std::string_view data = bytes_.substr(kLengthBytes + header_bytes_ + offsets.begin, *size);
  tensor.bytes = std::as_bytes(std::span(data.data(), data.size()));
  return ok_status();
}

// Checks that the tensors cover the data without gaps and overlaps.
Status SafetensorsReader::check_data() {
  std::vector<uint32_t> order(offsets_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(offsets_[a].begin, offsets_[a].end) < std::pair(offsets_[b].begin, offsets_[b].end);
  });
  uint64_t end = 0;
  std::string before;
  for (const uint32_t index : order) {
    const uint64_t begin = offsets_[index].begin;
    if (begin > end) {
      return tensor_error(index, ".data_offsets", ErrorCode::kBadValue,
                          "the data begins at " + std::to_string(begin) + ": bytes " + std::to_string(end) + " to " +
                              std::to_string(begin - 1) + " before it belong to no tensor");
    }
    if (begin < end) {
      return tensor_error(index, ".data_offsets", ErrorCode::kBadValue,
                          "the data begins at " + std::to_string(begin) + ", before the data of " + before +
                              " ends at " + std::to_string(end));
    }
    end = offsets_[index].end;
    before = shown(content_.tensors_[index].name);
  }
  const uint64_t first_after = kLengthBytes + header_bytes_ + end;
  if (first_after != bytes_.size()) {
    return byte_error(ErrorCode::kCountMismatch,
                      std::to_string(bytes_.size() - first_after) + " bytes follow the last tensor", kCorrectWriter,
                      first_after);
  }
  return ok_status();
}

Status SafetensorsReader::read() {
  Status status = read_header();
  if (!status.ok()) return status;
  content_.by_name_ = sort_by_name(content_.tensors_);
  if (const std::optional<std::string> name = repeated_name(content_.tensors_, content_.by_name_)) {
    Error error{ErrorCode::kDuplicateName, "two tensors have this name", kCorrectWriter, {}};
    error.where.field = shown(*name);
    return error;
  }
  for (size_t i = 0; i < content_.tensors_.size(); ++i) {
    status = check_tensor(i);
    if (!status.ok()) return status;
  }
  return check_data();
}

const SafetensorsTensor* Safetensors::find(std::string_view name) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](uint32_t index, std::string_view text) { return tensors_[index].name < text; });
  return found != by_name_.end() && tensors_[*found].name == name ? &tensors_[*found] : nullptr;
}

Result<Safetensors> parse_safetensors(std::span<const std::byte> bytes, const std::string& file,
                                      const SafetensorsLimits& limits) {
  SafetensorsReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, limits);
  Status status = reader.read();
  if (status.ok()) return std::move(reader.content());
  status.error().where.file = file;
  return std::move(status.error());
}

Result<SafetensorsFile> load_safetensors(const std::string& path, const SafetensorsLimits& limits) {
  Result<MappedFile> mapping = MappedFile::open(path);
  if (!mapping.ok()) return std::move(mapping.error());
  Result<Safetensors> content = parse_safetensors(mapping->bytes(), path, limits);
  if (!content.ok()) return std::move(content.error());
  return SafetensorsFile{*std::move(mapping), *std::move(content)};
}

namespace {

// The layout of a written file: the length and the header, then the data of the tensors in `order`.
struct FileLayout {
  std::string head;
  std::vector<uint32_t> order;
};

Error refuse(const SafetensorsTensor& tensor, std::string message, std::string hint) {
  Error error{ErrorCode::kFileWrite, std::move(message), std::move(hint), {}};
  error.where.field = shown(tensor.name);
  return error;
}

// Returns the reason why the format cannot hold the tensor, if any.
std::optional<Error> refuse_tensor(const SafetensorsTensor& tensor) {
  const SafetensorsLimits limits;
  if (tensor.name.empty() || tensor.name == kMetadataKey || !is_utf8(tensor.name)) {
    return refuse(tensor, "a safetensors file cannot have a tensor of this name", "rename the tensor");
  }
  if (format_name(tensor.dtype).empty()) {
    return refuse(tensor, "safetensors files have no dtype for " + std::string(name_of(tensor.dtype)),
                  "convert the tensor to another dtype");
  }
  if (tensor.sizes.size() > limits.max_rank) {
    return refuse(tensor, "the tensor has more than " + std::to_string(limits.max_rank) + " dimensions", "reshape it");
  }
  const bool is_pairs = tensor.dtype == DType::kFloat4E2m1fnX2;
  if (is_pairs && (tensor.sizes.empty() || tensor.sizes.back() > kMaxInt64 / 2)) {
    return refuse(tensor, "the format cannot express the shape of this float4 tensor", "reshape it");
  }
  const bool is_legal = std::all_of(tensor.sizes.begin(), tensor.sizes.end(), [](int64_t size) { return size >= 0; });
  FXOPT_CHECK(is_legal && byte_count(tensor.dtype, tensor.sizes) == tensor.bytes.size(),
              "the bytes of " + shown(tensor.name) + " do not fit its sizes");
  return std::nullopt;
}

void append_record(std::string& header, const SafetensorsTensor& tensor, uint64_t begin) {
  header += json_string(tensor.name) + ":{\"dtype\":\"" + std::string(format_name(tensor.dtype)) + "\",\"shape\":[";
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    const bool is_pairs = tensor.dtype == DType::kFloat4E2m1fnX2 && i + 1 == tensor.sizes.size();
    header += (i == 0 ? "" : ",") + std::to_string(is_pairs ? tensor.sizes[i] * 2 : tensor.sizes[i]);
  }
  header += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(begin + tensor.bytes.size()) + "]}";
}

Status append_metadata(std::string& header, const SafetensorsMetadata& metadata) {
  if (metadata.empty()) return ok_status();
  header += json_string(kMetadataKey) + ":{";
  for (const auto& [key, text] : metadata) {
    if (!is_utf8(key) || !is_utf8(text)) {
      return Error{ErrorCode::kFileWrite, "the metadata " + shown(key) + " is not UTF-8", "correct the text", {}};
    }
    header += (header.back() == '{' ? "" : ",") + json_string(key) + ":" + json_string(text);
  }
  header += "}";
  return ok_status();
}

Result<FileLayout> lay_out(std::span<const SafetensorsTensor> tensors, const SafetensorsMetadata& metadata) {
  const SafetensorsLimits limits;
  if (tensors.size() > limits.max_tensors) {
    return Error{ErrorCode::kFileWrite,
                 std::to_string(tensors.size()) + " tensors exceed the limit for one file",
                 "split them into several files",
                 {}};
  }
  for (const SafetensorsTensor& tensor : tensors) {
    if (std::optional<Error> error = refuse_tensor(tensor)) return *std::move(error);
  }
  if (const std::optional<std::string> name = repeated_name(tensors, sort_by_name(tensors))) {
    return Error{ErrorCode::kFileWrite, "two tensors have the name " + shown(*name), "rename one", {}};
  }
  FileLayout layout;
  layout.order.resize(tensors.size());
  std::iota(layout.order.begin(), layout.order.end(), 0U);
  std::stable_sort(layout.order.begin(), layout.order.end(), [&](uint32_t a, uint32_t b) {
    return element_size(tensors[a].dtype) > element_size(tensors[b].dtype);
  });
  std::vector<uint64_t> begins(tensors.size());
  uint64_t end = 0;
  for (const uint32_t index : layout.order) {
    begins[index] = end;
    end += tensors[index].bytes.size();
  }
  std::string header = "{";
  Status status = append_metadata(header, metadata);
  if (!status.ok()) return std::move(status.error());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (header.size() > 1) header += ",";
    append_record(header, tensors[i], begins[i]);
  }
  header += "}";
  header.resize((header.size() + kHeaderMultiple - 1) / kHeaderMultiple * kHeaderMultiple, ' ');
  if (header.size() > limits.max_header_bytes) {
    return Error{ErrorCode::kFileWrite,
                 "the header has " + std::to_string(header.size()) + " bytes, above the limit of " +
                     std::to_string(limits.max_header_bytes),
                 "split the tensors into several files, or shorten their names and the metadata",
                 {}};
  }
  for (size_t i = 0; i < kLengthBytes; ++i) layout.head += static_cast<char>(header.size() >> 8 * i & 0xff);
  layout.head += header;
  return layout;
}

// Returns header and data as pieces that point into `layout` and the tensors.
std::vector<std::string_view> pieces_of(const FileLayout& layout, std::span<const SafetensorsTensor> tensors) {
  std::vector<std::string_view> pieces = {layout.head};
  for (const uint32_t index : layout.order) {
    const std::span<const std::byte> bytes = tensors[index].bytes;
    pieces.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return pieces;
}

}  // namespace

Result<std::string> print_safetensors(std::span<const SafetensorsTensor> tensors, const SafetensorsMetadata& metadata) {
  const Result<FileLayout> layout = lay_out(tensors, metadata);
  if (!layout.ok()) return layout.error();
  std::string bytes;
  for (const std::string_view piece : pieces_of(*layout, tensors)) bytes += piece;
  return bytes;
}

Status save_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors,
                        const SafetensorsMetadata& metadata) {
  Result<FileLayout> layout = path.ends_with(".zst") ? Error{ErrorCode::kFileWrite,
                                                             "safetensors files are not compressed",
                                                             "leave out \".zst\" at the end of the path",
                                                             {}}
                                                     : lay_out(tensors, metadata);
  if (!layout.ok()) {
    layout.error().where.file = path;
    return std::move(layout.error());
  }
  return write_file_pieces(path, pieces_of(*layout, tensors));
}

}  // namespace fxopt
