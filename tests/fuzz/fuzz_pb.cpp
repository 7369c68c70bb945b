// libFuzzer over the binary form: the bytes as they are, then the module inside them under a
// correct hash.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ir/io/io.h"
#include "tests/fuzz/laws.h"
#include "tests/fuzz/mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  static_cast<void>(fxopt::parse_pb(input, "raw.pb"));
  const std::string file = fxopt::seal(fxopt::module_of(input));
  const fxopt::Result<std::unique_ptr<fxopt::Module>> module = fxopt::parse_pb(file, "sealed.pb");
  if (!module.ok()) return 0;
  fxopt::require_law(fxopt::difference_from(file, **module));
  fxopt::require_law(fxopt::broken_law(**module, false));
  return 0;
}
