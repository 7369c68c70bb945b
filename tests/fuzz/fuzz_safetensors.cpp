// libFuzzer over safetensors files.

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/io/safetensors.h"
#include "tests/fuzz/laws.h"
#include "tests/fuzz/safetensors_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  fxopt::require_law(fxopt::broken_law(input, "input", fxopt::parse_safetensors(input, "input")));
  return 0;
}
