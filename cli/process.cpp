#include "cli/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "cli/arguments.h"

extern char** environ;

namespace fxopt {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kInterrupting = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t g_signal = 0;
std::array<struct sigaction, kInterrupting.size()> g_before;  // the previous actions of the signals

// Records the first signal. A second signal ends the process, because the work in progress may
// check for the first one only rarely.
extern "C" void note_signal(int signal) {
  if (g_signal != 0) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  g_signal = signal;
}

// The settings with which a child starts.
class SpawnSettings {
 public:
  explicit SpawnSettings(ProcessOutput output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (output == ProcessOutput::kDiscarded) {
      posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&actions_, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

ProcessEnd end_of(int status) {
  if (WIFSIGNALED(status)) return {ProcessEnd::Kind::kSignalled, WTERMSIG(status)};
  return {ProcessEnd::Kind::kExited, WEXITSTATUS(status)};
}

// Ends every process that a child has started, and waits for the child.
void kill_group(pid_t child) {
  ::kill(-child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Polls the child, less often the longer it runs. Polling needs no thread and no signal handler. It
// delays a long run by at most 1 %.
ProcessEnd wait_for(pid_t child, std::chrono::seconds timeout) {
  const Clock::time_point start = Clock::now();
  while (true) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) return end_of(status);
    const Clock::duration spent = Clock::now() - start;
    if (Interrupts::signal() != 0) {
      kill_group(child);
      return {ProcessEnd::Kind::kInterrupted, Interrupts::signal()};
    }
    if (timeout.count() > 0 && spent >= timeout) {
      kill_group(child);
      return {ProcessEnd::Kind::kTimedOut, 0};
    }
    const Clock::duration pause =
        std::clamp<Clock::duration>(spent / 100, std::chrono::microseconds(100), std::chrono::milliseconds(50));
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

std::string text_of(const ProcessEnd& end) {
  if (end.kind == ProcessEnd::Kind::kExited) return "exit status " + std::to_string(end.number);
  if (end.kind == ProcessEnd::Kind::kSignalled) return "signal " + std::to_string(end.number);
  return end.kind == ProcessEnd::Kind::kTimedOut ? "timeout" : "interrupted";
}

Result<ProcessEnd> run_process(const std::vector<std::string>& words, std::chrono::seconds timeout,
                               ProcessOutput output) {
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  const SpawnSettings settings(output);
  pid_t child = 0;
  const int failure =
      ::posix_spawnp(&child, argv.front(), settings.actions(), settings.attributes(), argv.data(), environ);
  if (failure == 0) return wait_for(child, timeout);
  return usage_error("cannot run '" + words.front() + "': " + std::generic_category().message(failure),
                     "give the path of a program, or the name of a program in $PATH; a script must be executable");
}

Interrupts::Interrupts() {
  g_signal = 0;
  struct sigaction noting {};
  noting.sa_handler = note_signal;
  sigemptyset(&noting.sa_mask);
  for (size_t i = 0; i < kInterrupting.size(); ++i) {
    ::sigaction(kInterrupting[i], nullptr, &g_before[i]);
    const bool is_ignored = g_before[i].sa_handler == SIG_IGN;  // for example under nohup
    if (!is_ignored) ::sigaction(kInterrupting[i], &noting, nullptr);
  }
}

Interrupts::~Interrupts() {
  for (size_t i = 0; i < kInterrupting.size(); ++i) ::sigaction(kInterrupting[i], &g_before[i], nullptr);
}

int Interrupts::signal() { return g_signal; }

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, std::string())) {}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Result<ScratchFolder> ScratchFolder::make() {
  const char* given = std::getenv("TMPDIR");
  std::string path = (given == nullptr || *given == '\0' ? std::string("/tmp") : std::string(given)) + "/fxopt-XXXXXX";
  if (::mkdtemp(path.data()) != nullptr) return ScratchFolder(std::move(path));
  Error error{ErrorCode::kFileWrite,
              "cannot make a folder for temporary files: " + std::generic_category().message(errno),
              "set TMPDIR to a folder that can be written",
              {}};
  error.where.file = path;
  return error;
}

}  // namespace fxopt
