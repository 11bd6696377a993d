// Tests of files below a root folder: nothing in a path leads out of the root.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "weir/os/detail/io/file.hpp"
#include "weir/os/test/denied_call.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::file_beneath_test {
namespace {

using testing::ElementsAre;
using testing::Field;

class FilesBeneath : public testing::Test {
 protected:
  void SetUp() override {
    tree.write("root/a.txt", "content");
    tree.write("root/sub/b.txt", "b");
    tree.write("secret.txt", "secret");
    namespace fs = std::filesystem;
    fs::create_symlink("a.txt", tree.path("root/link"));
    fs::create_symlink("sub", tree.path("root/folder-link"));
    fs::create_symlink("../secret.txt", tree.path("root/out"));
    fs::create_symlink(tree.path("secret.txt"), tree.path("root/absolute"));
    fs::create_symlink("..", tree.path("root/up"));
    fs::create_symlink("root", tree.path("root-link"));
  }

  /// Returns the content, or the error as text.
  std::string content(const std::string& path, BeneathLinks links = BeneathLinks::none) const {
    auto found = open_beneath(tree.path("root"), path, links);
    if (!found) return found.error().message();
    if (!found->file) return found->status.kind == FileKind::directory ? "directory" : "?";
    std::array<std::byte, 64> room;
    const auto count = read_at(found->file.get(), room, 0);
    return count ? std::string(to_text(Bytes(room).first(*count))) : count.error().message();
  }
  static std::string text_of(int error) { return system_error(error).message(); }

