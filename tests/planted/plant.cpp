// plant RULES SOURCES OUT: copies the allocator from the folder SOURCES to OUT/tests/planted, in
// the namespace fxopt::planted. Every change that RULES lists is compiled in beside the original
// text. fxopt::planted::planted_rule, a number from 1, selects a change; 0 selects none. Also
// writes OUT/tests/planted/rule_names.h.

#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

const std::vector<std::string> kFiles{"block.h",  "caching_allocator.h", "caching_allocator.cpp",
                                      "free.cpp", "segment.cpp",         "expandable.cpp"};

struct Rule {
  std::string file;
  std::string old_text;
  std::string new_text;
  std::string name;
};

std::string read(const std::string& path) {
  std::ifstream input(path);
  if (!input) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << input.rdbuf();
  return text.str();
}

std::vector<std::string> split(const std::string& line) {
  const std::string separator = " :: ";
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = line.find(separator); end != std::string::npos; end = line.find(separator, begin)) {
    parts.push_back(line.substr(begin, end - begin));
    begin = end + separator.size();
  }
  parts.push_back(line.substr(begin));
  return parts;
}

std::vector<Rule> read_rules(const std::string& path) {
  std::vector<Rule> rules;
  std::istringstream lines(read(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> parts = split(line);
    if (parts.size() != 4) throw std::runtime_error("not four parts: " + line);
    rules.push_back({parts[0], parts[1], parts[2], parts[3]});
  }
  return rules;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

void plant(std::string& text, const Rule& rule, size_t number) {
  const size_t at = text.find(rule.old_text);
  if (at == std::string::npos || text.find(rule.old_text, at + 1) != std::string::npos) {
    throw std::runtime_error("stands not exactly once in " + rule.file + ": " + rule.old_text);
  }
  const std::string choice = "planted_rule == " + std::to_string(number);
  const bool statement = rule.old_text.back() == ';';
  const std::string both = statement
                               ? "{ if (" + choice + ") { " + rule.new_text + " } else { " + rule.old_text + " } }"
                               : "(" + choice + " ? (" + rule.new_text + ") : (" + rule.old_text + "))";
  text.replace(at, rule.old_text.size(), both);
}

void write(const std::string& path, const std::string& text) {
  std::ofstream output(path);
  output << text;
  if (!output.flush()) throw std::runtime_error("cannot write " + path);
}

void run(const std::string& rules_path, const std::string& sources, const std::string& out) {
  const std::string folder = out + "/tests/planted/";
  std::map<std::string, std::string> texts;
  for (const std::string& file : kFiles) texts[file] = read(sources + "/" + file);
  const std::vector<Rule> rules = read_rules(rules_path);
  std::string names = "#pragma once\n\ninline constexpr const char* kPlantedRules[] = {\n    \"none\",\n";
  for (size_t i = 0; i < rules.size(); ++i) {
    if (texts.count(rules[i].file) == 0) throw std::runtime_error("no such file: " + rules[i].file);
    plant(texts[rules[i].file], rules[i], i + 1);
    names += "    \"" + rules[i].name + "\",\n";
  }
  for (auto& [file, text] : texts) {
    const std::string variable = file == "block.h" ? "inline size_t planted_rule = 0;\n" : "";
    replace_all(text, "namespace fxopt {\n", "namespace fxopt::planted {\n" + variable);
    replace_all(text, "\"core/allocator/block.h\"", "\"tests/planted/block.h\"");
    replace_all(text, "\"core/allocator/caching_allocator.h\"", "\"tests/planted/caching_allocator.h\"");
    write(folder + file, text);
  }
  write(folder + "rule_names.h", names + "};\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: plant RULES SOURCES OUT\n";
    return 2;
  }
  try {
    run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
