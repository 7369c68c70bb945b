#include "ir/device/profile.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/scan.h"
#include "core/text.h"
#include "ir/device/expr_check.h"

namespace fxopt {
namespace {

constexpr std::string_view kSpace = " \t\r";

// Removes the first word of `text` and returns it.
std::string_view take_word(std::string_view& text) {
  text = trim(text);
  const size_t end = std::min(text.find_first_of(kSpace), text.size());
  const std::string_view word = text.substr(0, end);
  text = trim(text.substr(end));
  return word;
}

constexpr int kMaxDepth = 8;                // limit on nested includes
constexpr uint64_t kMaxParts = 1ULL << 20;  // limit on parts of all expressions after expansion

// Names in `flops` statements that are not dtypes. f8 and f4 cover all formats of one width, and
// tf32 is a mode of f32 products.
constexpr std::string_view kFlopsNames[] = {"tf32", "f8", "f4"};

bool is_flops_name(std::string_view name) {
  return std::find(std::begin(kFlopsNames), std::end(kFlopsNames), name) != std::end(kFlopsNames) ||
         parse_enum<DType>(name).has_value();
}

struct Macro {
  std::vector<StringId> parameters;
  ExprId body;  // expanded
};
struct Definitions {
  std::unordered_map<StringId, Macro> macros;  // looked up, never iterated
  uint64_t parts = 0;                          // number of parts expanded so far
};
using SymbolExprs = std::unordered_map<StringId, ExprId>;

// Reads one text into the profile.
class Reader {
 public:
  Reader(DeviceProfile& profile, const ProfileText& source, const ProfileInclude& include, Definitions& definitions,
         int depth)
      : profile_(profile), source_(source), include_(include), definitions_(definitions), depth_(depth) {}

