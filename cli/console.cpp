#include "cli/console.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/print/json.h"
#include "cli/print/table.h"
#include "core/bytes.h"
#include "core/file.h"
#include "core/version.h"

namespace fxopt {
namespace {

constexpr std::string_view kJsonFlag = "--json";
constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kPlain = "\x1b[0m";

// Returns the target of --json, or an empty text if the flag is absent.
std::string find_json_path(const std::vector<std::string>& args) {
  std::string path;
  for (const std::string& arg : args) {
    if (arg == "--") break;
    if (arg == kJsonFlag) path = "-";
    if (!arg.starts_with(kJsonFlag) || arg.size() <= kJsonFlag.size() || arg[kJsonFlag.size()] != '=') continue;
    path = arg.substr(kJsonFlag.size() + 1);
    if (path.empty() || path == "/dev/stdout") path = "-";
  }
  return path;
}

}  // namespace

struct Console::Data {
  std::vector<nlohmann::ordered_json> errors;
  std::vector<nlohmann::ordered_json> warnings;
  nlohmann::ordered_json result = nlohmann::ordered_json::object();
};

Console::Console(const Output& output, std::vector<std::string> args)
    : output_(output), args_(std::move(args)), json_path_(find_json_path(args_)), data_(std::make_unique<Data>()) {}

Console::~Console() = default;

void Console::flush() {
  output_.out.flush();
  output_.err.flush();
}

size_t Console::num_errors() const { return data_->errors.size(); }

const std::vector<nlohmann::ordered_json>& Console::errors() const { return data_->errors; }

nlohmann::ordered_json& Console::result() { return data_->result; }

bool wants_colours(bool is_terminal, const char* no_color, const char* term) {
  const bool is_refused = no_color != nullptr && *no_color != '\0';
  return is_terminal && !is_refused && term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

std::string Console::misread_hint(const std::string& input) const {
  for (const auto& [path, flag] : misread_) {
    if (input.empty() || path == input) return "write " + flag + "=" + path + " if you mean the file for " + flag;
  }
  return {};
}

Status Console::check_json_path() {
  if (!wants_json() || json_takes_stdout() || is_special_file(json_path_)) return ok_status();
  const std::string identity = file_identity(json_path_);
  for (const std::string& arg : args_) {
    if (arg.starts_with(kJsonFlag)) continue;
    std::string path = arg;
    if (arg.starts_with("--")) path = arg.substr(std::min(arg.find('='), arg.size() - 1) + 1);
    if (arg.starts_with("-o")) path = arg.substr(2);
    if (path.empty() || file_identity(path) != identity) continue;
    withhold_envelope();
    return usage_error("--json=" + json_path_ + " is the same file as '" + path + "', and would overwrite that file",
                       "name another file");
  }
  return ok_status();
}

void Console::check_stdout() {
  output_.out.flush();
  if (output_.out.good() || has_lost_output_) return;
  has_lost_output_ = true;
  error({ErrorCode::kFileWrite,
         "cannot write to standard output",
         "standard output may be closed, or the disk may be full; the output is incomplete",
         {}});
}

bool Console::write_product(std::string_view bytes) {
  product().write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!json_takes_stdout()) check_stdout();
  return !has_lost_output_;
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
  Error told = error;
  const bool is_about_input = error.code == ErrorCode::kFileOpen || exit == ExitCode::kInputRejected;
  const std::string meant = is_about_input && !error.where.file.empty() ? misread_hint(error.where.file) : "";
  if (!meant.empty()) told.hint += (told.hint.empty() ? "" : "; ") + meant;
  print(told);
  data_->errors.push_back(error_json(told));
  if (exit_ == ExitCode::kDone) exit_ = exit;
}

bool Console::is_error(std::string_view warning) const {
  return werror_.has_value() &&
         (werror_->empty() || std::find(werror_->begin(), werror_->end(), warning) != werror_->end());
}

void Console::warning(std::string_view code, const Where& where, std::string_view message) {
  if (is_error(code)) {
    return error(Error{ErrorCode::kWarning, std::string(code) + ": " + std::string(message),
                       "--werror makes this warning an error; `fxopt help " + std::string(code) + "` explains it",
                       where});
  }
  const std::string place = where.file.empty() ? "" : printable_line(where.file) + ": ";
  log_.line(LogLevel::kWarning, place + "warning[" + std::string(code) + "]: " + printable_line(message));
  data_->warnings.push_back({{"code", code}, {"message", message}, {"where", where_json(where)}});
}

void Console::stage(std::string_view done, double seconds) {
  if (!is_verbose()) return;
  log_.line(LogLevel::kInfo, "info: " + printable_line(done) + ", " + seconds_text(seconds));
}

bool Console::write_output(const std::string& path, std::string_view bytes, Stopwatch watch) {
  const Status written = write_file(path, bytes);
  if (!written.ok()) error(written.error());
  if (written.ok()) stage("wrote " + path + ": " + bytes_text(static_cast<int64_t>(bytes.size())), watch.lap());
  return written.ok();
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
      {"errors", data_->errors},
      {"warnings", data_->warnings},
      {"result", data_->result},
  };
  return json_text(json);
}

int Console::finish() {
  if (json_takes_stdout()) output_.out << envelope();
  check_stdout();
  if (wants_json() && !json_takes_stdout() && !is_withheld_) write_output(json_path_, envelope());
  output_.err.flush();
  return static_cast<int>(exit_);
}

}  // namespace fxopt
