#pragma once

namespace fxopt {

// Lets a program continue with the next task if a task ends the process. The task may crash, or the
// kernel may kill its process because memory runs out.
//
// The constructor forks a worker. The constructor returns only in the worker, which runs the rest
// of the program. The original process, which the user started, waits for the worker. Then the
// original process ends in the same way as the worker. begin() forks a sleeping copy of the worker.
// If the worker dies before end(), the copy wakes up. The copy has the worker's memory from before
// the task, and continues with the next task. At most three processes exist at a time. No result
// passes through a pipe.
//
// The process must have only one thread, and its streams must be flushed. Tasks run unguarded in
// the original process in two cases:
// - The system lacks Linux's child subreaper.
// - No process can be forked.
class CrashGuard {
 public:
  // If `is_wanted` is false, every task runs unguarded in this process.
  explicit CrashGuard(bool is_wanted);
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;
  ~CrashGuard();

  // Call this before each task, after the streams are flushed. Returns 0 if the caller must run the
  // task. If the process of the task has died, returns the signal that ended the process.
  int begin();
  // Call this after each task that the caller has run.
  void end();

 private:
  bool is_active() const { return parent_ != 0; }

  int parent_ = 0;  // the original process, which waits
  int copy_ = 0;    // the sleeping copy of this process
  // The pipe that wakes the copy. The copy reads the number of the signal that ended the worker.
  int wake_ = -1;
};

}  // namespace fxopt
