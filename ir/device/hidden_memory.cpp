#include "ir/device/hidden_memory.h"

namespace fxopt {
namespace {

std::vector<const CallRow*> hidden_rows(const DeviceProfile& profile) {
  std::vector<const CallRow*> rows;
  for (const HiddenRow& row : profile.hidden) rows.push_back(&row);
  return rows;
}

}  // namespace

HiddenMemory::HiddenMemory(const Graph& graph, const DeviceProfile& profile, const SymbolValues& values)
    : formulas_(graph, profile, hidden_rows(profile), values) {}

const std::vector<HiddenBlock>& HiddenMemory::of(NodeId node) {
  blocks_.clear();
  for (const CallFormulas::Answer& answer : formulas_.of(node)) {
    if (answer.value.value_or(1) > 0) blocks_.push_back({static_cast<const HiddenRow*>(answer.row), answer.value});
  }
  return blocks_;
}

}  // namespace fxopt
