#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fxopt {

// The bytes of `path`, or of standard input when it is "-". Decompresses zstd content (recognised by its magic),
// whatever the name. Errors: kFileOpen, kFileRead, kFileTooLarge (beyond `max_bytes` after decompression),
// kBadCompression.
Result<std::string> read_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 36);

// Writes `bytes` to `path` atomically: into a new file in the same folder, flushed, then renamed; on an error the old
// file is as it was. A replaced file keeps its permissions, and a symbolic link to it stays; a file its owner may not
// write is not replaced. "-" writes to standard output. A path that ends in ".zst" is compressed with zstd, the same
// bytes each time. Special files such as /dev/null are written directly. Errors: kFileWrite.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace fxopt
