#pragma once

#include <string>
#include <string_view>

#include "core/error.h"

namespace fxopt {

// Helpers shared by file.cpp and mapped_file.cpp. Others use file.h or mapped_file.h.

// Closes its descriptor. close() reports the failure that a destructor would swallow.
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

// Makes "cannot WHAT: reason" for the errno `number`, with a hint if one helps.
Error read_error(ErrorCode code, const std::string& file, std::string_view what, int number);
Error write_error(const std::string& file, std::string_view what, int number);  // kFileWrite

}  // namespace fxopt
