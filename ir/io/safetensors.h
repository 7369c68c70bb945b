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

// Files of named tensors in the public safetensors format. The first 8 bytes are the length of the
// header, little-endian. The header follows as JSON, and then the data.
//
//   {"__metadata__": {"key": "text"},
//    "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
//
// Offsets count bytes from the start of the data. The data has neither gaps nor overlaps, and ends
// at the end of the file.

// A tensor that is in a file or will be written to a file. It does not own its data.
struct SafetensorsTensor {
  std::string name;                   // UTF-8, not empty
  DType dtype = DType::kUnspecified;  // never complex32, complex128, a quantized or a bits type
  // The sizes of the dimensions, outermost first. Empty for rank 0. A float4 pair is one element.
  std::vector<int64_t> sizes;
  // The elements in row-major order, without padding, little-endian. The length is
  // element_size(dtype) times the product of the sizes. The first byte may have any address, so
  // readers copy elements with memcpy or check the alignment first. A byte of a bool may have
  // values other than 0 and 1.
  std::span<const std::byte> bytes;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// Limits of the reader. The writer uses the default limits.
struct SafetensorsLimits {
  uint64_t max_header_bytes = 100'000'000;  // the limit of the reference implementation
  uint64_t max_tensors = uint64_t{1} << 20;
  uint64_t max_rank = 64;
};

// The tensors and metadata of one file. Spans point into the parsed bytes.
class Safetensors {
 public:
  // Returns the tensors in the order of the header. Names are unique.
  const std::vector<SafetensorsTensor>& tensors() const { return tensors_; }
  // Returns the tensor of that name, or nullptr if it is missing. O(log tensors).
  const SafetensorsTensor* find(std::string_view name) const;
  const SafetensorsMetadata& metadata() const { return metadata_; }

 private:
  friend class SafetensorsReader;

  std::vector<SafetensorsTensor> tensors_;
  std::vector<uint32_t> by_name_;  // indices of tensors_, sorted by name
  SafetensorsMetadata metadata_;
};

// Parses the header of `bytes`. `bytes` must hold a whole file and must outlive the result. `file`
// names the input in errors. The data is neither copied nor read. Each tensor is within `bytes`,
// and its byte count matches its sizes. The byte count fits into 63 bits even if each size of 0 is
// counted as 1. Therefore the strides fit into 63 bits as well. Each error has one of these codes:
//
//   kTruncated      the file ends inside the header or inside a tensor
//   kMalformed      the header is not a JSON object in UTF-8
//   kDuplicateName  a tensor, a key of a tensor's JSON object, or a metadata key occurs twice
//   kBadValue       a key of a tensor's JSON object is unknown or missing, a value has the wrong
//                   type, a dtype is unknown, or the data has a gap or an overlap
//   kCountMismatch  offsets that do not match the shape, or bytes after the last tensor
//   kLimit          content beyond SafetensorsLimits, or a shape of 2^63 bytes or more
//
// The reference implementation accepts some content that is an error here:
//   - an empty name
//   - an unknown key in the JSON object of a tensor
//   - an F4 tensor whose last size is odd, if the number of elements is even
//   - a shape such as [0, 2^40, 2^40]: the 0 comes first, and the product of the nonzero sizes
//     needs more than 63 bits
//   - a repeated name, if the data without the earlier tensors of this name has no gap. The
//     reference implementation uses the last tensor of this name.
//
// An error names the tensor in `where.field`, or gives the offset of the fault in `where.byte`.
// O(header + tensors * log(tensors)).
Result<Safetensors> parse_safetensors(std::span<const std::byte> bytes, const std::string& file,
                                      const SafetensorsLimits& limits = {});

// A mapped file and its content. The content points into the mapping. The object may be moved.
struct SafetensorsFile {
  MappedFile mapping;
  Safetensors content;
};

// Maps `path`, an uncompressed regular file, and parses its header. Errors: those of
// MappedFile::open and of parse_safetensors.
Result<SafetensorsFile> load_safetensors(const std::string& path, const SafetensorsLimits& limits = {});

// Returns the bytes of a file. The header lists the metadata, sorted by key, and then the tensors
// in the given order. Without metadata, the header lists only the tensors. The data is ordered by
// decreasing element size. Tensors of the same element size keep the given order. Spaces pad the
// header to a multiple of 8 bytes, so each tensor begins at a multiple of its element size. The
// same arguments give the same bytes.
//
// The reference implementation orders header and data by dtype, with wider types first, and then by
// name. If the tensors have that order and there is at most one metadata key, both implementations
// write the same bytes.
//
// Fails with kFileWrite in these cases:
//   - A name is empty, "__metadata__", repeated or not UTF-8.
//   - The safetensors format does not support the dtype of a tensor.
//   - The content exceeds the default SafetensorsLimits.
// Throws InternalError if a byte count does not match the sizes. O(bytes + tensors * log(tensors)).
Result<std::string> print_safetensors(std::span<const SafetensorsTensor> tensors,
                                      const SafetensorsMetadata& metadata = {});

// Writes the bytes of print_safetensors() to `path`. The bytes are never joined in memory. Apart
// from the tensors, this function needs memory only for the header, plus 1 MiB. If `path` is "-",
// writes to standard output. A path that ends in ".zst" is refused, because a compressed file
// cannot be mapped. The file is written atomically, see write_file_pieces(). If `path` already
// exists, the data of `tensors` may be in a memory mapping of the old file. The mapping remains
// valid when the new file replaces the old file. Errors: kFileWrite.
Status save_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors,
                        const SafetensorsMetadata& metadata = {});

}  // namespace fxopt
