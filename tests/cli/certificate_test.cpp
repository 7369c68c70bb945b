// Certificates: the proofs that a file records, and whether they still hold.
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/replaced.h"

namespace fxopt {
namespace {

struct Files {
  TempFolder folder;
  std::string in = folder / "in.fxg", out = folder / "out.fxg";

  explicit Files(std::string_view text = kTwins) { write_text(in, text); }

  CliResult opt(const std::string& from, const std::string& to, const std::string& passes,
                const std::vector<std::string>& more = {}) {
    return run_fxopt({"opt", from, "-o", to, "--passes", passes}, more);
  }
  static std::string certificate(const std::string& path) {
    const std::string text = read_text(path);
    const size_t begin = text.find("certificate {");
    return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
  }
};

TEST_CASE("cli certificate: a file says what was proved, and verify whether it still holds", "[cli]") {
  Files files;
  REQUIRE(files.opt(files.in, files.out, "cse,sac").exit == 0);
  const std::string certificate = Files::certificate(files.out);
  std::string version = run_fxopt({"--version"}).out;  // "fxopt 0.1.0"
  version = version.substr(6, version.find('\n') - 6);
  CHECK(contains(certificate, "steps=[{pass=\"cse\", version=\"" + version + "\", verdict=proved}]"));
  CliResult verified = run_fxopt({"verify", files.out});
  CHECK(contains(verified.out, "\n  proved: cse\n"));
  CHECK(verified.err == "");
  verified = run_fxopt({"verify", files.out, "--json"});
  const nlohmann::json row = verified.file()["certificate"];
  CHECK(row["fits"] == true);
  CHECK(row["steps"][0]["verdict"] == "proved");
  CHECK(contains(certificate, row["computes"].get<std::string>()));

  // The certificate survives changes of names and tags, but not of calls.
  const std::string text = read_text(files.out);
  write_text(files.out, replaced(replaced(text, "%c:", "%renamed:"), "(%c,)", "(%renamed,)"));
  CHECK(contains(run_fxopt({"verify", files.out}).out, "\n  proved: cse\n"));
  write_text(files.out, replaced(text, "aten.add.Tensor", "aten.mul.Tensor"));
  verified = run_fxopt({"verify", files.out});
  CHECK(verified.exit == 0);
  CHECK_FALSE(contains(verified.out, "proved"));
  CHECK(contains(verified.err, "warning[stale-certificate]"));

  // `opt` starts its proofs over on a changed file.
  const std::string again = files.folder / "again.fxg";
  const CliResult second = files.opt(files.out, again, "canonicalize,cse");
  CHECK(contains(second.err, "warning[stale-certificate]"));
  CHECK(Files::certificate(again) == "");
}

TEST_CASE("cli certificate: it holds for a graph that lost all of backward", "[cli]") {
  Files files(
      "fxg 0\ngraph @g {\n  %a: f32[] = placeholder()\n  %b: f32[] = aten.ones_like.default(%a, pin_memory=False)\n"
      "  %e: f32[] = aten.expand.default(%b, [])\n  return (%a, %e)\n}\n");
  for (const char* passes : {"canonicalize,cse,dce", "infer-phase,canonicalize,cse,dce"}) {
    REQUIRE(files.opt(files.in, files.out, passes).exit == 0);
    const CliResult verified = run_fxopt({"verify", files.out});
    CHECK(contains(verified.out, "proved: canonicalize"));
    CHECK(verified.err == "");
  }
}

TEST_CASE("cli certificate: pieces of a pipeline certify what the pipeline does", "[cli]") {
  Files files(
      "fxg 0\ngraph @g {kind=forward} {\n  %x: f32[4] = placeholder()\n  %d: f32[4] = aten.exp.default(%x)\n"
      "  %a: f32[4] = aten.neg.default(%x)\n  %b: f32[4] = aten.neg.default(%x)\n"
      "  %c: f32[4] = aten.add.Tensor(%a, %b)\n  return (%c,)\n}\n");
  const std::string first = files.folder / "first.pb", second = files.folder / "second.fxg";
  REQUIRE(files.opt(files.in, files.out, "cse,dce").exit == 0);
  REQUIRE(files.opt(files.in, first, "cse").exit == 0);
  REQUIRE(files.opt(first, second, "dce").exit == 0);
  CHECK(contains(Files::certificate(files.out), "{pass=\"cse\""));
  CHECK(contains(Files::certificate(files.out), "{pass=\"dce\""));
  CHECK(read_text(files.out) == read_text(second));
}

TEST_CASE("cli certificate: what was not proved is not certified", "[cli]") {
  Files files;
  REQUIRE(files.opt(files.in, files.out, "dce").exit == 0);  // changes nothing
  CHECK(Files::certificate(files.out) == "");
  REQUIRE(files.opt(files.in, files.out, "cse", {"--no-prove"}).exit == 0);
  CHECK(Files::certificate(files.out) == "");
  REQUIRE(files.opt(files.in, files.out, "cse").exit == 0);
  const std::string kept = files.folder / "kept.fxg";
  REQUIRE(files.opt(files.out, kept, "dce", {"--no-prove"}).exit == 0);  // changes nothing
  CHECK(Files::certificate(kept) == Files::certificate(files.out));
}

TEST_CASE("cli certificate: what may be left out is said, and holds for later passes", "[cli]") {
  Files files(
      "fxg 0\ngraph @g {kind=forward} {\n  %x: f32[4] = placeholder()\n  %d: f32[4] = aten.rand_like.default(%x)\n"
      "  %e: f32[4] = aten.rand_like.default(%x)\n  %a: f32[4] = aten.neg.default(%e)\n"
      "  %b: f32[4] = aten.neg.default(%e)\n  %c: f32[4] = aten.add.Tensor(%a, %b)\n  return (%c,)\n}\n");
  REQUIRE(files.opt(files.in, files.out, "dce{random=remove}").exit == 0);
  CHECK(contains(Files::certificate(files.out), "allowed=[\"dead-draws\"]"));
  CHECK(contains(run_fxopt({"verify", files.out}).out, "  proved: dce{random=remove}; may omit dead-draws\n"));
  const std::string later = files.folder / "later.fxg", both = files.folder / "both.fxg";
  REQUIRE(files.opt(files.out, later, "cse").exit == 0);
  REQUIRE(files.opt(files.in, both, "dce{random=remove},cse").exit == 0);
  CHECK(read_text(later) == read_text(both));
}

TEST_CASE("cli opt: --numerics names a class", "[cli]") {
  Files files;
  CHECK(files.opt(files.in, files.out, "cse", {"--numerics", "reorders-reductions"}).exit == 0);
  check_ended(files.opt(files.in, files.out, "cse", {"--numerics", "exactly"}), 2, "--numerics does not take 'exactly'",
              "exact");
}

}  // namespace
}  // namespace fxopt
