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

// Files of named tensors in the public format safetensors: 8 bytes with the length of the header (little-endian), the
// header as JSON, the data.
//
//   {"__metadata__": {"key": "text"}, "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
//
// Offsets count bytes from the beginning of the data. The data has neither gaps nor overlaps and ends with the file.

// A tensor inside a file or about to be written. It does not own its data.
struct SafetensorsTensor {
  std::string name;                   // UTF-8, not empty
  DType dtype = DType::kUnspecified;  // not complex32, complex128, quantized or bits
  std::vector<int64_t> sizes;         // in elements, outermost first; empty for rank 0. A float4 pair is one element
  // The elements in row-major order without padding, little-endian: element_size(dtype) bytes times all sizes. The
  // first byte may have any address: a reader copies elements with memcpy, or checks the alignment first. A byte of a
  // bool may be other than 0 and 1.
  std::span<const std::byte> bytes;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// The bounds of the reader. The writer keeps to the defaults.
struct SafetensorsLimits {
  uint64_t max_header_bytes = 100'000'000;  // the bound of the reference implementation
  uint64_t max_tensors = uint64_t{1} << 20;
  uint64_t max_rank = 64;
};

// The tensors and metadata of one file. Spans point into the bytes that were parsed.
class Safetensors {
 public:
  // In the order of the header, each name once.
  const std::vector<SafetensorsTensor>& tensors() const { return tensors_; }
  // The tensor of that name, or nullptr. O(log tensors).
  const SafetensorsTensor* find(std::string_view name) const;
  const SafetensorsMetadata& metadata() const { return metadata_; }

 private:
  friend class SafetensorsReader;

  std::vector<SafetensorsTensor> tensors_;
  std::vector<uint32_t> by_name_;  // indices of tensors_, sorted by name
  SafetensorsMetadata metadata_;
};

// Reads the header of `bytes`, which hold a whole file and must outlive the result. `file` names it in errors. Data is
// neither copied nor read. Each tensor lies within `bytes` and has the byte count of its sizes. That count fits into 63
// bits even with each size of 0 taken as 1, so strides fit too. Errors:
//   kTruncated      the file ends inside the header or inside a tensor
//   kMalformed      the header is not a JSON object in UTF-8
//   kDuplicateName  a tensor, a key of its record, or a key of the metadata occurs twice
//   kBadValue       a record that is not as above, a dtype this build does not have, a gap or an overlap
//   kCountMismatch  offsets that do not fit the shape, bytes after the last tensor
//   kLimit          beyond SafetensorsLimits, or a shape of 2^63 bytes or more
// The reference implementation accepts repeated names (the last one counts), empty names, unknown keys of a record, an
// odd last size of F4, and shapes without elements of any size. These are refused here.
// The error names the tensor in `where.field` or the place in `where.byte`. O(header + tensors * log(tensors)).
Result<Safetensors> parse_safetensors(std::span<const std::byte> bytes, const std::string& file,
                                      const SafetensorsLimits& limits = {});

// A file that is mapped into memory, and its content, which points into the mapping. May be moved.
struct SafetensorsFile {
  MappedFile mapping;
  Safetensors content;
};

// Maps `path`, a regular file that is not compressed, and reads its header. Errors: those of MappedFile::open and of
// parse_safetensors.
Result<SafetensorsFile> load_safetensors(const std::string& path, const SafetensorsLimits& limits = {});

// The bytes of a file. The header lists the metadata, if any, sorted by key, then the tensors in the given order. Data
// is ordered by decreasing element size, and within one size in the given order. Spaces pad the header to a multiple of
// 8 bytes, so each tensor begins at a multiple of its element size. The same arguments give the same bytes. The
// reference implementation orders header and data by dtype, the wider ones first, and then by name: for tensors in that
// order, and at most one key of metadata, the bytes are the same as its bytes.
//
// Errors: kFileWrite for a name that is empty, "__metadata__", repeated or not UTF-8, for a dtype that the format does
// not have, and beyond the default SafetensorsLimits. A byte count that does not fit the sizes is an InternalError.
// O(bytes + tensors * log(tensors)).
Result<std::string> print_safetensors(std::span<const SafetensorsTensor> tensors,
                                      const SafetensorsMetadata& metadata = {});

// Writes these bytes to `path` without joining them in memory: beyond the tensors it takes the header and 1 MiB. "-" is
// standard output. A path that ends in ".zst" is refused, because a compressed file cannot be mapped. Atomic, see
// write_file_pieces: a tensor may be mapped from the file that is replaced. Errors: kFileWrite.
Status save_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors,
                        const SafetensorsMetadata& metadata = {});

}  // namespace fxopt
