// Tests that a closed connection leaves no secret in the memory of its process. The client is
// another process, because OpenSSL leaves the secrets of the client.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/tls/detail/records/aead_records.hpp"
#include "weir/tls/openssl_memory.hpp"
#include "weir/tls/test/engine_fixture.hpp"

namespace weir::tls::detail::erased_secrets_test {
namespace {

/// Looks for secrets in the memory of this process. It keeps them inverted, so that it finds no
/// copy of its own.
class SecretSearch {
 public:
  SecretSearch()
      : chunk_(static_cast<unsigned char*>(mmap(nullptr, chunk_bytes, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~SecretSearch() { munmap(chunk_, chunk_bytes); }
  SecretSearch(const SecretSearch&) = delete;
  SecretSearch& operator=(const SecretSearch&) = delete;

  void add(std::string name, const std::uint8_t* bytes, std::size_t size) {
    Secret secret{std::move(name), {}};
    for (std::size_t index = 0; index < size; ++index) {
      secret.inverted.push_back(static_cast<std::uint8_t>(~bytes[index]));
    }
    secrets_.push_back(std::move(secret));
  }
  void add(const std::string& side, const TrafficKey& key, const ConnectionKeys& keys) {
    if (keys.version == TlsVersion::tls_1_3) {
      add(side + " secret", key.secret.data(), secret_bytes_of(keys.suite));
    }
    add(side + " key", key.key.data(), key_bytes_of(keys.suite));
    // The salt of TLS 1.2 is too short to be found.
    if (keys.version == TlsVersion::tls_1_3) add(side + " IV", key.iv.data(), key.iv.size());
  }

  /// Returns the names of the secrets in writable memory, and where they are.
  std::string found() {
    std::string names;
    std::ifstream maps("/proc/self/maps");
    std::vector<std::string> lines;
    for (std::string line; std::getline(maps, line);) lines.push_back(line);
    for (const std::string& line : lines) {
      std::size_t begin = 0;
      std::size_t end = 0;
      std::array<char, 5> rights{};
      if (std::sscanf(line.c_str(), "%zx-%zx %4s", &begin, &end, rights.data()) != 3) continue;
      // The shadow memory of the sanitizer is huge, and has no data.
      if (rights[0] != 'r' || rights[1] != 'w' || end - begin > (std::size_t{4} << 30)) continue;
      // The kernel joins the chunk with other memory beside it.
      const auto chunk = reinterpret_cast<std::size_t>(chunk_);
      if (begin <= chunk && chunk < end) {
        search(begin, chunk, line, names);
        begin = chunk + chunk_bytes;
      }
      search(begin, end, line, names);
    }
    return names;
  }

 private:
  struct Secret {
    std::string name;
    std::vector<std::uint8_t> inverted;
  };
  static constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
  static constexpr std::size_t overlap = 64;

  void search(std::size_t begin, std::size_t end, const std::string& line, std::string& names) {
    const int memory = open("/proc/self/mem", O_RDONLY);
    for (std::size_t at = begin; at < end; at += chunk_bytes - overlap) {
      const std::size_t wanted = std::min(chunk_bytes, end - at);
      const auto count = pread(memory, chunk_, wanted, static_cast<off_t>(at));
      if (count <= 0) break;
      for (const Secret& each : secrets_) {
        if (has(each, static_cast<std::size_t>(count))) names += each.name + " in " + line + "\n";
      }
    }
    close(memory);
  }
  bool has(const Secret& secret, std::size_t size) const {
    const std::size_t length = secret.inverted.size();
    const auto first = static_cast<unsigned char>(~secret.inverted[0]);
    const unsigned char* at = chunk_;
    while (size >= length) {
      const auto* const next =
          static_cast<const unsigned char*>(std::memchr(at, first, size - length + 1));
      if (next == nullptr) return false;
      std::size_t same = 1;
      while (same < length && static_cast<unsigned char>(~secret.inverted[same]) == next[same]) {
        ++same;
      }
      if (same == length) return true;
      size -= static_cast<std::size_t>(next + 1 - at);
      at = next + 1;
    }
    return false;
  }

  unsigned char* chunk_;
  std::vector<Secret> secrets_;
};

// Before OpenSSL allocates memory. The tests of this program share its memory functions.
[[maybe_unused]] const bool erases_memory = erase_openssl_memory();

using Case = std::tuple<TlsVersion, AesGcm>;

class ErasedSecretsTest : public EngineTest, public testing::WithParamInterface<Case> {
 protected:
  static bool is_1_2() { return std::get<TlsVersion>(GetParam()) == TlsVersion::tls_1_2; }

  /// Runs a client on `socket` until the server ends.
  void run_client(int socket) {
    if (is_1_2()) limit_to_1_2();
    std::string out;
    Step step = feed(*client_, "", out);
    for (;;) {
      if (write(socket, out.data(), out.size()) < 0) return;
      out.clear();
      std::array<char, 20000> bytes{};
      const auto count = read(socket, bytes.data(), bytes.size());
      if (count <= 0) return;
      const std::string_view text(bytes.data(), static_cast<std::size_t>(count));
      if (step != Step::needs_input) continue;
      step = feed(*client_, text, out);
      if (step == Step::finished) out += sealed(*client_, "question");
    }
  }
  static inline const SSL* ssl_ = nullptr;  // of the server

  static Buffer received(int socket) {
    Buffer input = Buffer::with_capacity();
    const auto count = read(socket, input.room().data(), input.room().size());
    input.commit(count < 0 ? 0 : static_cast<std::size_t>(count));
    return input;
  }
  static void send(int socket, const Buffer& output) {
    EXPECT_EQ(write(socket, output.data(), output.size()), static_cast<ssize_t>(output.size()));
  }

  /// Adds the secret of the session, from which the keys of TLS 1.2 and resumed sessions follow.
  static void add_master_key(SecretSearch& search) {
    std::array<std::uint8_t, SSL_MAX_MASTER_KEY_LENGTH> key{};
    const std::size_t size =
        SSL_SESSION_get_master_key(SSL_get_session(ssl_), key.data(), key.size());
    ASSERT_GE(size, 32U);
    search.add("master", key.data(), size);
    OPENSSL_cleanse(key.data(), key.size());
  }

  /// Serves one question, and ends. Calls `while_open` before the end.
  template <class WhileOpen>
  void serve(int socket, SecretSearch& search, WhileOpen while_open) {
    AeadCore core(nullptr, std::get<AesGcm>(GetParam()));
    std::unique_ptr<RecordLayer> records;
    Buffer input;
    Step step = Step::needs_input;
    while (step == Step::needs_input) {
      input = received(socket);
      ASSERT_FALSE(input.empty());
      Buffer output;
      step = server_->handshake(input, output);
      send(socket, output);
    }
    ASSERT_EQ(step, Step::finished);
    {
      const std::optional<ConnectionKeys> keys = server_->keys();
      ASSERT_TRUE(keys);
      search.add("read", keys->read, *keys);
      search.add("write", keys->write, *keys);
      add_master_key(search);
      records = std::make_unique<AeadRecords>(core, *keys);
      server_.reset();
    }
    Buffer plain;
    Buffer output;
    while (plain.empty()) {
      if (input.empty()) input = received(socket);
      ASSERT_FALSE(input.empty());
      ASSERT_NE(records->open(input, plain, output), Opened::failed);
    }
    EXPECT_EQ(plain.text(), "question");
    EXPECT_FALSE(records->seal(to_bytes("answer"), output));
    while_open();
    records.reset();
    EXPECT_EQ(search.found(), "") << "the ciphers of the core live on";
  }
};
INSTANTIATE_TEST_SUITE_P(Of, ErasedSecretsTest,
                         testing::Combine(testing::Values(TlsVersion::tls_1_3, TlsVersion::tls_1_2),
                                          testing::Values(AesGcm::fastest, AesGcm::openssl)),
                         [](const auto& info) {
                           const bool of_openssl = std::get<AesGcm>(info.param) == AesGcm::openssl;
                           return std::string(std::get<TlsVersion>(info.param) ==
                                                      TlsVersion::tls_1_3
                                                  ? "Tls13"
                                                  : "Tls12") +
                                  (of_openssl ? "OfOpenssl" : "");
                         });

TEST_P(ErasedSecretsTest, ClosedConnectionLeavesNone) {
  ASSERT_TRUE(erases_memory);
  make_contexts();
  SSL_CTX_set_info_callback(&contexts_->first(), [](const SSL* ssl, int, int) { ssl_ = ssl; });
  make_engines();
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const pid_t client = fork();
  if (client == 0) {
    close(ends[1]);
    run_client(ends[0]);
    _exit(0);
  }
  close(ends[0]);
  client_.reset();
  SecretSearch search;
  std::string while_open;
  serve(ends[1], search, [&] { while_open = search.found(); });
  close(ends[1]);
  EXPECT_EQ(waitpid(client, nullptr, 0), client);
  // The search finds what is there.
  EXPECT_NE(while_open.find("read key"), std::string::npos);
  EXPECT_NE(while_open.find("write key"), std::string::npos);
}

}  // namespace
}  // namespace weir::tls::detail::erased_secrets_test
