// Cases about hostile records after a handshake of TLS.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/client_hello.hpp"
#include "tools/weir/check/record_wire.hpp"
#include "tools/weir/check/scripts.hpp"

namespace weir::check {
namespace {

using End = RecordWire::End;
using Until = RecordWire::Until;

constexpr std::size_t flood_records = 10'000;

/// The answer that a case requires.
enum class Answer : std::uint8_t {
  alert,     ///< no 2xx, and an alert
  cut_off,   ///< no 2xx, and any end
  response,  ///< a response
  closed,    ///< a response, and close_notify before the end
};

struct RecordCase {
  std::string_view name;
  std::string_view why;
  /// Returns the bytes to send after the handshake.
  std::string (*bytes)(RecordWire& wire, const CheckTarget& target);
  Answer answer = Answer::alert;
  TlsVersion newest = TlsVersion::tls_1_3;
  bool needs_1_3 = false;
  bool ends = false;       ///< true: this side ends sending after the bytes, without close_notify
  bool may_serve = false;  ///< true: --lenient accepts a response
};

/// Returns a request in a record whose last byte is wrong.
std::string broken_request(RecordWire& wire, const CheckTarget& target) {
  std::string bytes = wire.sealed(get_request(target));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  return bytes;
}

std::string repeated_request(RecordWire& wire, const CheckTarget& target) {
  // The first record has no whole request, so only the second one could complete it.
  const std::string request = get_request(target);
  const std::string piece = wire.sealed("X");
  return piece + piece + wire.sealed(request);
}

std::string swapped_request(RecordWire& wire, const CheckTarget& target) {
  const std::string request = get_request(target);
  const std::string first = wire.sealed("\r\n\r\n");
  return wire.sealed(request) + first;
}

std::string half_a_request(RecordWire& wire, const CheckTarget& target) {
  const std::string request = get_request(target);
  return wire.sealed(request.substr(0, request.size() - 2));
}

std::string half_a_body(RecordWire& wire, const CheckTarget& target) {
  return wire.sealed(post_head(target, "Content-Length: 10\r\n") + "hello");
}

std::string half_a_record(RecordWire& wire, const CheckTarget& target) {
  const std::string bytes = wire.sealed(get_request(target));
  return bytes.substr(0, bytes.size() - 1);
}

std::string small_records(RecordWire& wire, const CheckTarget& target) {
  std::string bytes;
  for (const char each : get_request(target)) bytes += wire.sealed({&each, 1});
  return bytes;
}

std::string full_record(RecordWire& wire, const CheckTarget& target) {
  const std::string body(4096, 'b');
  return wire.sealed(post_head(target, "Content-Length: 4096\r\n") + body);
}

std::string key_updates(RecordWire& wire, const CheckTarget& target, std::size_t count) {
  std::string bytes;
  for (; count > 0; --count) bytes += wire.sealed_key_update();
  return bytes + wire.sealed(get_request(target));
}

template <std::size_t count>
std::string plain_alerts(RecordWire&, const CheckTarget&) {
  std::string bytes;
  for (std::size_t left = count; left > 0; --left) bytes += record(RecordType::alert, "\x01\x5a");
  return bytes;
}

std::string last_request(RecordWire& wire, const CheckTarget& target) {
  return wire.sealed(get_request(target, "Connection: close\r\n"));
}

std::string request_and_close(RecordWire& wire, const CheckTarget& target) {
  const std::string request = wire.sealed(get_request(target));  // before the end is sealed
  return request + wire.sealed_close();
}

const RecordCase record_cases[] = {
    {.name = "mac", .why = "a request whose tag is wrong", .bytes = broken_request},
    {.name = "mac-in-1.2",
     .why = "a request whose tag is wrong, in TLS 1.2",
     .bytes = broken_request,
     .newest = TlsVersion::tls_1_2},
    {.name = "record-repeated", .why = "a record that is sent twice", .bytes = repeated_request},
    {.name = "record-swapped", .why = "two records in the wrong order", .bytes = swapped_request},
    {.name = "record-too-long",
     .why = "a record of 2^14+257 bytes",
     .bytes =
         [](RecordWire&, const CheckTarget&) {
           return record(RecordType::application_data, std::string((16U << 10U) + 257, 'r'));
         },
     .answer = Answer::cut_off},
    {.name = "request-plain",
     .why = "a request without encryption",
     .bytes =
         [](RecordWire&, const CheckTarget& target) {
           return record(RecordType::application_data, get_request(target));
         }},
    {.name = "alerts-plain",
     .why = "10,000 warnings without encryption",
     .bytes = plain_alerts<flood_records>,
     .answer = Answer::cut_off},
    {.name = "ccs-late",
     .why = "change_cipher_spec after the handshake",
     .bytes = [](RecordWire&,
                 const CheckTarget&) { return record(RecordType::change_cipher_spec, "\x01"); },
     .answer = Answer::cut_off},
    {.name = "hello-late",
     .why = "a ClientHello without encryption after the handshake",
     .bytes = [](RecordWire&,
                 const CheckTarget& target) { return hello_of_1_3(target).in_record(); },
     .answer = Answer::cut_off},
    {.name = "cut-head",
     .why = "half a head, then the end without close_notify",
     .bytes = half_a_request,
     .answer = Answer::cut_off,
     .ends = true},
    {.name = "cut-body",
     .why = "half a body, then the end without close_notify",
     .bytes = half_a_body,
     .answer = Answer::cut_off,
     .ends = true},
    {.name = "cut-record",
     .why = "a request without its last byte, then the end",
     .bytes = half_a_record,
     .answer = Answer::cut_off,
     .ends = true},
    {.name = "records-small",
     .why = "a request in records of one byte",
     .bytes = small_records,
     .answer = Answer::response},
    {.name = "record-large",
     .why = "a head and a body in one record",
     .bytes = full_record,
     .answer = Answer::response},
    {.name = "key-update",
     .why = "a request behind a KeyUpdate",
     .bytes = [](RecordWire& wire,
                 const CheckTarget& target) { return key_updates(wire, target, 1); },
     .answer = Answer::response,
     .needs_1_3 = true},
    {.name = "flood-key-updates",
     .why = "10,000 KeyUpdates that ask for others",
     .bytes = [](RecordWire& wire,
                 const CheckTarget& target) { return key_updates(wire, target, flood_records); },
     .answer = Answer::cut_off,
     .needs_1_3 = true,
     .may_serve = true},
    {.name = "close",
     .why = "a request with Connection: close",
     .bytes = last_request,
     .answer = Answer::closed},
    {.name = "close-notify",
     .why = "a request, then close_notify",
     .bytes = request_and_close,
     .answer = Answer::closed},
};

std::string describe(Answer answer) {
  switch (answer) {
    case Answer::alert:
      return "no 2xx, and an alert";
    case Answer::cut_off:
      return "no 2xx, and the end of the connection";
    case Answer::response:
      return "an answer";
    case Answer::closed:
      return "an answer, and close_notify before the end";
  }
  return {};
}

Verdict evaluate(const CheckTarget& target, const RecordCase& row, const RecordWire& wire) {
  const std::string expected = describe(row.answer);
  const std::string actual = wire.describe();
  const std::size_t responses = wire.responses().final_count();
  const auto lenient = [&] {
    return target.lenient ? passed(expected, actual)
                          : failed(expected, actual + " (--lenient accepts it)");
  };
  switch (row.answer) {
    case Answer::alert:
    case Answer::cut_off:
      if (wire.accepted() && row.may_serve) return lenient();
      if (wire.accepted() || wire.end() == End::none) return failed(expected, actual);
      if (row.answer == Answer::alert && wire.end() != End::alert) return lenient();
      break;
    case Answer::response:
      if (responses == 0) return failed(expected, actual);
      break;
    case Answer::closed:
      if (responses == 0 || wire.end() == End::none) return failed(expected, actual);
      if (wire.end() != End::close_notify) return lenient();
      break;
  }
  return passed(expected, actual);
}

Task<Verdict> check_records(const CheckTarget& target, const Case& test_case) {
  const std::string_view name = std::string_view(test_case.name).substr(sizeof("tls"));
  const RecordCase& row = *std::ranges::find(record_cases, name, &RecordCase::name);
  RecordWire wire(target);
  const bool opened = co_await wire.open(row.newest);
  if (!opened) co_return failed(describe(row.answer), wire.describe());
  const bool lacks = row.needs_1_3 && wire.version() != TlsVersion::tls_1_3;
  if (lacks) co_return not_applicable(describe(row.answer), "the server lacks TLS 1.3");
  const std::string bytes = row.bytes(wire, target);
  if (row.ends) {
    const bool sent = co_await wire.send(bytes, target.timeout);
    if (sent) wire.finish_writing();
    co_await wire.exchange({}, Until::end);
  } else {
    const Until until = row.answer == Answer::response ? Until::response : Until::end;
    co_await wire.exchange(bytes, until);
  }
  Verdict verdict = evaluate(target, row, wire);
  verdict.sent = bytes;
  co_return verdict;
}

Task<Verdict> check_renegotiation(const CheckTarget& target, const Case&) {
  const std::string expected = "no second handshake";
  RecordWire wire(target);
  const bool opened = co_await wire.open(TlsVersion::tls_1_2);
  if (!opened) co_return failed(expected, wire.describe());
  const bool performed = co_await wire.renegotiate();
  if (performed) co_return failed(expected, "the server has performed it");
  co_return passed(expected, "the server has not performed it");
}

}  // namespace

void add_tls_record_scripts(CaseRegistry& registry) {
  for (const RecordCase& each : record_cases) {
    registry.add("tls", each.name, each.why, check_records);
  }
  registry.add("tls", "renegotiation", "a second handshake in TLS 1.2", check_renegotiation);
}

}  // namespace weir::check
