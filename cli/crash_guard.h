#pragma once

namespace fxopt {

// Lets a list of tasks survive a task that ends its process: a crash, or a kill for lack of memory.
//
// The constructor forks. A worker returns from it and runs everything after it; the started process
// waits for the worker and ends as it does. begin() forks a copy of the worker that sleeps. If the
// worker dies before end(), the copy wakes with the worker's memory from before the task, and
// continues with the next task. At most three processes exist, and no result crosses a pipe.
//
// Only for a process without other threads, and with flushed streams. Without Linux's child
// subreaper, or if no process can be forked, tasks run unguarded in the started process.
class CrashGuard {
 public:
  // `is_wanted`: false runs every task in this process.
  explicit CrashGuard(bool is_wanted);
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;
  ~CrashGuard();

  // Call before each task, with streams flushed. Returns 0 to run the task, else the signal that
  // ended the process that ran it.
  int begin();
  // Call after a task that was run.
  void end();

 private:
  bool is_active() const { return parent_ != 0; }

  int parent_ = 0;  // the process that waits
  int copy_ = 0;    // the sleeping copy of this process
  int wake_ = -1;   // the copy reads the signal here
};

}  // namespace fxopt
