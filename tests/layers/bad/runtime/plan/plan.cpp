#include <dlfcn.h>
#include <iostream>  // forbidden

#include <CLI/CLI.hpp>  // forbidden

#include "core/check.h"
#include "ir/graph/graph.h"
#include "passes/clean/cse.h"  // forbidden
#include "runtime/plan/plan.h"
#include "cli/main.h"  // forbidden
