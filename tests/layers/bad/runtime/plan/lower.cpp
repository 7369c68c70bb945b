#include <cuda.h>    // forbidden
#include <nccl.h>    // forbidden
#include <stdint.h>  // forbidden

#include "ir/graph/graph.h"
#include "runtime/abi/plan.h"
