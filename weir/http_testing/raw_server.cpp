#include "weir/http_testing/raw_server.hpp"

#include <functional>
#include <tuple>
#include <utility>

#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {
namespace {

Task<> answer(tcp::Stream stream, const std::string& bytes, Duration delay) {
  const auto request = co_await stream.read();
  if (!request) co_return;
  if (const auto slept = co_await sleep(delay); !slept) co_return;
  std::ignore = co_await stream.write(bytes);
}

/// Each connection is a child of the scope, which `bytes` outlive.
Task<> accept_all(Scope& scope, const std::string& bytes, Duration delay) {
  auto listener = co_await tcp::listen(Endpoint::any(80));
  while (listener) {
    auto stream = co_await listener->accept();
    if (!stream) co_return;
    scope.spawn(answer(std::move(*stream), bytes, delay));
  }
}

}  // namespace

sim::MainFunction raw_server(std::string bytes, Duration delay) {
  return [bytes = std::move(bytes), delay](loop::Platform& platform) {
    return Runtime(platform, {.announce = false})
        .run_on_each_core(accept_all, std::cref(bytes), delay);
  };
}

}  // namespace weir::http
