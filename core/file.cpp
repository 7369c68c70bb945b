// This file uses POSIX calls instead of iostreams. Only the POSIX calls report why a call failed,
// flush to the disk, and create a file exclusively.
#include "core/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <zstd.h>

#include "core/posix_file.h"

namespace fxopt {
namespace {

using Pieces = std::span<const std::string_view>;

constexpr size_t kChunk = size_t{1} << 20;
// Level 9 is the highest level that is worth its time. Figures for a training step of 32,000 nodes
// and 3.2 MB: level 3 takes 0.007 s and gives 467 kB. Level 9 takes 0.047 s and gives 442 kB. Level
// 19 gives 384 kB, but takes 1.36 s, which is twenty times the rest of a conversion.
constexpr int kZstdLevel = 9;
constexpr int kMaxLinks = 40;  // limit of symbolic links in a path, as in the Linux kernel

std::string shown_path(const std::string& path, std::string_view stream) {
  return path == "-" ? std::string(stream) : path;
}

Error too_large(const std::string& file, uint64_t max_bytes) {
  return make_file_error(ErrorCode::kFileTooLarge, file,
                         "is larger than the limit of " + std::to_string(max_bytes) + " bytes",
                         "check that this is the file you meant");
}

// Reads everything from `fd`, up to `max_bytes`.
Result<std::string> read_all(int fd, const std::string& file, uint64_t max_bytes) {
  struct stat info {};
  const bool has_size = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
  const uint64_t size = has_size ? static_cast<uint64_t>(info.st_size) : 0;
  if (size > max_bytes) return too_large(file, max_bytes);
  std::string bytes;
  size_t used = 0;
  while (true) {
    if (used == bytes.size()) {
      // With one extra byte, the last read finds the end of the file without a larger buffer.
      bytes.resize(used == 0 && size > 0 ? size + 1 : used + std::max(used, kChunk));
    }
    const ssize_t count = ::read(fd, bytes.data() + used, std::min(bytes.size() - used, size_t{1} << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return read_error(ErrorCode::kFileRead, file, "read the file", errno);
    if (count == 0) break;
    used += static_cast<size_t>(count);
    if (used > max_bytes) return too_large(file, max_bytes);
  }
  bytes.resize(used);
  return bytes;
}

bool is_zstd(std::string_view bytes) { return bytes.substr(0, 4) == "\x28\xb5\x2f\xfd"; }

// Decompresses in chunks, so that `max_bytes` limits the memory even if the size in the header is
// wrong.
Result<std::string> decompress(std::string_view packed, const std::string& file, uint64_t max_bytes) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (context == nullptr) return make_file_error(ErrorCode::kFileTooLarge, file, "not enough memory to decompress");
  std::string bytes;
  const uint64_t promised = ZSTD_getFrameContentSize(packed.data(), packed.size());
  // Graphs compress by less than a factor of 64. Above this factor, the code does not trust the
  // size in the header, and the buffer grows step by step.
  if (promised <= packed.size() * uint64_t{64} && promised <= max_bytes) bytes.reserve(promised);
  std::string chunk(ZSTD_DStreamOutSize(), '\0');
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  size_t pending = 1;  // 0 at the end of a frame
  bool is_full = true;
  while (in.pos < in.size || is_full) {
    ZSTD_outBuffer out{chunk.data(), chunk.size(), 0};
    pending = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(pending) != 0) {
      Error error = make_file_error(ErrorCode::kBadCompression, file,
                                    std::string("the zstd data is damaged: ") + ZSTD_getErrorName(pending),
                                    "check the file with `zstd -t`, or copy it again");
      error.where.byte = in.pos;
      error.where.has_byte = true;
      return error;
    }
    if (bytes.size() + out.pos > max_bytes) return too_large(file, max_bytes);
    bytes.append(chunk, 0, out.pos);
    is_full = out.pos == out.size && pending != 0;
  }
  if (pending != 0) {
    Error error =
        make_file_error(ErrorCode::kBadCompression, file, "the zstd data ends inside a frame", "copy the file again");
    error.where.byte = packed.size();
    error.where.has_byte = true;
    return error;
  }
  return bytes;
}

Result<std::string> read_plain(const std::string& path, const std::string& file, uint64_t max_bytes) {
  if (path == "-") return read_all(STDIN_FILENO, file, max_bytes);
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return read_error(ErrorCode::kFileOpen, file, "open the file", errno);
  return read_all(fd.get(), file, max_bytes);
}

Result<std::string> compress(std::string_view bytes, const std::string& file) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  if (context == nullptr) return make_file_error(ErrorCode::kFileWrite, file, "not enough memory to compress");
  // Uses one thread, the default, so that equal input gives equal bytes on every machine.
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kZstdLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_contentSizeFlag, 1);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress2(context.get(), packed.data(), packed.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(size) != 0) {
    return make_file_error(ErrorCode::kFileWrite, file, std::string("cannot compress: ") + ZSTD_getErrorName(size));
  }
  packed.resize(size);
  return packed;
}

