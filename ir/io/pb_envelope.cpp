#include "ir/io/pb_envelope.h"

#include <array>
#include <optional>
#include <utility>

#include "core/bytes.h"
#include "core/hash.h"
#include "ir/io/pb_wire.h"

namespace fxopt {
namespace {

// Field numbers of schema messages File and Counts. A test compares them with the descriptors.
constexpr uint32_t kMagicField = 1;
constexpr uint32_t kVersionField = 2;
constexpr uint32_t kHashField = 3;
constexpr uint32_t kCountsField = 4;
constexpr uint32_t kModuleField = 5;
constexpr size_t kNumFields = 6;

constexpr std::array<WireType, kNumFields> kFieldTypes = {WireType::kVarint,  WireType::kFixed32, WireType::kVarint,
                                                          WireType::kFixed64, WireType::kBytes,   WireType::kBytes};

constexpr std::string_view kMagicBytes(
    "\x0d"
    "FXG1",
    5);  // the field `magic`, which comes first

struct Fields {
  std::array<std::optional<WireField>, kNumFields> known;
  std::string_view oddity;  // an unknown or repeated field
  size_t oddity_offset = 0;
};

std::string guess(std::string_view bytes) {
  const auto begins = [bytes](std::string_view magic) { return bytes.starts_with(magic); };
  if (begins("\x1f\x8b")) return "the file begins like gzip: decompress the file first";
  if (begins("PK\x03\x04"))
    return "the file begins like a zip archive, as torch.save and torch.export.save write. Save an exported program "
           "with fxopt.save. A checkpoint contains no graph";
  if (begins("\x28\xb5\x2f\xfd")) return "the file begins like zstd after decompression: decompress the file once more";
  if (begins("\x80\x02") || begins("\x80\x04") || begins("\x80\x05")) {
    return "the file begins like a pickle, which fxopt never reads. Save graphs with fxopt.save";
  }
  if (begins("\x89PNG")) return "the file begins like a PNG image. Save graphs with fxopt.save";
  return "save graphs with fxopt.save, as .pb (protobuf message fxopt.schema.File), .fxg or .json";
}

Error not_a_file(std::string_view bytes) {
  if (bytes.empty()) return byte_error(ErrorCode::kTruncated, "the file is empty", "", 0);
  if (kMagicBytes.starts_with(bytes)) {
    return byte_error(ErrorCode::kTruncated, "the file ends inside its first field", "copy or write the file again",
                      bytes.size());
  }
  return byte_error(ErrorCode::kNotAFile, "the file is not a graph of fxopt: it does not begin with FXG1", guess(bytes),
                    0);
}

Result<Fields> scan(std::string_view bytes) {
  Fields fields;
  WireReader reader(bytes);
  while (const WireField* field = reader.next()) {
    const size_t start = static_cast<size_t>(field->raw.data() - bytes.data());
    const bool is_known = field->number < kNumFields && field->type == kFieldTypes[field->number];
    if (!is_known) {
      fields.oddity = "a field that this version does not have";
      fields.oddity_offset = start;
    } else if (fields.known[field->number].has_value()) {
      fields.oddity = "a field that occurs twice";
      fields.oddity_offset = start;
    } else {
      fields.known[field->number] = *field;
    }
  }
  const std::optional<WireField>& magic = fields.known[kMagicField];
  if (!magic.has_value() || magic->value != kPbMagic) return not_a_file(bytes);
  if (reader.is_cut_off()) {
    return byte_error(ErrorCode::kTruncated, "the file ends early: " + std::string(reader.fault()),
                      "copy or write the file again", reader.offset());
  }
  if (!reader.fault().empty()) {
    return byte_error(ErrorCode::kMalformed, std::string(reader.fault()), "", reader.offset());
  }
  return fields;
}

Result<PbCounts> read_counts(const WireField& field, uint64_t offset) {
  std::array<uint64_t, 5> counts{};
  WireReader reader(field.payload);
  while (const WireField* count = reader.next()) {
    if (count->number >= counts.size() || count->type != WireType::kVarint) {
      return byte_error(ErrorCode::kMalformed, "counts has a field that this version does not have", "",
                        offset + reader.offset());
    }
    counts[count->number] = count->value;
  }
  if (!reader.fault().empty()) {
    return byte_error(ErrorCode::kMalformed, std::string(reader.fault()), "", offset + reader.offset());
  }
  return PbCounts{counts[1], counts[2], counts[3], counts[4]};
}

}  // namespace

std::optional<Error> refuse_pb_size(uint64_t bytes) {
  if (bytes <= kMaxPbBytes) return std::nullopt;
  return Error{ErrorCode::kFileTooLarge,
               "the binary form would take " + human_bytes(static_cast<double>(bytes)) + ", but the limit is 2 GiB",
               "split the module, or use text", Where()};
}

Result<PbEnvelope> read_envelope(std::string_view bytes) {
  if (std::optional<Error> refused = refuse_pb_size(bytes.size())) return *std::move(refused);
  Result<Fields> scanned = scan(bytes);
  if (!scanned.ok()) return std::move(scanned.error());
  const Fields& fields = *scanned;
  const auto offset_of = [bytes](const WireField& field) {
    return static_cast<uint64_t>(field.payload.data() - bytes.data());
  };
  const uint64_t version = fields.known[kVersionField].has_value() ? fields.known[kVersionField]->value : 0;
  if (version != kPbVersion) {
    return byte_error(ErrorCode::kVersion,
                      "the file has schema version " + std::to_string(version) + ", but this build reads " +
                          std::to_string(kPbVersion),
                      "use the fxopt that wrote the file, or write the file again", 0);
  }
  if (!fields.oddity.empty()) {
    return byte_error(ErrorCode::kMalformed, "outside the module, the file has " + std::string(fields.oddity), "",
                      fields.oddity_offset);
  }
  const std::optional<WireField>& module = fields.known[kModuleField];
  if (!module.has_value()) {
    return byte_error(ErrorCode::kTruncated, "the module is missing", "copy or write the file again", bytes.size());
  }
  PbEnvelope envelope;
  envelope.module = module->payload;
  envelope.module_offset = offset_of(*module);
  const uint64_t stated = fields.known[kHashField].has_value() ? fields.known[kHashField]->value : 0;
  if (hash_bytes(envelope.module) != stated) {
    return byte_error(ErrorCode::kHashMismatch, "the module does not match the file's hash",
                      "the bytes were damaged: copy or write the file again", envelope.module_offset);
  }
  if (const std::optional<WireField>& field = fields.known[kCountsField]) {
    Result<PbCounts> counts = read_counts(*field, offset_of(*field));
    if (!counts.ok()) return std::move(counts.error());
    envelope.counts = *counts;
  }
  return envelope;
}

Result<std::string> write_envelope(const PbCounts& counts, std::vector<std::string> parts) {
  std::string counted;
  const std::array<uint64_t, 5> values = {0, counts.graphs, counts.nodes, counts.strings, counts.storages};
  for (uint32_t number = 1; number < values.size(); ++number) {
    if (values[number] != 0) append_varint_field(counted, number, values[number]);
  }
  size_t size = 0;
  for (const std::string& part : parts) size += part.size();
  std::string out;
  append_fixed32_field(out, kMagicField, kPbMagic);
  if (kPbVersion != 0) append_varint_field(out, kVersionField, kPbVersion);
  const size_t hash_at = out.size();
  append_fixed64_field(out, kHashField, 0);
  append_bytes_field(out, kCountsField, counted);
  append_bytes_header(out, kModuleField, size);
  if (std::optional<Error> refused = refuse_pb_size(out.size() + size)) return *std::move(refused);
  const size_t module_at = out.size();
  out.reserve(module_at + size);
  for (std::string& part : parts) {
    out.append(part);
    part = std::string();
  }
  std::string hash;
  append_fixed64_field(hash, kHashField, hash_bytes(std::string_view(out).substr(module_at)));
  out.replace(hash_at, hash.size(), hash);
  return out;
}

}  // namespace fxopt
