#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/result.h"
#include "ir/io/safetensors.h"

namespace fxopt {

// The bytes of a text, as the reader takes them.
inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// True when both have the same tensors with the same bytes in the same order, and the same metadata.
bool same_content(const Safetensors& a, const Safetensors& b);

// The law that the reader breaks with `result`, which it gave for `bytes` named `file`; empty when none. A refusal is
// an error of bad input with a message, a hint, the file and a place. Tensors of accepted bytes lie within them, have
// the byte count of their sizes, cover the data once and are found by name. Written and read again they are the same.
std::string broken_law(std::span<const std::byte> bytes, const std::string& file, const Result<Safetensors>& result);

}  // namespace fxopt
