#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fxopt {

// Reads the file `path`, or standard input if `path` is "-". If the content begins with the zstd
// magic, decompresses the content, whatever the name of the file. Errors: kFileOpen, kFileRead,
// kFileTooLarge (above `max_bytes` after decompression), kBadCompression.
Result<std::string> read_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 36);

// Writes `bytes` to `path` atomically. First writes a new file in the same folder and flushes it.
// Then renames the new file to `path`. If an error occurs, the old file is unchanged. A replaced
// file keeps its permissions. If `path` is a symbolic link, replaces the target of the link and
// keeps the link. Fails if the old file is write-protected. If `path` is "-", writes to standard
// output. If `path` ends in ".zst", compresses the bytes with zstd. Equal bytes give equal files.
// Special files such as /dev/null are written directly. Errors: kFileWrite.
Status write_file(const std::string& path, std::string_view bytes);

// Writes `pieces` in sequence to one file, like write_file(). If `path` ends in ".zst", joins the
// pieces in memory and compresses the result. Otherwise needs only a buffer of 1 MiB. If `path`
// already exists, a piece may point into a mapping of the old file. The mapping remains valid when
// the new file replaces the old file. Errors: kFileWrite.
Status write_file_pieces(const std::string& path, std::span<const std::string_view> pieces);

// Returns the same text for any two paths of one file. For an existing file, the text contains the
// device number and the inode number. All hard links to a file therefore have the same text. For a
// missing file, the text is the path at which write_file() would create the file.
std::string file_identity(const std::string& path);

// Returns true for files that are written in place and not replaced. These are devices, pipes, and
// names of open files such as /dev/stdout.
bool is_special_file(const std::string& path);

// Creates a folder and its parents. Does nothing if the folder exists. Error: kFileWrite.
Status make_folder(const std::string& path);

}  // namespace fxopt
