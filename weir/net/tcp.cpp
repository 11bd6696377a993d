#include "weir/net/tcp.hpp"

#include <cassert>
#include <utility>

#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/os/ip_range.hpp"

namespace weir::tcp {

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this == &other) return *this;
  close();
  set_loop(other.loop());
  socket_ = std::exchange(other.socket_, nullptr);
  return *this;
}

Result<> Stream::set_no_delay(bool on) {
  if (socket_ == nullptr) return fail(Errc::closed);
  return loop().platform().configure(socket_->descriptor, loop::StreamOptions{.no_delay = on});
}

Result<> Stream::finish_writing() {
  if (socket_ == nullptr) return fail(Errc::closed);
  return loop().backend().shut_down_sending(*socket_);
}

void Stream::close() {
  loop::Socket* const socket = std::exchange(socket_, nullptr);
  if (socket == nullptr) return;
  ConnectionCounters::made(loop()).open.subtract();
  loop().backend().close(*socket);
}

Result<> Stream::set_close_mode(CloseMode mode) {
  if (socket_ == nullptr) return fail(Errc::closed);
  return loop().platform().set_close_mode(socket_->descriptor, mode);
}

/// Clients of a listener for IPv6 and IPv4 have mapped addresses (RFC 4291 §2.5.5.2). People and
/// other programs know an IPv4 address in its own form.
os::Address Stream::peer_address() const {
  if (socket_ == nullptr) return {};
  const auto address = loop().platform().peer_address(socket_->descriptor).value_or(os::Address());
  const auto bytes = os::ip_bytes(address);
  return bytes && os::is_ipv4(*bytes) ? os::to_address(*bytes, address.port()) : address;
}

os::Address Stream::local_address() const {
  if (socket_ == nullptr) return {};
  return loop().platform().local_address(socket_->descriptor).value_or(os::Address());
}

std::size_t Stream::unacked_bytes() const {
  if (socket_ == nullptr) return 0;
  return loop().platform().unacked_bytes(socket_->descriptor).value_or(0);
}

void Stream::observe_hangup(loop::HangupObserver* observer) {
  if (socket_ != nullptr) loop().backend().observe_hangup(*socket_, observer);
}

bool Stream::start_receive(loop::ReceiveOperation& operation) {
  if (socket_ != nullptr) return loop().backend().receive(*socket_, operation);
  operation.finish(Errc::closed);
  return true;
}

bool Stream::start_send(loop::SendOperation& operation) {
  if (socket_ != nullptr) return loop().backend().send(*socket_, operation);
  operation.finish(Errc::closed);
  return true;
}

Result<std::size_t> Stream::send_file(Bytes before, const os::FilePart& part) {
  if (socket_ == nullptr) return fail(Errc::closed);
  return loop().platform().files().send_file(socket_->descriptor, before, part);
}

void Stream::cancel_operation(loop::Operation& operation) {
  loop().backend().cancel(operation);
}

namespace {

/// The awaitable of a connection attempt, which counts as a write of the stream.
class Connect {
 public:
  Connect(Stream& stream, loop::Socket& socket, const os::Address& peer) noexcept
      : stream_(&stream), socket_(&socket), peer_(peer) {}
  class Awaiter : public StreamAwaiter<loop::ConnectOperation> {
   public:
    explicit Awaiter(const Connect& connect) noexcept
        : StreamAwaiter(*connect.stream_),
          backend_(connect.stream_->loop().backend()),
          socket_(*connect.socket_) {
      peer = connect.peer_;
    }
    bool await_ready() { return started(backend_.connect(socket_, *this)); }
    Result<> await_resume() const noexcept {
      if (error()) return fail(error());
      return {};
    }

   private:
    loop::Backend& backend_;
    loop::Socket& socket_;
  };

 private:
  Stream* stream_;
  loop::Socket* socket_;
  os::Address peer_;
};

}  // namespace

Task<Result<Stream>> connect(Endpoint peer, IoOptions options) {
  const Context context = co_await this_context();
  if (context.cancelled()) co_return fail(Errc::cancelled);
  Loop& loop = *context.loop;
  ConnectionCounters::of(loop);
  WEIR_CO_TRY(auto descriptor, loop.platform().open_stream(peer));
  if (auto configured = loop.platform().configure(descriptor.value(), {}); !configured) {
    co_return fail(configured.error());
  }
  WEIR_CO_TRY(auto socket,
              loop.backend().adopt(std::move(descriptor), {.role = loop::SocketRole::stream}));
  Stream stream(loop, *socket);
  WEIR_CO_TRY(co_await Timed<Connect>(Connect(stream, *socket, peer), options));
  co_return std::move(stream);
}

}  // namespace weir::tcp
