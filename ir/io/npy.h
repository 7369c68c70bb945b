#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/mapped_file.h"
#include "core/result.h"
#include "ir/io/safetensors.h"

namespace fxopt {

// Parses one array in numpy's format .npy, versions 1 to 3 (numpy/lib/format.py). The tensor has no
// name. It points into `bytes`, which must outlive the tensor. `file` is the name of the input in
// an error. Each error has one of these codes:
//
//   kNotAFile       the magic is missing
//   kVersion        a version other than 1 to 3
//   kTruncated      the file ends inside the header or the array
//   kMalformed      the header is not a dict of descr, fortran_order and shape
//   kBadValue       an unsupported dtype, big-endian numbers, or Fortran order with two or more
//                   dimensions
//   kCountMismatch  bytes after the array
//   kLimit          an array of 2^63 bytes or more, or a header above 1 MiB
//
// O(header).
Result<SafetensorsTensor> parse_npy(std::span<const std::byte> bytes, const std::string& file);

// A mapped file and its array. The object may be moved.
struct NpyFile {
  MappedFile mapping;
  SafetensorsTensor tensor;
};
Result<NpyFile> load_npy(const std::string& path);

}  // namespace fxopt
