#include "core/mapped_file.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>

#include "core/file.h"
#include "tests/catch.h"
#include "tests/core/temp_folder.h"

namespace fxopt {
namespace {

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_CASE("a mapped file has the bytes of the file") {
  const TempFolder folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{100001}}) {
    const std::string text(size, 'x');
    REQUIRE(write_file(folder / "a", text).ok());
    CHECK((text_of(MappedFile::open(folder / "a").value()) == text));
  }
}

TEST_CASE("a mapping survives a move and the replacement of its file") {
  const TempFolder folder;
  REQUIRE(write_file(folder / "a", "before").ok());
  MappedFile opened = MappedFile::open(folder / "a").value();
  const std::byte* const address = opened.bytes().data();
  MappedFile file = std::move(opened);
  CHECK(file.bytes().data() == address);

  // Writes the file from its own mapping.
  const std::string_view pieces[] = {"again ", text_of(file)};
  REQUIRE(write_file_pieces(folder / "a", pieces).ok());
  CHECK(text_of(file) == "before");
  file = MappedFile::open(folder / "a").value();
  CHECK(text_of(file) == "again before");
  std::filesystem::remove(folder / "a");
  CHECK(text_of(file) == "again before");
}

TEST_CASE("a file that cannot be mapped is an error that names it") {
  const TempFolder folder;
  const Error missing = MappedFile::open(folder / "missing").error();
  CHECK(missing.code == ErrorCode::kFileOpen);
  CHECK(missing.message == "cannot open the file: no such file or directory");
  CHECK(missing.where.file == (folder / "missing"));
  CHECK(MappedFile::open(folder / "").error().code == ErrorCode::kFileRead);

  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::string& path : {folder / "pipe", std::string("/dev/null")}) {
    const Error special = MappedFile::open(path).error();
    CHECK(special.code == ErrorCode::kFileRead);
    CHECK(special.where.file == path);
    CHECK_FALSE(special.hint.empty());
  }
}

}  // namespace
}  // namespace fxopt
