#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/memory/memory.h"
#include "ir/memory/trace.h"

namespace fxopt {

// Edits that raise the ideal peak by more than 0.1 %.
enum class Regression : uint8_t {
  kGrow,            // grows a storage that is live at the peak
  kGrowAndRename,   // like kGrow, and renames every node
  kMovePeak,        // grows a storage that is live at another place, until the peak is at that place
  kLateReader,      // adds a use after the peak of a storage that ended before the peak
  kNewNode,         // adds a storage that lives across the peak
  kLostCheckpoint,  // redirects a use of a recomputed copy to the original
};
inline constexpr size_t kNumRegressions = 6;

// Edits that change no byte of the ideal peak.
enum class NeutralEdit : uint8_t {
  kRenameAll,
  kRenameSome,
  kSwap,            // swaps two adjacent independent nodes that are not at the peak
  kInsertAlias,     // inserts aten.alias, aten.detach or aten.view of the same shape before a consumer
  kRemoveIdentity,  // removes an existing node of one of these kinds
  kMetadata,
};
inline constexpr size_t kNumNeutralEdits = 6;

const char* regression_name(Regression kind);
const char* neutral_edit_name(NeutralEdit kind);

// Makes one edit of the main graph of a module. The seed determines the edit.
class GraphEditor {
 public:
  GraphEditor(Module& module, uint64_t seed);

  // Returns the name of the node whose storage is the cause. If the graph has no place for the
  // edit, returns nothing and leaves the graph unchanged.
  std::optional<std::string> apply(Regression kind);
  // If the graph has no place for the edit, returns false and leaves the graph unchanged.
  bool apply(NeutralEdit kind);

  // The name that the node at the peak had before the edit.
  const std::string& peak_node() const { return peak_node_; }

 private:
  uint64_t below(uint64_t end) { return random_() % end; }
  int64_t growth();  // bytes to add to the peak
  bool is_cause(const Lifetime& lifetime) const;
  std::vector<Lifetime> shuffled_causes();
  bool grow(NodeId node, int64_t bytes);
  NodeId call_before(NodeId before, const std::string& target, const std::vector<Arg>& args);
  void read_before(NodeId before, NodeId node);
  NodeId any_behind_peak();
  void rename(bool all);
  bool can_swap(NodeId first, NodeId second) const;
  bool is_plain(NodeId node) const;
  bool is_identity(NodeId node) const;
  std::vector<NodeId> shuffled_nodes();

  std::optional<std::string> grow_at_peak();
  std::optional<std::string> move_peak();
  std::optional<std::string> add_late_reader();
  std::optional<std::string> add_large_node();
  std::optional<std::string> lose_checkpoint();
  bool swap();
  bool insert_alias();
  bool remove_identity();
  void add_metadata();

  Module& module_;
  Graph& graph_;
  std::mt19937_64 random_;
  StorageMap storages_;
  MemoryReport report_;
  MemoryTrace trace_;
  std::vector<int64_t> live_;  // bytes, by place
  uint32_t peak_place_ = 0;
  int64_t peak_ = 0;
  std::string peak_node_;
};

}  // namespace fxopt
