// Memory reports as text.
#include "core/text.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "cli/print/table.h"
#include "cli/report/memory/costs.h"
#include "cli/report/memory/report.h"
#include "core/bytes.h"
#include "core/saturate.h"

namespace fxopt {
namespace {

constexpr size_t kMaxShownShares = 20;
constexpr size_t kMaxShownNodes = 5;
constexpr size_t kMaxShownCandidates = 8;

void print_shares(std::ostream& out, std::string_view title, const std::vector<MemoryShare>& shares, int64_t whole) {
  Table table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight}, 4);
  for (size_t i = 0; i < shares.size() && i < kMaxShownShares; ++i) {
    const MemoryShare& share = shares[i];
    table.add(
        {share.name, bytes_text(share.bytes), percent_text(share.bytes, whole), count_text(share.storages, "storage")});
  }
  out << "  " << title << '\n';
  table.print(out);
  if (shares.size() > kMaxShownShares) out << "    and " << shares.size() - kMaxShownShares << " more\n";
}

void print_nodes(std::ostream& out, const std::vector<std::string>& nodes) {
  for (size_t i = 0; i < nodes.size() && i < kMaxShownNodes; ++i) {
    out << (i == 0 ? " %" : ", %") << printable_line(nodes[i]);
  }
  if (nodes.size() > kMaxShownNodes) out << ", ...";
  out << '\n';
}

// Prints the peaks with each kind of segments side by side. If memory ran out, also prints the
// node.
void print_allocator(std::ostream& out, const GraphMemory& memory, const DeviceMemory& device) {
  if (device.allocator.empty()) return;
  out << "  caching allocator"
      << (memory.profile.empty() ? std::string(", without kernels' workspaces")
                                 : ", with kernels' workspaces by profile " + printable_line(memory.profile))
      << '\n';
  Table table(std::vector<Align>(1 + device.allocator.size(), Align::kLeft), 4);
  const auto add = [&](std::string name, const std::function<std::string(const AllocatorRow&)>& cell) {
    std::vector<std::string> cells{std::move(name)};
    for (const AllocatorRow& row : device.allocator) cells.push_back(cell(row));
    table.add(std::move(cells));
  };
  add("", [](const AllocatorRow& row) {
    return row.segments + " segments" + (row.out_of_memory.empty() ? "" : ", until memory ran out");
  });
  add("requested", [](const AllocatorRow& row) { return bytes_text(row.requested.bytes); });
  add("allocated", [](const AllocatorRow& row) { return bytes_text(row.allocated.bytes); });
  add("active", [](const AllocatorRow& row) { return bytes_text(row.active.bytes); });
  add("reserved", [](const AllocatorRow& row) { return bytes_text(row.reserved.bytes); });
  add("reserved at", [&memory](const AllocatorRow& row) {
    if (!row.reserved.node.empty()) return "%" + row.reserved.node;
    return std::string(memory.is_steady ? "the step before" : "the inputs");
  });
  if (memory.is_steady) {
    add("steps run", [](const AllocatorRow& row) {
      if (!row.out_of_memory.empty()) return "memory ran out in step " + std::to_string(row.steps);
      return std::to_string(row.steps) + (row.is_steady ? ", the last two equal" : ", no two equal");
    });
  }
  table.print(out);
  for (const AllocatorRow& row : device.allocator) {
    if (row.out_of_memory.empty()) continue;
    out << "    " << row.segments << " segments: out of memory at %" << printable_line(row.out_of_memory)
        << ", which requests " << bytes_text(row.failed_bytes) << '\n';
  }
}

void print_arena(std::ostream& out, const DeviceMemory& device) {
  if (!device.arena.has_value()) return;
  out << "  arena planned ahead " << bytes_text(device.arena->bytes);
  if (device.arena->bytes == device.arena->lower_bound) {
    out << ", which is optimal\n";
  } else {
    const double excess = static_cast<double>(device.arena->bytes - device.arena->lower_bound);
    out << formatted(", %.3f %%", 100.0 * excess / static_cast<double>(device.arena->lower_bound))
        << " above a lower bound\n";
  }
}

