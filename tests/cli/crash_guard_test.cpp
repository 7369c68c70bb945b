// A batch continues if the process that works on one of its files crashes.

#include "cli/crash_guard.h"

#include <csignal>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

// Runs `body` in a child process, which may crash, and returns its wait status.
template <class Body>
int status_of(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int signal : {SIGABRT, SIGSEGV, SIGTERM}) ::signal(signal, SIG_DFL);
    ::_exit(body());
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
  }
  return status;
}

#if defined(__linux__)

TEST_CASE("crash guard: tasks that crash are told by their signal, and those beside them run") {
  const int status = status_of([] {
    std::string seen;
    CrashGuard guard(true);
    for (int task = 0; task < 6; ++task) {
      const int signal = guard.begin();
      if (signal != 0) {
        seen += "[" + std::to_string(signal) + "]";
        continue;
      }
      seen += "lost";  // erased below if the task ends
      if (task == 1) ::raise(SIGABRT);
      if (task == 2 || task == 5) ::raise(SIGKILL);
      guard.end();
      seen.replace(seen.size() - 4, 4, std::to_string(task));
    }
    return seen == "0[6][9]34[9]" ? 42 : 1;
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 42);
}

TEST_CASE("crash guard: a crash outside of a task, and a signal that asks to end, end the whole") {
  const int outside = status_of([] {
    CrashGuard guard(true);
    if (guard.begin() == 0) guard.end();
    ::raise(SIGABRT);
    return 0;
  });
  CHECK(WIFSIGNALED(outside));
  CHECK(WTERMSIG(outside) == SIGABRT);
  const int asked = status_of([] {
    CrashGuard guard(true);
    if (guard.begin() == 0) ::raise(SIGTERM);
    return 0;
  });
  CHECK(WIFSIGNALED(asked));
  CHECK(WTERMSIG(asked) == SIGTERM);
}

TEST_CASE("crash guard: unwanted, it forks nothing") {
  const pid_t before = ::getpid();
  CrashGuard guard(false);
  CHECK(guard.begin() == 0);
  guard.end();
  CHECK(::getpid() == before);
}

// A command whose input `b.pb` is a pipe. The process that reads the pipe is killed.
class Batch {
 public:
  Batch() {
    write_text(folder / "a.fxg", kTwins);
    write_text(folder / "c.fxg", kTwins);
    REQUIRE(::mkfifo((folder / "b.pb").c_str(), 0600) == 0);
  }

  // Runs `args` in the folder, so that files go by their names, and sends `signal` to the reader of
  // the pipe.
  CliResult run(const std::vector<std::string>& args, int signal) const {
    const std::string out = folder / "out.txt", err = folder / "err.txt";
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGABRT, SIG_DFL);
      std::ofstream out_stream(out), err_stream(err);
      const bool is_there = ::chdir((folder / ".").c_str()) == 0;
      const int exit = is_there ? run_cli(args, {out_stream, err_stream, false, true}) : 99;
      out_stream.close();
      err_stream.close();
      ::_exit(exit);
    }
    const int pipe = ::open((folder / "b.pb").c_str(), O_WRONLY);  // waits for a reader
    pid_t worker = 0;
    const std::string number = std::to_string(child);
    std::ifstream("/proc/" + number + "/task/" + number + "/children") >> worker;
    if (worker > 0) ::kill(worker, signal);
    ::close(pipe);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
    }
    return {args, WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(out), read_text(err)};
  }

  std::vector<std::pair<std::string, bool>> files() const {
    std::vector<std::pair<std::string, bool>> found;
    const nlohmann::json envelope = nlohmann::json::parse(read_text(folder / "j.json"));
    for (const nlohmann::json& file : envelope.at("result").at("files")) found.emplace_back(file["file"], file["ok"]);
    return found;
  }

  TempFolder folder;
  const std::vector<std::pair<std::string, bool>> one_lost = {{"a.fxg", true}, {"b.pb", false}, {"c.fxg", true}};
};

TEST_CASE("cli opt: a batch survives a crash, and says it in the envelope") {
  const Batch batch;
  check_ended(batch.run({"opt", "a.fxg", "b.pb", "c.fxg", "-o", "new/", "--json=j.json"}, SIGABRT), 1,
              "b.pb: error[FX0101]: fxopt crashed on this input: signal 6 (Aborted)");
  CHECK(batch.files() == batch.one_lost);
  CHECK(read_text(batch.folder / "new/a.fxg") == read_text(batch.folder / "new/c.fxg"));
  CHECK_FALSE(read_text(batch.folder / "new/a.fxg").empty());
  const nlohmann::json envelope = nlohmann::json::parse(read_text(batch.folder / "j.json"));
  CHECK(envelope["exit"] == 1);
  CHECK(envelope["errors"].size() == 1);
}

TEST_CASE("cli opt: one input that crashes still has its envelope") {
  const Batch batch;
  const CliResult result = batch.run({"opt", "b.pb", "-o", "new.pb", "--json"}, SIGKILL);
  CHECK(result.exit == 10);
  const nlohmann::json envelope = result.json();
  CHECK(envelope["errors"][0]["code"] == "FX1004");
  CHECK(contains(envelope["errors"][0]["message"].get<std::string>(), "signal 9"));
  CHECK_FALSE(std::filesystem::exists(batch.folder / "new.pb"));
}

TEST_CASE("cli mem: reports and baselines have the other files after a crash") {
  const Batch batch;
  const CliResult result = batch.run({"mem", "a.fxg", "b.pb", "c.fxg", "--json=j.json", "--markdown", "m.md",
                                      "--update-baseline", "--baseline", "base"},
                                     SIGABRT);
  CAPTURE(result.err);
  CHECK(result.exit == 1);
  CHECK(batch.files() == batch.one_lost);
  const std::string report = read_text(batch.folder / "m.md");
  CHECK(contains(report, "Not measured: `b.pb`"));
  CHECK(contains(report, "c.fxg"));
}

TEST_CASE("cli verify: a step whose file crashed is not judged by the files beside it") {
  const Batch batch;
  const CliResult result = batch.run({"verify", "--step", "a.fxg", "b.pb", "c.fxg", "--json=j.json"}, SIGABRT);
  CAPTURE(result.err);
  CHECK(result.exit == 1);
  CHECK(batch.files() == batch.one_lost);
}

#endif

}  // namespace
}  // namespace fxopt
