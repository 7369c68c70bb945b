#include "core/mapped_file.h"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <utility>

#include "core/posix_file.h"

namespace fxopt {

Result<MappedFile> MappedFile::open(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe waits for a writer.
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return read_error(ErrorCode::kFileOpen, path, "open the file", errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return read_error(ErrorCode::kFileRead, path, "read the file", errno);
  if (S_ISDIR(info.st_mode)) return read_error(ErrorCode::kFileRead, path, "read the file", EISDIR);
  if (!S_ISREG(info.st_mode)) {
    return make_file_error(ErrorCode::kFileRead, path, "is a pipe or device, which cannot be mapped into memory",
                           "copy it to a regular file");
  }
  if (info.st_size == 0) return MappedFile({});
  if (static_cast<uint64_t>(info.st_size) > SIZE_MAX) {
    return make_file_error(ErrorCode::kFileTooLarge, path, "does not fit into the address space");
  }
  const size_t size = static_cast<size_t>(info.st_size);
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) {
    const ErrorCode code = errno == ENOMEM ? ErrorCode::kFileTooLarge : ErrorCode::kFileRead;
    return read_error(code, path, "map the file", errno);
  }
  return MappedFile({static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace fxopt
