// Tests of the cases with input that costs work, against servers that are busy with it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/test/script_fixture.hpp"
#include "tools/weir/check/websocket_wire.hpp"
#include "weir/http/ws/detail/handshake.hpp"

namespace weir::check::work_scripts_test {
namespace {

constexpr std::size_t attack_bytes = 900'000;  // at least, of each attacker

class WorkScripts : public ScriptTest {
 protected:
  WorkScripts() { target_.websocket_path = "/ws"; }

  /// Serves GETs with this status and `delay` while attackers send; before, with 200 immediately.
  std::string check_server(std::string_view name, Duration delay, int status = 200,
                           std::string_view extensions = "permessage-deflate") {
    attackers_ = 0;
    asked_ = false;
    return check(name, [=, this](tcp::Stream stream) {
      return serve(std::move(stream), delay, status, std::string(extensions));
    });
  }
  unsigned attackers_ = 0;
  bool asked_ = false;  // true: a WebSocket has asked for the extensions

 private:
  Task<> serve(tcp::Stream stream, Duration delay, int status, std::string extensions) {
    std::string input;
    while (const auto piece = co_await stream.read()) {
      input += piece->text();
      if (!input.contains("\r\n\r\n")) continue;
      if (input.starts_with("GET /ws ")) co_return co_await open(stream, extensions);
      if (input.starts_with("POST ")) co_return co_await take_body(stream);
      input.clear();
      const int late = attackers_ == 0 ? 200 : status;
      if (attackers_ != 0) std::ignore = co_await sleep(delay);
      const auto sent = co_await stream.write(response(late));
      if (!sent) co_return;
    }
  }
  /// Answers the ping of the first WebSocket, which asks for the extensions. The others attack.
  Task<> open(tcp::Stream& stream, const std::string& extensions) {
    const http::WsAccept accept = http::websocket_accept("dGhlIHNhbXBsZSBub25jZQ==");
    std::string head =
        "HTTP/1.1 101 X\r\nSec-WebSocket-Accept: " + std::string(accept.data(), accept.size()) +
        "\r\n";
    if (!extensions.empty()) head += "Sec-WebSocket-Extensions: " + extensions + "\r\n";
    const bool attacks = std::exchange(asked_, true);
    std::ignore = co_await stream.write(head + "\r\n");
    if (attacks) co_await count_attack(stream);
    std::ignore = co_await stream.write("\x8a\x04last");
    co_await read_to_end(stream);
  }
  Task<> take_body(tcp::Stream& stream) {
    co_await count_attack(stream);
    std::ignore = co_await stream.write(response(200));
  }
  /// Reads for a second, as long as an attack lasts.
  Task<> count_attack(tcp::Stream& stream) {
    ++attackers_;
    std::ignore = co_await sleep(std::chrono::seconds(1));
    std::size_t size = 0;
    while (size < attack_bytes) {
      const auto piece = co_await stream.read();
      if (!piece) co_return;
      size += piece->size();
    }
  }
};

TEST_F(WorkScripts, CompressedBodiesWithoutDataDelayOthersLittle) {
  for (const std::string_view name :
       {"limits/gzip-empty-blocks", "limits/gzip-dynamic-blocks", "limits/gzip-empty-members"}) {
    EXPECT_EQ(check_server(name, std::chrono::milliseconds(150)), "passed: 150 ms") << name;
    EXPECT_EQ(attackers_, 8U);
    EXPECT_EQ(check_server(name, std::chrono::milliseconds(250)), "failed: 250 ms") << name;
    EXPECT_EQ(verdict_.expected, "others wait at most 200 ms");
    EXPECT_EQ(check_server(name, std::chrono::milliseconds(1), 503),
              "failed: 1 ms, a GET beside the attack got: 503, kept open");
  }
}

TEST_F(WorkScripts, CompressedMessagesWithoutDataDelayOthersLittle) {
  for (const std::string_view name :
       {"websocket/empty-final-blocks", "websocket/empty-stored-blocks",
        "websocket/empty-dynamic-blocks"}) {
    EXPECT_EQ(check_server(name, {}, 200, ""), "not applicable: the server does not compress");
    EXPECT_EQ(check_server(name, std::chrono::milliseconds(150)), "passed: 150 ms") << name;
    EXPECT_EQ(attackers_, 8U);
    EXPECT_EQ(check_server(name, std::chrono::milliseconds(250)), "failed: 250 ms") << name;
  }
}

TEST_F(WorkScripts, ReportTheProcessorTime) {
  Duration time{};
  target_.processor_time = [&time] { return std::optional(time += std::chrono::milliseconds(70)); };
  EXPECT_EQ(check_server("limits/gzip-empty-blocks", std::chrono::milliseconds(10)),
            "passed: 10 ms, 70 ms of processor time");
}

}  // namespace
}  // namespace weir::check::work_scripts_test
