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
    const Result<MappedFile> file = MappedFile::open(folder / "a");
    REQUIRE(file.ok());
    CHECK((text_of(*file) == text));
  }
}

TEST_CASE("a mapping survives a move and the replacement of its file") {
  const TempFolder folder;
  REQUIRE(write_file(folder / "a", "before").ok());
  Result<MappedFile> opened = MappedFile::open(folder / "a");
  REQUIRE(opened.ok());
  const std::byte* const address = opened->bytes().data();
  MappedFile file = *std::move(opened);
  CHECK(file.bytes().data() == address);

  // Writes the file from its own mapping.
  const std::string_view pieces[] = {"again ", text_of(file)};
  REQUIRE(write_file_pieces(folder / "a", pieces).ok());
  CHECK(text_of(file) == "before");
  Result<MappedFile> other = MappedFile::open(folder / "a");
  REQUIRE(other.ok());
  file = *std::move(other);
  CHECK(text_of(file) == "again before");
  std::filesystem::remove(folder / "a");
  CHECK(text_of(file) == "again before");
}

TEST_CASE("a file that cannot be mapped is an error that names it") {
  const TempFolder folder;
  const Result<MappedFile> missing = MappedFile::open(folder / "missing");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == ErrorCode::kFileOpen);
  CHECK(missing.error().message == "cannot open the file: no such file or directory");
  CHECK(missing.error().where.file == (folder / "missing"));
  CHECK(MappedFile::open(folder / "").error().code == ErrorCode::kFileRead);

  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::string& path : {folder / "pipe", std::string("/dev/null")}) {
    const Result<MappedFile> special = MappedFile::open(path);
    REQUIRE_FALSE(special.ok());
    CHECK(special.error().code == ErrorCode::kFileRead);
    CHECK(special.error().where.file == path);
    CHECK_FALSE(special.error().hint.empty());
  }
}

}  // namespace
}  // namespace fxopt
