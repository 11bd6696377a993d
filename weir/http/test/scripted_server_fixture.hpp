// A server for tests of the client: each of its connections follows a script.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

inline constexpr std::string_view hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// The reaction to one request of a connection.
struct Step {
  std::string answer{hello};
  std::string late = {};                  ///< bytes that follow the answer after `pause`
  Duration pause = Duration::zero();      ///< time after the answer
  bool close = false;                     ///< true to close after the pause
  std::size_t reads = std::string::npos;  ///< bytes of the request to read; npos: the whole head
};

/// Serves any number of connections. A connection without a script, or after its script, answers
/// each request with `hello`.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::vector<Step>> scripts = {})
      : scripts_(std::move(scripts)) {}

  std::size_t accepted = 0;           ///< number of connections
  std::vector<std::string> requests;  ///< what each request has sent of its head, in order
  /// The connection of each request, by the number of its accept.
  std::vector<std::size_t> connections;

  /// Listens, and serves until `scope` is cancelled.
  Task<Result<>> listen(Scope& scope, std::uint16_t port = 81) {
    auto listener = co_await tcp::listen(Endpoint::loopback(port));
    EXPECT_TRUE(listener);
    if (!listener) co_return fail(listener.error());
    scope.spawn(accept(scope, std::move(*listener)));
    co_return {};
  }

  Task<> accept(Scope& scope, tcp::Listener listener) {
    while (true) {
      auto stream = co_await listener.accept();
      if (!stream) co_return;
      scope.spawn(serve(std::move(*stream), accepted++));
    }
  }

 private:
  Task<> serve(tcp::Stream stream, std::size_t number) {
    static_cast<void>(co_await follow(stream, number));
  }

  Task<Result<>> follow(tcp::Stream& stream, std::size_t number) {
    std::string input;
    for (std::size_t index = 0;; ++index) {
      const bool scripted = number < scripts_.size() && index < scripts_[number].size();
      const Step step = scripted ? scripts_[number][index] : Step();
      const Result<> read = co_await read_head(stream, input, step.reads);
      if (!input.empty()) {
        requests.push_back(std::move(input));
        connections.push_back(number);
        input.clear();
      }
      if (!read) co_return read;
      if (!step.answer.empty()) {
        const Result<> written = co_await stream.write(step.answer);
        if (!written) co_return written;
      }
      if (step.pause > Duration::zero()) {
        const Result<> slept = co_await sleep(step.pause);
        if (!slept) co_return slept;
      }
      if (!step.late.empty()) {
        const Result<> written = co_await stream.write(step.late);
        if (!written) co_return written;
      }
      if (step.close) co_return {};
    }
  }

  static Task<Result<>> read_head(tcp::Stream& stream, std::string& input, std::size_t most) {
    while (input.size() < most && input.find("\r\n\r\n") == std::string::npos) {
      auto piece = co_await stream.read();
      if (!piece) co_return fail(piece.error());
      input += piece->text();
    }
    co_return {};
  }

  std::vector<std::vector<Step>> scripts_;
};

}  // namespace weir::http
