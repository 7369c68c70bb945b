// pipeline = [ step { "," step } ] ;
// step     = name [ "{" [ option { "," option } ] "}" ] ;
// option   = name "=" ( word | '"' { character | '\"' | '\\' } '"' ) ;
//
// Whitespace between tokens is ignored. A name consists of letters, digits, '-' and '_'. A word is
// any run of characters except whitespace, ",{}=" and quotes.

#include <algorithm>
#include <optional>
#include <utility>

#include "core/scan.h"
#include "passes/pipeline/entry.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {
namespace {

struct Token {
  std::string text;
  size_t column = 0;  // from 0
};

struct OptionText {
  Token name;
  Token value;
};

bool is_name_char(char c) { return is_word(c) || c == '-'; }

bool is_word_char(char c) {
  return static_cast<unsigned char>(c) > ' ' && c != ',' && c != '{' && c != '}' && c != '=' && c != '"';
}

std::string print_value(const std::string& value) {
  if (!value.empty() && std::all_of(value.begin(), value.end(), is_word_char)) return value;
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Pipeline> run() {
    Pipeline pipeline;
    skip_space();
    while (at_ < text_.size()) {
      Result<PipelineStep> step = parse_step(pipeline);
      if (!step.ok()) return std::move(step).error();
      pipeline.steps.push_back(std::move(*step));
      if (at_ == text_.size()) break;
      if (text_[at_] != ',')
        return error(ErrorCode::kBadPipeline, at_, "expected ',' between passes",
                     "write options in braces, as in 'sac{policy=full},remat'");
      ++at_;
      skip_space();
      if (at_ == text_.size()) return error(ErrorCode::kBadPipeline, at_, "expected a pass after ','", "");
    }
    return pipeline;
  }

 private:
  Result<PipelineStep> parse_step(const Pipeline& before) {
    Token name = parse_name();
    if (name.text.empty()) return error(ErrorCode::kBadPipeline, at_, "expected the name of a pass", "");
    PipelineStep step;
    step.pass = find_pass(name.text);
    if (step.pass == nullptr) return unknown_pass(name);
    std::vector<OptionText> options;
    if (at_ < text_.size() && text_[at_] == '{') {
      Result<std::vector<OptionText>> parsed = parse_options();
      if (!parsed.ok()) return std::move(parsed).error();
      options = std::move(*parsed);
    }
    if (const std::optional<Error> broken = check_order(before, *step.pass, name.column)) return *broken;
    Result<BoundPass> bound = bind(*step.pass, options);
    if (!bound.ok()) return std::move(bound).error();
    step.text = step_text(*step.pass, bound->options);
    step.bound = std::move(*bound);
    return step;
  }

  Result<std::vector<OptionText>> parse_options() {
    std::vector<OptionText> options;
    const size_t open = at_++;
    skip_space();
    while (at_ < text_.size() && text_[at_] != '}') {
      OptionText option;
      option.name = parse_name();
      if (option.name.text.empty()) return error(ErrorCode::kBadPipeline, at_, "expected the name of an option", "");
      if (std::ranges::any_of(options, [&](const OptionText& other) { return other.name.text == option.name.text; })) {
        return error(ErrorCode::kBadPipeline, option.name.column, "option '" + option.name.text + "' is given twice",
                     "");
      }
      if (at_ == text_.size() || text_[at_] != '=') {
        return error(ErrorCode::kBadPipeline, at_, "expected '=' after option '" + option.name.text + "'",
                     options.empty() ? "" : "put a value that contains ',' in double quotes");
      }
      ++at_;
      skip_space();
      Result<Token> value = parse_value();
      if (!value.ok()) return std::move(value).error();
      option.value = std::move(*value);
      options.push_back(std::move(option));
      if (at_ == text_.size() || text_[at_] == '}') break;
      if (text_[at_] != ',') return error(ErrorCode::kBadPipeline, at_, "expected ',' or '}' after an option", "");
      ++at_;
      skip_space();
      if (at_ < text_.size() && text_[at_] == '}') {
        return error(ErrorCode::kBadPipeline, at_, "expected an option after ','", "");
      }
    }
    if (at_ == text_.size()) return error(ErrorCode::kBadPipeline, open, "'{' is never closed", "");
    ++at_;
    skip_space();
    return options;
  }

  Token parse_name() {
    Token token;
    token.column = at_;
    while (at_ < text_.size() && is_name_char(text_[at_])) token.text += text_[at_++];
    skip_space();
    return token;
  }

  Result<Token> parse_value() {
    Token token;
    token.column = at_;
    if (at_ < text_.size() && text_[at_] == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\\' && at_ + 1 < text_.size() && (text_[at_ + 1] == '"' || text_[at_ + 1] == '\\')) ++at_;
        token.text += text_[at_];
      }
      if (at_ == text_.size()) return error(ErrorCode::kBadPipeline, token.column, "quoted value is never closed", "");
      ++at_;
    } else {
      while (at_ < text_.size() && is_word_char(text_[at_])) token.text += text_[at_++];
      if (token.text.empty()) return error(ErrorCode::kBadPipeline, at_, "expected a value after '='", "");
    }
    skip_space();
    return token;
  }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  Result<BoundPass> bind(const PassInfo& pass, const std::vector<OptionText>& options) const {
    OptionTexts given;
    for (const OptionText& option : options) given.emplace_back(option.name.text, option.value.text);
    Result<BoundPass> bound = pass.bind(given);
    if (bound.ok()) return bound;
    Error failed = std::move(bound).error();
    for (const OptionText& option : options) {
      if (option.name.text != failed.where.field) continue;
      place(failed, failed.code == ErrorCode::kBadOptionValue ? option.value.column : option.name.column);
    }
    return failed;
  }