Status write_all(int fd, std::string_view bytes, const std::string& file) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return write_error(file, "write the file", errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return ok_status();
}

// Writes the pieces in sequence. Joins small pieces, so that one system call writes many pieces.
Status write_pieces(int fd, Pieces pieces, const std::string& file) {
  std::string small;
  for (const std::string_view piece : pieces) {
    if (!small.empty() && small.size() + piece.size() > kChunk) {
      Status status = write_all(fd, small, file);
      if (!status.ok()) return status;
      small.clear();
    }
    if (piece.size() < kChunk && pieces.size() > 1) {
      small += piece;
      continue;
    }
    Status status = write_all(fd, piece, file);
    if (!status.ok()) return status;
  }
  return write_all(fd, small, file);
}

Status write_special(const std::string& path, Pieces pieces) {
  // If the shell redirected standard output to a file, O_APPEND continues at the end of this file.
  // On a device, O_APPEND has no effect.
  FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (fd.get() < 0) return write_error(path, "open the file", errno);
  Status status = write_pieces(fd.get(), pieces, path);
  if (!status.ok()) return status;
  return fd.close() ? ok_status() : Status(write_error(path, "write the file", errno));
}

// Returns true if `path` is a name of an open file descriptor. A rename to this path would replace
// the link in /dev, or the reader of the descriptor would keep the old file.
bool is_descriptor_path(std::string_view path) {
  return path == "/dev/stdout" || path == "/dev/stderr" || path.starts_with("/dev/fd/") || path.starts_with("/proc/");
}

// Returns the final target of a symbolic link, whether it exists or not.
std::string follow_links(std::filesystem::path path) {
  for (int i = 0; i < kMaxLinks; ++i) {
    std::error_code failure;
    const std::filesystem::path target = std::filesystem::read_symlink(path, failure);
    if (failure) break;
    path = path.parent_path() / target;
  }
  return path.string();
}

// A new file in the folder of the target. rename_to() replaces the target with the file. Otherwise,
// the destructor removes the file. If the file system supports O_TMPFILE, the file has no name
// until it is complete, so a killed process leaves no file behind.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& target, mode_t mode) {
    const size_t slash = target.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : target.substr(0, slash + 1);
    stem_ = folder + ".fxopt-" + std::to_string(::getpid()) + "-";
#ifdef O_TMPFILE
    if (::access(kOwnDescriptors, X_OK) == 0) {
      fd_ = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
      if (fd_ >= 0) return;
    }
#endif
    has_name_ = take_name([&](const char* path) {
      fd_ = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
      return fd_ >= 0;
    });
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (has_name_) ::unlink(path_.c_str());
  }

  int fd() const { return fd_; }
  bool flush_and_close() {
    if (::fsync(fd_) != 0) return false;
    if (!has_name_) {
      const std::string open_file = kOwnDescriptors + std::to_string(fd_);
      has_name_ = take_name([&](const char* path) {
        return ::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
      });
    }
    return has_name_ && ::close(std::exchange(fd_, -1)) == 0;
  }
  bool rename_to(const std::string& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return false;
    has_name_ = false;
    return true;
  }

 private:
  // A limit, because crashed processes with the same process id may have left many files.
  static constexpr int kMaxAttempts = 10000;
  static constexpr const char* kOwnDescriptors = "/proc/self/fd/";

  // Tries names until `make(name)` succeeds or fails for a reason other than a taken name.
  template <class Make>
  bool take_name(Make make) {
    for (int number = 0; number < kMaxAttempts; ++number) {
      path_ = stem_ + std::to_string(number) + ".tmp";
      if (make(path_.c_str())) return true;
      if (errno != EEXIST) return false;
    }
    return false;
  }

  std::string stem_, path_;
  int fd_ = -1;
  bool has_name_ = false;
};

