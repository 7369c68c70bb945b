#pragma once

#include "core/id.h"
#include "core/interner.h"

namespace fxopt {

// Each dense table has its own type of id. Ids of a Graph's tables are meaningful only in that
// graph. Ids of a Module's tables are meaningful in every graph of that module.
using NodeId = Id<struct NodeTag>;        // Graph: nodes
using ArgIndex = Id<struct ArgTag>;       // Graph: the pool of arguments
using UseId = Id<struct UseTag>;          // Graph: edges, one for each argument that names a node
using ValueId = Id<struct ValueTag>;      // Graph: the pool of values
using ExtraId = Id<struct ExtraTag>;      // Graph: rare fields of nodes
using GraphId = Id<struct GraphTag>;      // Module: graphs
using TargetId = Id<struct TargetTag>;    // Module: call targets
using DimsId = Id<struct DimsTag>;        // Module: lists of sizes or strides
using ExprId = Id<struct ExprTag>;        // Module: symbolic expressions
using StorageId = Id<struct StorageTag>;  // Module: storages
using SourceId = Id<struct SourceTag>;    // Module: source locations
using RegionId = Id<struct RegionTag>;    // Module: checkpoint regions

}  // namespace fxopt
