// Feeds hostile bytes to both sides of TLS: to handshakes, and to the records of an established
// connection. The first byte of an input chooses which. Weir's record layer gets the same records
// as that of OpenSSL, and must agree with it.
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/detail/contexts.hpp"
#include "weir/tls/detail/records/aead_records.hpp"
#include "weir/tls/detail/ssl_engine.hpp"
#include "weir/tls/test/record_forge.hpp"

namespace {

using namespace weir;
using fuzz::require;
using tls::detail::SslEngine;
using Opened = SslEngine::Opened;
using Step = SslEngine::Step;

constexpr WallTime now(std::chrono::hours(24));

/// The settings of both sides. All inputs share them.
struct Sides {
  Sides() {
    tls::SelfSigned certificate;
    certificate.names = {"a.example"};
    const tls::Identity identity = tls::Identity::self_signed(certificate).value();
    server_options.identities = {identity};
    client_options.trust = {.system = false, .files = {}, .pem = identity.chain()};
    const auto snapshot = std::make_shared<tls::detail::ServerSnapshot>();
    snapshot->identities = server_options.identities;
    snapshot->store = tls::detail::make_store("").value();
    contexts = tls::detail::ServerContexts::make(server_options, snapshot).value();
    contexts->set_ticket_keys(
        std::make_shared<const tls::TicketKeys>(tls::TicketKeys::random().value()));
    const std::string& pem = client_options.trust.pem;
    const tls::detail::ClientSnapshot trust{.trust = pem,
                                            .store = tls::detail::make_store(pem).value()};
    client_context = tls::detail::make_client_context(client_options, trust).value();
  }
  std::unique_ptr<SslEngine> server() const {
    auto engine = SslEngine::make(contexts->first(), SslEngine::Side::server).value();
    engine->set_time(now);
    return engine;
  }
  std::unique_ptr<SslEngine> client() const {
    auto engine = SslEngine::make(*client_context, SslEngine::Side::client).value();
    engine->set_time(now);
    require(engine->set_host("a.example", true, nullptr).has_value());
    return engine;
  }

  tls::ServerOptions server_options;
  tls::ClientOptions client_options;
  std::unique_ptr<tls::detail::ServerContexts> contexts;
  tls::detail::SslContextPtr client_context;
};

const Sides& sides() {
  static const Sides made;
  return made;
}

Buffer buffer_of(std::string_view text) {
  Buffer buffer = Buffer::with_capacity(static_cast<std::uint32_t>(text.size() + 1));
  if (!text.empty()) std::memcpy(buffer.room().data(), text.data(), text.size());
  buffer.commit(text.size());
  return buffer;
}

Step feed(SslEngine& engine, std::string_view bytes, std::string& out) {
  Buffer input = buffer_of(bytes);
  Buffer output;
  const Step step = engine.handshake(input, output);
  out += output.text();
  return step;
}

/// Returns the end of a handshake whose peer sends `input` in pieces of `size` bytes.
std::string end_of_handshake(std::unique_ptr<SslEngine> engine, std::string_view input,
                             std::size_t size) {
  std::string output;
  Step step =
      engine->side() == SslEngine::Side::client ? feed(*engine, "", output) : Step::needs_input;
  while (step == Step::needs_input && !input.empty()) {
    const std::string_view piece = input.substr(0, size);
    input.remove_prefix(piece.size());
    step = feed(*engine, piece, output);
  }
  require(step != Step::finished);  // the input knows no key
  return step == Step::failed ? engine->take_failure().text() : "open";
}

/// Performs the handshake between both sides.
void connect(SslEngine& client, SslEngine& server) {
  std::string up;
  std::string down;
  Step of_client = feed(client, "", up);
  Step of_server = Step::needs_input;
  while (of_client == Step::needs_input || of_server == Step::needs_input) {
    if (of_server == Step::needs_input) of_server = feed(server, up, down);
    up.clear();
    if (of_client == Step::needs_input) of_client = feed(client, down, up);
    down.clear();
  }
  require(of_client == Step::finished && of_server == Step::finished);
}

/// One direction of a connection between both sides, which an attacker changes on its way.
class AttackedConnection {
 public:
  explicit AttackedConnection(bool old_version)
      : client_(sides().client()), server_(sides().server()) {
    if (old_version) client_->set_version_max(TlsVersion::tls_1_2);
    connect(*client_, *server_);
  }

  /// Runs commands of two bytes each.
  void run(std::string_view script) {
    for (; script.size() >= 2; script.remove_prefix(2)) {
      run(static_cast<std::uint8_t>(script[0]), static_cast<std::uint8_t>(script[1]));
    }
    deliver(wire_.size());
    if (changed_) return;
    require(received_ == sent_);
    require(opened_ == (closed_ ? Opened::closed : Opened::none));
  }

