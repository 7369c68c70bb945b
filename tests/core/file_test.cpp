#include "core/file.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "tests/catch.h"
#include "tests/core/temp_folder.h"

namespace fxopt {
namespace {

mode_t permissions(const std::string& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

std::string random_text(size_t size) {
  std::mt19937_64 random(3);
  std::string text;
  while (text.size() < size) text += "node " + std::to_string(random() % 1000) + "\n";
  text.resize(size);
  return text;
}

// Reads the bytes as stored on disk; read_file would decompress them.
std::string raw_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace

TEST_CASE("what is written is read back") {
  const TempFolder folder;
  const std::string path = folder / "a.pb";
  for (const size_t size : {size_t{0}, size_t{1}, size_t{5000000}}) {
    const std::string bytes = random_text(size);
    REQUIRE(write_file(path, bytes).ok());
    CHECK((read_file(path).value() == bytes));
    CHECK(folder.num_entries() == 1);
  }
}

TEST_CASE("pieces are written one after the other") {
  const TempFolder folder;
  const std::string large = random_text((size_t{1} << 20) + 5);
  const std::string chunk = random_text(size_t{1} << 20);
  const std::vector<std::vector<std::string_view>> lists = {
      {}, {""}, {"a"}, {"a", "", "b"}, {large}, {"a", large, "b", "c", chunk, chunk, "d", large}};
  for (const std::vector<std::string_view>& pieces : lists) {
    std::string whole;
    for (const std::string_view piece : pieces) whole += piece;
    for (const char* name : {"a.bin", "a.bin.zst"}) {
      REQUIRE(write_file_pieces(folder / name, pieces).ok());
      CHECK((read_file(folder / name).value() == whole));
    }
    REQUIRE(write_file(folder / "b.bin.zst", whole).ok());
    CHECK(raw_bytes(folder / "a.bin.zst") == raw_bytes(folder / "b.bin.zst"));
  }
  std::vector<std::string> numbers;
  for (int i = 0; i < 300000; ++i) numbers.push_back(std::to_string(i));
  REQUIRE(write_file_pieces(folder / "many", std::vector<std::string_view>(numbers.begin(), numbers.end())).ok());
  std::string whole;
  for (const std::string& number : numbers) whole += number;
  CHECK((read_file(folder / "many").value() == whole));
  const std::string_view piece = "1";
  CHECK(write_file_pieces(folder / "no/such/a", {&piece, 1}).error().code == ErrorCode::kFileWrite);
}

TEST_CASE("a new file gets the permissions of the umask, a replaced one keeps its own") {
  const TempFolder folder;
  const mode_t old_mask = umask(027);
  REQUIRE(write_file(folder / "new", "1").ok());
  umask(old_mask);
  CHECK(permissions(folder / "new") == 0640);
  REQUIRE(chmod((folder / "new").c_str(), 0604) == 0);
  REQUIRE(write_file(folder / "new", "2").ok());
  CHECK(permissions(folder / "new") == 0604);
  CHECK(read_file(folder / "new").value() == "2");
}

TEST_CASE("a symbolic link stays and the file it names is replaced") {
  const TempFolder folder;
  REQUIRE(write_file(folder / "file", "1").ok());
  std::filesystem::create_symlink("file", folder / "link");
  REQUIRE(write_file(folder / "link", "2").ok());
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(read_file(folder / "file").value() == "2");
}

TEST_CASE("a symbolic link to nothing yet is followed") {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "sub");
  std::filesystem::create_symlink("sub/real.txt", folder / "link.txt");
  REQUIRE(write_file(folder / "link.txt", "new").ok());
  CHECK(std::filesystem::is_symlink(folder / "link.txt"));
  CHECK(*read_file(folder / "sub/real.txt") == "new");
}

TEST_CASE("two paths of one file have one identity") {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "sub");
  std::filesystem::create_symlink("new.txt", folder / "link.txt");
  for (int i = 0; i < 2; ++i) {  // first without the file, then with it
    const std::string identity = file_identity(folder / "new.txt");
    CHECK(file_identity(folder / "./sub/../new.txt") == identity);
    CHECK(file_identity(folder / "link.txt") == identity);
    CHECK(file_identity(folder / "sub/new.txt") != identity);
    CHECK(file_identity(folder / "other.txt") != identity);
    REQUIRE(write_file(folder / "new.txt", "").ok());
  }
  std::filesystem::create_hard_link(folder / "new.txt", folder / "hard.txt");
  CHECK(file_identity(folder / "hard.txt") == file_identity(folder / "new.txt"));
}

TEST_CASE("devices are special, files and folders are not") {
  const TempFolder folder;
  REQUIRE(write_file(folder / "a", "").ok());
  CHECK(is_special_file("/dev/null"));
  CHECK_FALSE(is_special_file(folder / "a"));
  CHECK_FALSE(is_special_file(folder / ""));
  CHECK_FALSE(is_special_file(folder / "missing"));
}

TEST_CASE("a write that fails says why and leaves nothing behind") {
  const TempFolder folder;
  const Error missing = write_file(folder / "no/such/a.pb", "1").error();
  CHECK(missing.code == ErrorCode::kFileWrite);
  CHECK(missing.message == "cannot create a file in the same folder: no such file or directory");
  CHECK(missing.hint == "create the folder first");
  CHECK(missing.where.file == (folder / "no/such/a.pb"));

  std::filesystem::create_directory(folder / "folder");
  CHECK(write_file(folder / "folder", "1").error().message == "cannot write the file: is a directory");
  CHECK(folder.num_entries() == 1);
}

TEST_CASE("a disk that fills up while writing is reported") {
  const Error full = write_file("/dev/full", "1").error();
  CHECK(full.message == "cannot write the file: no space left on device");
  CHECK(full.hint == "free space, or choose another disk");
  CHECK(write_file("/dev/null", "1").ok());
}

TEST_CASE("an old file is intact when a write stops half way") {
  const TempFolder folder;
  REQUIRE(write_file(folder / "a.pb", "old").ok());
  rlimit old_limit{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  const rlimit small_limit{4096, old_limit.rlim_max};
  void (*const old_action)(int) = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small_limit) == 0);
  const Status status = write_file(folder / "a.pb", std::string(100000, 'x'));
  REQUIRE(setrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  std::signal(SIGXFSZ, old_action);
  CHECK(status.error().message == "cannot write the file: file too large");
  CHECK(read_file(folder / "a.pb").value() == "old");
  CHECK(folder.num_entries() == 1);
}

TEST_CASE("an old file is intact when it cannot be replaced") {
  const TempFolder folder;
  const std::string locked = folder / "locked";
  std::filesystem::create_directory(locked);
  REQUIRE(write_file(locked + "/a.pb", "old").ok());
  // The superuser may write anywhere, so the test temporarily becomes another user.
  const uid_t user = geteuid();
  const uid_t nobody = 65534;
  REQUIRE(chmod((folder / "").c_str(), 0755) == 0);
  if (user == 0) {
    REQUIRE(chown(locked.c_str(), nobody, static_cast<gid_t>(-1)) == 0);
    REQUIRE(chown((locked + "/a.pb").c_str(), nobody, static_cast<gid_t>(-1)) == 0);
    REQUIRE(seteuid(nobody) == 0);
  }
  REQUIRE(chmod(locked.c_str(), 0555) == 0);
  const Status read_only_folder = write_file(locked + "/a.pb", "new");
  REQUIRE(chmod(locked.c_str(), 0755) == 0);
  REQUIRE(chmod((locked + "/a.pb").c_str(), 0444) == 0);
  const Status read_only_file = write_file(locked + "/a.pb", "new");
  if (user == 0) REQUIRE(seteuid(user) == 0);

  CHECK(read_only_folder.error().message == "cannot create a file in the same folder: permission denied");
  CHECK(read_only_file.error().message == "cannot write the file: permission denied");
  CHECK(read_file(locked + "/a.pb").value() == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(locked), {}) == 1);
}

