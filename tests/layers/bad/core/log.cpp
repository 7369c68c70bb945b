#include "core/log.h"

#include <fcntl.h>
#include <string>

#include <spdlog/spdlog.h>
#include <xxhash.h>
#include <zstd.h>

#include "ir/graph/graph.h"  // forbidden
#include "tests/catch.h"     // forbidden
