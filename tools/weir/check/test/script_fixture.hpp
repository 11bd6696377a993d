// Runs one script of `weir check` against a server that a test describes, in virtual time.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/check_target.hpp"
#include "tools/weir/check/wire_check.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::check {

/// Serves one connection until its stream is destroyed.
using Server = std::function<Task<>(tcp::Stream stream)>;

/// The reply of a server to one request, or to a body of five bytes.
struct Reply {
  std::string bytes;
  bool close = false;  ///< true: the server ends its sending after the reply
};
/// Returns the reply to `request`, which is number `index` of its connection.
using Answer = std::function<Reply(std::string_view request, unsigned index)>;

inline std::string response(int status, std::string_view headers = {},
                            std::string_view body = "hello\n") {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

inline Task<> read_to_end(tcp::Stream& stream) {
  for (bool is_open = true; is_open;) {
    const auto dropped = co_await stream.read();
    is_open = dropped.has_value();
  }
}

inline Task<> answer_requests(tcp::Stream stream, const Answer& answer) {
  std::string input;
  unsigned index = 0;
  bool in_body = false;
  while (const auto piece = co_await stream.read()) {
    input += piece->text();
    for (;;) {
      const std::size_t end = in_body ? 1 : input.find("\r\n\r\n");
      if (end == input.npos || input.size() < end + 4) break;
      const std::string request = input.substr(0, end + 4);
      input.erase(0, end + 4);
      in_body = request.find("Content-Length: 5\r\n") != request.npos;
      const Reply reply = answer(request, index++);
      if (!reply.bytes.empty()) {
        const auto written = co_await stream.write(reply.bytes);
        if (!written) co_return;
      }
      if (!reply.close) continue;
      static_cast<void>(stream.finish_writing());
      co_await read_to_end(stream);
      co_return;
    }
  }
}

class ScriptTest : public LoopTest {
 protected:
  ScriptTest() {
    target_.endpoint = Endpoint::loopback(8080);
    target_.authority = "a.test:8080";
    target_.get = {200, "hello\n"};
    target_.post = {200, "hello\n"};
  }

  /// Runs the case of that name against the server.
  /// Returns: the kind of the verdict, and the actual behaviour. verdict_ has the rest.
  std::string check(std::string_view name, const Server& server) {
    static const CaseRegistry registry;
    const Case* found = nullptr;
    for (const Case& each : registry.cases()) {
      if (each.name == name) found = &each;
    }
    connections_ = 0;
    verdict_ = run_made([&](const Case* own) { return in_scope(*own, server); }, found);
    constexpr std::string_view kinds[] = {"passed: ", "failed: ", "not applicable: "};
    return std::string(kinds[static_cast<std::size_t>(verdict_.kind)]) + verdict_.actual;
  }
  std::string check_answer(std::string_view name, const Answer& answer) {
    return check(
        name, [&answer](tcp::Stream stream) { return answer_requests(std::move(stream), answer); });
  }
  /// Runs the case against a server that gives these replies to the requests of a connection in
  /// order, and none to later ones.
  std::string check_replies(std::string_view name, const std::vector<Reply>& replies) {
    return check_answer(name, [&replies](std::string_view, unsigned index) {
      return index < replies.size() ? replies[index] : Reply();
    });
  }

  CheckTarget target_;
  Verdict verdict_;
  unsigned connections_ = 0;  // connections that the server accepted in the last check

 private:
  Task<Verdict> in_scope(const Case& test_case, const Server& server) {
    auto verdict = co_await with_scope(OnFailure::isolate, with_server, std::ref(*this),
                                       std::cref(test_case), std::cref(server));
    co_return std::move(*verdict);
  }
  static Task<Verdict> with_server(Scope& scope, ScriptTest& test, const Case& test_case,
                                   const Server& server) {
    auto listener = co_await tcp::listen(test.target_.endpoint);
    scope.spawn(accept_all(scope, std::move(*listener), test, server));
    auto* const script = test_case.script != nullptr ? test_case.script : &check_wire;
    Verdict verdict = co_await script(test.target_, test_case);
    scope.cancel();
    co_return verdict;
  }
  static Task<> accept_all(Scope& scope, tcp::Listener listener, ScriptTest& test,
                           const Server& server) {
    for (;;) {
      auto stream = co_await listener.accept();
      if (!stream) co_return;
      ++test.connections_;
      scope.spawn(server(std::move(*stream)));
    }
  }
};

}  // namespace weir::check
