#include <vector>

#include <boost/graph/graph_traits.hpp>  // forbidden
#include <cuda_runtime.h>                // forbidden
#include <nlohmann/json.hpp>             // forbidden
#include "fxgraph.pb.h"                  // forbidden
#include "core/check.h"
#include "ir/graph/graph.h"
#include "passes/clean/cse.h"
#include "passes/pass/pass.h"
#include "passes/pipeline/pipeline.h"  // forbidden
#include "passes/recompute/remat.h"    // forbidden
#include "runtime/plan/plan.h"  // forbidden
#include "cli/main.h"           // forbidden
