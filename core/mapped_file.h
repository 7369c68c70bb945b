#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/result.h"

namespace fxopt {

// A regular file as memory: the system reads a page when it is first used. Read-only and private.
// The mapping stays valid if the file is renamed, deleted or replaced by write_file. If another
// process truncates the file in place, the next use of a lost page ends this process with SIGBUS.
class MappedFile {
 public:
  // Maps all of `path`. Does not decompress; "-" is a file name. Errors: kFileOpen, kFileRead (also
  // for folders, pipes and devices, which cannot be mapped), kFileTooLarge (no address space).
  // O(1).
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Page-aligned. Empty for an empty file. The address survives a move of the object.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace fxopt