  Status run() {
    std::string_view rest = source_.text;
    while (!rest.empty()) {
      ++line_;
      const size_t end = std::min(rest.find('\n'), rest.size());
      const Status status = statement(rest.substr(0, end));
      if (!status.ok()) return status;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return ok_status();
  }

 private:
  Error error(std::string message, std::string hint) const {
    Error result{ErrorCode::kBadProfile, std::move(message), std::move(hint), {}};
    result.where.file = source_.name;
    result.where.line = line_;
    return result;
  }

  Status statement(std::string_view line) {
    std::string_view rest = trim(line.substr(0, line.find('#')));
    if (rest.empty()) return ok_status();
    const std::string_view keyword = take_word(rest);
    if (keyword == "device" || keyword == "framework") return name(keyword, rest);
    if (keyword == "include") return include(rest);
    if (keyword == "define") return define(rest);
    if (keyword == "constant") return constant(rest);
    if (keyword == "flops") return flops(rest);
    if (keyword == "bandwidth") return bandwidth(rest);
    if (keyword == "outside") return outside(rest, false);
    if (keyword == "outside-communicator") return outside(rest, true);
    if (keyword == "persistent") return hidden(rest, HiddenKind::kPersistent);
    if (keyword == "temporary") return hidden(rest, HiddenKind::kTemporary);
    if (keyword == "workspace") return hidden(rest, HiddenKind::kWorkspace);
    if (keyword == "work") return work(rest);
    if (keyword == "collective") return collective(rest);
    static const std::vector<std::string_view> kKeywords = {"device",     "framework", "include",
                                                            "define",     "constant",  "flops",
                                                            "bandwidth",  "outside",   "outside-communicator",
                                                            "persistent", "temporary", "workspace",
                                                            "work",       "collective"};
    return error("'" + std::string(keyword) + "' is not a known statement",
                 suggestion(keyword, kKeywords,
                            "a line begins with one of " +
                                join(std::vector<std::string>(kKeywords.begin(), kKeywords.end()), ", ")));
  }

  Status name(std::string_view keyword, std::string_view rest) const {
    if (!rest.empty()) return ok_status();
    return error(std::string(keyword) + " has no name", "write '" + std::string(keyword) + " NAME'");
  }

  // Splits "SUBJECT = EXPR [EVIDENCE]". The subject is one word.
  struct Parts {
    std::string_view subject;
    std::string_view value;
    std::optional<Evidence> evidence;
  };

  Result<Parts> parts(std::string_view rest, bool wants_evidence) {
    const size_t equals = rest.find('=');
    if (equals == std::string_view::npos) {
      return error("'=' is missing", "write a statement as in 'constant device.sms = 132'");
    }
    Parts result{trim(rest.substr(0, equals)), trim(rest.substr(equals + 1)), {}};
    if (result.subject.empty() || result.subject.find_first_of(kSpace) != std::string_view::npos) {
      return error("the name before '=' must be one word", "example: 'constant device.sms = 132'");
    }
    if (result.value.ends_with(']')) {
      const size_t open = result.value.rfind('[');
      if (open != std::string_view::npos) {
        result.evidence = parse_enum<Evidence>(result.value.substr(open + 1, result.value.size() - open - 2));
        if (!result.evidence.has_value()) {
          return error("'" + std::string(result.value.substr(open)) + "' is not a kind of evidence",
                       "write one of [source], [estimate], [measured]");
        }
        result.value = trim(result.value.substr(0, open));
      }
    }
    if (wants_evidence && !result.evidence.has_value()) {
      return error("the evidence for '" + std::string(result.subject) + "' is missing",
                   "end the line with [source], [estimate] or [measured]");
    }
    if (result.value.empty()) return error("'" + std::string(result.subject) + "' has no value", "example: 'x = 1'");
    return result;
  }

  Status include(std::string_view file) {
    if (file.find('/') != std::string_view::npos) {
      return error("'" + std::string(file) + "' is in another folder", "an included file must be in the same folder");
    }
    const std::optional<ProfileText> text = include_(source_.name, file);
    if (!text.has_value())
      return error("there is no file '" + std::string(file) + "'", "put the file into the folder of this profile");
    if (depth_ >= kMaxDepth) return error("files include each other too deeply", "a file must not include itself");
    return Reader(profile_, *text, include_, definitions_, depth_ + 1).run();
  }

  // "NAME(PARAMETER, ...) = EXPR"
  Status define(std::string_view rest) {
    const size_t open = rest.find('('), close = rest.find(')');
    const size_t equals = close == std::string_view::npos ? close : rest.find('=', close);
    if (open == std::string_view::npos || equals == std::string_view::npos || open > close) {
      return error("a definition is not of the form NAME(PARAMETER, ...) = EXPR", "example: 'define twice(x) = 2 * x'");
    }
    const std::string name(trim(rest.substr(0, open)));
    Macro macro;
    for (const std::string_view parameter : split_list(rest.substr(open + 1, close - open - 1))) {
      const StringId known = profile_.strings.intern(trim(parameter));
      if (std::find(macro.parameters.begin(), macro.parameters.end(), known) != macro.parameters.end()) {
        return error("'" + name + "' has the parameter '" + std::string(trim(parameter)) + "' twice",
                     "give each parameter a different name");
      }
      macro.parameters.push_back(known);
    }
    if (ExprTable::is_function(name)) return error("'" + name + "' is a built-in function", "use another name");
    const Result<ExprId> body = expression(trim(rest.substr(equals + 1)));
    if (!body.ok()) return body.error();
    macro.body = *body;
    const Status unique = claim("define " + name);
    definitions_.macros[profile_.strings.intern(name)] = std::move(macro);
    return unique;
  }

  Result<ExprId> expression(std::string_view text) {
    const Result<ExprId> expr = profile_.exprs.parse(text);
    if (!expr.ok()) {
      return error(quoted(text) + " is not an expression: " + expr.error().message, expr.error().hint);
    }
    const ExprId part = find_valueless(profile_.exprs, profile_.strings, *expr);
    if (part.is_valid()) return no_value(profile_.exprs.to_string(part));
    Result<ExprId> expanded = expand(*expr, {});
    if (expanded.ok() && is_valueless(profile_.exprs, profile_.strings, *expanded)) return no_value(text);
    return expanded;
  }

  static std::string quoted(std::string_view text) {
    constexpr size_t kMaxShown = 80;
    return "'" + std::string(text.substr(0, kMaxShown)) + (text.size() > kMaxShown ? "...'" : "'");
  }

  Error no_value(std::string_view text) const {
    return error(quoted(text) + " never has a value",
                 "use whole numbers that fit in 64 bits, never divide by 0, and pass all arguments of a function");
  }

  // Replaces symbols by values and calls of macros by bodies. The table stores equal parts once,
  // even if a macro repeats a part. Bodies are already expanded, so a call inserts only one body.
  Result<ExprId> expand(ExprId id, const SymbolExprs& values) {
    std::unordered_map<ExprId, ExprId> done;
    for (const ExprId part : profile_.exprs.closure(id)) {
      if (++definitions_.parts > kMaxParts) {
        return error("expanded expressions have more than " + std::to_string(kMaxParts) + " parts",
                     "nest fewer definitions");
      }
      const Expr expr = profile_.exprs[part];  // the table grows below
      std::vector<ExprId> inputs;
      for (const ExprId input : expr.inputs) inputs.push_back(done.at(input));
      Result<ExprId> result = part;
      if (expr.kind == ExprKind::kSymbol) {
        const SymbolExprs::const_iterator value = values.find(expr.name);
        if (value != values.end()) result = value->second;
      } else if (expr.kind == ExprKind::kCall && !ExprTable::is_function(profile_.strings[expr.name])) {
        result = call(expr.name, inputs);
        if (!result.ok()) return result;
      } else if (!inputs.empty()) {
        result = profile_.exprs.make(expr.kind, std::move(inputs), expr.name);
      }
      done.emplace(part, *result);
    }
    return done.at(id);
  }

  Result<ExprId> call(StringId name, const std::vector<ExprId>& arguments) {
    const auto found = definitions_.macros.find(name);
    if (found == definitions_.macros.end()) {
      return error("there is no function '" + std::string(profile_.strings[name]) + "'",
                   "define the function, or include its file, before the first use");
    }
    const Macro& macro = found->second;
    if (macro.parameters.size() != arguments.size()) {
      return error(
          "'" + std::string(profile_.strings[name]) + "' is given " + std::to_string(arguments.size()) + " arguments",
          "the function takes " + std::to_string(macro.parameters.size()));
    }
    SymbolExprs values;
    for (size_t i = 0; i < arguments.size(); ++i) values[macro.parameters[i]] = arguments[i];
    return expand(macro.body, values);
  }

  Status claim(const std::string& subject) {
    if (subjects_.insert(subject).second) return ok_status();
    return error("'" + subject + "' is given twice",
                 "a file may set a value once, and a later file may replace the value");
  }

  Status constant(std::string_view rest) {
    Result<Parts> got = parts(rest, false);
    if (!got.ok()) return got.error();
    const Status unique = claim("constant " + std::string(got->subject));
    if (!unique.ok()) return unique;
    const Result<ExprId> expr = expression(got->value);
    if (!expr.ok()) return expr.error();
    const std::optional<int64_t> value = profile_.exprs.evaluate(*expr, profile_.constants);
    if (!value.has_value()) {
      return error("constant '" + std::string(got->subject) + "' has no value",
                   "use only constants of earlier lines, and do not divide by 0");
    }
    profile_.constants[profile_.strings.intern(got->subject)] = *value;
    return ok_status();
  }

  Result<int64_t> positive(std::string_view text, std::string_view what) {
    const std::optional<int64_t> number = parse_int64(text);
    if (number.has_value() && *number > 0) return *number;
    return error(std::string(what) + " is '" + std::string(text) + "'",
                 "write the number per second, a whole number above 0");
  }

  Status flops(std::string_view rest) {
    Result<Parts> got = parts(rest, false);
    if (!got.ok()) return got.error();
    if (!is_flops_name(got->subject)) {
      return error(
          "'" + std::string(got->subject) + "' is not a dtype",
          "write a dtype such as bf16 or f32; tf32 is allowed, and f8 and f4 stand for all formats of that width");
    }
    const Result<int64_t> number = positive(got->value, "flops");
    if (!number.ok()) return number.error();
    profile_.flops[std::string(got->subject)] = *number;
    return claim("flops " + std::string(got->subject));
  }

  Status bandwidth(std::string_view rest) {
    rest = trim(rest);
    if (!rest.starts_with('=')) return error("'=' is missing", "example: 'bandwidth = 3350000000000'");
    const std::string_view value = trim(rest.substr(1));
    const Result<int64_t> number = positive(trim(value.substr(0, value.find('['))), "bandwidth");
    if (!number.ok()) return number.error();
    profile_.bandwidth = *number;
    return claim("bandwidth");
  }

  Status outside(std::string_view rest, bool per_communicator) {
    Result<Parts> got = parts(rest, true);
    if (!got.ok()) return got.error();
    const Result<ExprId> expr = expression(got->value);
    if (!expr.ok()) return expr.error();
    const OutsideRow row{std::string(got->subject), per_communicator, *expr, *got->evidence};
    const auto same = [](const OutsideRow& a, const OutsideRow& b) { return a.name == b.name; };
    const Status unique = claim("outside " + row.name);
    replace(profile_.outside, row, same);
    return unique;
  }

  Status hidden(std::string_view rest, HiddenKind kind) {
    const std::string target(take_word(rest));
    Result<Parts> got = parts(rest, true);
    if (!got.ok()) return got.error();
    HiddenRow row;
    const Status status = about(target, got->value, row);
    if (!status.ok()) return status;
    row.kind = kind;
    row.name = got->subject;
    row.evidence = *got->evidence;
    const Status unique = claim(target + " " + row.name);
    if (row.every_overload) drop_overloads(row);
    replace(profile_.hidden, row,
            [](const HiddenRow& a, const HiddenRow& b) { return is_same_call(a, b) && a.name == b.name; });
    return unique;
  }

  // A row for every overload replaces the rows that earlier texts have for one overload.
  void drop_overloads(const HiddenRow& row) {
    std::erase_if(profile_.hidden, [this, &row](const HiddenRow& other) {
      const bool is_one = !other.every_overload && other.name == row.name &&
                          other.target.substr(0, other.target.rfind('.')) == row.target;
      return is_one && !subjects_.contains(other.target + " " + other.name);
    });
  }

  Status work(std::string_view rest) {
    Result<Parts> got = parts(rest, false);
    if (!got.ok()) return got.error();
    WorkRow row;
    const Status status = about(std::string(got->subject), got->value, row);
    if (!status.ok()) return status;
    const Status unique = claim("work " + std::string(got->subject));
    replace(profile_.work, row, is_same_call);
    return unique;
  }

  Status collective(std::string_view rest) {
    Result<Parts> got = parts(rest, true);
    if (!got.ok()) return got.error();
    LinkRow row;
    row.kind = find_collective_kind(got->subject);
    if (row.kind == CollectiveKind::kOther) {
      return error("'" + std::string(got->subject) + "' is not a supported collective",
                   "use one of all-gather, reduce-scatter, all-reduce, all-to-all, broadcast");
    }
    const Result<ExprId> expr = expression(got->value);
    if (!expr.ok()) return expr.error();
    row.nanoseconds = *expr;
    row.evidence = *got->evidence;
    replace(profile_.links, row, [](const LinkRow& a, const LinkRow& b) { return a.kind == b.kind; });
    return claim("collective " + std::string(got->subject));
  }

  // The target of a row, and its value.
  Status about(const std::string& target, std::string_view value, CallRow& row) {
    const Result<ExprId> expr = expression(value);
    if (!expr.ok()) return expr.error();
    row.target = target;
    row.every_overload = target.ends_with(".*");
    row.value = *expr;
    if (row.every_overload) row.target.resize(row.target.size() - 2);
    if (row.target.find('.') != std::string::npos) return ok_status();
    return error("'" + target + "' is not an operator", "write aten.mm.default, or aten.mm.* for all overloads");
  }

  static bool is_same_call(const CallRow& a, const CallRow& b) {
    return a.target == b.target && a.every_overload == b.every_overload;
  }

  // Replaces the row of the same subject, or appends the row.
  template <class Row, class Same>
  static void replace(std::vector<Row>& rows, const Row& row, const Same& same) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& other) { return same(row, other); });
    if (found == rows.end()) {
      rows.push_back(row);
    } else {
      *found = row;
    }
  }

