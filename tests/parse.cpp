#include "tests/parse.h"

#include <string>
#include <utility>

#include "core/error.h"
#include "core/result.h"
#include "tests/catch.h"

namespace fxopt {

std::unique_ptr<Module> parse(std::string_view bytes, Format format) {
  Result<std::unique_ptr<Module>> module = parse_module(bytes, format, "test");
  if (!module.ok()) {
    if (format == Format::kText) UNSCOPED_INFO(bytes);
    FAIL(format_error(module.error()));
  }
  return std::move(*module);
}

}  // namespace fxopt
