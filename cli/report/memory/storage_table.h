#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/interner.h"
#include "ir/memory/footprint.h"

namespace fxopt {

// One storage of tensors, or one block of memory that the graph does not show. Examples of such
// blocks are the workspace of a call, and optimizer state. `Text` is std::string, or StringId for
// an entry of a table.
template <class Text>
struct StorageFields {
  Text node;   // the producer or owner
  Text label;  // label of the memory block, such as "cublas" or "exp_avg"; empty for storages
  Text module_path;
  Text type;    // dtype and sizes of its first tensor, such as "bf16[2, 2048]"
  Text target;  // "aten.mm.default"; empty for inputs
  Text source;  // "model.py:123"
  // The name of a parameter or buffer: "layers.0.wq.weight". Also set for memory that is kept
  // between steps because of the parameter or buffer.
  Text fqn;
  Text phase;
  Text kind;         // memory class
  Text first, last;  // the storage is live from `first` to `last`, including both
  int64_t bytes = 0;
  uint32_t first_place = 0, last_place = 0;
};
using StorageRow = StorageFields<std::string>;
using StorageEntry = StorageFields<StringId>;

// The storages of one device. Each text is stored once, because there may be a million storages.
struct StorageTable {
  std::shared_ptr<Interner> texts;
  // Storages that are live at the peak come first, in order of size, the largest first. All other
  // storages follow in schedule order.
  std::vector<StorageEntry> entries;
  size_t live = 0;  // number of storages that are live at the peak

  StorageRow row(const StorageEntry& entry) const;
  StorageEntry entry(const StorageRow& row) const;
};

// Makes entries of a StorageTable from the memory blocks (TraceBlock) of one graph. The object
// refers to both arguments of its constructor.
class StorageLister {
 public:
  StorageLister(const Footprint& footprint, Interner& texts) : footprint_(footprint), texts_(texts) {}

  // Makes one entry. Takes amortised O(1) time, plus one look-up for each text that is not in the
  // module's strings.
  StorageEntry entry(const MemoryTrace& trace, const TraceBlock& block);

 private:
  StringId text_of(StringId id);  // `id` is in the module's strings
  StringId type_of(BufferId buffer);
  StringId source_of(NodeId node);

  const Footprint& footprint_;
  Interner& texts_;
  IdMap<StringId, StringId> known_;
  IdMap<SourceId, StringId> sources_;
  std::unordered_map<uint64_t, StringId> types_;  // by dtype and sizes; never iterated
};

}  // namespace fxopt
