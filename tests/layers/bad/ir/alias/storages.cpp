#include "ir/alias/storages.h"

#include "ir/graph/graph.h"
#include "ir/step/phases.h"  // forbidden
#include "ir/prepare.h"      // forbidden
