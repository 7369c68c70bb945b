#include "ir/graph/graph.h"

#include <iostream>                     // forbidden
#include <google/protobuf/message.h>    // forbidden
#include <nlohmann/json.hpp>            // forbidden
#include <zstd.h>                       // forbidden
#include <sys/mman.h>                   // forbidden
#include "fxgraph.pb.h"                 // forbidden
#include "schemas/fxgraph.pb.h"         // forbidden
#include "graph.h"                      // forbidden
#include "../io/pb.h"                   // forbidden
#include "ir/../passes/clean/cse.h"     // forbidden
#include "core/result.h"
#include "passes/clean/cse.h"           // forbidden
#include "runtime/plan/plan.h"          // forbidden
#include "cli/main.h"                   // forbidden
  #  include  "schemas/fxgraph.h"       // forbidden
// #include "cli/main.h" in a comment is not an include
