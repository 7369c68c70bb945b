// Every command that README.md or a page of cli/topics shows after "$ " is run, and prints what the
// page shows below it. "..." on a line of its own stands for any lines, at the end of a line for
// the rest of that line. A command with nothing below it only has to succeed; "# exit code 4"
// behind a command is the code that it must have.

#include <algorithm>
#include <filesystem>

#include "cli/topics.h"
#include "core/file.h"
#include "core/text.h"
#include "ir/device/profile.h"
#include "ir/step/tag_rules.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/registry.h"
#include "runtime/ops/rows.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

const std::string kRoot = FXOPT_SOURCE_DIR;

struct Shown {
  std::string command;  // without "$ "
  std::vector<std::string> lines;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

// The commands of the blocks whose first line begins with "$ ".
std::vector<Shown> commands_of(const std::string& page) {
  std::vector<Shown> shown;
  bool is_code = false, is_first = false, is_run = false;
  for (std::string& line : lines_of(page)) {
    const bool is_fence = line.starts_with("```");
    if (is_fence) is_code = !is_code;
    if (is_code && is_first) is_run = line.starts_with("$ ");
    is_first = is_fence;
    if (is_fence || !is_code || !is_run) continue;
    if (line.starts_with("$ "))
      shown.push_back({line.substr(2), {}});
    else
      shown.back().lines.push_back(std::move(line));
  }
  return shown;
}

// As a shell splits a line with quotes.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  for (const char c : line + " ") {
    if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote == 0 ? c : 0;
    } else if (c != ' ' || quote != 0) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

bool line_matches(const std::string& shown, const std::string& printed) {
  if (!shown.ends_with("...")) return shown == printed;
  return printed.starts_with(shown.substr(0, shown.size() - 3));
}

// The first shown line that the printed ones lack; "" if all are there.
std::string first_missing(const std::vector<std::string>& shown, const std::vector<std::string>& printed) {
  size_t at = 0;
  bool is_free = false;  // "..." came before
  for (const std::string& line : shown) {
    if (line == "..." || line == "  ...") {
      is_free = true;
      continue;
    }
    while (is_free && at < printed.size() && !line_matches(line, printed[at])) ++at;
    if (at == printed.size() || !line_matches(line, printed[at])) return line;
    is_free = false;
    ++at;
  }
  return is_free || at == printed.size() ? "" : "(the end; printed: " + printed[at] + ")";
}

class CurrentFolder {
 public:
  explicit CurrentFolder(const std::string& path) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(path);
  }
  ~CurrentFolder() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_;
};

void run_page(const std::string& path) {
  const std::vector<Shown> commands = commands_of(read_text(path));
  const TempFolder folder;
  std::filesystem::create_directory_symlink(kRoot + "/testdata", folder / "testdata");
  const CurrentFolder here(std::filesystem::path(folder / "testdata").parent_path());
  for (const Shown& shown : commands) {
    const size_t comment = std::min(shown.command.find(" #"), shown.command.size());
    const size_t code = shown.command.find("exit code ", comment);
    std::vector<std::string> words = words_of(shown.command.substr(0, comment));
    INFO(path << ": $ " << shown.command);
    REQUIRE(words.front() == "fxopt");
    words.erase(words.begin());
    const CliResult result = run_fxopt(words);
    const std::string printed = result.out + result.err;
    INFO(printed);
    CHECK(result.exit == (code == std::string::npos ? 0 : std::stoi(shown.command.substr(code + 10))));
    if (!shown.lines.empty()) CHECK(first_missing(shown.lines, lines_of(printed)) == "");
  }
}

std::vector<std::string> pages() {
  std::vector<std::string> paths = {kRoot + "/README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + "/cli/topics")) {
    if (entry.path().extension() == ".md") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST_CASE("pages: every command prints what the page shows", "[cli]") {
  for (const std::string& path : pages()) run_page(path);
}

TEST_CASE("pages: every topic is linked from README.md") {
  const std::string readme = read_text(kRoot + "/README.md");
  for (const Topic& topic : topics()) {
    INFO(topic.name);
    CHECK(contains(readme, "cli/topics/" + std::string(topic.name) + ".md"));
  }
}

// ---- parts of pages that the program's tables give

std::string pass_table() {
  std::string table = "| pass | class | does |\n|---|---|---|\n";
  for (const PassInfo& pass : pass_registry()) {
    table += "| `" + std::string(pass.name) + "` | " + std::string(name_of(pass.numerics)) + " | " +
             std::string(pass.summary) + " |\n";
  }
  return table;
}

std::string profile_list() {
  const std::vector<std::string_view> names = builtin_profiles();
  return "Built in: " + join(std::vector<std::string>(names.begin(), names.end()), ", ") + ".\n";
}

// The text between "<!-- NAME -->" and "<!-- end -->"; FXOPT_BLESS=1 replaces it.
void check_part(const std::string& page, const std::string& name, const std::string& part) {
  const std::string path = kRoot + "/" + page, text = read_text(path), mark = "<!-- " + name + " -->\n";
  const size_t begin = text.find(mark), end = text.find("<!-- end -->\n", begin);
  INFO(page << ": " << name);
  REQUIRE((begin != std::string::npos && end != std::string::npos));
  const size_t first = begin + mark.size();
  if (std::getenv("FXOPT_BLESS") != nullptr && text.substr(first, end - first) != part) {
    REQUIRE(write_file(path, text.substr(0, first) + part + text.substr(end)).ok());
    return;
  }
  CHECK(text.substr(first, end - first) == part);
}

TEST_CASE("pages: their tables are those of the program", "[cli]") {
  check_part("README.md", "passes", pass_table());
  check_part("cli/topics/devices.md", "profiles", profile_list());
  const std::string pipeline = "`" + std::string(default_pipeline_text()) + "`";
  CHECK(contains(read_text(kRoot + "/README.md"), pipeline));
  CHECK(contains(read_text(kRoot + "/cli/topics/pipeline.md"), pipeline));
  CHECK(contains(read_text(kRoot + "/cli/topics/running.md"), " " + std::to_string(op_rows().size()) + " operators "));
}

TEST_CASE("pages: tag-rules.md describes every tag rule, in the order of the rules") {
  const std::string page = read_text(kRoot + "/cli/topics/tag-rules.md");
  size_t last = 0;
  for (const TagRuleText& row : tag_rules()) {
    INFO(name_of(row.rule));
    const size_t place = page.find("\n- " + std::string(name_of(row.rule)) + ": ");
    REQUIRE(place != std::string::npos);
    CHECK(place > last);
    last = place;
  }
}

TEST_CASE("pages: a line is missing where it is not printed, and only there") {
  CHECK(first_missing({"a", "..."}, {"a", "b"}).empty());
  CHECK(first_missing({"...", "b"}, {"a", "b"}).empty());
  CHECK(first_missing({"a..."}, {"abc"}).empty());
  CHECK(first_missing({"a"}, {"a", "b"}) != "");
  CHECK(first_missing({"b"}, {"a", "b"}) == "b");
  CHECK(first_missing({"...", "c"}, {"a", "b"}) == "c");
}

}  // namespace
}  // namespace fxopt
