#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/result.h"

namespace fxopt {

// The bytes of a regular file as memory: the system reads a page when it is first used. Read-only and private. The
// mapping stays valid when the file is renamed, deleted or replaced by write_file. A process that shortens the file in
// place ends this one with SIGBUS at the next use of a lost page.
class MappedFile {
 public:
  // Maps all of `path`. Compressed files are not decompressed, "-" is a file name. Errors: kFileOpen, kFileRead (also
  // for folders, pipes and devices, which cannot be mapped), kFileTooLarge (no address space). O(1).
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Begins on a page. Empty for an empty file. The address stays the same when the object is moved.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace fxopt
