#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/mapped_file.h"
#include "core/result.h"
#include "ir/graph/types.h"

namespace fxopt {

// Files of named tensors in the public safetensors format: 8 bytes with the length of the header
// (little-endian), the header as JSON, the data.
//
//   {"__metadata__": {"key": "text"},
//    "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
//
// Offsets count bytes from the start of the data. The data has neither gaps nor overlaps and ends
// with the file.

// A tensor in a file or to be written to one. Does not own its data.
struct SafetensorsTensor {
  std::string name;                   // UTF-8, not empty
  DType dtype = DType::kUnspecified;  // not complex32, complex128, quantized or bits
  // Outermost first; empty for rank 0. A float4 pair is one element.
  std::vector<int64_t> sizes;
  // The elements in row-major order without padding, little-endian: element_size(dtype) times the
  // product of the sizes. The first byte may have any address, so readers copy elements with memcpy
  // or check the alignment first. A byte of a bool may differ from 0 and 1.
  std::span<const std::byte> bytes;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// Limits of the reader. The writer keeps to the defaults.
struct SafetensorsLimits {
  uint64_t max_header_bytes = 100'000'000;  // the limit of the reference implementation
  uint64_t max_tensors = uint64_t{1} << 20;
  uint64_t max_rank = 64;
};

// The tensors and metadata of one file. Spans point into the parsed bytes.
class Safetensors {
 public:
  // In header order. Names are unique.
  const std::vector<SafetensorsTensor>& tensors() const { return tensors_; }
  // Returns the tensor of that name, or nullptr. O(log tensors).
  const SafetensorsTensor* find(std::string_view name) const;
  const SafetensorsMetadata& metadata() const { return metadata_; }

 private:
  friend class SafetensorsReader;

  std::vector<SafetensorsTensor> tensors_;
  std::vector<uint32_t> by_name_;  // indices of tensors_, sorted by name
  SafetensorsMetadata metadata_;
};

// Parses the header of `bytes`, which must hold a whole file and outlive the result. `file` names
// it in errors. Data is neither copied nor read. Each tensor is within `bytes`, and its byte count
// matches its sizes. That count fits into 63 bits even if each size of 0 counts as 1, so strides
// fit as well. Errors:
//   kTruncated      the file ends inside the header or inside a tensor
//   kMalformed      the header is not a JSON object in UTF-8
//   kDuplicateName  a tensor, a key of its record, or a key of the metadata occurs twice
//   kBadValue       a record unlike the one above, an unknown dtype, a gap or an overlap
//   kCountMismatch  offsets that do not match the shape, bytes after the last tensor
//   kLimit          beyond SafetensorsLimits, or a shape of 2^63 bytes or more
// The reference implementation accepts repeated names (the last one counts), empty names, unknown
// keys of a record, an odd last size of F4, and any shape without elements. These are errors here.
// An error names the tensor in `where.field` or the place in `where.byte`.
// O(header + tensors * log(tensors)).
Result<Safetensors> parse_safetensors(std::span<const std::byte> bytes, const std::string& file,
                                      const SafetensorsLimits& limits = {});

// A mapped file and its content, which points into the mapping. May be moved.
struct SafetensorsFile {
  MappedFile mapping;
  Safetensors content;
};

// Maps `path`, an uncompressed regular file, and parses its header. Errors: those of
// MappedFile::open and of parse_safetensors.
Result<SafetensorsFile> load_safetensors(const std::string& path, const SafetensorsLimits& limits = {});

// Returns the bytes of a file. The header lists the metadata, if any, sorted by key, then the
// tensors in the given order. Data is ordered by decreasing element size, and in the given order
// within one size. Spaces pad the header to a multiple of 8 bytes, so each tensor begins at a
// multiple of its element size. The same arguments give the same bytes.
//
// The reference implementation orders header and data by dtype, wider ones first, then by name. For
// tensors in that order and at most one metadata key, the bytes equal those of the reference
// implementation.
//
// Fails with kFileWrite if a name is empty, "__metadata__", repeated or not UTF-8, if the format
// lacks a dtype, or beyond the default SafetensorsLimits. A byte count that does not match the
// sizes is an InternalError. O(bytes + tensors * log(tensors)).
Result<std::string> print_safetensors(std::span<const SafetensorsTensor> tensors,
                                      const SafetensorsMetadata& metadata = {});

// Writes these bytes to `path` without joining them in memory: besides the tensors it takes the
// header and 1 MiB. "-" is standard output. A path that ends in ".zst" is refused, because a
// compressed file cannot be mapped. Atomic, see write_file_pieces: a tensor may be mapped from the
// replaced file. Errors: kFileWrite.
Status save_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors,
                        const SafetensorsMetadata& metadata = {});

}  // namespace fxopt
