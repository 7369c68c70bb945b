#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace google::protobuf {
class Descriptor;
class Message;
}  // namespace google::protobuf

namespace fxopt {

// Functions that read and write the fields of one message in the protobuf wire format. To save
// memory, the large messages (file, module, graph) never exist as one protobuf object.

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;        // kVarint, kFixed64, kFixed32
  std::string_view payload;  // kBytes
  std::string_view raw;      // tag and content
};

// Reads the fields of one message, one after the other. O(1) for each field. A protobuf group is
// skipped as a whole, which takes longer.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  // Returns the next field, which is valid until the next call. Returns nullptr at the end and at a
  // fault.
  const WireField* next();
  // Returns the reason why next() stopped before the end. Empty if next() found no fault.
  std::string_view fault() const { return fault_; }
  // Returns true if the input ends inside the last field.
  bool is_cut_off() const { return cut_off_; }
  size_t offset() const { return at_; }  // the start of the field that next() read last

 private:
  bool read_tag();
  bool read_content();
  bool read_varint(uint64_t* value);
  bool read_fixed(size_t width);
  bool skip_group();
  bool cut_off(std::string_view what);

  std::string_view bytes_;
  size_t at_ = 0;
  size_t cursor_ = 0;
  WireField field_;
  std::vector<uint32_t> groups_;
  std::string_view fault_;
  bool cut_off_ = false;
};

void append_varint(std::string& out, uint64_t value);
void append_varint_field(std::string& out, uint32_t number, uint64_t value);
void append_fixed32_field(std::string& out, uint32_t number, uint32_t value);
void append_fixed64_field(std::string& out, uint32_t number, uint64_t value);
void append_bytes_field(std::string& out, uint32_t number, std::string_view bytes);
// Appends the tag and the length that precede `size` bytes of field `number`.
void append_bytes_header(std::string& out, uint32_t number, size_t size);

// Clears `message` and parses `bytes` into it. Messages may be nested up to `max_messages` deep.
// Returns false if the bytes do not parse.
bool parse_message(google::protobuf::Message& message, std::string_view bytes, int max_messages);

// Returns the reason why parse_message() refused `bytes` as a message of `type`. The code is kLimit
// if the nesting is too deep, and kMalformed otherwise. The error has its place in Where::byte and
// Where::field. `offset` is the file offset of `bytes`.
Error explain_parse_failure(std::string_view bytes, const google::protobuf::Descriptor& type, uint64_t offset,
                            int max_messages);

// Silences the library's own messages on standard error, because fxopt reports faults as errors.
// Every entry point calls this function.
void silence_protobuf();

}  // namespace fxopt