TEST_CASE("a read that fails says why") {
  const TempFolder folder;
  const Error missing = read_file(folder / "a.pb").error();
  CHECK(missing.code == ErrorCode::kFileOpen);
  CHECK(missing.message == "cannot open the file: no such file or directory");
  CHECK(missing.hint == "check the path");
  const Error directory = read_file(folder / "").error();
  CHECK(directory.code == ErrorCode::kFileRead);
  CHECK(directory.message == "cannot read the file: is a directory");
}

TEST_CASE("the limit counts bytes after decompression") {
  const TempFolder folder;
  for (const std::string name : {"plain", "packed.zst"}) {
    REQUIRE(write_file(folder / name, std::string(3000000, 'x')).ok());
    CHECK(read_file(folder / name, 3000000).ok());
    const Error beyond = read_file(folder / name, 2999999).error();
    CHECK(beyond.code == ErrorCode::kFileTooLarge);
    CHECK(beyond.message == "is larger than the limit of 2999999 bytes");
  }
  CHECK(read_file("/dev/zero", 5000000).error().code == ErrorCode::kFileTooLarge);
}

TEST_CASE("a .zst file is compressed, the same way each time, and recognised without its name") {
  const TempFolder folder;
  const std::string bytes = random_text(400000);
  REQUIRE(write_file(folder / "a.pb.zst", bytes).ok());
  REQUIRE(write_file(folder / "b.pb.zst", bytes).ok());
  std::filesystem::rename(folder / "b.pb.zst", folder / "b.pb");
  CHECK(std::filesystem::file_size(folder / "a.pb.zst") < bytes.size() / 2);
  CHECK((read_file(folder / "a.pb.zst").value() == bytes));
  CHECK((read_file(folder / "b.pb").value() == bytes));
  REQUIRE(write_file(folder / "empty.zst", "").ok());
  CHECK(read_file(folder / "empty.zst").value().empty());
  const std::string raw = raw_bytes(folder / "a.pb.zst");
  const unsigned descriptor = static_cast<unsigned char>(raw[4]);
  CHECK((descriptor >> 6) != 0);  // the content size is stored
  CHECK((descriptor & 4) != 0);   // and a checksum
}

