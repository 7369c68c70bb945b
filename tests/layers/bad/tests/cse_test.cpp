#include <catch2/catch.hpp>  // forbidden

#include "cli/main.h"
#include "core/check.h"
#include "fxgraph.pb.h"
#include "passes/clean/cse.h"
#include "runtime/plan/plan.h"
#include "tests/catch.h"
