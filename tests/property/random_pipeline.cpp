#include "tests/property/random_pipeline.h"

#include <array>
#include <vector>

#include "passes/pipeline/registry.h"

namespace fxopt {
namespace {

template <size_t N>
std::string one_of(Dice& dice, const std::array<const char*, N>& words) {
  return words[roll(dice, N)];
}

// A valid value of the option, including the ends of its type. A selection names things that may
// exist.
std::string value_of(const PassOptionInfo& option, Dice& dice) {
  const std::string& type = option.type;
  if (type == "bool") return one_of(dice, std::array{"true", "false"});
  if (type == "int") return one_of(dice, std::array{"0", "1", "2", "7", "-1", "9223372036854775807"});
  if (type == "float") return one_of(dice, std::array{"0", "0.05", "1", "-1", "1e300"});
  if (type == "bytes") return one_of(dice, std::array{"0", "1", "4096", "500MiB", "1000GiB"});
  if (type == "enum") return option.choices[roll(dice, option.choices.size())];
  return one_of(dice, std::array{"layers.0", "aten.mm.default", "layers.*::aten.silu.default", "nothing"});
}

std::string random_pass(const PassInfo& pass, Dice& dice) {
  std::string text(pass.name);
  std::string options;
  for (const PassOptionInfo& option : pass.options) {
    if (roll(dice, 3) != 0) continue;
    options += (options.empty() ? "" : ",") + option.name + "=\"" + value_of(option, dice) + "\"";
  }
  return options.empty() ? text : text + "{" + options + "}";
}

}  // namespace

std::string random_pipeline(Dice& dice) {
  const std::vector<PassInfo>& passes = pass_registry();
  std::string text;
  for (size_t i = 0, count = 1 + roll(dice, 4); i < count; ++i) {
    text += (text.empty() ? "" : ",") + random_pass(passes[roll(dice, passes.size())], dice);
  }
  return text;
}

}  // namespace fxopt
