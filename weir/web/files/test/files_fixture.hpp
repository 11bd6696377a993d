// A fixture with a server of files in memory, for tests of files().
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "weir/http/test/http_fixture.hpp"
#include "weir/web/files/files.hpp"

namespace weir::http {

/// Serves the folder /www at the prefix /s.
class FilesTest : public HttpTest {
 protected:
  using Answer = sim::HttpResponse;

  explicit FilesTest(const MemoryPlatformOptions& options = {}) : HttpTest(options) {
    EXPECT_TRUE(platform_.files().make_directory("/www", 0777));
  }
  void TearDown() override {
    for (const std::string& each : large_) {  // closes its cached descriptor
      std::ignore = platform_.files().remove("/www/" + each);
      pass(2s);
      if (loop_ != nullptr && server_) get("/s/" + each);
    }
    HttpTest::TearDown();
  }

  void serve_files(FilesOptions options = {}) {
    routes_.mount("/s", files("/www", std::move(options)));
    ASSERT_TRUE(routes_.check()) << routes_.error_text();
    serve();
  }
  /// Writes a file below /www in place.
  void write(const std::string& name, std::string_view text) {
    loop::FileSystem& tree = platform_.files();
    for (auto at = name.find('/'); at != name.npos; at = name.find('/', at + 1)) {
      std::ignore = tree.make_directory("/www/" + name.substr(0, at), 0777);
    }
    const auto file = tree.open("/www/" + name, {.mode = os::FileMode::truncate});
    ASSERT_TRUE(file) << file.error().message();
    for (std::size_t at = 0; at < text.size();) {
      at += tree.write_at(file->value(), to_bytes(text.substr(at)), at).value();
    }
    if (text.size() > 64 * 1024) large_.push_back(name);
  }

  /// Sends a request and returns its complete response.
  Answer send(std::string_view method, std::string_view target, std::string_view lines = {}) {
    MemoryPeer& peer = connect();
    std::string request(method);
    request.append(" ").append(target).append(" HTTP/1.1\r\nHost: test\r\n").append(lines);
    std::string text = talk(peer, request.append("\r\n"));
    for (std::size_t before = 0; before != text.size();) {
      before = text.size();
      settle();
      text += peer.take();
    }
    const auto answers = sim::parse_http_responses(text, {method});
    EXPECT_EQ(answers.size(), 1u) << text;
    return answers.empty() ? Answer() : answers.front();
  }
  Answer get(std::string_view target, std::string_view lines = {}) {
    return send("GET", target, lines);
  }

  std::vector<std::string> large_;
};

/// Returns `size` bytes without a short period.
inline std::string mixed_text(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 1;
  for (char& each : text) {
    state = state * 1664525 + 1013904223;
    each = static_cast<char>('a' + (state >> 24) % 26);
  }
  return text;
}

}  // namespace weir::http
