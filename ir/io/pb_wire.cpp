#include "ir/io/pb_wire.h"

#include <bit>
#include <cstring>
#include <optional>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>

namespace fxopt {
namespace {

constexpr size_t kMaxGroups = 64;

static_assert(std::endian::native == std::endian::little, "fixed-width fields are copied byte by byte");

}  // namespace

const WireField* WireReader::next() {
  at_ = cursor_;
  if (!fault_.empty() || at_ == bytes_.size()) return nullptr;
  if (!read_tag() || !read_content()) return nullptr;
  field_.raw = bytes_.substr(at_, cursor_ - at_);
  return &field_;
}

bool WireReader::cut_off(std::string_view what) {
  fault_ = what;
  cut_off_ = true;
  return false;
}

bool WireReader::read_varint(uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (cursor_ == bytes_.size()) return cut_off("the data ends inside a number");
    const uint8_t byte = static_cast<uint8_t>(bytes_[cursor_++]);
    *value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  fault_ = "a number is longer than ten bytes";
  return false;
}

bool WireReader::read_tag() {
  uint64_t tag = 0;
  const size_t start = cursor_;
  if (!read_varint(&tag)) return false;
  constexpr size_t kLongestTag = 5;  // bytes; protobuf refuses longer tags
  if (cursor_ - start > kLongestTag || tag > UINT32_MAX || (tag >> 3) == 0 || (tag & 7) > 5) {
    fault_ = "a field tag is not valid";
    return false;
  }
  field_.number = static_cast<uint32_t>(tag >> 3);
  field_.type = static_cast<WireType>(tag & 7);
  field_.payload = std::string_view();
  return true;
}

bool WireReader::read_fixed(size_t width) {
  if (bytes_.size() - cursor_ < width) return cut_off("the data ends inside a number");
  field_.value = 0;
  std::memcpy(&field_.value, bytes_.data() + cursor_, width);
  cursor_ += width;
  return true;
}

bool WireReader::read_content() {
  switch (field_.type) {
    case WireType::kVarint:
      return read_varint(&field_.value);
    case WireType::kFixed64:
      return read_fixed(8);
    case WireType::kFixed32:
      return read_fixed(4);
    case WireType::kBytes: {
      uint64_t size = 0;
      if (!read_varint(&size)) return false;
      if (size > bytes_.size() - cursor_) return cut_off("a field is longer than the data");
      field_.payload = bytes_.substr(cursor_, size);
      cursor_ += size;
      return true;
    }
    case WireType::kStartGroup:
      return skip_group();
    case WireType::kEndGroup:
      break;
  }
  fault_ = "a group ends without a start";
  return false;
}

bool WireReader::skip_group() {
  const uint32_t number = field_.number;
  groups_.assign(1, number);
  while (!groups_.empty()) {
    if (!read_tag()) return false;
    if (field_.type == WireType::kStartGroup) {
      groups_.push_back(field_.number);
      if (groups_.size() > kMaxGroups) {
        fault_ = "groups nest too deep";
        return false;
      }
    } else if (field_.type == WireType::kEndGroup) {
      if (groups_.back() != field_.number) {
        fault_ = "a group ends without a start";
        return false;
      }
      groups_.pop_back();
    } else if (!read_content()) {
      return false;
    }
  }
  field_.number = number;
  field_.type = WireType::kStartGroup;
  field_.payload = std::string_view();
  return true;
}

void append_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(0x80U | (value & 0x7FU)));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void append_varint_field(std::string& out, uint32_t number, uint64_t value) {
  append_varint(out, (uint64_t{number} << 3) | static_cast<uint64_t>(WireType::kVarint));
  append_varint(out, value);
}

void append_fixed32_field(std::string& out, uint32_t number, uint32_t value) {
  append_varint(out, (uint64_t{number} << 3) | static_cast<uint64_t>(WireType::kFixed32));
  for (unsigned shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>((value >> shift) & 0xFFU));
}

void append_fixed64_field(std::string& out, uint32_t number, uint64_t value) {
  append_varint(out, (uint64_t{number} << 3) | static_cast<uint64_t>(WireType::kFixed64));
  for (unsigned shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>((value >> shift) & 0xFFU));
}

void append_bytes_header(std::string& out, uint32_t number, size_t size) {
  append_varint(out, (uint64_t{number} << 3) | static_cast<uint64_t>(WireType::kBytes));
  append_varint(out, size);
}

void append_bytes_field(std::string& out, uint32_t number, std::string_view bytes) {
  append_bytes_header(out, number, bytes.size());
  out.append(bytes);
}

bool parse_message(google::protobuf::Message& message, std::string_view bytes, int max_messages) {
  const int size = static_cast<int>(bytes.size());
  // The plain call is fast but has the library's own limit on nesting.
  if (max_messages >= google::protobuf::io::CodedInputStream::GetDefaultRecursionLimit() &&
      message.ParseFromArray(bytes.data(), size)) {
    return true;
  }
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()), size);
  input.SetRecursionLimit(max_messages);
  return message.ParseFromCodedStream(&input) && input.ConsumedEntireMessage();
}

namespace {

std::optional<Error> find_fault(std::string_view bytes, const google::protobuf::Descriptor& type, uint64_t offset,
                                int max_messages) {
  if (max_messages < 0) return byte_error(ErrorCode::kLimit, "messages nest too deep", "", offset);
  WireReader reader(bytes);
  while (const WireField* field = reader.next()) {
    const google::protobuf::FieldDescriptor* known = type.FindFieldByNumber(static_cast<int>(field->number));
    if (field->type != WireType::kBytes || known == nullptr || known->message_type() == nullptr) continue;
    const uint64_t start = offset + static_cast<uint64_t>(field->payload.data() - bytes.data());
    std::optional<Error> error = find_fault(field->payload, *known->message_type(), start, max_messages - 1);
    if (!error.has_value()) continue;
    std::string& path = error->where.field;
    path = known->name() + (path.empty() ? "" : ".") + path;
    return error;
  }
  if (reader.fault().empty()) return std::nullopt;
  return byte_error(ErrorCode::kMalformed, std::string(reader.fault()), "", offset + reader.offset());
}

}  // namespace

Error explain_parse_failure(std::string_view bytes, const google::protobuf::Descriptor& type, uint64_t offset,
                            int max_messages) {
  std::optional<Error> error = find_fault(bytes, type, offset, max_messages);
  if (error.has_value()) return *std::move(error);
  return byte_error(ErrorCode::kMalformed, "a field of " + type.name() + " does not parse", "", offset);
}

void silence_protobuf() {
  static const bool once = [] {
    google::protobuf::SetLogHandler(nullptr);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace fxopt
