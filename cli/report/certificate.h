#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "ir/graph/module.h"

namespace fxopt {

// Returns one line, such as "proved: cse, dce; not proved: remat; the proof relies on the recorded
// sizes of 3 views". The sizes of these 3 views come only from the file: no rule of fxopt computes
// them.
std::string certificate_text(const Module& module, const Certificate& certificate);
nlohmann::ordered_json certificate_json(const Module& module, const Certificate& certificate);

}  // namespace fxopt
