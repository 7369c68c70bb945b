#pragma once

#include <string>
#include <vector>

#include "ir/memory/footprint.h"

namespace fxopt {

// Returns the graph's step as a memory snapshot of PyTorch. The snapshot is a pickle in the format
// that torch.cuda.memory._dump_snapshot() writes and that pytorch.org/memory_viz draws. Memory from
// before the step appears only as blocks. The snapshot contains every allocator event of the step.
// The allocator options determine whether the segments are expandable. Time is counted in events.
// The frames of an event hold the node, its operator and type, its module, and its source line.
// Only CUDA devices are included. Returns an empty text if there is no CUDA device.
// O((nodes + edges + events) * log).
std::string memory_snapshot(const Footprint& footprint, const MeasureOptions& options, const std::string& alloc_conf);

}  // namespace fxopt
