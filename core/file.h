#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fxopt {

// Reads `path`, or standard input if it is "-". Decompresses zstd content, recognised by its magic,
// whatever the name. Errors: kFileOpen, kFileRead, kFileTooLarge (above `max_bytes` after
// decompression), kBadCompression.
Result<std::string> read_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 36);

// Writes `bytes` to `path` atomically: to a new file in the same folder, which is flushed and
// renamed. On an error the old file is unchanged. A replaced file keeps its permissions. A symbolic
// link is followed and kept, wherever it points. A file that its owner may not write is not
// replaced. "-" writes to standard output. A path that ends in ".zst" is compressed with zstd,
// deterministically. Special files such as /dev/null are written directly. Errors: kFileWrite.
Status write_file(const std::string& path, std::string_view bytes);

// Writes `pieces` in sequence to one file like write_file, without joining them in memory. Only for
// a path that ends in ".zst" they are joined and compressed. A piece may be mapped from the file
// being replaced: its pages stay valid. Errors: kFileWrite. Memory: 1 MiB.
Status write_file_pieces(const std::string& path, std::span<const std::string_view> pieces);

// Returns the same text for any two paths of one file. For an existing file that is the system's
// identity (hard links are one file), otherwise the place where it would be created, with symbolic
// links followed.
std::string file_identity(const std::string& path);

// Returns true for files that are written in place instead of replaced: devices, pipes, and names
// of open files such as /dev/stdout.
bool is_special_file(const std::string& path);

// Creates a folder and its parents. Does nothing if it exists. Error: kFileWrite.
Status make_folder(const std::string& path);

}  // namespace fxopt