  // Only the first run of a pass can break a rule. Running it again later, after a pass that it
  // must precede, is harmless.
  std::optional<Error> check_order(const Pipeline& before, const PassInfo& pass, size_t column) const {
    for (const PipelineStep& step : before.steps) {
      if (step.pass == &pass) return std::nullopt;
      const std::string why = order_conflict(*step.pass, pass);
      if (why.empty()) continue;
      const std::string name = "'" + std::string(pass.name) + "'", other = "'" + std::string(step.pass->name) + "'";
      return error(ErrorCode::kPassOrder, column, name + " must not come after " + other + ": " + why,
                   "put " + name + " before " + other);
    }
    return std::nullopt;
  }

  Error unknown_pass(const Token& name) const {
    std::vector<std::string_view> names;
    for (const PassInfo& info : pass_registry()) names.push_back(info.name);
    // "sac{policy=full,a=b}" without quotes reaches the program as "sacpolicy=full saca=b".
    const bool is_joined = std::any_of(names.begin(), names.end(), [&](std::string_view pass) {
      return name.text.size() > pass.size() && name.text.starts_with(pass) &&
             text_.find('{') == std::string_view::npos && text_.find('=') != std::string_view::npos;
    });
    return error(ErrorCode::kUnknownPass, name.column, "there is no pass '" + name.text + "'",
                 is_joined ? "the shell removed the braces; quote the pipeline: 'sac{policy=full},remat'"
                           : suggestion(name.text, names, "'fxopt passes' lists the passes"));
  }

  Error error(ErrorCode code, size_t column, std::string message, std::string hint) const {
    Error made{code, std::move(message), std::move(hint), {}};
    place(made, column);
    return made;
  }

  void place(Error& made, size_t column) const {
    std::string line(text_);
    std::replace_if(line.begin(), line.end(), is_space, ' ');
    made.where.column = column + 1;
    made.where.excerpt = line + "\n" + std::string(column, ' ') + "^";
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string step_text(const PassInfo& pass, const OptionTexts& options) {
  std::string printed;
  for (const auto& [name, value] : options) printed += (printed.empty() ? "" : ",") + name + "=" + print_value(value);
  return std::string(pass.name) + (printed.empty() ? "" : "{" + printed + "}");
}

std::string Pipeline::text() const {
  std::string joined;
  for (const PipelineStep& step : steps) joined += (joined.empty() ? "" : ",") + step.text;
  return joined;
}

Result<Pipeline> parse_pipeline(std::string_view text) { return Parser(text).run(); }

}  // namespace fxopt
