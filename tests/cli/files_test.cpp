// Output files: formats, folders, standard input and output.

#include <cstdlib>

#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

TEST_CASE("cli convert: every form and back gives the same text") {
  const TempFolder folder;
  const std::string text = folder.write("a.fxg", kTwins);
  for (const char* name : {"b.pb", "b.json", "b.fxg", "b.pb.zst", "b.fxg.zst", "b.json.zst"}) {
    CHECK(run_fxopt({"convert", text, "-o", folder / name}).exit == 0);
    CHECK(run_fxopt({"convert", folder / name}).out == kTwins);
  }
  CHECK(run_fxopt({"convert", text, "--format", "pb"}).out == read_text(folder / "b.pb"));
  CHECK(run_fxopt({"convert", text, "-o", folder / "odd.name", "--format", "pb"}).exit == 0);
  CHECK(read_text(folder / "odd.name") == read_text(folder / "b.pb"));
}

TEST_CASE("cli convert: a folder takes files named like the inputs") {
  const TempFolder folder;
  write_text(folder / "a.fxg", kTwins);
  CHECK(run_fxopt({"convert", folder / "a.fxg", "-o", folder / "b.pb.zst"}).exit == 0);
  const std::string to = folder / "new/";
  CHECK(run_fxopt({"convert", folder / "a.fxg", folder / "b.pb.zst", "-o", to, "--format", "json"}).exit == 0);
  CHECK(std::filesystem::exists(to + "a.json"));
  CHECK(std::filesystem::exists(to + "b.json"));
  CHECK(run_fxopt({"convert", folder / "a.fxg", "-o", to}).exit == 0);
  CHECK(read_text(to + "a.fxg") == kTwins);

  // Files with the same name keep as many folders as it takes to tell them apart.
  for (const char* name : {"A", "B"}) {
    std::filesystem::create_directory(folder / name);
    write_text(folder / (std::string(name) + "/a.fxg"), kTwins);
  }
  const std::string fresh = folder / "fresh/";
  CHECK(run_fxopt({"convert", folder / "A/a.fxg", folder / "B/a.fxg", folder / "b.pb.zst", "-o", fresh}).exit == 0);
  for (const char* name : {"A/a.fxg", "B/a.fxg", "b.pb.zst"}) CHECK(std::filesystem::exists(fresh + name));

  // Two outputs with one name are refused before anything is written.
  const std::string none = folder / "none/";
  CHECK(run_fxopt({"convert", folder / "a.fxg", folder / "a.fxg", "-o", none}).exit == 2);
  CHECK(run_fxopt({"convert", to + "b.json", folder / "b.pb.zst", "-o", none, "--format", "fxg"}).exit == 2);
  CHECK_FALSE(std::filesystem::exists(none));
}

TEST_CASE("cli leaves the old file when it fails") {
  const TempFolder folder;
  write_text(folder / "bad.fxg", kOutOfOrder);
  write_text(folder / "out.fxg", "precious");
  CHECK(run_fxopt({"opt", folder / "bad.fxg", "-o", folder / "out.fxg"}).exit == 3);
  CHECK(read_text(folder / "out.fxg") == "precious");
  CHECK(folder.num_entries() == 2);
}

TEST_CASE("cli reports a standard output that takes nothing") {
  const TempFolder folder;
  write_text(folder / "a.fxg", kTwins);
  std::ostringstream err;
  std::ostream full(nullptr);
  CHECK(run_cli({"convert", folder / "a.fxg"}, {full, err}) == 10);
  CHECK(contains(err.str(), "error[FX1003]"));
  CHECK(run_cli({"mem", folder / "a.fxg", "--json"}, {full, err}) == 10);
}

TEST_CASE("cli colours errors only when told to") {
  std::ostringstream out, plain, coloured;
  run_cli({"verify", "missing"}, {out, plain});
  run_cli({"verify", "missing"}, {out, coloured, true});
  CHECK_FALSE(contains(plain.str(), "\x1b"));
  CHECK(contains(coloured.str(), "\x1b[1;31merror[FX1001]\x1b[0m"));
}

