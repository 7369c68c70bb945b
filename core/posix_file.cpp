#include "core/posix_file.h"

#include <cerrno>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace fxopt {
namespace {

// The system's message for `error`, in our style: lower case.
std::string system_message(int error) {
  std::string text = std::generic_category().message(error);
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && !(text[1] >= 'A' && text[1] <= 'Z')) {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

std::string hint_for(int error, bool writes) {
  switch (error) {
    case ENOENT:
      return writes ? "create the folder first" : "check the path";
    case ENOTDIR:
      return "a part of the path is a file, not a folder";
    case EACCES:
    case EPERM:
      return writes ? "choose another place, or change the permissions" : "check the permissions";
    case EROFS:
      return "choose a place on a file system that can be written";
    case ENOSPC:
    case EDQUOT:
      return "free space, or choose another disk";
    case EEXIST:
      return "a file has this name: choose another one";
    case EISDIR:
      return "give the path of a file in this folder";
    default:
      return "";
  }
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

bool FileDescriptor::close() { return ::close(std::exchange(fd_, -1)) == 0; }

Error make_file_error(ErrorCode code, const std::string& file, std::string message, std::string hint) {
  Error error{code, std::move(message), std::move(hint), {}};
  error.where.file = file;
  return error;
}

Error read_error(ErrorCode code, const std::string& file, std::string_view what, int number) {
  return make_file_error(code, file, "cannot " + std::string(what) + ": " + system_message(number),
                         hint_for(number, false));
}

Error write_error(const std::string& file, std::string_view what, int number) {
  return make_file_error(ErrorCode::kFileWrite, file, "cannot " + std::string(what) + ": " + system_message(number),
                         hint_for(number, true));
}

}  // namespace fxopt
