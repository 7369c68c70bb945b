// The forms of the memory report besides text and JSON: Markdown, an HTML page and a trace.

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <nlohmann/json.hpp>

#include "cli/report/memory/html.h"
#include "core/file.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

using Json = nlohmann::json;

const std::string kSnapshot = std::string(FXOPT_SOURCE_DIR "/tests/cli/snapshots/memory.md");
const std::string kLlama = std::string(FXOPT_SOURCE_DIR "/testdata/llama1b.pb");

std::string step_file(const std::string& middle) {
  return "graph @main {\n  %x: f32[262144]@\"cuda:0\" = placeholder() {input={role=parameter}}\n"
         "  %mid: f32[" +
         middle + "]@\"cuda:0\" = aten.new_empty.default(%x, [" + middle +
         "]) {module_path=\"layers.0.mlp\"}\n  %y: f32[1024]@\"cuda:0\" = aten.new_empty.default(%mid, [1024]) "
         "{module_path=\"layers.1.mlp\"}\n  return %y\n}\n";
}

// The inverse of encode_differences(), written from its description.
std::vector<int64_t> decode(const std::string& text) {
  std::vector<int64_t> values;
  std::istringstream words(text);
  int64_t value = 0;
  for (std::string word; words >> word;) {
    if (word.front() == '~') {
      values.insert(values.end(), std::stoull(word.substr(1), nullptr, 36), value);
    } else {
      values.push_back(value += std::stoll(word, nullptr, 36));
    }
  }
  return values;
}

Json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t first = page.find(begin) + begin.size();
  return Json::parse(page.substr(first, page.find("</script>", first) - first));
}

struct Forms {
  TempFolder folder;
  std::string path = folder / "step.fxg";
  std::string markdown = folder / "out.md", html = folder / "out.html", trace = folder / "out.json";

  explicit Forms(const std::string& text = step_file("1000000")) { write_text(path, text); }
  CliResult mem(const std::vector<std::string>& more) const { return run_fxopt({"mem", path}, more); }
};

// The counters called `name` that were written last at `time` or before.
Json counters_at(const Json& trace, const std::string& name, int64_t time) {
  Json values;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "C" && event["name"] == name && event["ts"].get<int64_t>() <= time) values = event["args"];
  }
  return values;
}

// Replaces the file's path by its name, without the temporary folder.
std::string shown(std::string text, const Forms& forms) {
  for (size_t at = text.find(forms.path); at != std::string::npos; at = text.find(forms.path)) {
    text.replace(at, forms.path.size(), "step.fxg");
  }
  return text;
}

TEST_CASE("cli mem --markdown: the report as blessed", "[cli]") {
  const Forms forms;
  REQUIRE(forms.mem({"--markdown", forms.markdown, "--budget", "1GiB"}).exit == 0);
  std::string text = shown(read_text(forms.markdown), forms);
  const std::string base = forms.folder / "base.json";
  REQUIRE(forms.mem({"--baseline", base, "--update-baseline"}).exit == 0);
  write_text(forms.path, step_file("1100000"));
  REQUIRE(forms.mem({"--markdown", forms.markdown, "--baseline", base, "--max-growth", "1%"}).exit == 5);
  text += shown(read_text(forms.markdown), forms);
  if (std::getenv("FXOPT_BLESS") != nullptr) REQUIRE(write_file(kSnapshot, text).ok());
  CHECK(text == read_text(kSnapshot));
}

TEST_CASE("cli mem --markdown: a baseline needs no limit then", "[cli]") {
  const Forms forms;
  const std::string base = forms.folder / "base.json";
  REQUIRE(forms.mem({"--baseline", base, "--update-baseline"}).exit == 0);
  CHECK(forms.mem({"--baseline", base}).exit == 2);
  REQUIRE(forms.mem({"--baseline", base, "--markdown", forms.markdown}).exit == 0);
  CHECK(contains(read_text(forms.markdown), "| before | after | growth |"));
  CHECK(contains(read_text(forms.markdown), "No storage at the peak has grown."));
}

