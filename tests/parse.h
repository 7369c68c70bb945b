#pragma once

#include <memory>
#include <string_view>

#include "ir/graph/module.h"
#include "ir/io/io.h"

namespace fxopt {

// The module that `bytes` hold; where a reader refuses them the test fails with its message.
std::unique_ptr<Module> parse(std::string_view bytes, Format format = Format::kText);

}  // namespace fxopt
