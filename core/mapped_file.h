#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/result.h"

namespace fxopt {

// A regular file that is mapped into memory. The system reads a page when the page is first used.
// The mapping is read-only and private. The mapping stays valid if the file is renamed, deleted or
// replaced by write_file. If another process truncates the file in place, the next access to a page
// beyond the new end of the file ends this process with SIGBUS.
class MappedFile {
 public:
  // Maps the whole file `path`. Does not decompress the file. Treats "-" as a file name. Fails with
  // kFileOpen or kFileRead. Folders, pipes and devices cannot be mapped, so they are a kFileRead
  // error. Fails with kFileTooLarge if the address space has no room. O(1).
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Returns the content of the file. The address is page-aligned and stays the same if the object
  // is moved. The span is empty for an empty file.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace fxopt
