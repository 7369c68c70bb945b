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

#include "core/file.h"
#include "tests/catch.h"
#include "tests/words/paragraphs.h"

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

// Whether the text before `at` ends a sentence, or is the mark of a cell, a list or a bracket.
bool is_beginning(const std::string& text, size_t at) {
  const bool is_after_space = at > 0 && text[at - 1] == ' ';
  while (at > 0 && text[at - 1] == ' ') --at;
  if (at == 0) return true;
  return std::string_view(is_after_space ? ".!?:*|(" : "*|(").find(text[at - 1]) != std::string_view::npos;
}

// The places of a form in a paragraph of lower case.
std::vector<size_t> find_form(const Paragraph& paragraph, const Form& form) {
  const std::string& text = paragraph.text;
  std::vector<size_t> places;
  for (size_t at = text.find(form.words); at != std::string::npos; at = text.find(form.words, at + 1)) {
    const size_t end = at + form.words.size();
    const bool is_whole =
        (at == 0 || !is_word(text[at - 1]) || !is_word(text[at])) && (end == text.size() || !is_word(text[end]));
    // A literal that is one word is a name, and one that begins with a space goes on with a sentence.
    const bool is_name = paragraph.is_string && at == 0 && end == text.size();
    if (is_whole && !is_name && (!form.begins_sentence || is_beginning(text, at))) places.push_back(at);
  }
  return places;
}

// Lower case, without the words between backticks.
void simplify(std::string& text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (size_t open = text.find('`'); open != std::string::npos;) {
    const size_t close = text.find('`', open + 1);
    if (close == std::string::npos) break;
    std::fill(text.begin() + static_cast<ptrdiff_t>(open), text.begin() + static_cast<ptrdiff_t>(close) + 1, 'x');
    open = text.find('`', close + 1);
  }
}

bool is_comment(const std::string& line) {
  const size_t at = line.find_first_not_of(' ');
  return at != std::string::npos && (line.compare(at, 2, "//") == 0 || line.compare(at, 2, "# ") == 0);
}

std::vector<Paragraph> paragraphs_of(const std::string& extension, const std::string& text) {
  if (extension == ".md") return markdown_paragraphs(text);
  return extension == ".py" || extension == ".sh" || extension == ".txt" ? script_paragraphs(text)
                                                                         : cpp_paragraphs(text);
}

// The forms of one file; `places`: where each occurs.
void count_file(const std::filesystem::path& path, const std::vector<Form>& forms, std::map<std::string, int>& counts,
                std::map<std::string, std::vector<std::string>>& places) {
  const std::string text = read_file(path.string()).value();
  const std::string name = std::filesystem::relative(path, kSource).string();
  const auto add = [&](const std::string& form, size_t line) {
    ++counts[form];
    places[form].push_back(name + ":" + std::to_string(line));
  };
  for (Paragraph& paragraph : paragraphs_of(path.extension().string(), text)) {
    const bool goes_on = paragraph.is_string && paragraph.text.starts_with(' ');
    simplify(paragraph.text);
    for (const Form& form : forms) {
      for (const size_t at : find_form(paragraph, form)) {
        if (form.begins_sentence && goes_on && paragraph.text.find_first_not_of(' ') == at) continue;
        add((form.begins_sentence ? "^" : "") + form.words, paragraph.lines[at]);
      }
    }
  }
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (path.extension() != ".md" && line.size() > kWidth && is_comment(line)) add("comment above 100 columns", number);
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

size_t count_in(std::vector<Paragraph> paragraphs, const Form& form) {
  size_t count = 0;
  for (Paragraph& paragraph : paragraphs) {
    simplify(paragraph.text);
    count += find_form(paragraph, form).size();
  }
  return count;
}

TEST_CASE("words: a form is found where it begins a sentence, and as whole words") {
  const Form of{"of", true}, what{"what is", false}, too{", too", false};
  CHECK(count_in(cpp_paragraphs("// Of these, one\n"), of) == 1);
  CHECK(count_in(cpp_paragraphs("// It ends. Of these, one\n"), of) == 1);
  CHECK(count_in(cpp_paragraphs("// one\n// of these\n"), of) == 0);
  CHECK(count_in(cpp_paragraphs("// one\n//\n// of these\n"), of) == 1);
  CHECK(count_in(cpp_paragraphs("// as a.of.b or A::of()\n"), of) == 0);
  CHECK(count_in(cpp_paragraphs("int of = Schedule::of(x);  // a call\n"), of) == 0);
  CHECK(count_in(cpp_paragraphs("f(\"see what \" \"is\", 'c');\n"), what) == 1);
  CHECK(count_in(cpp_paragraphs("f(R\"(see what\nis there)\");\n"), what) == 1);
  CHECK(count_in(cpp_paragraphs("// see `what is` there\n"), what) == 0);
  CHECK(count_in(cpp_paragraphs("// that holds, too\n// that holds, too_many\n"), too) == 1);
  CHECK(count_in(script_paragraphs("x = 1  # of these\n"), of) == 1);
  CHECK(count_in(script_paragraphs("\"\"\"One\nof these.\n\nOf these.\n\"\"\"\n"), of) == 1);
  CHECK(count_in(markdown_paragraphs("one\nof these\n\n| of | x |\n```\nof these\n```\n"), of) == 1);
}

}  // namespace
}  // namespace fxopt
