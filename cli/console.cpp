#include "cli/console.h"

#include <utility>

#include "cli/report/json.h"
#include "core/file.h"
#include "core/version.h"

namespace fxopt {
namespace {

constexpr std::string_view kJsonFlag = "--json";
constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kPlain = "\x1b[0m";

// Where --json sends the envelope; empty when the flag is not there.
std::string json_path(const std::vector<std::string>& args) {
  std::string path;
  for (const std::string& arg : args) {
    if (arg == "--") break;
    if (arg == kJsonFlag) path = "-";
    if (!arg.starts_with(kJsonFlag) || arg.size() <= kJsonFlag.size() || arg[kJsonFlag.size()] != '=') continue;
    path = arg.substr(kJsonFlag.size() + 1);
    if (path.empty()) path = "-";
  }
  return path;
}

}  // namespace

Console::Console(const Output& output, std::vector<std::string> args)
    : output_(output), args_(std::move(args)), json_path_(json_path(args_)) {}

bool Console::write_product(std::string_view bytes) {
  std::ostream& out = product();
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.flush();
  if (out.good() || json_takes_stdout()) return true;
  error({ErrorCode::kFileWrite, "cannot write to standard output", "", {}});
  return false;
}

void Console::print(const Error& error) {
  std::string text = format_error(error);
  const std::string word = "error[" + code_name(error.code) + "]";
  const size_t at = text.find(word);
  if (output_.colours && at != std::string::npos) {
    text.insert(at + word.size(), kPlain);
    text.insert(at, kRed);
  }
  output_.err << text << '\n';
}

void Console::error(const Error& error) { this->error(error, error_info(error.code).exit); }

void Console::error(const Error& error, ExitCode exit) {
  print(error);
  errors_.push_back(error_json(error));
  if (exit_ == ExitCode::kDone) exit_ = exit;
}

void Console::warning(std::string_view code, const Where& where, std::string_view message) {
  if (!where.file.empty()) output_.err << printable_line(where.file) << ": ";
  output_.err << "warning[" << code << "]: " << printable_line(message) << '\n';
  warnings_.push_back({{"code", code}, {"message", message}, {"where", where_json(where)}});
}

std::string Console::envelope() const {
  std::vector<std::string> command{"fxopt"};
  command.insert(command.end(), args_.begin(), args_.end());
  const nlohmann::ordered_json json = {
      {"schema", "fxopt." + command_ + "/1"},
      {"tool", {{"name", "fxopt"}, {"version", kVersion}}},
      {"command", command},
      {"ok", exit_ == ExitCode::kDone},
      {"exit", static_cast<int>(exit_)},
      {"errors", errors_},
      {"warnings", warnings_},
      {"result", result_},
  };
  return json_text(json);
}

int Console::finish() {
  if (json_takes_stdout()) {
    output_.out << envelope() << std::flush;
    if (!output_.out.good()) error({ErrorCode::kFileWrite, "cannot write to standard output", "", {}});
  } else {
    output_.out.flush();
    if (wants_json()) {
      const Status written = write_file(json_path_, envelope());
      if (!written.ok()) error(written.error());
    }
  }
  output_.err.flush();
  return static_cast<int>(exit_);
}

}  // namespace fxopt