// Prints the memory outside of the caching allocator.
void print_outside(std::ostream& out, const DeviceMemory& device) {
  const bool is_empty = std::all_of(device.outside.begin(), device.outside.end(),
                                    [](const OutsideMemory& row) { return row.bytes == 0; });
  if (is_empty) return;
  out << "  outside the allocator\n";
  Table table({Align::kLeft, Align::kRight, Align::kLeft, Align::kLeft}, 4);
  for (const OutsideMemory& row : device.outside) {
    if (row.bytes == 0) continue;
    table.add({row.name, row.bytes.has_value() ? bytes_text(*row.bytes) : "unknown", row.evidence,
               row.communicators == 0 ? "" : count_text(row.communicators, "communicator")});
  }
  table.print(out);
}

void print_room(std::ostream& out, const DeviceMemory& device) {
  if (!device.allocator_bytes.has_value() || device.allocator.empty()) return;
  if (device.device_bytes.has_value()) out << "  the device has " << bytes_text(*device.device_bytes) << '\n';
  out << "  the allocator may take " << bytes_text(*device.allocator_bytes) << '\n';
}

void print_top(std::ostream& out, const DeviceMemory& device) {
  if (device.top.empty()) return;
  out << "  largest storages at the peak (" << device.top.size() << " of " << device.live << ")\n";
  Table table({Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft}, 4);
  table.add({"size", "made by", "type", "class", "phase", "live from .. to", "source"});
  for (const StorageRow& row : device.top) {
    table.add({size_text(row.bytes), "%" + row.node, row.label.empty() ? row.type : row.label, row.kind, row.phase,
               "%" + row.first + " .. %" + row.last, row.source.empty() ? row.fqn : row.source});
  }
  table.print(out);
}

void print_candidates(std::ostream& out, const GraphMemory& memory, const DeviceMemory& device) {
  if (device.recompute.empty()) return;
  out << "  cheapest saved values to recompute at the peak (each row by itself)\n";
  const bool has_seconds = memory.has_seconds;
  std::vector<Align> columns = {Align::kRight, Align::kRight, Align::kLeft, Align::kLeft};
  columns.insert(columns.end(), has_seconds ? 3 : 2, Align::kRight);
  columns.push_back(Align::kLeft);
  Table table(std::move(columns), 4);
  std::vector<std::string> head = {"frees", "calls", "operator", "module", "operations", "bytes moved", "example"};
  if (has_seconds) head.insert(head.begin() + 4, memory.is_measured ? "time" : "time (roofline)");
  table.add(std::move(head));
  size_t shown = 0;
  for (const RecomputeRow& row : device.recompute) {
    if (shown == kMaxShownCandidates) break;
    if (row.bytes < device.bytes / 1000) continue;
    ++shown;
    const auto if_known = [&row](const std::string& text) { return row.work.unknown > 0 ? "unknown" : text; };
    std::vector<std::string> cells = {
        size_text(row.bytes),   std::to_string(row.nodes.size()),     row.target,
        row.module_path,        if_known(gflop_text(row.work.flops)), if_known(size_text(row.work.bytes)),
        "%" + row.nodes.front()};
    const bool is_measured = row.work.num_kernels(CostBasis::kMeasured) == row.work.num_kernels();
    const std::string basis = memory.is_measured ? " (" + kernel_basis_text(row.work) + ")" : "";
    const std::string time = milliseconds_text(row.work.seconds) + basis;
    if (has_seconds) cells.insert(cells.begin() + 4, is_measured ? time : if_known(time));
    table.add(std::move(cells));
  }
  table.print(out);
}