 private:
  void run(std::uint8_t command, std::uint8_t argument) {
    switch (command % 8) {
      case 0:
        return seal(argument);
      case 1:
        return seal(std::size_t{64} * argument);
      case 2:
        return deliver(std::size_t{16} * argument);
      case 3:
        return deliver(wire_.size());
      case 4:  // flips a bit
        if (wire_.empty()) return;
        wire_[argument % wire_.size()] ^= static_cast<char>(1 << (command >> 3) % 8);
        break;
      case 5:  // drops bytes at the end
        wire_.resize(wire_.size() - std::min<std::size_t>(wire_.size(), argument));
        break;
      case 6:  // repeats the last record, or sends an earlier one again
        wire_ += last_record_;
        break;
      default:
        return argument % 4 == 0 ? close() : insert(argument);
    }
    changed_ = true;
  }
  void seal(std::size_t size) {
    if (closed_) return;
    const std::string text(std::min<std::size_t>(size + 1, SslEngine::plain_max),
                           static_cast<char>('a' + sent_.size() % 26));
    Buffer record;
    require(!client_->seal(to_bytes(text), record));
    sent_ += text;
    last_record_ = record.text();
    wire_ += last_record_;
  }
  void close() {
    closed_ = true;
    Buffer record;
    client_->seal_close(record);
    wire_ += record.text();
  }
  void insert(std::uint8_t argument) {
    wire_.insert(wire_.size() / 2, 1 + argument % 32, static_cast<char>(argument));
    changed_ = true;
  }
  /// Gives bytes to the server. What it opens is always a beginning of what the client has sent.
  void deliver(std::size_t size) {
    size = std::min(size, wire_.size());
    Buffer input = buffer_of(std::string_view(wire_).substr(0, size));
    wire_.erase(0, size);
    const bool ended = opened_ == Opened::closed || opened_ == Opened::failed;
    for (;;) {
      Buffer plain;
      Buffer output;
      const Opened opened = server_->open(input, plain, output);
      require(!ended || opened == opened_);
      received_ += plain.text();
      require(sent_.starts_with(received_));
      require((opened == Opened::data) == !plain.empty());
      require(opened != Opened::closed || closed_);
      opened_ = opened;
      if (opened != Opened::data) return;
    }
  }

