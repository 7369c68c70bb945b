#include "passes/added/added.h"  // forbidden
#include "ir/graph/graph.h"
