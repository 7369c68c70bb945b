#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/result.h"
#include "ir/io/safetensors.h"

namespace fxopt {

// Returns the bytes of a text in the type that the reader takes.
inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// True if `a` and `b` have equal metadata, and equal tensors with equal bytes in the same order.
bool same_content(const Safetensors& a, const Safetensors& b);

// Returns the invariant that `result` breaks, or an empty text if it breaks no invariant. `result`
// is the reader's answer for `bytes` with the name `file`. If the reader refuses the bytes, the
// error is an input error with a message, a hint, the file and a place. If the reader accepts the
// bytes, the tensors are within the bytes and cover the data once. Each tensor has the byte count
// of its sizes and is found by name. Writing the tensors and reading them again produces equal
// tensors.
std::string broken_law(std::span<const std::byte> bytes, const std::string& file, const Result<Safetensors>& result);

}  // namespace fxopt
