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

// Storages and their bytes.
struct StorageSum {
  size_t storages = 0;
  int64_t bytes = 0;   // of those with a known size, exact up to 2^63 - 1
  size_t unknown = 0;  // of them, those without one
  size_t by_hint = 0;  // of them, those whose size follows from hints of symbols

  void add(const StorageSum& other);
};

// What one module of the model, with all below it, adds to a graph.
struct ModuleFigures {
  size_t nodes = 0;
  PhaseCounts phases{};         // nodes
  size_t parameters = 0;        // tensors, tied ones once
  int64_t elements = 0;         // of these, where known
  size_t unknown_elements = 0;  // parameters whose elements are not known
  StorageSum made;              // by its nodes

  void add(const ModuleFigures& other);
};

// A module, or several that are alike, in one row of a table. Figures are sums over all of them.
struct ModuleRow {
  std::string_view path;  // of the first one: "layers.0.mlp"; empty: nodes without a module path
  std::string name;       // in its parent: "mlp"; "0..15" for modules that are alike
  size_t depth = 1;       // components of the path
  size_t alike = 1;       // modules in this row
  size_t siblings = 1;    // of them, those that have the first one's parent
  ModuleFigures figures;
};

// The modules of a graph by their dotted paths. Numbered modules of one parent ("layers.0", "layers.1") are alike when
// they and all below them hold the same nodes: as many of each target, phase and type, in whatever order.
class ModuleTree {
 public:
  ModuleTree() : nodes_(1) {}

  // The place of the module at `path`, which must outlive the tree; made where there is none. O(components * log
  // modules).
  size_t place_of(std::string_view path);
  // Adds figures to the module at a place, and `kind` to what tells it from others: equal numbers stand for equal
  // things.
  void add(size_t place, const ModuleFigures& figures, uint64_t kind);
  // Adds figures alone, which tell no module from another.
  void add_figures(size_t place, const ModuleFigures& figures) { nodes_[place].figures.add(figures); }
  // To be called once, after the last add(). O(modules log modules).
  void finish();

  // Rows down to `depth` components, parents before their children; siblings with most nodes first, ties by where they
  // first appear. O(modules log modules) for the modules down to that depth.
  std::vector<ModuleRow> rows(size_t depth) const;
  // The deepest of these that has at most `max_rows` rows, at least 1.
  size_t fitting_depth(size_t max_rows) const;

 private:
  struct Item {
    std::string_view path;  // whole
    uint32_t parent = 0;
    std::vector<uint32_t> children;  // in order of appearance
    ModuleFigures figures;           // own until finish(), then with all below
    uint64_t signature = 0;
  };
  using Members = std::vector<uint32_t>;  // modules that are alike

  std::string_view name_of(uint32_t item) const;
  std::vector<Members> folded_children(const Members& parents) const;
  ModuleRow row_of(const Members& members, size_t depth) const;

  std::vector<Item> nodes_;                                          // the root first, parents before children
  std::map<std::pair<uint32_t, std::string_view>, uint32_t> index_;  // parent, component -> item
  size_t depth_ = 0;
};

}  // namespace fxopt
