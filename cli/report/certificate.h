#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "ir/graph/module.h"

namespace fxopt {

// "proved: cse, dce; not proved: remat{compat=torch}; it relies on 3 views as recorded", on one
// line.
std::string certificate_text(const Module& module, const Certificate& certificate);
nlohmann::ordered_json certificate_json(const Module& module, const Certificate& certificate);

}  // namespace fxopt
