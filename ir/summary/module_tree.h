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
using PhaseCounts = std::array<size_t, kNumPhases>;  // by Phase

// A number of storages and their bytes.
struct StorageSum {
  size_t storages = 0;
  int64_t bytes = 0;   // sum of the known sizes, exact up to 2^63 - 1
  size_t unknown = 0;  // number of storages without a known size
  size_t by_hint = 0;  // number of storages sized by hints of symbols

  void add(const StorageSum& other);
};

// The contribution of one module of the model, with its submodules, to a graph.
struct ModuleFigures {
  size_t nodes = 0;
  PhaseCounts phases{};         // nodes
  size_t parameters = 0;        // number of tensors; tied ones count once
  int64_t elements = 0;         // sum over parameters where known
  size_t unknown_elements = 0;  // number of parameters with an unknown number of elements
  StorageSum made;              // storages made by its nodes

  void add(const ModuleFigures& other);
};

// A module, or several alike modules, in one row of a table. Figures are sums over all of these
// modules.
struct ModuleRow {
  std::string_view path;  // the first module's: "layers.0.mlp"; empty: nodes without a module path
  std::string name;       // name in its parent: "mlp"; "0..15" for alike modules
  size_t depth = 1;       // number of components of the path
  size_t alike = 1;       // number of modules in this row
  size_t siblings = 1;    // number of modules with the first one's parent
  ModuleFigures figures;
};

// The modules of a graph by their dotted paths. Numbered modules of one parent ("layers.0",
// "layers.1") are alike if they and their submodules hold the same nodes: equally many of each
// target, phase and type, in any order.
class ModuleTree {
 public:
  ModuleTree() : nodes_(1) {}

  // Returns the place of the module at `path`, and creates the module if it does not exist. `path`
  // must outlive the tree. O(components * log modules).
  size_t place_of(std::string_view path);
  // Adds figures to the module at a place, and `kind` to its signature. Equal numbers stand for
  // equal things.
  void add(size_t place, const ModuleFigures& figures, uint64_t kind);
  // Adds figures only, without effect on the signature.
  void add_figures(size_t place, const ModuleFigures& figures) { nodes_[place].figures.add(figures); }
  // Call once, after the last add(). O(modules log modules).
  void finish();

  // Returns the rows down to `depth` components, parents before children. Siblings with more nodes
  // come first, ties by first appearance. O(modules log modules) for the modules down to that
  // depth.
  std::vector<ModuleRow> rows(size_t depth) const;
  // Returns the largest depth with at most `max_rows` rows; at least 1.
  size_t fitting_depth(size_t max_rows) const;

 private:
  struct Item {
    std::string_view path;  // the whole path
    uint32_t parent = 0;
    std::vector<uint32_t> children;  // in order of appearance
    ModuleFigures figures;           // its own until finish(), then with all submodules
    uint64_t signature = 0;
  };
  using Members = std::vector<uint32_t>;  // alike modules

  std::string_view name_of(uint32_t item) const;
  std::vector<Members> folded_children(const Members& parents) const;
  ModuleRow row_of(const Members& members, size_t depth) const;

  std::vector<Item> nodes_;                                          // parents before children
  std::map<std::pair<uint32_t, std::string_view>, uint32_t> index_;  // (parent, component) -> item
  size_t depth_ = 0;
};

}  // namespace fxopt
