#pragma once

#include <fmt/format.h>     // forbidden
#include <spdlog/spdlog.h>  // forbidden
#include <string>
#include <unistd.h>  // forbidden
#include <xxhash.h>  // forbidden
#include <zstd.h>    // forbidden
