// Cases about slow clients that hold what others need: a slow client costs only itself.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/check_connection.hpp"
#include "tools/weir/check/exchange.hpp"
#include "tools/weir/check/h2_requests.hpp"
#include "tools/weir/check/h2_wire.hpp"
#include "tools/weir/check/probe.hpp"
#include "tools/weir/check/scripts.hpp"
#include "tools/weir/check/websocket_wire.hpp"
#include "weir/task/sleep.hpp"

namespace weir::check {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view served = "other clients are served";
constexpr std::size_t looks = 8;  // GETs of others, in about two seconds
constexpr Duration look_interval = 250ms;

// ---- Slow streams of HTTP/2 ---------------------------------------------------------------------

constexpr std::size_t slow_connections = 8;
constexpr std::uint32_t slow_streams = 64;  // of each connection
constexpr std::size_t slow_bytes = 75;      // per stream and look: 300 bytes a second

struct StreamCase {
  std::string_view name;
  std::string_view why;
  std::string (*begin)(const CheckTarget& target);
  std::string (*piece)();  ///< frames of each connection for each look
};

template <class Make>
std::string for_each_stream(const Make& make) {
  std::string all;
  for (std::uint32_t index = 0; index < slow_streams; ++index) all += make(2 * index + 1);
  return all;
}

constexpr std::array stream_cases{
    StreamCase{"share-uploads", "8 connections with 64 uploads each at 300 bytes/s",
               [](const CheckTarget& target) {
                 return for_each_stream(
                     [&](std::uint32_t stream) { return h2_post(target, stream); });
               },
               [] {
                 return for_each_stream([](std::uint32_t stream) {
                   return h2_frame(http::FrameType::data, 0, stream, std::string(slow_bytes, 'd'));
                 });
               }},
    StreamCase{"share-windows", "8 connections with 64 requests each whose answers get no window",
               [](const CheckTarget& target) {
                 return h2_setting(http::SettingId::initial_window_size, 0) +
                        for_each_stream(
                            [&](std::uint32_t stream) { return h2_get(target, stream); });
               },
               [] { return std::string(); }},
};

Task<Verdict> check_streams(const CheckTarget& target, const Case& test_case) {
  const std::string_view name = std::string_view(test_case.name).substr(sizeof("http2"));
  const StreamCase& row = *std::ranges::find(stream_cases, name, &StreamCase::name);
  const std::string expected(served);
  const std::string bytes = h2_begin() + row.begin(target);
  const H2Wire::Done ended = [](const H2Answers& answers) { return answers.goaway().has_value(); };
  std::deque<H2Wire> all;
  for (std::size_t count = 0; count < slow_connections; ++count) {
    H2Wire& wire = all.emplace_back(target);
    const bool opened = co_await wire.open();
    if (opened) co_await wire.exchange(bytes, ended, look_interval);
    if (auto verdict = wire.verdict_without_h2(expected)) co_return *std::move(verdict);
  }
  for (std::size_t look = 0; look < looks; ++look) {
    for (H2Wire& wire : all) {
      const std::string piece = row.piece();
      co_await wire.exchange(piece, ended, look_interval / slow_connections);
    }
    const std::string trouble = co_await probe(target);
    if (!trouble.empty()) {
      co_return with_sent(failed(expected, "a GET beside them got: " + trouble), bytes);
    }
  }
  co_return with_sent(passed(expected, "served"), bytes);
}

// ---- Compressed uploads -------------------------------------------------------------------------

constexpr std::size_t silent_uploads = 160;
constexpr std::string_view gzip_begin("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
constexpr std::string_view gzip_rest("\x03\0\0\0\0\0\0\0\0\0", 10);

std::string gzip_head(const CheckTarget& target, std::size_t size) {
  return post_head(target,
                   "Content-Encoding: gzip\r\nContent-Length: " + std::to_string(size) + "\r\n");
}

/// Returns the status of a complete compressed upload; 0: it gets no answer.
Task<int> upload(const CheckTarget& target) {
  std::string sent = gzip_head(target, gzip_begin.size() + gzip_rest.size());
  sent.append(gzip_begin).append(gzip_rest);
  const Exchange made = co_await exchange(target, "POST", std::move(sent), 1);
  const Response* const first = made.outcome.first();
  co_return first == nullptr ? 0 : first->status;
}

Task<Verdict> check_silent_uploads(const CheckTarget& target, const Case&) {
  const std::string expected(served);
  const std::string begin = gzip_head(target, 1000).append(gzip_begin);
  const int alone = co_await upload(target);
  std::deque<CheckConnection> all;
  for (std::size_t count = 0; count < silent_uploads; ++count) {
    CheckConnection& connection = all.emplace_back(target);
    const bool opened = co_await connection.open();
    if (!opened) co_return failed(expected, describe(connection.outcome()));
    const bool sent = co_await connection.send(begin, target.timeout);
    static_cast<void>(sent);
  }
  for (std::size_t look = 0; look < looks / 2; ++look) {
    const std::string trouble = co_await probe(target);
    if (!trouble.empty()) {
      co_return with_sent(failed(expected, "a GET beside them got: " + trouble), begin);
    }
    const int status = co_await upload(target);
    if (status != alone) {
      const std::string actual = status == 0 ? "no answer" : std::to_string(status);
      co_return with_sent(failed(expected, "an upload beside them got: " + actual), begin);
    }
    const auto slept = co_await sleep(look_interval);
    static_cast<void>(slept);
  }
  co_return with_sent(passed(expected, "served"), begin);
}

// ---- Open WebSockets ----------------------------------------------------------------------------

constexpr std::size_t open_websockets = 200;

Task<Verdict> check_websockets(const CheckTarget& target, const Case&) {
  const std::string expected(served);
  const std::string bytes = websocket_request(target) + websocket_frame(0x89, websocket_last_ping);
  std::deque<WebSocketWire> all;
  for (std::size_t count = 0; count < open_websockets; ++count) {
    WebSocketWire& wire = all.emplace_back(target);
    const bool opened = co_await wire.open();
    if (opened) co_await wire.exchange(bytes, target.timeout);
    // The server may refuse some of them, but not the first one.
    if (count != 0) continue;
    if (auto verdict = wire.verdict_without_websocket(expected)) co_return *std::move(verdict);
  }
  const auto accepted = std::ranges::count_if(all, &WebSocketWire::accepted);
  const std::string number = std::to_string(accepted) + " are open";
  for (std::size_t look = 0; look < looks / 2; ++look) {
    const std::string trouble = co_await probe(target);
    if (!trouble.empty()) {
      co_return with_sent(failed(expected, number + ", a GET beside them got: " + trouble), bytes);
    }
    const auto slept = co_await sleep(look_interval);
    static_cast<void>(slept);
  }
  co_return with_sent(passed(expected, number), bytes);
}

}  // namespace

void add_share_scripts(CaseRegistry& registry) {
  registry
      .add("slow", "crowd-gzip", "160 clients that are silent in a compressed upload",
           check_silent_uploads)
      .pace = CasePace::alone;
  for (const StreamCase& each : stream_cases) {
    registry.add("http2", each.name, each.why, check_streams).pace = CasePace::alone;
  }
  registry.add("websocket", "crowd", "200 WebSockets that are open and silent", check_websockets)
      .pace = CasePace::alone;
}

}  // namespace weir::check
