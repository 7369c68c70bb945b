#pragma once

#include <string>
#include <vector>

#include "ir/memory/footprint.h"

namespace fxopt {

// The graph's step as a memory snapshot of PyTorch: the pickle that
// torch.cuda.memory._dump_snapshot() writes and pytorch.org/memory_viz draws. Memory from before
// the step appears only as blocks, then every event of the allocator follows. The segments are
// classic or expandable, according to the allocator options. Time is counted in events. Frames hold
// the node with its operator and type, its module, and its source line. Only CUDA devices are
// included; empty if there is none. O((nodes + edges + events) * log).
std::string memory_snapshot(const Footprint& footprint, const MeasureOptions& options, const std::string& alloc_conf);

}  // namespace fxopt