  TemporaryTree tree;
};

TEST_F(FilesBeneath, AreOpened) {
  EXPECT_EQ(content("a.txt"), "content");
  EXPECT_EQ(content("sub/b.txt"), "b");
  EXPECT_EQ(content("sub"), "directory");
  EXPECT_EQ(content(""), "directory");
  EXPECT_EQ(content("missing"), text_of(ENOENT));
  EXPECT_EQ(content("a.txt/b"), text_of(ENOTDIR));
  const auto by_link = open_beneath(tree.path("root-link"), "a.txt", BeneathLinks::none);
  ASSERT_TRUE(by_link);
  EXPECT_EQ(by_link->status.size, 7u);
  EXPECT_EQ(::fcntl(by_link->file.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(by_link->file.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE(open_beneath(tree.path("missing"), "a.txt", BeneathLinks::none));
}

TEST_F(FilesBeneath, NeverLieOutside) {
  for (const BeneathLinks links : {BeneathLinks::none, BeneathLinks::inside}) {
    for (const std::string path : {"../secret.txt", "sub/../../secret.txt", "up/secret.txt", "out",
                                   "absolute", "/etc/passwd", "..", "up"}) {
      EXPECT_THAT(content(path, links), testing::AnyOf(text_of(EXDEV), text_of(ELOOP))) << path;
    }
    EXPECT_FALSE(list_beneath(tree.path("root"), "..", links, 10));
    EXPECT_FALSE(list_beneath(tree.path("root"), "up", links, 10));
  }
  EXPECT_EQ(content(std::string("a.txt\0b", 7)), text_of(EINVAL));
}

TEST_F(FilesBeneath, FollowLinksOnlyByOption) {
  EXPECT_EQ(content("link"), text_of(ELOOP));
  EXPECT_EQ(content("folder-link/b.txt"), text_of(ELOOP));
  EXPECT_EQ(content("link", BeneathLinks::inside), "content");
  EXPECT_EQ(content("folder-link/b.txt", BeneathLinks::inside), "b");
}

TEST_F(FilesBeneath, AreRegularFiles) {
  ASSERT_EQ(::mkfifo(tree.path("root/pipe").c_str(), 0600), 0);
  const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, tree.path("root/s").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(content("pipe"), make_error_code(Errc::unsupported).message());
  EXPECT_EQ(content("s"), make_error_code(Errc::unsupported).message());
  ::close(server);
}

TEST_F(FilesBeneath, AreListed) {
  const auto entries = list_beneath(tree.path("root"), "sub", BeneathLinks::none, 10);
  ASSERT_TRUE(entries);
  EXPECT_THAT(*entries, ElementsAre(Field(&DirectoryEntry::name, "b.txt")));
  const auto all = list_beneath(tree.path("root"), "", BeneathLinks::none, 7);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 7u);
  EXPECT_EQ(list_beneath(tree.path("root"), "", BeneathLinks::none, 6).error(),
            Errc::limit_reached);
  EXPECT_EQ(list_beneath(tree.path("root"), "a.txt", BeneathLinks::none, 6).error(),
            system_error(ENOTDIR));
}

TEST_F(FilesBeneath, AreReadFromMemory) {
  auto found = open_beneath(tree.path("root"), "a.txt", BeneathLinks::none);
  ASSERT_TRUE(found);
  std::array<std::byte, 64> room;
  const auto count = read_cached(found->file.get(), room, 3);
  if (!count && count.error() == Errc::unsupported) GTEST_SKIP() << "no RWF_NOWAIT here";
  ASSERT_TRUE(count) << count.error().message();
  EXPECT_EQ(to_text(Bytes(room).first(*count)), "tent");
  EXPECT_EQ(read_cached(found->file.get(), room, 7), 0u);
  EXPECT_EQ(read_cached(found->file.get(), room, file_offset_max + 1).error(),
            system_error(EINVAL));
}

/// Two connected stream sockets that do not block.
class SocketPair {
 public:
  SocketPair() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_.data()), 0);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  ~SocketPair() {
    close_reader();
    ::close(ends_[0]);
  }
  int writer() const { return ends_[0]; }
  std::string read() const {
    std::string text(1 << 20, '\0');
    const auto count = ::read(ends_[1], text.data(), text.size());
    text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return text;
  }
  void close_reader() {
    if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

TEST_F(FilesBeneath, AreSentWithoutACopy) {
  auto found = open_beneath(tree.path("root"), "a.txt", BeneathLinks::none);
  ASSERT_TRUE(found);
  SocketPair sockets;
  const FilePart part{found->file.get(), 3, 3};
  EXPECT_EQ(send_file(sockets.writer(), to_bytes("head "), part), 8u);
  EXPECT_EQ(sockets.read(), "head ten");
  EXPECT_EQ(send_file(sockets.writer(), {}, {found->file.get(), 5, 100}), 2u);
  EXPECT_EQ(sockets.read(), "nt");
  EXPECT_EQ(send_file(sockets.writer(), to_bytes("x"), {found->file.get(), 7, 100}), 1u);
  EXPECT_EQ(sockets.read(), "x");
  const std::string large(4 << 20, 'y');
  const auto full = send_file(sockets.writer(), to_bytes(large), part);
  ASSERT_TRUE(full);
  EXPECT_LT(*full, large.size());
  EXPECT_EQ(send_file(sockets.writer(), to_bytes("x"), part), 0u);
  EXPECT_EQ(send_file(sockets.writer(), {}, part), 0u);
}

/// Sends a part of a file, and reads it meanwhile, until no more bytes are sent.
std::string sent_part(FilePart part) {
  const SocketPair sockets;
  std::string received;
  for (;;) {
    const auto sent = send_file(sockets.writer(), {}, part);
    if (!sent || *sent == 0) return received;
    part.offset += *sent;
    part.size -= *sent;
    for (std::string text = sockets.read(); !text.empty(); text = sockets.read()) received += text;
  }
}

TEST_F(FilesBeneath, AreSentInSeveralPieces) {
  std::string content;
  for (int line = 0; content.size() < 300'000; ++line) content += std::to_string(line) + "\n";
  tree.write("root/large", content);
  auto found = open_beneath(tree.path("root"), "large", BeneathLinks::none);
  ASSERT_TRUE(found);
  const int file = found->file.get();
  for (const std::size_t size : {61'440u, 61'441u, 122'881u, 200'000u, 262'144u, 290'000u}) {
    EXPECT_EQ(sent_part({file, 7, size}), content.substr(7, size)) << size;
  }
  const std::size_t near_end = content.size() - 100'000;
  EXPECT_EQ(sent_part({file, near_end, 200'000}), content.substr(near_end));
}

TEST_F(FilesBeneath, AreNotSentToAPeerThatHasClosed) {
  auto found = open_beneath(tree.path("root"), "a.txt", BeneathLinks::none);
  ASSERT_TRUE(found);
  SocketPair sockets;
  sockets.close_reader();
  const FilePart part{found->file.get(), 0, 7};
  // A SIGPIPE would end the test.
  EXPECT_EQ(send_file(sockets.writer(), {}, part).error(), system_error(EPIPE));
  EXPECT_EQ(send_file(sockets.writer(), to_bytes("x"), part).error(), system_error(EPIPE));
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

/// Makes openat2(2) fail with ENOSYS in this child process. Its last argument is a size.
[[noreturn]] void check_without_openat2(const std::function<bool()>& check) {
  if (!deny({SYS_openat2, 3, 24}, ENOSYS)) ::_exit(2);
  ::_exit(check() ? 0 : 3);
}

TEST_F(FilesBeneath, AreSafeOnKernelsWithoutOpenat2) {
  const auto check = [this] {
    bool right =
        content("sub/b.txt") == "b" && content("") == "directory" &&
        content("a.txt") == "content" && content("missing") == text_of(ENOENT) &&
        content("link", BeneathLinks::inside) == make_error_code(Errc::unsupported).message();
    for (const std::string path : {"../secret.txt", "sub/../../secret.txt", "up/secret.txt", "out",
                                   "absolute", "link", "folder-link/b.txt", ".."}) {
      right = right && content(path) != "secret" && content(path) != "content" &&
              content(path) != "b" && content(path) != "directory";
    }
    const auto entries = list_beneath(tree.path("root"), "", BeneathLinks::none, 10);
    return right && entries && entries->size() == 7 &&
           !list_beneath(tree.path("root"), "up", BeneathLinks::none, 10);
  };
  EXPECT_EXIT(check_without_openat2(check), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weir::os::file_beneath_test