TEST_CASE("cli mem --markdown: names cannot leave their code span", "[cli]") {
  const Forms forms(
      "graph @main {\n  %x: f32[4]@\"cuda:0\" = placeholder()\n  %\"a``|`b\\n# c\": f32[4]@\"cuda:0\" = "
      "aten.neg.default(%x) {module_path=\"</summary>|*x*\"}\n  return %\"a``|`b\\n# c\"\n}\n");
  REQUIRE(forms.mem({"--markdown", forms.markdown}).exit == 0);
  const std::string text = read_text(forms.markdown);
  CHECK(contains(text, "At ``` %a``|`b\\n# c ```, node 2 of 3, module `</summary>|*x*`."));
  CHECK(contains(text, "| ``` %a``\\|`b\\n# c ``` |"));
  CHECK_FALSE(contains(text, "\n# c"));
}

TEST_CASE("encode_differences: runs of equal values, signs, the ends of the range", "[cli]") {
  CHECK(encode_differences(std::vector<int64_t>{}).empty());
  CHECK(encode_differences(std::vector<int64_t>{0}) == "0");
  CHECK(encode_differences(std::vector<int64_t>{36, 36, 36, 0, 0}) == "10 ~2 -10 0");
  const std::vector<int64_t> values = {INT64_MAX, 0, 5, 5, 5, 4, INT64_MAX};
  CHECK(decode(encode_differences(values)) == values);
}

TEST_CASE("cli mem --html: the data are those of the JSON, and the curves peak where it says", "[cli]") {
  const Forms forms;
  const CliResult result = run_fxopt({"mem", kLlama, "--device", "h100", "--html", forms.html, "--json"});
  REQUIRE(result.exit == 0);
  const Json data = data_of(read_text(forms.html)), &report = data["reports"][0], &memory = report["memory"];
  Json graph = result.graph();
  CHECK(graph["growth"].empty());  // the page has no comparison with a baseline
  graph.erase("growth");
  CHECK(memory == graph);
  CHECK(data["options"] == result.json()["result"]["options"]);
  const Json &device = memory["devices"][0], &timeline = report["timelines"][0];
  const size_t place = device["position"];
  CHECK(report["nodes"].size() == memory["nodes"]);
  CHECK(report["nodes"][place] == device["node"]);
  const auto peak = [](const Json& curve) {
    const std::vector<int64_t> values = decode(curve);
    return *std::max_element(values.begin(), values.end());
  };
  CHECK(peak(timeline["ideal"]) == device["ideal"]["peak_bytes"]);
  CHECK(peak(timeline["requested"]) == device["peak_bytes"]);
  CHECK(decode(timeline["requested"])[place] == device["peak_bytes"]);
  CHECK(decode(timeline["requested"]).size() == memory["nodes"]);
  for (const Json& run : device["allocator"]) {
    CHECK(peak(timeline["reserved"][run["segments"].get<std::string>()]) == run["reserved"]["peak_bytes"]);
    CHECK(peak(timeline["allocated"][run["segments"].get<std::string>()]) == run["allocated"]["peak_bytes"]);
  }
  for (const Json& share : device["by_class"]) {
    CHECK(decode(timeline["classes"][share["name"].get<std::string>()])[place] == share["bytes"]);
  }
  const std::vector<int64_t> paths = decode(report["module_path"]);
  CHECK(report["texts"][static_cast<size_t>(paths[place])] == device["module_path"]);
}

TEST_CASE("cli mem --html: a baseline makes the page no longer", "[cli]") {
  const Forms forms;
  const std::string base = forms.folder / "base.json";
  REQUIRE(forms.mem({"--baseline", base, "--update-baseline"}).exit == 0);
  REQUIRE(forms.mem({"--baseline", base, "--max-growth", "1%", "--top", "2", "--html", forms.html}).exit == 0);
  const Json data = data_of(read_text(forms.html)), &device = data["reports"][0]["memory"]["devices"][0];
  CHECK(device["live_storages"] == 3);
  CHECK(device["top"].size() == 2);
  CHECK_FALSE(device.contains("others"));
}

