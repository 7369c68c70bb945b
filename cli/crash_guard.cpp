#include "cli/crash_guard.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/prctl.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace fxopt {
namespace {

// Signals that a crash of the task causes, and SIGKILL, which the kernel sends when memory runs
// out. All other signals ask the program to end.
constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP, SIGKILL};

bool is_crash(int signal) { return std::find(kCrashes.begin(), kCrashes.end(), signal) != kCrashes.end(); }

// Makes orphaned descendants children of this process. Returns false if the system cannot do this.
bool adopt_orphans([[maybe_unused]] bool is_on) {
#if defined(__linux__)
  return ::prctl(PR_SET_CHILD_SUBREAPER, is_on ? 1 : 0) == 0;
#else
  return false;
#endif
}

// Makes the worker end when the process that the user started ends.
void end_with_parent([[maybe_unused]] pid_t parent) {
#if defined(__linux__)
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
#endif
}

// Returns free pages to the system. Otherwise fork() would share them with the sleeping copy, and
// each reuse would copy a page. Fresh pages are cheaper.
void release_free_memory() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

// Ends this process with the signal that ended the worker, so that the caller sees the cause.
// Disables a second core dump.
[[noreturn]] void end_by(int signal) {
  const rlimit none{};
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  ::_exit(128 + signal);
}

pid_t wait_for_any(int& status) {
  pid_t child = -1;
  do child = ::waitpid(-1, &status, 0);
  while (child < 0 && errno == EINTR);
  return child;
}

// Waits for the worker, or for the copy that replaced it, and ends this process in the same way.
[[noreturn]] void supervise(const std::array<int, 2>& pipe) {
  int signal = 0, status = 0;
  while (wait_for_any(status) > 0) {
    if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
    signal = WTERMSIG(status);
    if (is_crash(signal) && ::write(pipe[1], &signal, sizeof signal) == sizeof signal) continue;
    break;
  }
  // The worker was asked to end, or it crashed outside of a task, so no copy can continue.
  ::close(pipe[0]);
  ::close(pipe[1]);
  while (wait_for_any(status) > 0) {
  }
  end_by(signal);
}

}  // namespace

CrashGuard::CrashGuard(bool is_wanted) {
  std::array<int, 2> pipe{};
  if (!is_wanted || !adopt_orphans(true)) return;
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    adopt_orphans(false);
    return;
  }
  const pid_t parent = ::getpid();
  const pid_t worker = ::fork();
  if (worker > 0) supervise(pipe);  // keeps both ends of the pipe, so that a write never fails
  ::close(pipe[1]);
  if (worker < 0) {
    ::close(pipe[0]);
    adopt_orphans(false);
    return;
  }
  end_with_parent(parent);
  parent_ = parent;
  wake_ = pipe[0];
}

CrashGuard::~CrashGuard() {
  if (!is_active()) return;
  end();
  ::close(wake_);
}

int CrashGuard::begin() {
  if (!is_active()) return 0;
  release_free_memory();
  copy_ = ::fork();
  if (copy_ != 0) return 0;  // if fork() failed, this task is not guarded
  int signal = 0;
  ssize_t length = 0;
  do length = ::read(wake_, &signal, sizeof signal);
  while (length < 0 && errno == EINTR);
  if (length != sizeof signal) ::_exit(1);  // the process that the user started has ended
  end_with_parent(parent_);
  return signal;
}

void CrashGuard::end() {
  if (copy_ <= 0) return;
  ::kill(copy_, SIGKILL);
  while (::waitpid(copy_, nullptr, 0) < 0 && errno == EINTR) {
  }
  copy_ = 0;
}

}  // namespace fxopt
