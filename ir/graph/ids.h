#pragma once

#include "core/id.h"
#include "core/interner.h"

namespace fxopt {

// Each dense table has its own type of id. Ids of a Graph's tables are meaningful only in that
// graph. Ids of a Module's tables are meaningful in every graph of that module.
using NodeId = Id<struct NodeTag>;        // a node of a Graph
using ArgIndex = Id<struct ArgTag>;       // an index into the arguments of a Pool
using UseId = Id<struct UseTag>;          // an edge of a Graph: an argument that refers to a node
using ValueId = Id<struct ValueTag>;      // an index into the values of a Pool
using ExtraId = Id<struct ExtraTag>;      // the NodeExtra of a node of a Graph
using GraphId = Id<struct GraphTag>;      // a graph of a Module
using TargetId = Id<struct TargetTag>;    // a call target of a Module
using DimsId = Id<struct DimsTag>;        // a list of sizes or strides in a Module
using ExprId = Id<struct ExprTag>;        // a symbolic expression in a Module
using StorageId = Id<struct StorageTag>;  // a storage that a Module records
using SourceId = Id<struct SourceTag>;    // a source location in a Module
using RegionId = Id<struct RegionTag>;    // an activation-checkpoint region in a Module

}  // namespace fxopt