void print_hidden(std::ostream& out, const GraphMemory& memory, const DeviceMemory& device) {
  if (memory.profile.empty() || device.allocator.empty()) return;
  out << "  kernels' workspaces and other hidden memory: " << count_text(device.hidden_rows, "block")
      << "; the sizes of " << device.hidden_estimates << " are estimates\n";
  if (device.unknown_hidden.empty()) return;
  out << "  kernels' workspaces unknown for " << count_text(device.unknown_hidden.size(), "call") << ':';
  print_nodes(out, device.unknown_hidden);
}

void print_buckets(std::ostream& out, const DeviceMemory& device) {
  if (device.buckets.empty()) return;
  size_t tensors = 0;
  int64_t bytes = 0, live_bytes = 0;
  std::vector<MemoryShare> live;
  for (const BucketRow& row : device.buckets) {
    tensors += row.tensors;
    bytes = saturating_add(bytes, row.bytes);
    live_bytes = saturating_add(live_bytes, row.live_bytes);
    if (row.live_bytes == 0) continue;
    live.push_back({"%" + printable_line(row.node) + " of " + count_text(row.tensors, "tensor"), row.live_bytes,
                    row.live_storages});
  }
  out << "  " << count_text(device.buckets.size(), "collective") << " of several tensors (" << tensors
      << " in total): buffers, results and copies take " << bytes_text(bytes) << ", of which " << bytes_text(live_bytes)
      << " is live at the peak\n";
  std::stable_sort(live.begin(), live.end(),
                   [](const MemoryShare& a, const MemoryShare& b) { return a.bytes > b.bytes; });
  if (!live.empty()) print_shares(out, "live at the peak, by collective of several tensors", live, device.bytes);
}

// Prints whether the step fits, and the remedy if there is one.
void print_fit(std::ostream& out, const DeviceMemory& device) {
  if (device.fit.has_value()) out << printable_line(verdict_text(device)) << '\n';
  if (device.other_fit.has_value() && device.other_fit->fits != device.fit->fits) {
    out << "  with " << (device.other_fit->expandable ? "expandable" : "classic") << " segments it "
        << (device.other_fit->fits ? "fits" : "does not fit") << '\n';
  }
  if (device.advice.has_value()) out << "  " << advice_text(*device.advice) << '\n';
}

void print_device(std::ostream& out, const GraphMemory& memory, const DeviceMemory& device) {
  print_fit(out, device);
  out << '@' << printable_line(memory.graph) << ", "
      << (device.device.empty() ? "no device" : printable_line(device.device))
      << (memory.steady.empty() ? "" : ", steady with " + memory.steady) << ": " << device.model << " peak "
      << (is_lower_bound(memory, device) ? "at least " : "") << bytes_text(device.bytes) << '\n';
  if (!device.node.empty()) {
    out << "  at %" << printable_line(device.node) << ", node " << device.position + 1 << " of " << memory.nodes;
    if (!device.module_path.empty()) out << ", module " << printable_line(device.module_path);
    if (!device.source.empty()) out << ", " << printable_line(device.source);
    out << '\n';
  }
  if (device.model != "ideal") {
    out << "  ideal peak " << bytes_text(device.ideal.bytes) << ", at %" << printable_line(device.ideal.node) << '\n';
  }
  if (device.ideal_range.has_value()) {
    out << "  ideal peak over the ranges of symbols " << range_text(*device.ideal_range) << '\n';
  }
  out << (memory.is_steady ? "  live before the step " : "  inputs and attributes ") << bytes_text(device.input_bytes)
      << '\n';
  print_allocator(out, memory, device);
  print_arena(out, device);
  print_hidden(out, memory, device);
  print_outside(out, device);
  print_room(out, device);
  print_shares(out, "live at the peak, by class", device.by_class, device.bytes);
  print_shares(out, "live at the peak, by module", device.by_module, device.bytes);
  print_shares(out, "live at the peak, by layer", fold_shares(device.by_layer), device.bytes);
  print_buckets(out, device);
  print_top(out, device);
  print_candidates(out, memory, device);
}

}  // namespace

