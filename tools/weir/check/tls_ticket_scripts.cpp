// Cases about session tickets of TLS that a client uses for another name.
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/record_wire.hpp"
#include "tools/weir/check/scripts.hpp"
#include "weir/tls/detail/session_cache.hpp"

namespace weir::check {
namespace {

using Cache = std::shared_ptr<tls::detail::SessionCache>;

constexpr std::string_view other_name = "other.weir-check.example";

/// Performs a handshake for `name` and one exchange, with which tickets of TLS 1.3 come.
Task<> shake(RecordWire& wire, const CheckTarget& target, std::string name, Cache cache,
             TlsVersion newest) {
  wire.use_sessions(std::move(name), std::move(cache));
  const bool opened = co_await wire.open(newest);
  if (!opened) co_return;
  const std::string request = wire.sealed(get_request(target));
  co_await wire.exchange(request, RecordWire::Until::response);
}

/// A session belongs to the name for which the server has shown its certificate. A server must not
/// resume it for another one (RFC 6066 3). In TLS 1.3 it may, if it takes the name from the new
/// ClientHello only (RFC 8446 4.2.11).
Task<Verdict> check_other_name(const CheckTarget& target, TlsVersion newest) {
  const std::string expected = "a full handshake for another name, or an alert";
  const std::string& first = target.host;  // an address is sent as no name (RFC 6066 3)
  const auto cache = std::make_shared<tls::detail::SessionCache>();
  RecordWire full(target);
  co_await shake(full, target, first, cache, newest);
  if (!full.connected()) co_return failed(expected, full.describe());
  if (full.version() != newest) co_return not_applicable(expected, "the server lacks this version");
  RecordWire again(target);
  co_await shake(again, target, first, cache, newest);
  if (!again.connected()) co_return failed(expected, again.describe() + " for the same name");
  if (!again.resumed()) {
    co_return not_applicable(expected, "the server does not resume for the same name");
  }
  // A resumption need not give another ticket.
  std::ignore = cache->take(first);
  RecordWire fresh(target);
  co_await shake(fresh, target, first, cache, newest);
  auto session = cache->take(first);
  if (session == nullptr) co_return failed(expected, fresh.describe() + ", no second ticket");
  const std::string name(other_name);
  cache->put(name, std::move(session));
  RecordWire other(target);
  co_await shake(other, target, name, cache, newest);
  if (!other.connected()) co_return passed(expected, other.describe());
  if (!other.resumed()) co_return passed(expected, "a full handshake");
  if (newest == TlsVersion::tls_1_2) co_return failed(expected, "resumed");
  co_return lenient_verdict(target, expected, "resumed");
}

Task<Verdict> check_1_3(const CheckTarget& target, const Case&) {
  return check_other_name(target, TlsVersion::tls_1_3);
}

Task<Verdict> check_1_2(const CheckTarget& target, const Case&) {
  return check_other_name(target, TlsVersion::tls_1_2);
}

}  // namespace

void add_tls_ticket_scripts(CaseRegistry& registry) {
  registry.add("tls", "ticket-name", "a ticket that is used for another name", check_1_3);
  registry.add("tls", "ticket-name-in-1.2", "a ticket that is used for another name, in TLS 1.2",
               check_1_2);
}

}  // namespace weir::check
