#include <iostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <google/protobuf/message.h>  // forbidden
#include <spdlog/spdlog.h>            // forbidden
#include <fmt/format.h>               // forbidden

#include "core/version.h"
#include "ir/graph/graph.h"
#include "passes/clean/cse.h"
#include "runtime/plan/plan.h"
#include "tests/catch.h"  // forbidden
