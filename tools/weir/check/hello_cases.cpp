#include "tools/weir/check/hello_cases.hpp"

#include <iterator>

namespace weir::check {
namespace {

using Hello = ClientHello;
using Target = CheckTarget;

constexpr std::size_t flood_records = 10'000;
constexpr std::size_t endless_bytes = std::size_t{4} << 20U;
constexpr std::size_t fragment_bytes_max = std::size_t{16} << 10U;

const std::vector<std::uint8_t> version_alerts{alert::protocol_version, alert::handshake_failure};
const std::vector<std::uint8_t> suite_alerts{alert::handshake_failure,
                                             alert::insufficient_security};
const std::vector<std::uint8_t> parse_alerts{alert::decode_error, alert::illegal_parameter};
const std::vector<std::uint8_t> order_alerts{alert::unexpected_message, alert::handshake_failure};

std::string repeated(std::string_view piece, std::size_t times) {
  std::string all;
  all.reserve(piece.size() * times);
  for (; times > 0; --times) all += piece;
  return all;
}

// ---- Downgrades ---------------------------------------------------------------------------------

/// Offers one version, with suites that every version has.
template <std::uint16_t version>
void offer_version(Hello& hello) {
  hello.version = version;
  hello.suites = {0xc009, 0xc013, 0xc00a, 0xc014, 0x002f, 0x0035, 0x000a};
}

template <std::uint16_t... suites>
void offer_suites(Hello& hello) {
  hello.suites = {suites...};
}

/// Offers TLS 1.3 without the older versions.
void offer_1_3_only(Hello& hello) {
  hello.set(ExtensionType::supported_versions, list({0x0304}, 1));
}

std::string ssl_2_hello(const Target&) {
  const std::string body = number(1, 1) + number(2, 2) + number(3, 2) + number(0, 2) +
                           number(16, 2) + number(0x010080, 3) + std::string(16, '\x5a');
  return number(0x8000U | body.size(), 2) + body;
}

const HelloCase downgrade_cases[] = {
    {.name = "ssl-2",
     .why = "a ClientHello of SSL 2",
     .bytes = ssl_2_hello,
     .wanted = Wanted::disconnected},
    {.name = "ssl-3",
     .why = "a client with SSL 3 only",
     .hello = hello_of_1_2,
     .change = offer_version<0x0300>,
     .alerts = version_alerts},
    {.name = "1.0",
     .why = "a client with TLS 1.0 only",
     .hello = hello_of_1_2,
     .change = offer_version<0x0301>,
     .alerts = version_alerts},
    {.name = "1.1",
     .why = "a client with TLS 1.1 only",
     .hello = hello_of_1_2,
     .change = offer_version<0x0302>,
     .alerts = version_alerts},
    {.name = "unknown-version",
     .why = "supported_versions without a known version",
     .change =
         [](Hello& hello) {
           hello.set(ExtensionType::supported_versions, list({0x7a7a, 0x03ff}, 1));
         },
     .alerts = version_alerts},
    {.name = "suites-null",
     .why = "suites without encryption only",
     .hello = hello_of_1_2,
     .change = offer_suites<0x0001, 0x0002, 0x003b, 0xc006, 0xc010>,
     .alerts = suite_alerts},
    {.name = "suites-anonymous",
     .why = "suites without a certificate only",
     .hello = hello_of_1_2,
     .change = offer_suites<0x0018, 0x0034, 0x003a, 0x00a6, 0xc018, 0xc019>,
     .alerts = suite_alerts},
    {.name = "suites-export",
     .why = "suites with 40 bits only",
     .hello = hello_of_1_2,
     .change = offer_suites<0x0003, 0x0006, 0x0008, 0x0014>,
     .alerts = suite_alerts},
    {.name = "suites-rc4",
     .why = "suites with RC4 only",
     .hello = hello_of_1_2,
     .change = offer_suites<0x0004, 0x0005, 0xc007, 0xc011>,
     .alerts = suite_alerts},
    {.name = "suites-3des",
     .why = "suites with 3DES only",
     .hello = hello_of_1_2,
     .change = offer_suites<0x000a, 0x0016, 0xc008, 0xc012>,
     .alerts = suite_alerts},
    {.name = "suites-cbc",
     .why = "suites with CBC only",
     .hello = hello_of_1_2,
     .change = offer_suites<0xc009, 0xc013, 0xc023, 0xc027, 0xc024, 0xc028>,
     .alerts = suite_alerts,
     .may_serve = true},
    {.name = "suites-static-rsa",
     .why = "suites without forward secrecy only",
     .hello = hello_of_1_2,
     .change = offer_suites<0x009c, 0x009d, 0x002f, 0x0035>,
     .alerts = suite_alerts,
     .may_serve = true},
    {.name = "suites-unknown",
     .why = "unknown suites only",
     .hello = hello_of_1_2,
     .change = offer_suites<0x0a0a, 0xfefe>,
     .alerts = suite_alerts},
    {.name = "compression",
     .why = "an offer to compress in TLS 1.2",
     .hello = hello_of_1_2,
     .change = [](Hello& hello) { hello.compressions.insert(0, "\x01"); },
     .wanted = Wanted::served,
     .accepts = [](const ServerHello& hello) { return hello.compression == 0; }},
    {.name = "compression-in-1.3",
     .why = "an offer to compress in TLS 1.3",
     .change =
         [](Hello& hello) {
           offer_1_3_only(hello);
           hello.compressions.insert(0, "\x01");
         },
     .alerts = {alert::illegal_parameter, alert::decode_error, alert::protocol_version}},
    {.name = "compression-required",
     .why = "no offer without compression",
     .hello = hello_of_1_2,
     .change = [](Hello& hello) { hello.compressions = "\x01"; },
     .alerts = {alert::illegal_parameter, alert::decode_error, alert::handshake_failure}},
};

// ---- Extensions ---------------------------------------------------------------------------------

void ask_for(Hello& hello, std::string_view name, unsigned times = 1) {
  const std::string one = number(0, 1) + prefixed(name, 2);
  hello.set(ExtensionType::server_name, prefixed(repeated(one, times), 2));
}

/// Adds a ticket that the server has not made. It must be the last extension.
void invent_ticket(Hello& hello) {
  const std::string ticket = prefixed(std::string(64, '\x5c'), 2) + number(1234, 4);
  const std::string binder = prefixed(std::string(32, '\x36'), 1);
  hello.set(ExtensionType::pre_shared_key, prefixed(ticket, 2) + prefixed(binder, 2));
}

bool is_full_handshake(const ServerHello& hello) {
  return !hello.has(ExtensionType::pre_shared_key);
}

void set_share(Hello& hello, std::uint16_t group, std::string_view key) {
  hello.set(ExtensionType::key_share, prefixed(number(group, 2) + prefixed(key, 2), 2));
}

constexpr std::uint16_t x25519 = 0x001d;
constexpr std::uint16_t ffdhe8192 = 0x0104;

const HelloCase extension_cases[] = {
    {.name = "alpn-unknown",
     .why = "ALPN with an unknown protocol only",
     .change =
         [](Hello& hello) {
           hello.set(ExtensionType::alpn, prefixed(prefixed("weir/none", 1), 2));
         },
     .alerts = {alert::no_application_protocol},
     .may_serve = true},
    {.name = "alpn-empty-list",
     .why = "ALPN without a protocol",
     .change = [](Hello& hello) { hello.set(ExtensionType::alpn, prefixed("", 2)); },
     .alerts = parse_alerts},
    {.name = "alpn-empty-name",
     .why = "ALPN with an empty protocol",
     .change = [](Hello& hello) { hello.set(ExtensionType::alpn, prefixed(prefixed("", 1), 2)); },
     .alerts = parse_alerts},
    {.name = "alpn-length",
     .why = "ALPN with a wrong length",
     .change = [](Hello& hello) { hello.set(ExtensionType::alpn, number(99, 2) + "\x01h"); },
     .alerts = parse_alerts},
    {.name = "name-empty",
     .why = "an empty server name",
     .change = [](Hello& hello) { ask_for(hello, ""); },
     .wanted = Wanted::answered},
    {.name = "name-nul",
     .why = "a server name with a NUL",
     .change = [](Hello& hello) { ask_for(hello, std::string_view("a\0.example", 10)); },
     .wanted = Wanted::answered},
    {.name = "name-long",
     .why = "a server name of 4,000 bytes",
     .change = [](Hello& hello) { ask_for(hello, repeated("abc.", 1000)); },
     .wanted = Wanted::answered},
    {.name = "name-address",
     .why = "an IP address as the server name",
     .change = [](Hello& hello) { ask_for(hello, "127.0.0.1"); },
     .wanted = Wanted::answered},
    {.name = "name-twice",
     .why = "two server names of one type",
     .change = [](Hello& hello) { ask_for(hello, "a.example", 2); },
     .alerts = {alert::illegal_parameter, alert::decode_error, alert::unrecognized_name},
     .may_serve = true},
    {.name = "name-length",
     .why = "a list of server names with a wrong length",
     .change =
         [](Hello& hello) {
           hello.set(ExtensionType::server_name,
                     number(500, 2) + number(0, 1) + prefixed("a.example", 2));
         },
     .alerts = parse_alerts},
    {.name = "extension-twice",
     .why = "two extensions of one type",
     .change =
         [](Hello& hello) {
           hello.extensions.push_back({ExtensionType::supported_groups, list({x25519})});
         },
     .alerts = parse_alerts},
    {.name = "extension-length",
     .why = "an extension that is longer than its message",
     .change = [](Hello& hello) { hello.behind_extensions = number(0x1234, 2) + number(99, 2); },
     .alerts = parse_alerts},
    {.name = "hello-tail",
     .why = "bytes behind the extensions",
     .change = [](Hello& hello) { hello.behind = "tail"; },
     .alerts = parse_alerts},
    {.name = "session-id",
     .why = "a session id of 33 bytes",
     .change = [](Hello& hello) { hello.session_id.assign(33, 'i'); },
     .alerts = parse_alerts},
    {.name = "groups-unknown",
     .why = "unknown groups only",
     .change =
         [](Hello& hello) {
           offer_1_3_only(hello);
           hello.set(ExtensionType::supported_groups, list({0x9a9a, 0x7f7f}));
           set_share(hello, 0x9a9a, "key");
         },
     .alerts = {alert::handshake_failure, alert::illegal_parameter, alert::protocol_version}},
    {.name = "groups-costly",
     .why = "ffdhe8192 only, which costs a server 100 ms",
     .change =
         [](Hello& hello) {
           offer_1_3_only(hello);
           hello.set(ExtensionType::supported_groups, list({ffdhe8192}));
           set_share(hello, ffdhe8192, std::string(1024, '\x02'));
         },
     .alerts = {alert::handshake_failure, alert::illegal_parameter, alert::protocol_version},
     .may_serve = true},
    {.name = "share-zero",
     .why = "a key of X25519 that makes the secret known",
     .change = [](Hello& hello) { set_share(hello, x25519, std::string(32, '\0')); },
     .alerts = parse_alerts},
    {.name = "share-short",
     .why = "a key of X25519 with 31 bytes",
     .change = [](Hello& hello) { set_share(hello, x25519, std::string(31, '\x09')); },
     .alerts = parse_alerts},
    {.name = "ticket-invented",
     .why = "a ticket of TLS 1.3 that the server has not made",
     .change = invent_ticket,
     .wanted = Wanted::served,
     .accepts = is_full_handshake},
    {.name = "ticket-invented-in-1.2",
     .why = "a ticket of TLS 1.2 that the server has not made",
     .hello = hello_of_1_2,
     .change =
         [](Hello& hello) { hello.set(ExtensionType::session_ticket, std::string(176, '\x5c')); },
     .wanted = Wanted::served},
    {.name = "ticket-not-last",
     .why = "an extension behind pre_shared_key",
     .change =
         [](Hello& hello) {
           offer_1_3_only(hello);
           invent_ticket(hello);
           hello.set(ExtensionType::padding, std::string(8, '\0'));
         },
     .alerts = {alert::illegal_parameter, alert::decode_error, alert::protocol_version}},
    {.name = "hello-large",
     .why = "a ClientHello of 8,000 bytes, as keys against quantum computers need",
     .change = [](Hello& hello) { hello.set(ExtensionType::padding, std::string(7700, '\0')); },
     .wanted = Wanted::served},
};

// ---- Records ------------------------------------------------------------------------------------

/// Returns 4 MiB of a handshake message that announces 16 MiB.
template <std::uint8_t type>
std::string endless_message(const Target&) {
  return fragments(RecordType::handshake,
                   number(type, 1) + number(0xffffff, 3) + std::string(endless_bytes, '\0'),
                   fragment_bytes_max);
}

std::string usual_1_2(const Target& target) {
  return hello_of_1_2(target).in_record();
}

std::string plain_request(const Target& target) {
  return record(RecordType::application_data, get_request(target));
}

std::string early_request(const Target& target) {
  ClientHello hello = hello_of_1_3(target);
  hello.set(ExtensionType::early_data, "");
  invent_ticket(hello);
  return hello.in_record() + record(RecordType::application_data, std::string(200, '\x5c'));
}

std::string long_hello(const Target& target) {
  ClientHello hello = hello_of_1_3(target);
  const std::size_t size = hello.message().size() + 4;  // with the header of the extension
  hello.set(ExtensionType::padding, std::string(fragment_bytes_max + 1 - size, '\0'));
  return hello.in_record();
}

void leave_out_share(Hello& hello) {
  hello.set(ExtensionType::key_share, prefixed("", 2));
}

const HelloCase record_cases[] = {
    {.name = "hello-fragments",
     .why = "a ClientHello in records of one byte",
     .bytes =
         [](const Target& target) {
           return fragments(RecordType::handshake, hello_of_1_3(target).message(), 1);
         },
     .wanted = Wanted::served},
    {.name = "early-data",
     .why = "early data with an invented ticket",
     .bytes = early_request,
     .wanted = Wanted::served,
     .accepts = is_full_handshake},
    {.name = "plain-http",
     .why = "a request without TLS",
     .bytes = [](const Target& target) { return get_request(target); },
     .wanted = Wanted::disconnected},
    {.name = "plain-told",
     .why = "a request without TLS, whose client must learn why it fails",
     .bytes = [](const Target& target) { return get_request(target); },
     .wanted = Wanted::told},
    {.name = "garbage",
     .why = "1,000 bytes that are no record",
     .bytes = [](const Target&) { return repeated(std::string_view("\xf1\0\xff\x7f~", 5), 200); },
     .wanted = Wanted::disconnected},
    {.name = "hello-endless",
     .why = "4 MiB of a ClientHello of 16 MiB",
     .bytes = endless_message<1>,
     .wanted = Wanted::disconnected},
    {.name = "flood-empty",
     .why = "10,000 records without data",
     .bytes =
         [](const Target&) { return repeated(record(RecordType::handshake, ""), flood_records); },
     .wanted = Wanted::disconnected},
    {.name = "flood-warnings",
     .why = "10,000 warnings",
     .bytes =
         [](const Target&) {
           return repeated(record(RecordType::alert, "\x01\x5a"), flood_records);
         },
     .wanted = Wanted::disconnected},
    {.name = "flood-ccs",
     .why = "10,000 records of change_cipher_spec",
     .bytes =
         [](const Target&) {
           return repeated(record(RecordType::change_cipher_spec, "\x01"), flood_records);
         },
     .wanted = Wanted::disconnected},
    {.name = "record-long",
     .why = "a ClientHello in a record of 2^14+1 bytes",
     .bytes = long_hello,
     .alerts = {alert::record_overflow, alert::illegal_parameter, alert::decode_error}},
    {.name = "record-unknown",
     .why = "a record of an unknown type",
     .bytes = [](const Target&) { return record(static_cast<RecordType>(99), "0123456789"); },
     .wanted = Wanted::disconnected},
    {.name = "data-first",
     .why = "data before the handshake",
     .bytes = plain_request,
     .alerts = order_alerts},
    {.name = "finished-first",
     .why = "Finished before ClientHello",
     .bytes =
         [](const Target&) {
           return record(RecordType::handshake, handshake_message(20, std::string(12, 'f')));
         },
     .alerts = order_alerts},
    {.name = "hello-twice",
     .why = "a second ClientHello in a handshake of TLS 1.2",
     .hello = hello_of_1_2,
     .second = usual_1_2,
     .wanted = Wanted::ended},
    {.name = "finished-plain",
     .why = "Finished without encryption in TLS 1.3",
     .second =
         [](const Target&) {
           return record(RecordType::handshake, handshake_message(20, std::string(48, 'f')));
         },
     .wanted = Wanted::ended},
    {.name = "finished-invented",
     .why = "a Finished that does not authenticate",
     .second =
         [](const Target&) { return record(RecordType::application_data, std::string(69, 'f')); },
     .wanted = Wanted::ended},
    {.name = "data-in-handshake",
     .why = "data instead of the client's key in TLS 1.2",
     .hello = hello_of_1_2,
     .second = plain_request,
     .wanted = Wanted::ended},
    {.name = "key-endless",
     .why = "4 MiB of a client's key of 16 MiB in TLS 1.2",
     .hello = hello_of_1_2,
     .second = endless_message<16>,
     .wanted = Wanted::ended},
    {.name = "retry-ignored",
     .why = "the same ClientHello after a HelloRetryRequest",
     .change = leave_out_share,
     .second =
         [](const Target& target) {
           ClientHello hello = hello_of_1_3(target);
           leave_out_share(hello);
           return hello.in_record();
         },
     .wanted = Wanted::ended},
};

}  // namespace

const std::vector<HelloCase>& hello_cases() {
  static const std::vector<HelloCase> all = [] {
    std::vector<HelloCase> made(std::begin(downgrade_cases), std::end(downgrade_cases));
    made.insert(made.end(), std::begin(extension_cases), std::end(extension_cases));
    made.insert(made.end(), std::begin(record_cases), std::end(record_cases));
    return made;
  }();
  return all;
}

std::string first_bytes(const HelloCase& test_case, const CheckTarget& target) {
  if (test_case.bytes != nullptr) return test_case.bytes(target);
  ClientHello hello = test_case.hello(target);
  if (test_case.change != nullptr) test_case.change(hello);
  return hello.in_record();
}

std::string describe_wanted(const HelloCase& test_case) {
  std::string alerts;
  for (const std::uint8_t each : test_case.alerts) {
    alerts += (alerts.empty() ? "alert " : " or ") + std::to_string(each);
  }
  switch (test_case.wanted) {
    case Wanted::rejected:
      return alerts;
    case Wanted::served:
      return "a ServerHello";
    case Wanted::answered:
      return "an alert or a ServerHello";
    case Wanted::told:
      return "400 in plain text";
    case Wanted::disconnected:
      return "an alert, a close, or a rejection in plain text";
    case Wanted::ended:
      return "a ServerHello, and an alert or a close after the next bytes";
  }
  return {};
}

}  // namespace weir::check