// `existing` describes the replaced file, or is null.
Status write_regular(const std::string& target, const struct stat* existing, Pieces pieces, const std::string& file) {
  // Without this check, the rename would replace even a write-protected file.
  if (existing != nullptr && ::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0)
    return write_error(file, "write the file", errno);
  const mode_t permissions = existing != nullptr ? existing->st_mode & 07777 : 0666;
  // the umask applies to a new file's permissions here
  TemporaryFile temporary(target, permissions & 0777);
  if (temporary.fd() < 0) return write_error(file, "create a file in the same folder", errno);
  if (existing != nullptr && ::fchmod(temporary.fd(), permissions) != 0) {
    return write_error(file, "keep the permissions of the file", errno);
  }
  Status status = write_pieces(temporary.fd(), pieces, file);
  if (!status.ok()) return status;
  if (!temporary.flush_and_close()) return write_error(file, "write the file", errno);
  if (!temporary.rename_to(target)) return write_error(file, "replace the file", errno);
  return ok_status();
}

Status write_path(const std::string& path, Pieces pieces) {
  if (path == "-") {
    std::fflush(stdout);  // keep the order of earlier output
    return write_pieces(STDOUT_FILENO, pieces, shown_path(path, "standard output"));
  }
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) return write_error(path, "write the file", errno);
  if (exists && S_ISDIR(info.st_mode)) return write_error(path, "write the file", EISDIR);
  if (is_descriptor_path(path) || (exists && !S_ISREG(info.st_mode))) return write_special(path, pieces);
  if (!exists) return write_regular(follow_links(path), nullptr, pieces, path);
  // Resolves symbolic links, so that the rename replaces the target and keeps the link.
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  if (resolved == nullptr) return write_error(path, "resolve the path", errno);
  return write_regular(resolved.get(), &info, pieces, path);
}

}  // namespace

Result<std::string> read_file(const std::string& path, uint64_t max_bytes) {
  const std::string file = shown_path(path, "standard input");
  try {
    Result<std::string> bytes = read_plain(path, file, max_bytes);
    if (!bytes.ok() || !is_zstd(*bytes)) return bytes;
    return decompress(*bytes, file, max_bytes);
  } catch (const std::bad_alloc&) {
    return make_file_error(ErrorCode::kFileTooLarge, file, "does not fit into memory");
  }
}

Status write_file(const std::string& path, std::string_view bytes) {
  try {
    if (!path.ends_with(".zst")) return write_path(path, {&bytes, 1});
    const Result<std::string> packed = compress(bytes, path);
    if (!packed.ok()) return packed.error();
    const std::string_view piece = *packed;
    return write_path(path, {&piece, 1});
  } catch (const std::bad_alloc&) {
    return make_file_error(ErrorCode::kFileWrite, path, "not enough memory to compress");
  }
}

Status write_file_pieces(const std::string& path, std::span<const std::string_view> pieces) {
  if (!path.ends_with(".zst")) return write_path(path, pieces);
  std::string bytes;
  try {
    for (const std::string_view piece : pieces) bytes += piece;
  } catch (const std::bad_alloc&) {
    return make_file_error(ErrorCode::kFileWrite, path, "not enough memory to compress");
  }
  return write_file(path, bytes);
}

std::string file_identity(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
  const std::filesystem::path target = follow_links(path);
  std::error_code failure;
  const std::filesystem::path folder =
      std::filesystem::weakly_canonical(target.has_parent_path() ? target.parent_path() : ".", failure);
  return failure ? path : (folder / target.filename()).string();
}

bool is_special_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return false;
  return is_descriptor_path(path) || (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
}

Status make_folder(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  return failure ? Status(write_error(path, "make the folder", failure.value())) : ok_status();
}

}  // namespace fxopt
