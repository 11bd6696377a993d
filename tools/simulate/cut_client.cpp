#include "tools/simulate/cut_client.hpp"

#include <chrono>
#include <cstddef>
#include <tuple>
#include <utility>

#include "weir/net/tcp.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate {

using namespace std::chrono_literals;

Task<CutAnswer> send_and_leave(sim::Random& random, Endpoint server, std::string_view bytes,
                               Leaving way, Duration patience) {
  auto stream = co_await tcp::connect(server);
  if (!stream) co_return CutAnswer{.violation = "no connection"};
  while (!bytes.empty()) {
    const std::size_t part = random.bernoulli(0.8) ? bytes.size() : 1 + random.below(bytes.size());
    const auto sent = co_await stream->write(bytes.substr(0, part));
    if (!sent) co_return CutAnswer{.violation = "the connection is lost"};
    bytes.remove_prefix(part);
    if (random.bernoulli(0.5)) std::ignore = co_await sleep(random.between({}, 50ms));
  }
  if (way == Leaving::close) co_return CutAnswer{};
  if (way == Leaving::close_side && !stream->finish_writing()) {
    co_return CutAnswer{.violation = "is closed"};
  }
  CutAnswer answer{.received = std::string()};
  for (;;) {
    const auto piece = co_await stream->read({.timeout = patience});
    if (!piece) {
      if (piece.error() == Errc::timed_out) answer.violation = "the server keeps the connection";
      co_return answer;
    }
    *answer.received += piece->text();
  }
}

}  // namespace weir::simulate
