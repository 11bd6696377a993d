#include "weir/net/proxy_protocol.hpp"

#include <algorithm>
#include <new>
#include <span>
#include <stdexcept>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/detail/proxy_header.hpp"

namespace weir {
namespace {

/// A stream whose peer has another address than the kernel says.
class ProxiedStream final : public Stream, StreamLayer {
 public:
  ProxiedStream(AnyStream inner, const os::IpBytes& address, std::uint16_t port)
      : Stream(inner->loop()), state_(make_block<State>(std::move(inner), address, port)) {}
  ProxiedStream(ProxiedStream&& other) noexcept : Stream(other), state_(std::move(other.state_)) {}

  Result<> finish_writing() override {
    if (state_ == nullptr) return fail(Errc::closed);
    return inner().finish_writing();
  }
  void close() override { state_.reset(); }
  Result<> set_close_mode(CloseMode mode) override {
    if (state_ == nullptr) return fail(Errc::closed);
    return inner().set_close_mode(mode);
  }
  os::Address peer_address() const override {
    if (state_ == nullptr) return {};
    return os::to_address(state_->address, state_->port);
  }
  os::Address local_address() const override {
    return state_ == nullptr ? os::Address() : inner().local_address();
  }
  const TlsInfo* tls() const noexcept override {
    return state_ == nullptr ? nullptr : inner().tls();
  }
  std::size_t unacked_bytes() const override {
    return state_ == nullptr ? 0 : inner().unacked_bytes();
  }
  void observe_hangup(loop::HangupObserver* observer) override {
    if (state_ != nullptr) inner().observe_hangup(observer);
  }

 private:
  struct State {
    State(AnyStream stream, const os::IpBytes& bytes, std::uint16_t number) noexcept
        : inner(std::move(stream)), address(bytes), port(number) {}
    AnyStream inner;
    os::IpBytes address;
    std::uint16_t port;
  };
  static_assert(sizeof(State) <= ProxyProtocol::stream_bytes);

  Stream& inner() const noexcept { return *state_->inner; }
  bool start_receive(loop::ReceiveOperation& operation) override {
    if (state_ != nullptr) return StreamLayer::start_receive(inner(), operation);
    operation.finish(Errc::closed);
    return true;
  }
  bool start_send(loop::SendOperation& operation) override {
    if (state_ != nullptr) return StreamLayer::start_send(inner(), operation);
    operation.finish(Errc::closed);
    return true;
  }
  Result<std::size_t> send_file(Bytes before, const os::FilePart& part) override {
    if (state_ == nullptr) return fail(Errc::closed);
    return inner().try_write_file(before, part);
  }
  void cancel_operation(loop::Operation& operation) override {
    StreamLayer::cancel_operation(inner(), operation);
  }
  std::size_t sent_of(const loop::SendOperation& operation) const noexcept override {
    return StreamLayer::sent_of(inner(), operation);
  }
  Stream* move_to(void* room) noexcept override {
    return new (room) ProxiedStream(std::move(*this));
  }

  BlockPtr<State> state_;
};

}  // namespace

ProxyProtocol::ProxyProtocol(const ProxyProtocolOptions& options) : timeout_(options.timeout) {
  for (const std::string& each : options.proxies) {
    if (each == "unix") {
      trusts_local_ = true;
      continue;
    }
    const auto range = os::IpRange::parse(each);
    if (!range) throw std::invalid_argument("PROXY protocol: no range of addresses: " + each);
    ranges_.push_back(*range);
  }
}

bool ProxyProtocol::expects_header(const os::Address& peer) const noexcept {
  if (peer.family() == os::AddressFamily::local) return trusts_local_;
  const auto bytes = os::ip_bytes(peer);
  return bytes && std::ranges::any_of(
                      ranges_, [&](const os::IpRange& each) { return each.contains(*bytes); });
}

Task<Result<AnyStream>> ProxyProtocol::read_header(AnyStream stream) const {
  using Kind = ProxyHeaderResult::Kind;
  Loop& loop = stream->loop();
  const Instant end = after(loop.now(), timeout_);
  std::string text;
  for (;;) {
    const ProxyHeaderResult parsed = parse_proxy_header(to_bytes(text));
    if (parsed.kind == Kind::malformed) co_return fail(Errc::bad_input);
    if (parsed.kind == Kind::complete) {
      const auto source = os::ip_bytes(parsed.header.source);
      if (!source) co_return std::move(stream);
      co_return AnyStream(ProxiedStream(std::move(stream), *source, parsed.header.source.port()));
    }
    const std::size_t before = text.size();
    text.resize(before + parsed.size);
    const MutableBytes room(reinterpret_cast<std::byte*>(text.data()) + before, parsed.size);
    const auto count = co_await stream->read_into(room, {.timeout = end - loop.now()});
    if (!count) co_return fail(count.error());
    text.resize(before + *count);
  }
}

}  // namespace weir
