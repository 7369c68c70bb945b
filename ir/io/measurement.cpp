#include "ir/io/measurement.h"

#include <cmath>
#include <set>
#include <utility>

#include "profile.pb.h"
#include <google/protobuf/util/json_util.h>

#include "core/error.h"
#include "core/text.h"
#include "ir/io/json.h"
#include "ir/io/pb_wire.h"

namespace fxopt {
namespace {

constexpr uint32_t kMeasurementVersion = 1;

Error bad(const std::string& file, std::string message, std::string hint) {
  Error error{ErrorCode::kBadMeasurement, std::move(message), std::move(hint), {}};
  error.where.file = file;
  return error;
}

// JSON numbers are always finite.
std::string seconds_text(double seconds) { return std::isfinite(seconds) ? format_double(seconds) : "\"NaN\""; }

// The error for invalid JSON contains protobuf's own message.
Status read(std::string_view bytes, const std::string& file, schema::Measurement& message) {
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && bytes[first] == '{') {
    const auto status = google::protobuf::util::JsonStringToMessage({bytes.data(), bytes.size()}, &message);
    if (status.ok()) return ok_status();
    return bad(file, "the measurement does not match its schema: " + std::string(status.message()),
               "see schemas/profile.proto");
  }
  silence_protobuf();
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return ok_status();
  return bad(file, "this is not a measurement", "see `fxopt help measurements`");
}

}  // namespace

Result<Measurement> parse_measurement(std::string_view bytes, const std::string& file) {
  schema::Measurement message;
  if (const Status status = read(bytes, file, message); !status.ok()) return status.error();
  if (message.version() != kMeasurementVersion) {
    return bad(file, "this is a measurement of version " + std::to_string(message.version()),
               "this fxopt reads version " + std::to_string(kMeasurementVersion));
  }
  Measurement result{message.device(), {}, message.method(), message.runs(), {}};
  for (const schema::Software& each : message.software()) result.software.emplace_back(each.name(), each.version());
  size_t calls = 0;
  std::set<std::pair<std::string, uint64_t>> known;  // graph and uid
  for (const schema::GraphTimes& graph : message.graphs()) {
    std::vector<MeasuredCall>& list = result.graphs.emplace_back(graph.graph(), std::vector<MeasuredCall>()).second;
    for (const schema::NodeTime& node : graph.nodes()) {
      if (!std::isfinite(node.seconds()) || node.seconds() < 0) {
        return bad(file,
                   "node " + std::to_string(node.uid()) + " of @" + graph.graph() + " took " +
                       std::to_string(node.seconds()) + " seconds",
                   "seconds must be finite and not negative");
      }
      if (!known.emplace(graph.graph(), node.uid()).second) {
        return bad(file, "node " + std::to_string(node.uid()) + " of @" + graph.graph() + " is measured twice",
                   "give each node one time, such as the median of its runs");
      }
      list.push_back({node.uid(), node.target(), node.types(), node.seconds()});
      ++calls;
    }
  }
  if (calls == 0) return bad(file, "the measurement has no calls", "see `fxopt help measurements`");
  return result;
}

std::string print_measurement(const Measurement& measurement) {
  std::string text = "{\"version\": " + std::to_string(kMeasurementVersion) +
                     ", \"device\": " + json_string(measurement.device) + ",\n \"software\": [";
  std::string_view separator = "";
  for (const auto& [name, version] : measurement.software) {
    text.append(separator).append("{\"name\": " + json_string(name) + ", \"version\": " + json_string(version) + "}");
    separator = ", ";
  }
  text += "],\n \"method\": " + json_string(measurement.method) + ", \"runs\": " + std::to_string(measurement.runs) +
          ",\n \"graphs\": [";
  separator = "\n";
  for (const auto& [graph, calls] : measurement.graphs) {
    text.append(separator).append("  {\"graph\": " + json_string(graph) + ", \"nodes\": [");
    separator = "\n";
    for (const MeasuredCall& call : calls) {
      text.append(separator).append(
          "    {\"uid\": " + std::to_string(call.uid) + ", \"target\": " + json_string(call.target) +
          ", \"types\": " + json_string(call.types) + ", \"seconds\": " + seconds_text(call.seconds) + "}");
      separator = ",\n";
    }
    text += "]}";
    separator = ",\n";
  }
  return text += "]}\n";
}

}  // namespace fxopt