TEST_CASE("cli mem --html: every class adds up to the curve at each node", "[cli]") {
  const Forms forms;
  REQUIRE(run_fxopt({"mem", kLlama, "--device", "h100", "--steady", "--html", forms.html}).exit == 0);
  const Json data = data_of(read_text(forms.html)), &timeline = data["reports"][0]["timelines"][0];
  std::vector<int64_t> sum(data["reports"][0]["nodes"].size(), 0);
  for (const Json& text : timeline["classes"]) {
    const std::vector<int64_t> values = decode(text);
    REQUIRE(values.size() == sum.size());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  CHECK(sum == decode(timeline["requested"]));
}

TEST_CASE("cli mem --html: a node takes less than 60 bytes, so that 36000 stay below 5 MB", "[cli]") {
  const Forms forms;
  REQUIRE(run_fxopt({"mem", kLlama, "--device", "h100", "--html", forms.html}).exit == 0);
  const std::string page = read_text(forms.html);
  const size_t kLibraryAndScript = 220000;
  CHECK(page.size() < kLibraryAndScript + 60 * data_of(page)["reports"][0]["nodes"].size());
}

TEST_CASE("cli mem --html: names are data, not markup", "[cli]") {
  const Forms forms(
      "graph @main {\n  %x: f32[4]@\"cuda:0\" = placeholder()\n  %\"</script><b>\": f32[4]@\"cuda:0\" = "
      "aten.neg.default(%x) {module_path=\"<!--<script>\\x01\\\"\"}\n  return %\"</script><b>\"\n}\n");
  REQUIRE(forms.mem({"--html", forms.html}).exit == 0);
  const std::string page = read_text(forms.html);
  CHECK_FALSE(contains(page, "</script><b>"));
  CHECK_FALSE(contains(page, "<!--<script>"));
  const Json report = data_of(page)["reports"][0];
  CHECK(report["nodes"][1] == "</script><b>");
  CHECK(report["texts"][static_cast<size_t>(decode(report["module_path"])[1])] == "<!--<script>\x01\"");
}

TEST_CASE("cli mem --html: nothing is loaded from elsewhere, and the library's licence is in it", "[cli]") {
  const Forms forms;
  REQUIRE(forms.mem({"--html", forms.html}).exit == 0);
  const std::string page = read_text(forms.html);
  CHECK(contains(page, "default-src 'none'"));
  CHECK_FALSE(contains(page, "sourceMappingURL"));
  CHECK_FALSE(contains(page, " src="));
  CHECK(contains(page, "Permission is hereby granted"));
}

TEST_CASE("cli mem --trace: the counters at the peak are the report's", "[cli]") {
  const Forms forms;
  const CliResult result = run_fxopt({"mem", kLlama, "--device", "h100", "--trace", forms.trace, "--json"});
  REQUIRE(result.exit == 0);
  const Json trace = Json::parse(read_text(forms.trace));
  const Json device = result.graph()["devices"][0];
  const int64_t place = device["position"];
  const Json metrics = counters_at(trace, "cuda:0 memory", place);
  CHECK(metrics["requested"] == device["peak_bytes"]);
  const Json classes = counters_at(trace, "cuda:0 live, by class", place);
  for (const Json& share : device["by_class"]) CHECK(classes[share["name"].get<std::string>()] == share["bytes"]);
  for (const Json& run : device["allocator"]) {
    int64_t reserved = 0;
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] != "C" || event["name"] != "cuda:0 memory") continue;
      reserved = std::max(reserved, event["args"]["reserved, " + run["segments"].get<std::string>()].get<int64_t>());
    }
    CHECK(reserved == run["reserved"]["peak_bytes"]);
  }
}

TEST_CASE("cli mem --trace: a slice for each node, an instant at the peak, a process for each graph", "[cli]") {
  const Forms forms;
  REQUIRE(forms.mem({"--trace", forms.trace}).exit == 0);
  Json slices = Json::array(), instants = slices, names = slices;
  const Json trace = Json::parse(read_text(forms.trace));
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") slices.push_back(event);
    if (event["ph"] == "i") instants.push_back(event);
    if (event["ph"] == "M") names.push_back(event["name"]);
  }
  REQUIRE(slices.size() == 4);
  CHECK(slices[1]["name"] == "mid");
  CHECK(slices[1]["ts"] == 1);
  CHECK(slices[1]["dur"] == 1);
  CHECK(slices[1]["args"]["module_path"] == "layers.0.mlp");
  CHECK(slices[1]["args"]["target"] == "aten.new_empty.default");
  CHECK(slices[1]["args"]["phase"] == "forward");
  CHECK(slices[1]["args"]["live_bytes"]["cuda:0"] == 262144 * 4 + 1000000 * 4);
  REQUIRE(instants.size() == 1);
  CHECK(instants[0]["ts"] == 2);
  CHECK(instants[0]["args"]["bytes"] == 262144 * 4 + 1000000 * 4 + 1024 * 4);
  CHECK(names == Json({"process_name", "thread_name"}));
}

