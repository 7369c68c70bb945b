// Invariants of pipelines on a real graph: the same bytes every time, the same bytes when run in
// pieces, and no loss of a newer schema's fields.

#include <memory>
#include <string>

#include "fxgraph.pb.h"

#include "ir/io/io.h"
#include "ir/io/pb_envelope.h"
#include "ir/io/pb_ids.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/registry.h"
#include "tests/catch.h"
#include "tests/must.h"
#include "tests/parse.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

const char* const kPipeline = "canonicalize,cse,sac{policy=full},remat,raise-getitems,dce";

std::string print(const Module& module) { return must(print_pb(module)); }

std::string run(const std::string& bytes, const std::string& passes) {
  const std::unique_ptr<Module> module = parse(bytes, Format::kPb);
  must(run_pipeline(*module, must(parse_pipeline(passes))));
  return print(*module);
}

TEST_CASE("testdata: a pipeline gives the same bytes as its pieces through files, and every time", "[testdata]") {
  const std::string input = print(*load_testdata("llama1b.pb"));
  const std::string whole = run(input, kPipeline);
  CHECK((run(input, kPipeline) == whole));
  std::string pieces = input;
  const Pipeline pipeline = parse_pipeline(kPipeline).value();
  for (const PipelineStep& step : pipeline.steps) pieces = run(pieces, step.text);
  CHECK((pieces == whole));
}

TEST_CASE("testdata: every pass gives the same bytes every time, and what it writes loads", "[testdata]") {
  const std::string whole = run(print(*load_testdata("issue178935_selective.pb")), "infer-phase");
  const std::string joint = print(*load_testdata("gpt2_joint_twin.pb.zst"));
  for (const PassInfo& pass : pass_registry()) {
    INFO(pass.name);
    const std::string& input = pass.name == "partition" || pass.name == "join" ? joint : whole;
    const std::string output = run(input, std::string(pass.name));
    CHECK((run(input, std::string(pass.name)) == output));
    CHECK((print(*parse(output, Format::kPb)) == output));
  }
}

TEST_CASE("testdata: fields of a newer schema survive load, canonicalize, cse and save", "[testdata]") {
  schema::File file;
  REQUIRE(file.ParseFromString(print(*load_testdata("llama1b.pb"))));
  schema::Module& module = *file.mutable_module();
  spell_ids(module);
  constexpr int kNewField = 4000;
  const auto mark = [](google::protobuf::Message& message) {
    message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(kNewField, "kept");
  };
  const auto is_marked = [](const google::protobuf::Message& message) {
    const google::protobuf::UnknownFieldSet& fields = message.GetReflection()->GetUnknownFields(message);
    return fields.field_count() == 1 && fields.field(0).number() == kNewField &&
           fields.field(0).length_delimited() == "kept";
  };
  mark(module);
  mark(*module.mutable_graphs(0));
  // Marks every other node only: cse does not merge nodes with unknown fields.
  for (schema::Node& node : *module.mutable_graphs(0)->mutable_nodes()) {
    if (node.uid() % 2 == 1) continue;
    mark(node);
    for (schema::Arg& arg : *node.mutable_args()) mark(arg);
    if (node.has_value()) mark(*node.mutable_value());
  }
  const PbCounts counts{file.counts().graphs(), file.counts().nodes(), file.counts().strings(),
                        file.counts().storages()};
  const std::string newer = write_envelope(counts, {module.SerializeAsString()}).value();

  schema::File result;
  REQUIRE(result.ParseFromString(run(newer, "canonicalize,cse")));
  schema::Module& after = *result.mutable_module();
  spell_ids(after);
  CHECK(after.graphs(0).nodes_size() < module.graphs(0).nodes_size());
  CHECK(is_marked(after));
  CHECK(is_marked(after.graphs(0)));
  int lost = 0;
  for (const schema::Node& node : after.graphs(0).nodes()) {
    if (node.uid() % 2 == 1) continue;
    lost += is_marked(node) ? 0 : 1;
    for (const schema::Arg& arg : node.args()) lost += is_marked(arg) ? 0 : 1;  // also if it reads a new input
    if (node.has_value()) lost += is_marked(node.value()) ? 0 : 1;
  }
  CHECK(lost == 0);
}

}  // namespace
}  // namespace fxopt
