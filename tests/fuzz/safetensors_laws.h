#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/result.h"
#include "ir/io/safetensors.h"

namespace fxopt {

// The bytes of a text, as the reader expects them.
inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// True if both have equal metadata and equal tensors with equal bytes in the same order.
bool same_content(const Safetensors& a, const Safetensors& b);

// Returns the invariant that `result`, the reader's answer for `bytes` named `file`, breaks; empty
// if none. A refusal is an input error with a message, a hint, the file and a place. Tensors of
// accepted bytes are within them, have the byte count of their sizes, cover the data once and are
// found by name. Writing and reading them again gives equal tensors.
std::string broken_law(std::span<const std::byte> bytes, const std::string& file, const Result<Safetensors>& result);

}  // namespace fxopt