  std::unique_ptr<SslEngine> client_;
  std::unique_ptr<SslEngine> server_;
  std::string sent_;
  std::string received_;
  std::string wire_;
  std::string last_record_;
  Opened opened_ = Opened::none;
  bool changed_ = false;
  bool closed_ = false;
};

/// Two record layers of one server that get the same records: OpenSSL's is the judge of Weir's. The
/// client has the keys, and seals whatever the input asks for.
class JudgedRecords {
 public:
  explicit JudgedRecords(std::size_t suite) : is_1_3_(suite < 3) {
    static constexpr std::array ciphers{
        "TLS_AES_128_GCM_SHA256",        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",  "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"};
    SSL_CTX* const context = sides().client_context.get();
    require((is_1_3_ ? SSL_CTX_set_ciphersuites(context, ciphers.at(suite))
                     : SSL_CTX_set_cipher_list(context, ciphers.at(suite))) == 1);
    const auto client = sides().client();
    if (!is_1_3_) client->set_version_max(TlsVersion::tls_1_2);
    judge_ = sides().server();
    connect(*client, *judge_);
    const auto keys = judge_->keys();
    require(keys.has_value());
    own_.emplace(core_, *keys);
    client_.emplace(*keys);
  }

  /// Runs commands of two bytes each.
  void run(std::string_view script) {
    for (; script.size() >= 2 && !ended_; script.remove_prefix(2)) {
      run(static_cast<std::uint8_t>(script[0]), static_cast<std::uint8_t>(script[1]));
    }
    deliver(wire_.size());
  }

 private:
  struct Seen {
    std::string plain;
    std::string output;
    Opened end = Opened::none;
  };

  void run(std::uint8_t command, std::uint8_t argument) {
    switch (command % 16) {
      case 0:
        return add(client_->data(std::string(argument, 'a')));
      case 1:
        return add(client_->data(std::string(std::size_t{66} * argument, 'b')));
      case 2:
        return add_alert(1 + (command >> 4) % 3, argument);
      case 3:
        return add_alert(command >> 4, argument % 4 == 0 ? 0 : 90 + argument % 16);
      case 4:
        if (owed_ && argument == 22) return;  // see below
        takes_messages_ = takes_messages_ || argument == 22;
        return add(client_->seal(argument, std::string((command >> 4) % 4, '\x01')));
      case 5:
        return update_key(argument);
      case 6:
        // OpenSSL answers first, and then looks at the message when the next one arrives.
        if (owed_) return;
        takes_messages_ = true;
        return add(client_->seal(22, part_of_message(command >> 4, argument)));
      case 7:
        return add(client_->seal(argument % 2 == 0 ? 23 : 21, "\x01\x5a",
                                 is_1_3_ ? std::size_t{66} * argument : 0));
      case 8:
        if (is_1_3_) add(client_->seal_inner(std::string(argument % 32, '\0')));
        return;
      case 9:
        return seal(std::size_t{1} + argument);
      case 10:
        return close();
      case 11:  // flips a bit
        if (!wire_.empty()) wire_[argument % wire_.size()] ^= static_cast<char>(1 << command / 32);
        return;
      case 12:
        wire_.resize(wire_.size() - std::min<std::size_t>(wire_.size(), argument));
        return;
      case 13:
        wire_ += last_record_;
        return;
      case 14:
        return deliver(std::size_t{argument} * (1 + command / 16));
      default:
        return deliver(wire_.size());
    }
  }
  void add(std::string record) {
    last_record_ = std::move(record);
    wire_ += last_record_;
  }
  void add_alert(int level, int description) {
    // OpenSSL's TLS 1.3 forgets a close_notify of another level behind a warning.
    if (is_1_3_ && description == 0) level = 1;
    add(client_->alert(static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(description)));
  }
  void update_key(std::uint8_t argument) {
    if (!is_1_3_) return;
    const bool requests = argument % 2 != 0;
    takes_messages_ = takes_messages_ || owed_;  // OpenSSL answers before the next message
    owed_ = owed_ || requests;
    add(client_->update(requests ? 1 : 0));
  }
  /// Returns a part of a KeyUpdate, or of another message.
  static std::string part_of_message(unsigned length, std::uint8_t argument) {
    std::string message = tls::detail::RecordForge::update_message(argument >> 7 == 0 ? 0 : 2);
    message[0] = argument % 8 == 7 ? static_cast<char>(argument) : message[0];
    message += message;
    return message.substr(argument % 5, length);
  }

  static void open(tls::detail::RecordLayer& layer, std::string_view bytes, Seen& seen) {
    Buffer input = buffer_of(bytes);
    for (;;) {
      Buffer plain;
      Buffer output;
      seen.end = layer.open(input, plain, output);
      seen.output += output.text();
      if (seen.end != Opened::data) return;
      require(!plain.empty());
      seen.plain += plain.text();
    }
  }
  void deliver(std::size_t size) {
    if (ended_) return;
    size = std::min(size, wire_.size());
    Seen of_judge;
    Seen of_own;
    open(*judge_, std::string_view(wire_).substr(0, size), of_judge);
    open(*own_, std::string_view(wire_).substr(0, size), of_own);
    wire_.erase(0, size);
    // OpenSSL waits for the whole message of TLS 1.2 that it rejects.
    ended_ = !is_1_3_ && takes_messages_ && of_own.end == Opened::failed;
    if (ended_) return;
    require(of_own.plain == of_judge.plain);
    require(of_own.end == of_judge.end);
    require(own_->error() == judge_->error());
    // OpenSSL answers each request to update the key, and before the next message.
    if (is_1_3_ && takes_messages_) return;
    require(of_own.output.size() == of_judge.output.size());
    // The alert for a record of TLS 1.2 that is too short differs.
    const bool may_differ = !is_1_3_ && own_->error() == tls::Error::bad_record;
    require(may_differ || of_own.output == of_judge.output);
  }
  void seal(std::size_t size) {
    // OpenSSL does not seal data while a message is incomplete.
    if (takes_messages_ || closed_) return;
    deliver(wire_.size());
    if (ended_) return;
    Buffer of_judge;
    Buffer of_own;
    const std::string text(size, 'z');
    const std::error_code expected = judge_->seal(to_bytes(text), of_judge);
    require(own_->seal(to_bytes(text), of_own) == expected);
    const bool may_differ = own_->error() == tls::Error::bad_record;
    require(may_differ || of_own.text() == of_judge.text());
    owed_ = false;
  }
  void close() {
    closed_ = true;
    Buffer of_judge;
    Buffer of_own;
    judge_->seal_close(of_judge);
    own_->seal_close(of_own);
    if (!takes_messages_) require(of_own.text() == of_judge.text());
  }

  bool is_1_3_;
  bool takes_messages_ = false;  // the client has sent messages that the layers answer differently
  bool owed_ = false;            // the client has requested a new key since the last seal()
  bool closed_ = false;
  bool ended_ = false;  // the layers agree no more, as they should
  std::string wire_;
  std::string last_record_;
  tls::detail::AeadCore core_{nullptr};
  std::unique_ptr<SslEngine> judge_;
  std::optional<tls::detail::AeadRecords> own_;
  std::optional<tls::detail::RecordForge> client_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 16 >= 10) {
    JudgedRecords(data[0] % 16 - 10).run(input.substr(0, 256));
    return 0;
  }
  const std::uint8_t choice = data[0] % 4;
  if (choice >= 2) {
    AttackedConnection(choice == 3).run(input.substr(0, 256));
    return 0;
  }
  const auto engine = [choice] { return choice == 0 ? sides().server() : sides().client(); };
  const std::string whole = end_of_handshake(engine(), input, input.size() + 1);
  if (input.size() <= 512) require(end_of_handshake(engine(), input, 1) == whole);
  require(end_of_handshake(engine(), input, input.size() / 3 + 1) == whole);
  return 0;
}
