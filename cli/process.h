#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/result.h"

namespace fxopt {

// The end of a command.
struct ProcessEnd {
  enum class Kind : uint8_t { kExited, kSignalled, kTimedOut, kInterrupted };
  Kind kind = Kind::kExited;
  int number = 0;  // exit status or signal
  bool operator==(const ProcessEnd&) const = default;
};

// "exit status 1", "signal 11", "timeout".
std::string text_of(const ProcessEnd& end);

enum class ProcessOutput : uint8_t { kDiscarded, kToStandardError };

// Runs a command and waits for its end. `words` is the program, looked up in $PATH, and its
// arguments; no shell is involved. Standard input is empty. The command runs in its own process
// group. The whole group is killed after `timeout` (zero: never), or if an Interrupts reports a
// request to end this process. Error: kUsage if the program cannot be run.
Result<ProcessEnd> run_process(const std::vector<std::string>& words, std::chrono::seconds timeout,
                               ProcessOutput output);

// While one exists, the first SIGINT, SIGTERM or SIGHUP does not end this process. It is recorded,
// so that temporary files can be removed and results saved first. Only one may exist at a time.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();  // restores the previous actions of the signals

  // The received signal; 0 if none was received.
  static int signal();
};

// A temporary folder in $TMPDIR or /tmp. It is removed with its content.
class ScratchFolder {
 public:
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  // Error: kFileWrite.
  static Result<ScratchFolder> make();
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: moved from
};

}  // namespace fxopt
