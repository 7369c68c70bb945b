// libFuzzer over pipelines: runs passes on a text graph; its length selects the passes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "ir/io/io.h"
#include "tests/fuzz/laws.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const fxopt::Result<std::unique_ptr<fxopt::Module>> module = fxopt::parse_text(input, "input");
  if (module.ok()) fxopt::require_law(fxopt::broken_pipeline(**module, size));
  return 0;
}