#ifdef FXOPT_BINARY
// Runs a shell line that may use $FXOPT and $DIR.
int shell(const TempFolder& folder, const std::string& line) {
  const std::string script = "FXOPT='" FXOPT_BINARY "'; cd '" + (folder / "") + "'; " + line;
  write_text(folder / "line.sh", script);
  const int status = std::system(("sh '" + (folder / "line.sh") + "'").c_str());
  return (status >> 8) & 0xff;
}

TEST_CASE("cli process: '-' is standard input and standard output") {
  const TempFolder folder;
  write_text(folder / "a.fxg", kTwins);
  CHECK(shell(folder, "$FXOPT convert - < a.fxg > b.fxg") == 0);
  CHECK(read_text(folder / "b.fxg") == kTwins);
  CHECK(shell(folder,
              "$FXOPT convert - -o - --format pb < a.fxg | $FXOPT opt - --passes cse | $FXOPT show - --full > c.fxg") ==
        0);
  CHECK(read_text(folder / "c.fxg") == run_fxopt({"opt", folder / "a.fxg", "--passes", "cse"}).out);
  CHECK(shell(folder, "$FXOPT verify - < /dev/null > out 2> err") == 3);
  CHECK(contains(read_text(folder / "err"), "standard input"));
  CHECK(shell(folder, "$FXOPT verify a.fxg - < a.fxg > out") == 0);
  const std::string pair = FXOPT_SOURCE_DIR "/testdata/pair_";
  for (const char* command : {"mem", "verify", "opt -o out.pb --passes dce", "diff a.pb b.pb"}) {
    CAPTURE(command);
    const std::string parts = " --step - '" + pair + "backward.pb.zst' < '" + pair + "forward.pb.zst' > out 2> err";
    CHECK(shell(folder, "cp '" + pair + "forward.pb.zst' a.pb; cp '" + pair + "backward.pb.zst' b.pb; $FXOPT " +
                            command + parts) == 0);
  }
}

TEST_CASE("cli process: exit codes and streams") {
  const TempFolder folder;
  write_text(folder / "a.fxg", kTwins);
  CHECK(shell(folder, "$FXOPT --version > out 2> err") == 0);
  CHECK(read_text(folder / "out") == "fxopt 0.1.0\n");
  CHECK(read_text(folder / "err").empty());
  CHECK(shell(folder, "$FXOPT mem a.fxg --budget 1B > out 2> err") == 5);
  CHECK(shell(folder, "$FXOPT nonsense > out 2> err") == 2);
  CHECK(read_text(folder / "out").empty());
  for (const char* line :
       {"mem a.fxg", "show a.fxg", "show a.fxg --summary", "verify a.fxg", "help", "mem a.fxg --json"}) {
    CAPTURE(line);
    CHECK(shell(folder, "$FXOPT " + std::string(line) + " > /dev/full 2> err") == 10);
    CHECK(shell(folder, "$FXOPT " + std::string(line) + " >&- 2> err") == 10);
  }
  CHECK(shell(folder, "$FXOPT convert a.fxg -o b.fxg >&- 2> err") == 0);  // prints nothing
}

TEST_CASE("cli process: a pipe with a name takes text, and /dev/stdout is standard output") {
  const TempFolder folder;
  write_text(folder / "a.fxg", kTwins);
  CHECK(shell(folder, "mkfifo p; timeout 10 cat p > b.fxg & $FXOPT convert a.fxg -o p; code=$?; wait; exit $code") ==
        0);
  CHECK(read_text(folder / "b.fxg") == kTwins);
  CHECK(shell(folder, "$FXOPT convert a.fxg -o /dev/stdout > c.fxg") == 0);
  CHECK(read_text(folder / "c.fxg") == kTwins);
  CHECK(shell(folder, "$FXOPT convert a.fxg -o /dev/stdout --json > out 2> err") == 2);
  CHECK(shell(folder, "$FXOPT convert a.fxg --json=/dev/stdout > out 2> err") == 2);
}
#endif

}  // namespace
}  // namespace fxopt
