#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/mapped_file.h"
#include "core/result.h"
#include "ir/io/safetensors.h"

namespace fxopt {

// One array in numpy's format .npy, versions 1 to 3 (numpy/lib/format.py): the tensor has no name, and its bytes lie in `bytes`, which
// must outlive it. `file` names it in errors: kNotAFile without the magic, kVersion, kTruncated, kMalformed for a header that is no
// dict of descr, fortran_order and shape, kBadValue for a dtype that fxopt does not have, big-endian numbers and Fortran order,
// kCountMismatch for bytes behind the array, kLimit for 2^63 bytes and more. O(header).
Result<SafetensorsTensor> parse_npy(std::span<const std::byte> bytes, const std::string& file);

// A file that is mapped, and its array. May be moved.
struct NpyFile {
  MappedFile mapping;
  SafetensorsTensor tensor;
};
Result<NpyFile> load_npy(const std::string& path);

}  // namespace fxopt
