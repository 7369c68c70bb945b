#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/types.h"

namespace fxopt {

constexpr size_t kNumPhases = 5;
using PhaseCounts = std::array<size_t, kNumPhases>;  // indexed by Phase

// The number of storages, and the sum of their bytes.
struct StorageSum {
  size_t storages = 0;
  int64_t bytes = 0;   // sum of the known sizes; exact up to 2^63 - 1
  size_t unknown = 0;  // number of storages without a known size
  size_t by_hint = 0;  // number of storages whose size follows from hints of symbols

  void add(const StorageSum& other);
};

// The figures of one module of the model. They include the module's submodules.
struct ModuleFigures {
  size_t nodes = 0;
  PhaseCounts phases{};         // number of nodes by phase
  size_t parameters = 0;        // number of parameter tensors; tied tensors are counted once
  int64_t elements = 0;         // sum over the parameters with a known number of elements
  size_t unknown_elements = 0;  // number of parameters whose number of elements is unknown
  StorageSum made;              // storages made by the module's nodes

  void add(const ModuleFigures& other);
};

// One row of a table: a module, or several alike modules. Figures are sums over all modules of the
// row.
struct ModuleRow {
  // Path of the first module of the row: "layers.0.mlp". It is empty for nodes without a module
  // path.
  std::string_view path;
  std::string name;  // name in the parent: "mlp", or "0..15" for alike modules
  size_t depth = 1;  // number of components of the path
  size_t alike = 1;  // number of modules in this row
  // Number of modules in this row whose parent is also the parent of the row's first module. The
  // first module is included.
  size_t siblings = 1;
  ModuleFigures figures;
};

// The modules of a graph by their dotted paths. Numbered modules of one parent ("layers.0",
// "layers.1") are alike if they and their submodules contain the same number of nodes of each
// target, phase and type. The order of the nodes does not matter.
class ModuleTree {
 public:
  ModuleTree() : nodes_(1) {}

  // Returns the index of the module at `path` in the tree. Adds the module if it does not exist.
  // `path` must outlive the tree. O(components * log modules).
  size_t place_of(std::string_view path);
  // Adds figures to the module at index `place`, and adds `kind` to the module's signature (a hash
  // that alike modules share). Nodes with the same `kind` are considered equal.
  void add(size_t place, const ModuleFigures& figures, uint64_t kind);
  // Adds figures, but does not change the module's signature.
  void add_figures(size_t place, const ModuleFigures& figures) { nodes_[place].figures.add(figures); }
  // Must be called once, after the last add(). O(modules log modules).
  void finish();

  // Returns the rows for paths of at most `depth` components. Parents come before children.
  // Siblings with more nodes come first. Siblings with equally many nodes are in the order in which
  // they were added. O(modules log modules) for the modules down to that depth.
  std::vector<ModuleRow> rows(size_t depth) const;
  // Returns the largest depth with at most `max_rows` rows. Returns at least 1.
  size_t fitting_depth(size_t max_rows) const;

 private:
  struct Item {
    std::string_view path;  // the whole path
    uint32_t parent = 0;
    std::vector<uint32_t> children;  // children in order of appearance
    // Before finish(), the module's own figures. After finish(), the figures include all
    // submodules.
    ModuleFigures figures;
    uint64_t signature = 0;
  };
  using Members = std::vector<uint32_t>;  // alike modules

  std::string_view name_of(uint32_t item) const;
  std::vector<Members> folded_children(const Members& parents) const;
  ModuleRow row_of(const Members& members, size_t depth) const;

  std::vector<Item> nodes_;  // parents before children
  // Items by parent and component.
  std::map<std::pair<uint32_t, std::string_view>, uint32_t> index_;
  size_t depth_ = 0;
};

}  // namespace fxopt
