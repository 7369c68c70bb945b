#pragma once

namespace fxopt {

// Lets a list of tasks survive a task that ends its process: a crash, or a kill for want of memory.
//
// The constructor forks: a worker returns from it and runs everything after it, and the process that was started waits
// for the worker and ends as it does. begin() forks a copy of the worker that sleeps. If the worker dies before end(),
// the copy wakes with all that the worker had in memory before the task, and goes on with the next one. At most three
// processes exist, and no result crosses a pipe.
//
// Only for a process without other threads, whose open streams were flushed. Without Linux's child subreaper, and where
// no process can be forked, tasks run unguarded in the process that was started.
class CrashGuard {
 public:
  // `is_wanted`: false runs all tasks in this process.
  explicit CrashGuard(bool is_wanted);
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;
  ~CrashGuard();

  // Call before each task, with streams flushed. 0: run the task. Else the signal that ended the process that ran it.
  int begin();
  // Call after a task that was run.
  void end();

 private:
  bool is_active() const { return parent_ != 0; }

  int parent_ = 0;  // the process that waits
  int copy_ = 0;    // of this process, asleep
  int wake_ = -1;   // the copy reads the signal here
};

}  // namespace fxopt
