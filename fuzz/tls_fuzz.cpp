// Feeds hostile bytes to both sides of TLS: to handshakes, and to the records of an established
// connection. The first byte of an input chooses which.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/detail/contexts.hpp"
#include "weir/tls/detail/ssl_engine.hpp"

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

/// One direction of a connection between both sides, which an attacker changes on its way.
class AttackedConnection {
 public:
  explicit AttackedConnection(bool old_version)
      : client_(sides().client()), server_(sides().server()) {
    if (old_version) client_->set_version_max(TlsVersion::tls_1_2);
    std::string up;
    std::string down;
    Step of_client = feed(*client_, "", up);
    Step of_server = Step::needs_input;
    while (of_client == Step::needs_input || of_server == Step::needs_input) {
      if (of_server == Step::needs_input) of_server = feed(*server_, up, down);
      up.clear();
      if (of_client == Step::needs_input) of_client = feed(*client_, down, up);
      down.clear();
    }
    require(of_client == Step::finished && of_server == Step::finished);
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
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
