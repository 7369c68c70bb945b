#include "cli/gate_check.h"

#include <optional>
#include <utility>

#include "cli/console.h"
#include "cli/files.h"
#include "cli/print/json.h"
#include "core/bytes.h"

namespace fxopt {

std::vector<Error> GateCheck::check(const std::string& path, const std::string& shown, const GraphMemory& memory,
                                    const MemoryView& view) {
  std::vector<Error> broken = gates_.check(path, memory);
  for (const Error& error : broken) console_.error(error);
  if (gates_.has_limits() && !view.measure.memory.ranges.empty()) warn_of_range(shown, memory);
  return broken;
}

void GateCheck::warn_of_range(const std::string& shown, const GraphMemory& memory) {
  for (const DeviceMemory& device : memory.devices) {
    if (!device.ideal_range.has_value() || device.ideal_range->max == device.ideal.bytes) continue;
    console_.warning("limits-within-range", where_in(shown, memory.graph),
                     "limits were checked only with " + symbols_text(memory.symbols) +
                         "; over the whole range of the symbols, the ideal peak is " + range_text(*device.ideal_range));
  }
}

nlohmann::ordered_json GateCheck::compare(const std::string& path, const std::string& shown, const GraphMemory& memory,
                                          std::ostream& out) {
  const std::string other = gates_.other_name(path);
  if (!other.empty() && gates_.baseline_of(path, memory.graph) != nullptr && std::exchange(named_, path) != path) {
    console_.warning(
        "baseline-other-name", where_in(shown),
        "the baseline has no file of this name; the comparison uses the baseline's only file, '" + other + "'");
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PeakGrowth& growth : gates_.compare(path, memory)) {
    out << "  since the baseline, on " << growth.device << ", " << metric_name(growth.metric)
        << " peak: " << growth_text(growth.before.bytes, growth.after.bytes) << '\n';
    list.push_back(growth_json(growth));
  }
  return list;
}

void GateCheck::add(const std::string& path, nlohmann::ordered_json graphs) {
  baseline_.push_back({{"file", path}, {"graphs", std::move(graphs)}});
}

void GateCheck::write_baseline() {
  if (console_.num_errors() > 0) {
    console_.notes() << "baseline not written because an input failed: " << printable_line(gates_.baseline_path())
                     << '\n';
    return;
  }
  std::string replaced;
  const Result<nlohmann::ordered_json> document = gates_.document(plan_, baseline_, replaced);
  if (!document.ok()) return console_.error(document.error());
  if (!replaced.empty()) {
    console_.warning("baseline-replaced", {}, "the earlier baseline is discarded: " + replaced);
  }
  if (!console_.write_output(gates_.baseline_path(), json_text(*document))) return;
  console_.notes() << "baseline written: " << printable_line(gates_.baseline_path()) << '\n';
}

}  // namespace fxopt
