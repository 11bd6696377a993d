// Cases about hostile handshakes of TLS, made of raw records.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/client_hello.hpp"
#include "tools/weir/check/hello_cases.hpp"
#include "tools/weir/check/scripts.hpp"
#include "tools/weir/check/tls_wire.hpp"

namespace weir::check {
namespace {

using namespace std::chrono_literals;

constexpr Duration tls_drip_interval = 500ms;

/// Returns true if `bytes` begin with a response of HTTP/1 that says 400.
bool is_plain_400(std::string_view bytes) {
  return bytes.starts_with("HTTP/1.") && bytes.substr(0, bytes.find('\r')).contains(" 400 ");
}

Verdict evaluate(const CheckTarget& target, const HelloCase& test_case, const TlsWire& wire,
                 const ServerFlight& flight) {
  const std::string expected = describe_wanted(test_case);
  const std::string actual = wire.describe();
  if (!wire.connected()) return failed(expected, actual);
  const bool rejected = flight.alert() || wire.is_closed();
  switch (test_case.wanted) {
    case Wanted::rejected:
      if (flight.hello() && test_case.may_serve) return lenient_verdict(target, expected, actual);
      if (flight.hello() || !flight.other().empty() || !rejected) return failed(expected, actual);
      if (flight.alert() &&
          std::ranges::find(test_case.alerts, *flight.alert()) != test_case.alerts.end())
        break;
      return lenient_verdict(target, expected, actual);
    case Wanted::served:
      if (!flight.hello() && flight.alert() == alert::protocol_version) {
        return not_applicable(expected, actual + ": the server lacks this version");
      }
      if (!flight.hello()) return failed(expected, actual);
      if (test_case.accepts != nullptr && !test_case.accepts(*flight.hello())) {
        return failed(expected, actual + ", which accepts the offer");
      }
      break;
    case Wanted::answered:
      if (!flight.hello() && !flight.alert()) return failed(expected, actual);
      break;
    case Wanted::told:
      if (is_plain_400(flight.other())) break;
      if (flight.hello() || flight.other().contains("HTTP/1.1 2")) return failed(expected, actual);
      if (!rejected) return failed(expected, actual);
      return lenient_verdict(target, expected, actual);
    case Wanted::disconnected:
      if (flight.hello() || flight.other().contains("HTTP/1.1 2")) return failed(expected, actual);
      if (!rejected && flight.other().empty()) return failed(expected, actual);
      break;
    case Wanted::ended:
      if (flight.hello() || !rejected) return failed(expected, actual);
      break;
  }
  return passed(expected, actual);
}

Task<Verdict> check_hello(const CheckTarget& target, const Case& test_case) {
  const std::string_view name = std::string_view(test_case.name).substr(sizeof("tls"));
  const HelloCase& row = *std::ranges::find(hello_cases(), name, &HelloCase::name);
  const std::string bytes = first_bytes(row, target);
  TlsWire wire(target);
  const bool opened = co_await wire.open();
  if (opened) co_await wire.exchange(bytes, target.timeout);
  if (row.second != nullptr && opened) {
    if (!wire.flight().hello()) {
      Verdict early = wire.flight().alert() == alert::protocol_version
                          ? not_applicable(describe_wanted(row), wire.describe())
                          : failed(describe_wanted(row), wire.describe());
      early.sent = bytes;
      co_return early;
    }
    wire.flight().forget_hello();
    const std::string second = row.second(target);
    co_await wire.exchange(second, target.timeout);
  }
  Verdict verdict = evaluate(target, row, wire, wire.flight());
  verdict.sent = bytes;
  co_return verdict;
}

/// Returns the answer to `hello` on a new connection.
Task<ServerFlight> ask(const CheckTarget& target, std::string hello, std::string& actual) {
  TlsWire wire(target);
  const bool opened = co_await wire.open();
  if (opened) co_await wire.exchange(hello, target.timeout);
  actual = wire.describe();
  co_return wire.flight();
}

bool has_1_3(const ServerFlight& flight) {
  return flight.hello() && flight.hello()->version == 0x0304;
}

Task<Verdict> check_sentinel(const CheckTarget& target, const Case&) {
  const std::string expected = "the server's random says that it has TLS 1.3";
  std::string actual;
  const ServerFlight newest = co_await ask(target, hello_of_1_3(target).in_record(), actual);
  if (!newest.hello()) co_return failed(expected, actual);
  if (!has_1_3(newest)) co_return not_applicable(expected, actual + ": no TLS 1.3");
  const ServerFlight older = co_await ask(target, hello_of_1_2(target).in_record(), actual);
  if (older.alert() == alert::protocol_version) co_return not_applicable(expected, actual);
  if (older.hello() && older.hello()->downgraded) co_return passed(expected, actual);
  co_return failed(expected, actual + ", an ordinary random");
}

Task<Verdict> check_fallback(const CheckTarget& target, const Case&) {
  const std::string expected = "alert 86 (inappropriate_fallback)";
  std::string actual;
  const ServerFlight newest = co_await ask(target, hello_of_1_3(target).in_record(), actual);
  if (!newest.hello()) co_return failed(expected, actual);
  if (!has_1_3(newest)) co_return not_applicable(expected, actual + ": no TLS 1.3");
  ClientHello hello = hello_of_1_2(target);
  hello.suites.push_back(0x5600);  // TLS_FALLBACK_SCSV (RFC 7507)
  const ServerFlight older = co_await ask(target, hello.in_record(), actual);
  if (older.alert() == alert::inappropriate_fallback) co_return passed(expected, actual);
  if (older.alert() == alert::protocol_version) co_return not_applicable(expected, actual);
  co_return failed(expected, actual);
}

/// Sends a heartbeat that claims more data than it has (CVE-2014-0160).
Task<Verdict> check_heartbeat(const CheckTarget& target, const Case&) {
  const std::string expected = "no heartbeat";
  ClientHello hello = hello_of_1_2(target);
  hello.set(ExtensionType::heartbeat, "\x01");
  TlsWire wire(target);
  const bool opened = co_await wire.open();
  const std::string bytes = hello.in_record();
  if (opened) co_await wire.exchange(bytes, target.timeout);
  const bool answered = wire.flight().answered();
  const std::string beat = record(RecordType::heartbeat, "\x01" + number(0x4000, 2));
  bool sent = false;
  if (answered) sent = co_await wire.send(beat, target.timeout);
  const bool ended = co_await wire.wait_for_close(std::min<Duration>(1s, target.timeout));
  static_cast<void>(sent);
  static_cast<void>(ended);
  Verdict verdict = answered && !wire.flight().heartbeat() ? passed(expected, wire.describe())
                                                           : failed(expected, wire.describe());
  verdict.sent = bytes + beat;
  co_return verdict;
}

Task<Verdict> check_half_a_hello(const CheckTarget& target, const Case&) {
  const std::string expected = "the server closes the connection";
  const std::string whole = hello_of_1_3(target).in_record();
  const std::string half = whole.substr(0, whole.size() / 2);
  TlsWire wire(target);
  const bool opened = co_await wire.open();
  bool sent = false;
  if (opened) sent = co_await wire.send(half, target.timeout);
  if (sent) wire.finish_writing();
  const bool ended = co_await wire.wait_for_close(target.timeout);
  const bool right = opened && ended && !wire.flight().hello();
  Verdict verdict = right ? passed(expected, wire.describe()) : failed(expected, wire.describe());
  verdict.sent = half;
  co_return verdict;
}

Task<Verdict> check_silence(const CheckTarget& target, const Case&) {
  const std::string expected = "closed within --idle-timeout";
  TlsWire wire(target);
  const bool opened = co_await wire.open();
  const bool ended = co_await wire.wait_for_close(target.idle_timeout);
  if (!opened) co_return failed(expected, wire.describe());
  if (ended) co_return passed(expected, wire.describe());
  if (target.idle_must_close) co_return failed(expected, wire.describe());
  co_return not_applicable(expected,
                           wire.describe() + ": no rule sets a limit (use --idle-timeout)");
}

Task<Verdict> check_slow_hello(const CheckTarget& target, const Case&) {
  const std::string expected = "cut off within --slow-timeout";
  const std::string hello = hello_of_1_3(target).in_record();
  const Context context = co_await this_context();
  const Instant deadline = after(context.loop->platform().now(), target.slow_timeout);
  TlsWire wire(target);
  bool going = co_await wire.open();
  const bool opened = going;
  // The last byte is never sent.
  for (std::size_t next = 0; !wire.is_closed() && context.loop->platform().now() < deadline;) {
    if (context.cancelled()) break;
    if (going && next + 1 < hello.size()) {
      going = co_await wire.send(std::string_view(hello).substr(next++, 1), tls_drip_interval);
    }
    const bool ended = co_await wire.wait_for_close(tls_drip_interval);
    static_cast<void>(ended);
  }
  const bool right = opened && wire.is_closed() && !wire.flight().hello();
  Verdict verdict = right ? passed(expected, wire.describe()) : failed(expected, wire.describe());
  verdict.sent = hello;
  co_return verdict;
}

}  // namespace

void add_tls_scripts(CaseRegistry& registry) {
  for (const HelloCase& each : hello_cases()) {
    registry.add("tls", each.name, each.why, check_hello);
  }
  registry.add("tls", "downgrade-sentinel", "TLS 1.2 with a server that has TLS 1.3",
               check_sentinel);
  registry.add("tls", "downgrade-fallback", "a client that has lost its TLS 1.3 on the way",
               check_fallback);
  registry.add("tls", "heartbeat", "a heartbeat that claims 16 KiB", check_heartbeat);
  registry.add("tls", "half-a-hello", "half a ClientHello, then the end of sending",
               check_half_a_hello);
  registry.add("tls", "silent", "a connection without a ClientHello", check_silence);
  registry.add("tls", "hello-slow", "a ClientHello, byte by byte", check_slow_hello);
}

}  // namespace weir::check
