#include "weir/net/dns/detail/dns_client.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "weir/base/detail/shortage.hpp"
#include "weir/base/result.hpp"
#include "weir/net/tcp.hpp"
#include "weir/net/udp.hpp"
#include "weir/task/timeout.hpp"

namespace weir::dns {
namespace {

// Maximum size of an accepted datagram. Some servers send more than the 512 bytes that a query
// without EDNS allows (RFC 1035 §2.3.4).
constexpr std::uint32_t datagram_bytes_max = 4096;

/// Maps a timeout or a network error to an error of the server. Missing local resources (EMFILE,
/// ENOMEM …) stay as they are.
std::error_code to_resolve_error(std::error_code error) noexcept {
  if (error == Errc::timed_out) return ResolveError::timed_out;
  if (error == Errc::bad_input) return ResolveError::malformed;
  if (error == Errc::end_of_stream) return ResolveError::server_failed;
  if (error.category() != std::system_category() || weir::detail::is_shortage(error)) return error;
  if (error == system_error(ETIMEDOUT)) return ResolveError::timed_out;
  return ResolveError::unreachable;
}

std::error_code to_resolve_error(dns::ResponseCode code) noexcept {
  switch (code) {
    case dns::ResponseCode::no_error:
    case dns::ResponseCode::no_such_name:
      return {};
    case dns::ResponseCode::refused:
    case dns::ResponseCode::not_implemented:
      return ResolveError::refused;
    default:
      return ResolveError::server_failed;
  }
}

/// Returns true if another query to the same server is useless.
bool is_conclusive(std::error_code failure) noexcept {
  return failure != ResolveError::timed_out && failure != ResolveError::malformed;
}

Task<Result<>> read_exactly(Stream& stream, MutableBytes target) {
  while (!target.empty()) {
    WEIR_CO_TRY(const auto count, co_await stream.read_into(target));
    target = target.subspan(count);
  }
  co_return {};
}

}  // namespace

void DnsClient::configure(DnsClientOptions options) {
  if (options == options_) return;
  options_ = std::move(options);
  preferred_ = 0;
}

Task<Result<dns::Response>> DnsClient::query_udp(Endpoint server, const dns::Query& query) {
  counters_.queries.add();
  const udp::Options how{.bytes_max = datagram_bytes_max, .close_on_drain = false};
  WEIR_CO_TRY(auto socket, co_await udp::connect(server, how));
  WEIR_CO_TRY(co_await socket.send(query.bytes()));
  const Context context = co_await this_context();
  for (;;) {
    WEIR_CO_TRY(const auto datagram, co_await socket.receive());
    if (dns::is_response_to(datagram.buffer, query)) {
      co_return dns::parse_response(datagram.buffer, query, options_.addresses_max);
    }
    counters_.strays.add();
    // A receive that never waits does not notice the cancellation. This happens if strays arrive
    // faster than they are read.
    if (context.cancelled()) co_return fail(Errc::cancelled);
  }
}

Task<Result<dns::Response>> DnsClient::query_tcp(Endpoint server, const dns::Query& query) {
  counters_.queries.add();
  counters_.connections.add();
  WEIR_CO_TRY(auto stream, co_await tcp::connect(server));
  // RFC 1035 §4.2.2: a length of two bytes precedes each message.
  std::array<std::byte, 2> length{static_cast<std::byte>(query.bytes().size() >> 8),
                                  static_cast<std::byte>(query.bytes().size() & 0xff)};
  const std::array<Bytes, 2> pieces{Bytes(length), query.bytes()};
  WEIR_CO_TRY(co_await stream.write(pieces));
  WEIR_CO_TRY(co_await read_exactly(stream, length));
  std::vector<std::byte> message(std::to_integer<std::size_t>(length[0]) << 8 |
                                 std::to_integer<std::size_t>(length[1]));
  WEIR_CO_TRY(co_await read_exactly(stream, message));
  if (!dns::is_response_to(message, query)) co_return fail(Errc::bad_input);
  auto answer = dns::parse_response(message, query, options_.addresses_max);
  if (answer && answer->truncated) co_return fail(Errc::bad_input);
  co_return answer;
}

Task<Result<dns::Response>> DnsClient::query_server(Endpoint server, const dns::Query& query) {
  const Duration timeout_each = options_.timeout;
  auto answer = co_await timeout(timeout_each, query_udp(server, query));
  if (answer && answer->truncated) {
    answer = co_await timeout(timeout_each, query_tcp(server, query));
  }
  if (!answer) co_return fail(to_resolve_error(answer.error()));
  if (const std::error_code failure = to_resolve_error(answer->code)) co_return fail(failure);
  co_return answer;
}

Task<Result<dns::Response>> DnsClient::query(std::string name, dns::RecordType type) {
  const Context context = co_await this_context();
  std::vector<Endpoint> servers = options_.servers;
  std::rotate(servers.begin(), servers.begin() + static_cast<std::ptrdiff_t>(preferred_),
              servers.end());
  std::error_code failure;
  for (unsigned attempt = 0; attempt < options_.attempts && !servers.empty(); ++attempt) {
    for (std::size_t index = 0; index < servers.size();) {
      const Endpoint server = servers[index];
      const auto id = static_cast<std::uint16_t>(context.loop->platform().random());
      const dns::Query query(name, type, id);
      auto answer = co_await query_server(server, query);
      if (answer) {
        const auto found = std::ranges::find(options_.servers, server);
        if (found != options_.servers.end()) {
          preferred_ = static_cast<std::size_t>(found - options_.servers.begin());
        }
        co_return answer;
      }
      if (context.cancelled()) co_return fail(Errc::cancelled);
      failure = more_specific_error(failure, answer.error());
      if (is_conclusive(answer.error())) {
        servers.erase(servers.begin() + static_cast<std::ptrdiff_t>(index));
      } else {
        ++index;
      }
    }
  }
  co_return fail(failure);
}

namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weir.dns"; }

  std::string message(int value) const override {
    switch (static_cast<ResolveError>(value)) {
      case ResolveError::no_address:
        return "the name has no such address";
      case ResolveError::not_found:
        return "no such name";
      case ResolveError::unreachable:
        return "no name server is reachable";
      case ResolveError::timed_out:
        return "no name server answered in time";
      case ResolveError::malformed:
        return "a name server's answer is malformed";
      case ResolveError::refused:
        return "a name server refused to answer";
      case ResolveError::server_failed:
        return "a name server failed";
    }
    return "unknown error of name resolution: " + std::to_string(value);
  }

  std::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<ResolveError>(value)) {
      case ResolveError::timed_out:
        return std::errc::timed_out;
      case ResolveError::unreachable:
        return std::errc::host_unreachable;
      default:
        return {value, *this};
    }
  }
};

/// Returns a higher number for a more specific error. The values of ResolveError have this order.
/// Errors of other categories (no descriptors, too many look-ups) concern this machine and not the
/// name; they are the most specific.
int specificity(std::error_code error) noexcept {
  if (!error) return 0;
  return error.category() == resolve_error_category() ? error.value()
                                                      : static_cast<int>(resolve_error_count) + 1;
}

}  // namespace

const std::error_category& resolve_error_category() noexcept {
  static const Category category;
  return category;
}

std::error_code more_specific_error(std::error_code first, std::error_code second) noexcept {
  return specificity(second) > specificity(first) ? second : first;
}

}  // namespace weir::dns