TEST_CASE("cli mem: where memory runs out, the curves of the allocator end", "[cli]") {
  const Forms forms;
  REQUIRE(forms.mem({"--device-memory", "3MiB", "--html", forms.html, "--trace", forms.trace}).exit == 0);
  const Json timeline = data_of(read_text(forms.html))["reports"][0]["timelines"][0];
  CHECK(decode(timeline["requested"]).size() == 4);
  CHECK(decode(timeline["reserved"]["classic"]).size() < 4);
  CHECK(Json::parse(read_text(forms.trace)).contains("traceEvents"));
}

TEST_CASE("cli mem: no form is written over what is read, or over another one", "[cli]") {
  const Forms forms;
  const std::string before = read_text(forms.path), base = forms.folder / "base.json";
  REQUIRE(forms.mem({"--baseline", base, "--update-baseline"}).exit == 0);
  const std::string baseline = read_text(base);
  for (const std::string flag : {"--markdown", "--html", "--trace"}) {
    check_ended(forms.mem({flag, forms.path}), 2, "would overwrite the input");
    CHECK(forms.mem({flag, base, "--baseline", base, "--max-growth", "1%"}).exit == 2);
    CHECK(forms.mem({flag, base, "--baseline", base, "--update-baseline"}).exit == 2);
    CHECK(contains(forms.mem({flag, "-"}).err, "cannot go to standard output"));
    CHECK(forms.mem({flag, forms.html, "--json=" + forms.html}).exit == 2);
  }
  CHECK(forms.mem({"--html", forms.html, "--trace", forms.html}).exit == 2);
  CHECK(read_text(forms.path) == before);
  CHECK(read_text(base) == baseline);
}

TEST_CASE("cli mem: forms are written when a limit is broken", "[cli]") {
  const Forms forms;
  CHECK(forms.mem({"--budget", "1KiB", "--html", forms.html, "--markdown", forms.markdown}).exit == 5);
  CHECK(contains(read_text(forms.html), "\"reports\":[{"));
  CHECK(contains(read_text(forms.markdown), "**Limits broken** (limits: `--budget 1KiB`)"));
}

TEST_CASE("cli mem: forms say first what was not measured, and no old one stays", "[cli]") {
  const Forms forms;
  const std::string missing = forms.folder / "nope.pb", bad = forms.folder / "bad.fxg";
  write_text(bad, std::string(kNoSyntax));
  const std::vector<std::string> products = {"--markdown", forms.markdown, "--html", forms.html};
  const auto with = [&](const std::vector<std::string>& args) {
    for (const std::string& path : {forms.markdown, forms.html}) write_text(path, "stale");
    return run_fxopt({"mem"}, args, products).exit;
  };
  CHECK(with({forms.path, missing, bad, "--budget", "1GiB"}) == 10);
  const std::string text = read_text(forms.markdown);
  CHECK(text.starts_with("### Not measured: `" + missing + "`\n\n- `FX1001 "));
  CHECK(contains(text, "### Not measured: `" + bad + "`\n\n- `FX03"));
  CHECK(text.find("Limits hold") > text.rfind("Not measured"));
  CHECK(data_of(read_text(forms.html))["failures"].size() == 2);
  CHECK(with({bad}) == 3);  // the only input
  CHECK(read_text(forms.markdown).starts_with("### Not measured: "));
  CHECK(data_of(read_text(forms.html))["reports"].empty());
  // Fails before anything is measured.
  CHECK(with({forms.path, "--baseline", missing, "--max-growth", "1%"}) == 10);
  CHECK(read_text(forms.markdown).starts_with("### Not measured: `" + forms.path + "`"));
  CHECK(with({forms.path}) == 0);
  CHECK_FALSE(contains(read_text(forms.markdown), "Not measured"));
}

TEST_CASE("cli mem --html: one step is drawn, the one in which memory ran out", "[cli]") {
  const Forms forms;
  REQUIRE(forms.mem({"--device-memory", "3MiB", "--html", forms.html}).exit == 0);
  const Json report = data_of(read_text(forms.html))["reports"][0];
  const Json fit = report["memory"]["devices"][0]["fit"];
  CHECK(fit["fits"] == false);
  CHECK(report["nodes"][fit["position"].get<size_t>()] == fit["node"]);
  for (const char* element : {"id=\"verdict\"", "id=\"limit-line\"", "id=\"fail-mark\""}) {
    CHECK(contains(read_text(forms.html), element));
  }
}

}  // namespace
}  // namespace fxopt
