// Measurements (schemas/profile.proto) as protobuf and as JSON.
#include "ir/io/measurement.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "profile.pb.h"

#include "tests/catch.h"

namespace fxopt {
namespace {

schema::Measurement sample() {
  schema::Measurement message;
  message.set_version(1);
  message.set_device("NVIDIA H100 80GB HBM3");
  message.set_runs(5);
  schema::GraphTimes* graph = message.add_graphs();
  graph->set_graph("main");
  schema::NodeTime* node = graph->add_nodes();
  node->set_uid(7);
  node->set_target("aten.mm.default");
  node->set_types("f32[2,2], f32[2,2] -> f32[2,2]");
  node->set_seconds(1.5e-5);
  return message;
}

void check(const Result<Measurement>& read) {
  CHECK(read->device == "NVIDIA H100 80GB HBM3");
  CHECK(read->runs == 5);
  REQUIRE(read->graphs.size() == 1);
  CHECK(read->graphs[0].first == "main");
  REQUIRE(read->graphs[0].second.size() == 1);
  const MeasuredCall& call = read->graphs[0].second[0];
  CHECK(call.uid == 7);
  CHECK(call.target == "aten.mm.default");
  CHECK(call.types == "f32[2,2], f32[2,2] -> f32[2,2]");
  CHECK(call.seconds == 1.5e-5);
}

void check_refused(const std::string& bytes, const std::string& words) {
  const Error error = parse_measurement(bytes, "times.json").error();
  CHECK(error.code == ErrorCode::kBadMeasurement);
  CHECK(error.where.file == "times.json");
  CHECK(error.message.find(words) != std::string::npos);
}

TEST_CASE("measurements: protobuf and JSON say the same") {
  check(parse_measurement(sample().SerializeAsString(), "times.pb"));
  check(parse_measurement(R"( {"version": 1, "device": "NVIDIA H100 80GB HBM3", "runs": 5, "graphs": [{"graph": "main",
    "nodes": [{"uid": 7, "target": "aten.mm.default", "types": "f32[2,2], f32[2,2] -> f32[2,2]", "seconds": 1.5e-05}]}]})",
                          "times.json"));
}

TEST_CASE("measurements: what is none is refused") {
  schema::Measurement other = sample();
  other.set_version(2);
  check_refused(other.SerializeAsString(), "of version 2");
  other = sample();
  other.mutable_graphs(0)->mutable_nodes(0)->set_seconds(-1);
  check_refused(other.SerializeAsString(), "node 7 of @main took -1");
  other.mutable_graphs(0)->mutable_nodes(0)->set_seconds(std::numeric_limits<double>::infinity());
  check_refused(other.SerializeAsString(), "took inf");
  other = sample();
  *other.mutable_graphs(0)->add_nodes() = other.graphs(0).nodes(0);
  check_refused(other.SerializeAsString(), "node 7 of @main is measured twice");
  other.mutable_graphs(0)->mutable_nodes(1)->set_uid(8);
  CHECK(parse_measurement(other.SerializeAsString(), "times.pb").ok());
  other.clear_graphs();
  check_refused(other.SerializeAsString(), "no calls");
  check_refused("", "of version 0");
  check_refused("\xff\xff\xff", "not a measurement");
  check_refused(R"({"version": 1, "grafs": []})", "does not match its schema");
  check_refused(R"({"version": )", "does not match its schema");
}

Measurement read_back(const Measurement& measurement) {
  const std::string text = print_measurement(measurement);
  INFO(text);
  const Measurement read = parse_measurement(text, "times.json").value();
  CHECK(print_measurement(read) == text);
  return read;
}

TEST_CASE("measurements: what is printed is read back") {
  const Measurement read = parse_measurement(sample().SerializeAsString(), "times.pb").value();
  CHECK(read_back(read) == read);
  Measurement made{"cpu \"0\"\n", {{"torch", "2.15.0"}, {"", ""}}, "\\ \t \xc3\xa9 \x7f", 4294967295U, {}};
  made.method += '\0';
  made.graphs.emplace_back("main", std::vector<MeasuredCall>());
  made.graphs.emplace_back("", std::vector<MeasuredCall>());
  uint64_t uid = std::numeric_limits<uint64_t>::max();
  for (const double seconds : {0.0, -0.0, 5e-324, 2.2250738585072014e-308, 1e-5, 0.1, 1.0 / 3, 123456789.0, 1e22,
                               std::numeric_limits<double>::max(), std::nextafter(1e-3, 1)}) {
    made.graphs[0].second.push_back({uid--, "aten.mm.default", "bf16[8,16] -> bf16[8,4]:1,8", seconds});
  }
  made.graphs.emplace_back("main", std::vector<MeasuredCall>{{9007199254740993U, "", "", 1}, {0, "", "", 1}});
  const Measurement again = read_back(made);
  CHECK(again == made);
  CHECK(std::signbit(again.graphs[0].second[1].seconds));
}

TEST_CASE("measurements: one text for each") {
  Measurement made{"cpu", {{"torch", "2.15.0"}}, "perf_counter", 3, {}};
  made.graphs.emplace_back("main", std::vector<MeasuredCall>{{7, "aten.mm.default", "f32[2] -> f32[2]", 1.5e-5},
                                                             {8, "aten.neg.default", "f32[2] -> f32[2]", 2}});
  CHECK(print_measurement(made) == R"({"version": 1, "device": "cpu",
 "software": [{"name": "torch", "version": "2.15.0"}],
 "method": "perf_counter", "runs": 3,
 "graphs": [
  {"graph": "main", "nodes": [
    {"uid": 7, "target": "aten.mm.default", "types": "f32[2] -> f32[2]", "seconds": 1.5e-05},
    {"uid": 8, "target": "aten.neg.default", "types": "f32[2] -> f32[2]", "seconds": 2.0}]}]}
)");
}

TEST_CASE("measurements: what none may hold is printed and refused") {
  Measurement made;
  check_refused(print_measurement(made), "no calls");
  made.graphs.emplace_back("main", std::vector<MeasuredCall>{{7, "", "", -1}});
  check_refused(print_measurement(made), "node 7 of @main took -1");
  for (const double seconds : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    made.graphs[0].second[0].seconds = seconds;
    check_refused(print_measurement(made), "node 7 of @main took nan");
  }
  made.graphs[0].second = {{7, "\xff", "", 1}};
  CHECK(read_back(made).graphs[0].second[0].target == "\xef\xbf\xbd");
}

}  // namespace
}  // namespace fxopt
