#pragma once

#include <string>
#include <string_view>

#include "core/error.h"

namespace fxopt {

// The steps that file.cpp and mapped_file.cpp share. Others use file.h or mapped_file.h.

// Closes the descriptor it holds. close() reports the failure a destructor would swallow.
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

// An error about `file`.
Error make_file_error(ErrorCode code, const std::string& file, std::string message, std::string hint = "");

// "cannot WHAT: reason", for the errno `number`, with a hint where one helps.
Error read_error(ErrorCode code, const std::string& file, std::string_view what, int number);
Error write_error(const std::string& file, std::string_view what, int number);  // kFileWrite

}  // namespace fxopt