  DeviceProfile& profile_;
  const ProfileText& source_;
  const ProfileInclude& include_;
  Definitions& definitions_;
  int depth_;
  std::set<std::string> subjects_;
  uint64_t line_ = 0;
};

}  // namespace

Result<std::unique_ptr<DeviceProfile>> DeviceProfile::parse(std::span<const ProfileText> texts,
                                                            const ProfileInclude& include) {
  Definitions definitions;
  auto profile = std::make_unique<DeviceProfile>();
  for (const char* option : {"option.deterministic", "option.tf32"}) {
    profile->constants[profile->strings.intern(option)] = 0;
  }
  for (const ProfileText& text : texts) {
    profile->name += (profile->name.empty() ? "" : "+") + text.name.substr(0, text.name.rfind('.'));
    const Status status = Reader(*profile, text, include, definitions, 0).run();
    if (!status.ok()) return status.error();
  }
  return profile;
}

std::optional<int64_t> DeviceProfile::constant(std::string_view constant_name) const {
  const StringId id = strings.find(constant_name);
  const SymbolValues::const_iterator found = id.is_valid() ? constants.find(id) : constants.end();
  return found == constants.end() ? std::nullopt : std::optional<int64_t>(found->second);
}

std::optional<int64_t> DeviceProfile::flops_for(DType dtype) const {
  const std::string_view own = name_of(dtype);
  for (const std::string_view key : {own, own.substr(0, 2)}) {
    const auto found = flops.find(key);
    if (found != flops.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace fxopt
