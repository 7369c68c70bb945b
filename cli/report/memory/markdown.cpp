// Memory reports as Markdown.
#include "cli/report/memory/markdown.h"

#include <algorithm>

#include "cli/print/table.h"
#include "cli/report/memory/diff.h"
#include "core/bytes.h"
#include "core/text.h"

namespace fxopt {
namespace {

constexpr size_t kMaxGrown = 10;
constexpr size_t kMaxShares = 20;

// Returns the length of the longest run of backticks. A fence around the text must be longer.
size_t longest_run(std::string_view text) {
  size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

// Returns a code span, or an empty text if `text` is empty.
std::string code(std::string_view text) {
  if (text.empty()) return {};
  const std::string line = printable_line(text);
  const std::string fence(longest_run(line) + 1, '`');
  const std::string pad = fence.size() > 1 || line.front() == ' ' ? " " : "";
  return fence + pad + line + pad + fence;
}

// Returns a code span for a table. A '|' would end the cell even in a code span, so it is escaped.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : code(text)) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

void add_row(std::string& out, const std::vector<std::string>& cells) {
  for (const std::string& text : cells) out += "| " + text + " ";
  out += "|\n";
}

std::string growth_text(int64_t before, int64_t after) {
  if (before == after) return "0";
  const int64_t growth = after - before;
  std::string text = (growth < 0 ? "-" : "+") + bytes_text(growth < 0 ? -growth : growth);
  if (before == 0) return text;
  return text + formatted(", %+.3f %%", 100.0 * static_cast<double>(growth) / static_cast<double>(before));
}

// Adds a line to the table of peaks, with the earlier value if there is a baseline.
void add_peak(std::string& out, const DeviceMemory& device, const DeviceMemory* before, MemoryMetric metric,
              bool expandable) {
  const std::optional<PeakRow> peak = device.peak(metric, expandable);
  if (!peak.has_value()) return;
  std::string name(metric_name(metric));
  if (is_of_allocator(metric)) name += expandable ? ", expandable segments" : ", classic segments";
  std::vector<std::string> cells = {name};
  if (before != nullptr) {
    const std::optional<PeakRow> base = before->peak(metric, expandable);
    cells.push_back(base.has_value() ? bytes_text(base->bytes) : "unknown");
    cells.push_back(bytes_text(peak->bytes));
    cells.push_back(base.has_value() ? growth_text(base->bytes, peak->bytes) : "");
  } else {
    cells.push_back(bytes_text(peak->bytes));
  }
  if (metric == MemoryMetric::kArena) {
    cells.push_back("planned ahead");
  } else {
    cells.push_back(peak->node.empty() ? "before the first node" : cell("%" + peak->node));
  }
  add_row(out, cells);
}

void add_peaks(std::string& out, const DeviceMemory& device, const DeviceMemory* before) {
  out += before != nullptr ? "| peak | before | after | growth | reached at |\n|---|--:|--:|--:|---|\n"
                           : "| peak | bytes | reached at |\n|---|--:|---|\n";
  for (const MemoryMetric metric : {MemoryMetric::kIdeal, MemoryMetric::kRequested}) {
    add_peak(out, device, before, metric, false);
  }
  for (const MemoryMetric metric : {MemoryMetric::kAllocated, MemoryMetric::kActive, MemoryMetric::kReserved}) {
    for (const bool expandable : {false, true}) add_peak(out, device, before, metric, expandable);
  }
  add_peak(out, device, before, MemoryMetric::kArena, false);
  out += '\n';
  for (const AllocatorRow& row : device.allocator) {
    if (row.out_of_memory.empty()) continue;
    out += "Out of memory with " + row.segments + " segments at " + code("%" + row.out_of_memory) +
           ", which requests " + bytes_text(row.failed_bytes) + ".\n\n";
  }
}

std::string before_text(const StorageChange& change) {
  if (change.was != nullptr) return "not live there";
  return change.before == 0 ? "new" : bytes_text(change.before);
}

void add_grown(std::string& out, const DeviceMemory& device, const DeviceMemory& before) {
  const bool is_ideal = device.model == "ideal";
  const PeakRow &was = is_ideal ? before.ideal : before.requested, &is = is_ideal ? device.ideal : device.requested;
  const LiveSetChange live = compare_live_sets(before, was, device, is);
  if (live.moved) out += "The peak moved from " + code("%" + was.node) + " to " + code("%" + is.node) + ".\n\n";
  std::vector<StorageChange> grown = live.changes;
  std::erase_if(grown, [](const StorageChange& change) { return change.growth() <= 0; });
  if (grown.empty()) {
    out += "No storage at the peak has grown.\n\n";
    return;
  }
  out +=
      "Storages that grew at the peak:\n\n| storage | type | class | module | before | after | growth |\n"
      "|---|---|---|---|--:|--:|--:|\n";
  for (size_t i = 0; i < grown.size() && i < kMaxGrown; ++i) {
    const StorageChange& change = grown[i];
    const StorageRow row = change.row();
    add_row(out, {cell("%" + row.node), cell(row.label.empty() ? row.type : row.label), row.kind, cell(row.module_path),
                  before_text(change), bytes_text(change.after), growth_text(change.before, change.after)});
  }
  if (grown.size() > kMaxGrown) out += "\nand " + std::to_string(grown.size() - kMaxGrown) + " more\n";
  out += '\n';
}

void add_limits(std::string& out, const MarkdownContext& context) {
  if (context.limits.empty()) return;
  if (context.broken.empty()) {
    out += "Limits hold: " + code(context.limits) + "\n\n";
    return;
  }
  std::string messages;
  for (const std::string& message : context.broken) messages += printable_line(message) + "\n";
  const std::string fence(std::max<size_t>(3, longest_run(messages) + 1), '`');
  out += std::string(context.is_broken ? "**Limits broken**" : "**Limits not checked**") +
         " (limits: " + code(context.limits) + "):\n\n" + fence + "text\n" + messages + fence + "\n\n";
}

void begin_details(std::string& out, const std::string& summary) {
  out += "<details>\n<summary>" + summary + "</summary>\n\n";
}

void add_shares(std::string& out, const std::string& title, const std::vector<MemoryShare>& shares, int64_t whole) {
  if (shares.empty()) return;
  begin_details(out, title);
  out += "| | bytes | share | storages |\n|---|--:|--:|--:|\n";
  for (size_t i = 0; i < shares.size() && i < kMaxShares; ++i) {
    add_row(out, {cell(shares[i].name), bytes_text(shares[i].bytes), percent_text(shares[i].bytes, whole),
                  std::to_string(shares[i].storages)});
  }
  if (shares.size() > kMaxShares) out += "\nand " + std::to_string(shares.size() - kMaxShares) + " more\n";
  out += "\n</details>\n\n";
}

void add_top(std::string& out, const DeviceMemory& device, size_t top) {
  const size_t count = std::min(top, device.top.size());
  if (count == 0) return;
  begin_details(out,
                "Largest storages at the peak (" + std::to_string(count) + " of " + std::to_string(device.live) + ")");
  out +=
      "| storage | type | class | phase | module | bytes | live from .. to | source "
      "|\n|---|---|---|---|---|--:|---|---|\n";
  for (size_t i = 0; i < count; ++i) {
    const StorageRow& row = device.top[i];
    add_row(out, {cell("%" + row.node), cell(row.label.empty() ? row.type : row.label), row.kind, row.phase,
                  cell(row.module_path), bytes_text(row.bytes), cell("%" + row.first + " .. %" + row.last),
                  cell(row.source.empty() ? row.fqn : row.source)});
  }
  out += "\n</details>\n\n";
}

// Adds the assumptions that differ from the defaults, and whether the step fits.
void add_measured(std::string& out, const GraphMemory& memory, const DeviceMemory& device) {
  std::string text;
  if (memory.is_steady) text += "The step is not the first one: " + memory.steady + ". ";
  if (device.model != "ideal") {
    text += "The peaks include kernels' workspaces and other hidden memory, by profile " + code(memory.profile) + ". ";
  }
  if (!device.unknown_hidden.empty()) {
    text += "The workspaces of " + count_text(device.unknown_hidden.size(), "call") + " are unknown. ";
  }
  if (!device.outside.empty()) text += "Memory outside of the allocator: " + bytes_text(device.outside_bytes()) + ". ";
  if (device.allocator_bytes.has_value()) {
    text += "The allocator may take " + bytes_text(*device.allocator_bytes) + ":";
    for (const AllocatorRow& row : device.allocator) {
      text += (&row == &device.allocator.front() ? " " : ", ") + row.segments + " segments " +
              (!row.out_of_memory.empty()       ? "**do not fit**"
               : is_lower_bound(memory, device) ? "fit as far as is known"
                                                : "fit");
    }
    text += ". ";
  }
  if (text.empty()) return;
  text.back() = '\n';
  out += text + "\n";
}

void add_device(std::string& out, const GraphMemory& memory, const DeviceMemory& device,
                const MarkdownContext& context) {
  const DeviceMemory* before = nullptr;
  if (context.baseline != nullptr) {
    for (const DeviceMemory& other : context.baseline->devices) {
      if (other.device == device.device) before = &other;
    }
  }
  out += "### " + code(context.file) + ", " + code("@" + memory.graph) + ", " +
         (device.device.empty() ? "no device" : code(device.device)) + ": " + device.model + " peak " +
         (is_lower_bound(memory, device) ? "at least " : "") + bytes_text(device.bytes) + "\n\n";
  if (device.fit.has_value()) {
    const std::string verdict = printable_line(verdict_text(device));
    out += device.fit->fits ? "Verdict: " + code(verdict) + "\n\n" : "**Verdict:** " + code(verdict) + "\n\n";
  }
  if (device.advice.has_value()) out += "Advice: " + advice_text(*device.advice) + ".\n\n";
  if (!device.node.empty()) {
    out += "At " + code("%" + device.node) + ", node " + std::to_string(device.position + 1) + " of " +
           std::to_string(memory.nodes);
    if (!device.module_path.empty()) out += ", module " + code(device.module_path);
    if (!device.source.empty()) out += ", " + code(device.source);
    out += ".\n\n";
  }
  if (device.ideal_range.has_value()) {
    out += "Over the ranges of the symbols, the ideal peak is " + range_text(*device.ideal_range) + ".\n\n";
  }
  add_measured(out, memory, device);
  add_peaks(out, device, before);
  if (&device == &memory.devices.front()) add_limits(out, context);
  if (before != nullptr) add_grown(out, device, *before);
  add_top(out, device, context.top);
  add_shares(out, "Live at the peak, by class", device.by_class, device.bytes);
  add_shares(out, "Live at the peak, by module", device.by_module, device.bytes);
  add_shares(out, "Live at the peak, by layer", fold_shares(device.by_layer), device.bytes);
}

}  // namespace

std::string failure_markdown(const std::string& file, const std::vector<std::string>& reasons) {
  std::string out = "### Not measured: " + code(file) + "\n\n";
  for (const std::string& reason : reasons) out += "- " + code(reason) + "\n";
  return out + "\n";
}

std::string markdown_text(const GraphMemory& memory, const MarkdownContext& context) {
  std::string out;
  if (memory.devices.empty()) {
    out += "### " + code(context.file) + ", " + code("@" + memory.graph) + ": no tensors\n\n";
    add_limits(out, context);
  }
  for (const DeviceMemory& device : memory.devices) add_device(out, memory, device, context);
  if (!memory.step.empty()) out += "Measured as " + step_text(memory.step) + ".\n\n";
  if (!memory.symbols.empty()) out += "Sizes depend on " + symbols_text(memory.symbols) + ".\n\n";
  if (memory.resized > 0) out += resized_text(memory.resized) + ".\n\n";
  if (memory.unknown > 0) {
    out += count_text(memory.unknown, "storage") + " of unknown size: each peak is a lower bound.\n\n";
  }
  return out;
}

}  // namespace fxopt
