#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fxopt {

// The bytes of `path`, or of standard input when it is "-". Decompresses zstd content (recognised by its magic),
// whatever the name. Errors: kFileOpen, kFileRead, kFileTooLarge (beyond `max_bytes` after decompression),
// kBadCompression.
Result<std::string> read_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 36);

// Writes `bytes` to `path` atomically: into a new file in the same folder, flushed, then renamed; on an error the old
// file is as it was. A replaced file keeps its permissions, a symbolic link is followed and stays, wherever it points;
// a file its owner may not write is not replaced. "-" writes to standard output. A path that ends in ".zst" is
// compressed with zstd, the same bytes each time. Special files such as /dev/null are written directly. Errors:
// kFileWrite.
Status write_file(const std::string& path, std::string_view bytes);

// Writes `pieces` one after the other to one file, as write_file does, without joining them in memory first; only for a
// path that ends in ".zst" they are joined and compressed. A piece may be mapped from the file that is replaced: its
// pages stay valid. Errors: kFileWrite. Memory: 1 MiB.
Status write_file_pieces(const std::string& path, std::span<const std::string_view> pieces);

// The same text for two paths of one file: where it exists, what the system knows it by (hard links are one file); else
// the place it would be made at, symbolic links followed.
std::string file_identity(const std::string& path);

// True for what is written to and not replaced: devices, pipes, and names of open files such as /dev/stdout.
bool is_special_file(const std::string& path);

// Makes a folder and those above it; nothing when it is there. Error: kFileWrite.
Status make_folder(const std::string& path);

}  // namespace fxopt
