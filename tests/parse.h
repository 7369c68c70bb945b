#pragma once

#include <memory>
#include <string_view>

#include "ir/graph/module.h"
#include "ir/io/io.h"

namespace fxopt {

// Returns the module in `bytes`. If the reader rejects the bytes, the test fails with the reader's
// message.
std::unique_ptr<Module> parse(std::string_view bytes, Format format = Format::kText);

}  // namespace fxopt
