#include "weir/net/name_servers.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "weir/net/tcp.hpp"
#include "weir/net/udp.hpp"
#include "weir/task/timeout.hpp"

namespace weir::names {
namespace {

/// What a server may send although it was not told that it may (512 bytes, RFC 1035 §2.3.4).
constexpr std::uint32_t datagram_bytes_max = 4096;

/// A time-out, and what the way to a server gives, as a failure of the server's. What this machine
/// lacks is nobody else's failure.
std::error_code failure_of(std::error_code error) noexcept {
  if (error == Errc::timed_out) return Failure::timed_out;
  if (error == Errc::bad_input) return Failure::malformed;
  if (error == Errc::end_of_stream) return Failure::server_failed;
  if (error.category() != std::system_category()) return error;
  switch (error.value()) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return error;
    case ETIMEDOUT:
      return Failure::timed_out;
    default:
      return Failure::unreachable;
  }
}

std::error_code failure_of(dns::ResponseCode code) noexcept {
  switch (code) {
    case dns::ResponseCode::none:
    case dns::ResponseCode::no_such_name:
      return {};
    case dns::ResponseCode::refused:
    case dns::ResponseCode::not_implemented:
      return Failure::refused;
    default:
      return Failure::server_failed;
  }
}

/// Whether it is of no use to ask the same server again.
bool conclusive(std::error_code failure) noexcept {
  return failure != Failure::timed_out && failure != Failure::malformed;
}

Task<Result<>> read_exactly(Stream& stream, MutableBytes target) {
  while (!target.empty()) {
    const auto count = co_await stream.read_into(target);
    if (!count) co_return fail(count.error());
    target = target.subspan(*count);
  }
  co_return {};
}

}  // namespace

void NameServers::configure(NameServersOptions options) {
  if (options == options_) return;
  options_ = std::move(options);
  preferred_ = 0;
}

Task<Result<dns::Answer>> NameServers::ask_by_datagram(Endpoint server, const dns::Query& query) {
  counters_.questions.add();
  const udp::Options how{.bytes_max = datagram_bytes_max, .ends_with_drain = false};
  auto socket = co_await udp::connect(server, how);
  if (!socket) co_return fail(socket.error());
  const auto sent = co_await socket->send(query.bytes());
  if (!sent) co_return fail(sent.error());
  const Context context = co_await this_context();
  for (;;) {
    const auto datagram = co_await socket->receive();
    if (!datagram) co_return fail(datagram.error());
    if (dns::answers(datagram->buffer, query)) {
      co_return dns::read_answer(datagram->buffer, query, options_.addresses_max);
    }
    counters_.strays.add();
    // Where strays come faster than they are read, no receive would ever wait, nor notice.
    if (context.cancelled()) co_return fail(Errc::cancelled);
  }
}

Task<Result<dns::Answer>> NameServers::ask_by_connection(Endpoint server, const dns::Query& query) {
  counters_.questions.add();
  counters_.connections.add();
  auto stream = co_await tcp::connect(server);
  if (!stream) co_return fail(stream.error());
  // RFC 1035 §4.2.2: each message behind its length, in two bytes.
  std::array<std::byte, 2> length{static_cast<std::byte>(query.bytes().size() >> 8),
                                  static_cast<std::byte>(query.bytes().size() & 0xff)};
  const std::array<Bytes, 2> pieces{Bytes(length), query.bytes()};
  const auto written = co_await stream->write(pieces);
  if (!written) co_return fail(written.error());
  const auto announced = co_await read_exactly(*stream, length);
  if (!announced) co_return fail(announced.error());
  std::vector<std::byte> message(std::to_integer<std::size_t>(length[0]) << 8 |
                                 std::to_integer<std::size_t>(length[1]));
  const auto read = co_await read_exactly(*stream, message);
  if (!read) co_return fail(read.error());
  if (!dns::answers(message, query)) co_return fail(Errc::bad_input);
  auto answer = dns::read_answer(message, query, options_.addresses_max);
  if (answer && answer->truncated) co_return fail(Errc::bad_input);
  co_return answer;
}

Task<Result<dns::Answer>> NameServers::ask_one(Endpoint server, const dns::Query& query) {
  const Duration patience = options_.timeout;
  auto answer = co_await timeout(patience, ask_by_datagram(server, query));
  if (answer && answer->truncated) {
    answer = co_await timeout(patience, ask_by_connection(server, query));
  }
  if (!answer) co_return fail(failure_of(answer.error()));
  if (const std::error_code failure = failure_of(answer->code)) co_return fail(failure);
  co_return answer;
}

Task<Result<dns::Answer>> NameServers::ask(std::string name, dns::RecordType type) {
  const Context context = co_await this_context();
  std::vector<Endpoint> servers = options_.servers;
  std::rotate(servers.begin(), servers.begin() + static_cast<std::ptrdiff_t>(preferred_),
              servers.end());
  std::error_code failure;
  for (unsigned attempt = 0; attempt < options_.attempts && !servers.empty(); ++attempt) {
    for (std::size_t index = 0; index < servers.size();) {
      const Endpoint server = servers[index];
      const auto id = static_cast<std::uint16_t>(context.loop->host().random());
      const dns::Query query(name, type, id);
      auto answer = co_await ask_one(server, query);
      if (answer) {
        const auto found = std::ranges::find(options_.servers, server);
        if (found != options_.servers.end()) {
          preferred_ = static_cast<std::size_t>(found - options_.servers.begin());
        }
        co_return answer;
      }
      if (context.cancelled()) co_return fail(Errc::cancelled);
      failure = more_telling(failure, answer.error());
      if (conclusive(answer.error())) {
        servers.erase(servers.begin() + static_cast<std::ptrdiff_t>(index));
      } else {
        ++index;
      }
    }
  }
  co_return fail(failure);
}

}  // namespace weir::names
