// Counts forms that make a sentence hard to read, in comments, strings and pages, against the counts of counts.txt, which may only
// fall. FXOPT_BLESS=1 writes lower counts.

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace fxopt {
namespace {

const std::string kSource = FXOPT_SOURCE_DIR;
constexpr size_t kWidth = 100;  // of a comment
constexpr size_t kShown = 10;

using Counts = std::map<std::string, std::map<std::string, int>>;  // by folder, by form

struct Form {
  std::string words;
  bool begins_sentence = false;
};

std::vector<Form> read_forms() {
  std::ifstream file(kSource + "/tests/words/forms.txt");
  REQUIRE(file.good());
  std::vector<Form> forms;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const bool begins = line.front() == '^';
    forms.push_back({begins ? line.substr(1) : line, begins});
  }
  return forms;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Whether the text before `at` ends a sentence, or is the mark of a comment, a string, a cell or a list.
bool is_beginning(const std::string& line, size_t at) {
  while (at > 0 && line[at - 1] == ' ') --at;
  return at == 0 || std::string_view(".!?:/#\"*|-(").find(line[at - 1]) != std::string_view::npos;
}

int count_form(const std::string& line, const Form& form) {
  int count = 0;
  for (size_t at = line.find(form.words); at != std::string::npos; at = line.find(form.words, at + 1)) {
    const size_t end = at + form.words.size();
    const bool is_whole =
        (at == 0 || !is_word(line[at - 1]) || !is_word(line[at])) && (end == line.size() || !is_word(line[end]));
    if (is_whole && (!form.begins_sentence || is_beginning(line, at))) ++count;
  }
  return count;
}

bool is_comment(const std::string& line) {
  const size_t at = line.find_first_not_of(' ');
  return at != std::string::npos && (line.compare(at, 2, "//") == 0 || line.compare(at, 2, "# ") == 0);
}

// Lines of one file; `places`: the first of each form.
void count_file(const std::filesystem::path& path, const std::vector<Form>& forms, std::map<std::string, int>& counts,
                std::map<std::string, std::vector<std::string>>& places) {
  std::ifstream file(path);
  const std::string name = std::filesystem::relative(path, kSource).string();
  size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const auto add = [&](const std::string& form, int count) {
      if (count == 0) return;
      counts[form] += count;
      places[form].push_back(name + ":" + std::to_string(number));
    };
    if (line.size() > kWidth && is_comment(line)) add("comment above 100 columns", 1);
    std::transform(line.begin(), line.end(), line.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const Form& form : forms) add((form.begins_sentence ? "^" : "") + form.words, count_form(line, form));
  }
}

bool is_counted(const std::filesystem::path& path) {
  const std::string name = path.string();
  for (const char* data :
       {"/tests/cases/", "/tests/words/", "/tests/cli/snapshots/", "/testdata/", "/ir/ops/aten.inc"}) {
    if (name.find(data) != std::string::npos) return false;
  }
  const std::string end = path.extension().string();
  return end == ".cpp" || end == ".h" || end == ".inc" || end == ".cu" || end == ".py" || end == ".sh" ||
         end == ".md" || end == ".proto" || path.filename() == "CMakeLists.txt";
}

Counts read_counts() {
  std::ifstream file(kSource + "/tests/words/counts.txt");
  Counts counts;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string folder, form;
    int count = 0;
    words >> folder >> count >> std::ws;
    std::getline(words, form);
    counts[folder][form] = count;
  }
  return counts;
}

TEST_CASE("words: hard forms only become fewer") {
  const std::vector<Form> forms = read_forms();
  Counts counts;
  const Counts allowed = read_counts();
  std::ostringstream lines;
  for (const std::string folder :
       {"core", "ir", "passes", "runtime", "cli", "schemas", "scripts", "tests", "README.md"}) {
    std::map<std::string, std::vector<std::string>> places;
    const std::filesystem::path root = kSource + "/" + folder;
    if (!std::filesystem::is_directory(root)) {
      count_file(root, forms, counts[folder], places);
    } else {
      std::vector<std::filesystem::path> files;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
        if (entry.is_regular_file() && is_counted(entry.path())) files.push_back(entry.path());
      }
      std::sort(files.begin(), files.end());
      for (const std::filesystem::path& file : files) count_file(file, forms, counts[folder], places);
    }
    for (const auto& [form, count] : counts[folder]) {
      const auto known = allowed.find(folder);
      const int most = known == allowed.end() || known->second.count(form) == 0 ? 0 : known->second.at(form);
      std::string where;
      for (size_t i = 0; i < std::min(places[form].size(), kShown); ++i) where += " " + places[form][i];
      INFO(folder << ": \"" << form << "\" occurs " << count << " times, allowed are " << most
                  << " (tests/words/README.md):" << where);
      CHECK((count <= most || allowed.empty()));
      lines << folder << " " << (allowed.empty() ? count : std::min(count, most)) << " " << form << "\n";
    }
  }
  const char* bless = std::getenv("FXOPT_BLESS");
  if (bless != nullptr && std::string_view(bless) == "1")
    std::ofstream(kSource + "/tests/words/counts.txt") << lines.str();
}

TEST_CASE("words: a form is found where it begins a sentence, and as whole words") {
  const Form of{"of", true}, what{"what is", false}, too{", too", false};
  CHECK(count_form("// of these, one", of) == 1);
  CHECK(count_form("it ends. of these, one", of) == 1);
  CHECK(count_form("one of these", of) == 0);
  CHECK(count_form("see what is there; what isn", what) == 1);
  CHECK(count_form("that holds, too", too) == 1);
  CHECK(count_form("that holds, too_many", too) == 0);
}

}  // namespace
}  // namespace fxopt
