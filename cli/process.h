#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/result.h"

namespace fxopt {

// How a command ended.
struct ProcessEnd {
  enum class Kind : uint8_t { kExited, kSignalled, kTimedOut, kInterrupted };
  Kind kind = Kind::kExited;
  int number = 0;  // exit status or signal
  bool operator==(const ProcessEnd&) const = default;
};

// "exit status 1", "signal 11", "timeout".
std::string text_of(const ProcessEnd& end);

enum class ProcessOutput : uint8_t { kDiscarded, kToStandardError };

// Runs a command and waits for its end. `words` is the program, looked up in $PATH, and its arguments: no shell reads
// them. Standard input is empty. The command has a process group of its own, which is killed as a whole after `timeout`
// (zero: never) and when a Interrupts says that this process was asked to end. Error: kUsage when the program cannot be
// run.
Result<ProcessEnd> run_process(const std::vector<std::string>& words, std::chrono::seconds timeout,
                               ProcessOutput output);

// While one exists, the first SIGINT, SIGTERM or SIGHUP does not end this process: it is noted, so that temporary files can
// go and results be saved first. One at a time.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();  // the signals do again what they did before

  // The signal that came; 0 when none did.
  static int signal();
};

// A folder for files that are nobody's product, in $TMPDIR or /tmp; removed with all in it.
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
