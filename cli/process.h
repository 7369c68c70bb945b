#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/result.h"

namespace fxopt {

// The way in which a command ended.
struct ProcessEnd {
  enum class Kind : uint8_t { kExited, kSignalled, kTimedOut, kInterrupted };
  Kind kind = Kind::kExited;
  int number = 0;  // exit status or signal
  bool operator==(const ProcessEnd&) const = default;
};

// Returns text such as "exit status 1", "signal 11" or "timeout".
std::string text_of(const ProcessEnd& end);

enum class ProcessOutput : uint8_t { kDiscarded, kToStandardError };

// Runs a command without a shell and waits until it ends. `words` holds the program and its
// arguments. The program is looked up in $PATH. Standard input is empty. The command runs in its
// own process group. The whole group is killed after `timeout`, or when an Interrupts object
// records a signal. A `timeout` of zero means no limit. Fails with kUsage if the program cannot be
// run.
Result<ProcessEnd> run_process(const std::vector<std::string>& words, std::chrono::seconds timeout,
                               ProcessOutput output);

// While an Interrupts object exists, the first SIGINT, SIGTERM or SIGHUP does not end this process.
// The object records the signal, so that the program can first remove temporary files and save
// results. Only one such object may exist at a time.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();  // restores the previous actions of the signals

  // Returns the received signal, or 0 if no signal was received.
  static int signal();
};

// A temporary folder in $TMPDIR or /tmp. The destructor removes the folder and its content.
class ScratchFolder {
 public:
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  // Makes the folder. Fails with kFileWrite if the folder cannot be made.
  static Result<ScratchFolder> make();
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty if the object was moved from
};

}  // namespace fxopt