bool is_lower_bound(const GraphMemory& memory, const DeviceMemory& device) {
  return memory.unknown > 0 || (device.model != "ideal" && !device.unknown_hidden.empty());
}

std::string verdict_text(const DeviceMemory& device) {
  const FitRow& fit = *device.fit;
  if (!fit.fits) {
    return "does not fit " + device.target + ": %" + fit.node + " requests " + size_text(fit.asked) + ", but " +
           size_text(std::max<int64_t>(fit.left, 0)) + " are left";
  }
  if (fit.is_certain) return "fits " + device.target + ", " + size_text(fit.spare) + " to spare";
  return "fits " + device.target + " as far as is known, at most " + size_text(fit.spare) + " to spare";
}

std::string advice_text(const Advice& advice) {
  const std::string_view goal = advice.is_for_budget ? "keeps the budget" : "makes it fit";
  const std::string command = "`fxopt opt " + advice.input + " -o smaller.pb --passes '" + advice.pipeline + "'` ";
  const std::string_view known = advice.is_certain ? "" : " as far as is known";
  std::string text =
      advice.holds ? command + std::string(goal) + std::string(known) + ": "
                   : "no recompute policy that `fxopt help memory` lists is enough. " + command + "comes closest: ";
  text += advice.metric + " peak " + size_text(advice.after);
  if (advice.before.has_value()) text += " instead of " + size_text(*advice.before);
  if (advice.spare.has_value()) {
    text += std::string(advice.is_certain ? ", " : ", at most ") + size_text(*advice.spare) + " to spare";
  }
  text += ", " + signed_percent_text(advice.flops_after - advice.flops_before, advice.flops_before) + " operations, " +
          signed_percent_text(advice.moved_after - advice.moved_before, advice.moved_before) + " bytes moved";
  return text;
}

std::string symbols_text(const std::vector<SymbolRow>& symbols) {
  std::vector<std::string> texts;
  for (const SymbolRow& symbol : symbols) {
    std::string text = printable_line(symbol.name);
    text += symbol.value.has_value() ? " = " + std::to_string(*symbol.value) : " unknown";
    const bool is_one = symbol.min.has_value() && (symbol.min == symbol.max || symbol.min == INT64_MAX);
    if ((symbol.min.has_value() || symbol.max.has_value()) && !is_one) {
      text += " (" + (symbol.min.has_value() ? std::to_string(*symbol.min) : "") + ".." +
              (symbol.max.has_value() ? std::to_string(*symbol.max) : "") + ")";
    }
    texts.push_back(std::move(text));
  }
  return join_first(std::move(texts), kMaxShownSymbols);
}

std::string range_text(const PeakRange& range) {
  if (!range.max.has_value()) return "at least " + bytes_text(range.min) + ", with no upper bound";
  return bytes_text(range.min) + " to " + bytes_text(*range.max);
}

std::string resized_text(size_t count) {
  return "the graph resizes " + count_text(count, "storage") +
         ": an input's storage is assumed empty before its first resize to a size above 0, unless a node reads it "
         "earlier";
}

void print_memory(std::ostream& out, const GraphMemory& memory) {
  if (memory.devices.empty()) out << '@' << printable_line(memory.graph) << ": no tensors, ideal peak 0 B\n";
  for (const DeviceMemory& device : memory.devices) print_device(out, memory, device);
  if (!memory.step.empty()) out << "  " << printable_line(step_text(memory.step)) << '\n';
  if (memory.roles_derived) out << "  the file records no input roles, so memory classes are inferred\n";
  if (memory.resized > 0) out << "  " << resized_text(memory.resized) << '\n';
  if (!memory.symbols.empty()) out << "  sizes depend on " << symbols_text(memory.symbols) << '\n';
  if (memory.unknown == 0) return;
  out << "  sizes unknown: " << count_text(memory.unknown, "storage") << ", made by";
  print_nodes(out, memory.unknown_nodes);
}

}  // namespace fxopt
