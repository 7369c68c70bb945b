// Measurements: schemas/profile.proto, as protobuf and as JSON.
#include "ir/io/measurement.h"

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
  REQUIRE(read.ok());
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
  const Result<Measurement> read = parse_measurement(bytes, "times.json");
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().code == ErrorCode::kBadMeasurement);
  CHECK(read.error().where.file == "times.json");
  CHECK(read.error().message.find(words) != std::string::npos);
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
  check_refused(R"({"version": 1, "grafs": []})", "not JSON of its schema");
  check_refused(R"({"version": )", "not JSON of its schema");
}

}  // namespace
}  // namespace fxopt
