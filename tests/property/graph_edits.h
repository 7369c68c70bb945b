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
  kGrow,            // a storage that is live at the peak gets larger
  kGrowAndRename,   // the same, and every node gets another name
  kMovePeak,        // a storage that is live elsewhere gets so large that the peak is there
  kLateReader,      // a storage that had ended before the peak is read behind it
  kNewNode,         // a new storage lives across the peak
  kLostCheckpoint,  // what read a recomputed copy reads the original again
};
inline constexpr size_t kNumRegressions = 6;

// Edits that change no byte of the ideal peak.
enum class NeutralEdit : uint8_t {
  kRenameAll,
  kRenameSome,
  kSwap,            // two independent nodes that stand side by side, away from the peak
  kInsertAlias,     // aten.alias, aten.detach, aten.view of the same shape before one reader
  kRemoveIdentity,  // one of those that is there already
  kMetadata,
};
inline constexpr size_t kNumNeutralEdits = 6;

const char* regression_name(Regression kind);
const char* neutral_edit_name(NeutralEdit kind);

// Edits the main graph of a module, once. What is edited depends on the seed alone.
class GraphEditor {
 public:
  GraphEditor(Module& module, uint64_t seed);

  // The name of the node whose storage is the cause; nothing, and no change, where the graph has no place for it.
  std::optional<std::string> apply(Regression kind);
  // False, and no change, where the graph has no place for it.
  bool apply(NeutralEdit kind);

  // The node of the peak before the edit, by its name then.
  const std::string& peak_node() const { return peak_node_; }

 private:
  uint64_t below(uint64_t end) { return random_() % end; }
  int64_t growth();  // bytes by which the peak is to rise
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
  std::vector<int64_t> live_;  // bytes by place
  uint32_t peak_place_ = 0;
  int64_t peak_ = 0;
  std::string peak_node_;
};

}  // namespace fxopt
