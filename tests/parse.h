#pragma once

#include <memory>
#include <string_view>

#include "ir/graph/module.h"
#include "ir/io/io.h"

namespace fxopt {

// The module in `bytes`; if a reader rejects them, the test fails with its message.
std::unique_ptr<Module> parse(std::string_view bytes, Format format = Format::kText);

}  // namespace fxopt