TEST_CASE("several frames in one file are one text") {
  const TempFolder folder;
  REQUIRE(write_file(folder / "a.zst", "one ").ok());
  REQUIRE(write_file(folder / "b.zst", "two").ok());
  REQUIRE(write_file(folder / "both", raw_bytes(folder / "a.zst") + raw_bytes(folder / "b.zst")).ok());
  CHECK(read_file(folder / "both").value() == "one two");
}

TEST_CASE("compressed data that is cut or changed is rejected") {
  const TempFolder folder;
  REQUIRE(write_file(folder / "a.zst", random_text(300)).ok());
  const std::string packed = raw_bytes(folder / "a.zst");
  const std::string path = folder / "damaged";
  for (size_t size = 4; size < packed.size(); ++size) {
    REQUIRE(write_file(path, packed.substr(0, size)).ok());
    CAPTURE(size);
    const Error cut = read_file(path).error();
    CHECK(cut.code == ErrorCode::kBadCompression);
    CHECK(cut.message == "the zstd data ends inside a frame");
    CHECK(cut.where.byte == size);
  }
  std::string changed = packed;
  changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 1);
  for (const std::string& bytes : {changed, packed + "x"}) {
    REQUIRE(write_file(path, bytes).ok());
    const Error damaged = read_file(path).error();
    CHECK(damaged.code == ErrorCode::kBadCompression);
    CHECK(damaged.where.has_byte);
  }
}

}  // namespace fxopt
