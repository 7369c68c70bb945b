#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fxopt {

// The envelope of the module in a binary file. In the schema, it is the message File.

inline constexpr uint32_t kPbMagic = 0x31475846;  // "FXG1" in the file
inline constexpr uint32_t kPbVersion = 0;         // the schema version of this build
// Protobuf holds fewer than 2^31 - 1 bytes in one message.
inline constexpr uint64_t kMaxPbBytes = 0x7FFFFFFF - 1;

// Returns the error kFileTooLarge if a binary form of `bytes` bytes is too large. Returns nullopt
// if the size fits.
std::optional<Error> refuse_pb_size(uint64_t bytes);

struct PbCounts {
  uint64_t graphs = 0;
  uint64_t nodes = 0;
  uint64_t strings = 0;
  uint64_t storages = 0;
};

struct PbEnvelope {
  PbCounts counts;
  std::string_view module;  // the serialized module; its hash is checked
  uint64_t module_offset = 0;
};

// Finds the module in the bytes of a file and checks magic, version and hash. The hash covers only
// the module, so the hash does not reveal damage to other fields of the envelope. For this reason,
// an unknown or repeated field of the envelope is an error. Errors: kNotAFile, kVersion,
// kHashMismatch, kTruncated, kMalformed, kFileTooLarge. O(bytes).
Result<PbEnvelope> read_envelope(std::string_view bytes);

// Returns the bytes of the file. The serialized module is the concatenation of `parts`. Frees each
// part after use. Fails with kFileTooLarge.
Result<std::string> write_envelope(const PbCounts& counts, std::vector<std::string> parts);

}  // namespace fxopt
