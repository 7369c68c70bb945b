#pragma once

#include <string>
#include <string_view>

#include "core/error.h"

namespace fxopt {

// Helpers that file.cpp and mapped_file.cpp share. Other code uses file.h or mapped_file.h.

// Owns a file descriptor and closes it. close() returns false if closing fails. The destructor
// cannot report this failure.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();

  int get() const { return fd_; }
  bool close();

 private:
  int fd_;
};

// Makes an error about `file`.
Error make_file_error(ErrorCode code, const std::string& file, std::string message, std::string hint = "");

// Makes an error such as "cannot open the file: permission denied". `what` is the text after
// "cannot", and `number` is the value of errno. The error has a hint if a remedy is known.
Error read_error(ErrorCode code, const std::string& file, std::string_view what, int number);
Error write_error(const std::string& file, std::string_view what, int number);  // kFileWrite

}  // namespace fxopt
