#include "weir/http/h1/connection.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "weir/http/h1/writer.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {
namespace {

// How long a connection without a request under way may still bring one when its server drains.
constexpr Duration drain_grace = std::chrono::milliseconds(100);
constexpr Duration drain_grace_new = std::chrono::seconds(1);  // before its first request
// How long the rest of a head may still take.
constexpr Duration drain_grace_head = std::chrono::seconds(2);

class Connection final : public DrainingConnection {
 public:
  Connection(ServerCore& server, tcp::Stream stream, const Context& context) noexcept
      : server_(server),
        context_(context),
        transport_(server.loop(), std::move(stream), server.limits()) {
    server_.add(*this);
  }
  ~Connection() { server_.remove(*this); }

  Transport& transport() noexcept { return transport_; }
  bool cancelled() const noexcept { return context_.cancelled(); }

  void drain() override {
    const Instant now = server_.loop().now();
    if (transport_.waiting() == Transport::Waiting::request) {
      transport_.hurry(after(now, used_ ? drain_grace : drain_grace_new));
    } else if (transport_.waiting() == Transport::Waiting::head) {
      transport_.hurry(after(now, drain_grace_head));
    }
  }

  Instant request_deadline() const noexcept {
    const Duration idle = server_.limits().idle_timeout;
    const Duration grace = used_ ? drain_grace : drain_grace_new;
    return after(server_.loop().now(), server_.draining() ? std::min(idle, grace) : idle);
  }
  /// Of the head that is being read: from the moment when its first bytes were seen.
  Instant head_deadline() noexcept {
    if (std::exchange(head_number_, exchange_->heads()) != exchange_->heads()) {
      head_started_ = server_.loop().now();
    }
    const Duration usual = server_.limits().head_timeout;
    return after(head_started_, server_.draining() ? std::min(usual, drain_grace_head) : usual);
  }

  /// Bytes have arrived: what works on them.
  Exchange& begin(Buffer bytes) {
    transport_.input() = std::move(bytes);
    used_ = true;
    head_number_ = none_;
    exchange_ = make_block<Exchange>(server_, transport_, context_);
    return *exchange_;
  }
  /// All are answered: an idle connection holds no memory but this.
  void end() noexcept {
    exchange_.reset();
    transport_.input() = {};
    transport_.output() = {};
  }

 private:
  ServerCore& server_;
  Context context_;
  Transport transport_;
  BlockPtr<Exchange> exchange_;
  static constexpr std::uint64_t none_ = static_cast<std::uint64_t>(-1);
  Instant head_started_{};
  std::uint64_t head_number_ = none_;
  bool used_ = false;
};

/// Works on what has arrived until the input is used up. Gives idle, or how to close.
Task<Exchange::Next> work(Connection& connection, Exchange& exchange, Exchange::Next next) {
  using Next = Exchange::Next;
  Transport& transport = connection.transport();
  for (;;) {
    if (next == Next::slow) {
      next = co_await exchange.finish();
      if (next == Next::idle) next = exchange.advance();
      continue;
    }
    if (next == Next::abort) co_return next;
    if (auto sent = co_await transport.send(); !sent) co_return Next::abort;
    if (next != Next::more) co_return next;
    auto filled = co_await transport.fill(Transport::Waiting::head, connection.head_deadline());
    if (!filled && filled.error() == Errc::timed_out && exchange.inside_head()) {
      next = exchange.refuse(Refusal::head_timed_out);
    } else if (!filled) {
      co_return Next::abort;
    } else {
      next = exchange.advance();
    }
  }
}

}  // namespace

Task<> serve_connection(ServerCore& server, tcp::Stream stream) {
  using Next = Exchange::Next;
  Connection connection(server, std::move(stream), co_await this_context());
  Transport& transport = connection.transport();
  Next next = Next::idle;
  while (next == Next::idle && !connection.cancelled()) {
    if (transport.share_used()) static_cast<void>(co_await sleep(Duration::zero()));
    transport.begin_read(Transport::Waiting::request, connection.request_deadline());
    auto bytes = co_await transport.stream().read();
    transport.end_read();
    if (!bytes) {
      const bool waited_long = transport.explain(bytes.error()) == Errc::timed_out;
      next = waited_long ? Next::close : Next::abort;
      break;
    }
    Exchange& exchange = connection.begin(std::move(*bytes));
    next = exchange.advance();
    if (next == Next::idle || next == Next::close_now) {
      // The usual way: everything is answered, one send is left.
      transport.begin_write();
      const auto sent = co_await transport.stream().write(transport.output().bytes());
      transport.end_write(sent ? std::error_code() : sent.error());
      if (!sent) next = Next::abort;
    } else {
      next = co_await work(connection, exchange, next);
    }
    connection.end();
  }
  if (next == Next::close) co_await transport.linger();
  if (next == Next::close_now && transport.stream().finish_writing()) {
    server.last_answers().keep(std::move(transport.stream()), server.limits().linger_timeout);
  }
}

Task<> turn_away(ServerCore& server, tcp::Stream stream) {
  const ServerCore::TurningAway turning_away(server);
  Transport transport(server.loop(), std::move(stream), server.limits());
  Buffer& output = transport.writable_output();
  ResponseHead head;
  head.status = Status::service_unavailable;
  head.connection = ConnectionField::close;
  head.date = &server.date();
  char* const start = reinterpret_cast<char*>(output.room().data());
  output.grow(static_cast<std::size_t>(write_head(head, start) - start));
  const auto sent = co_await transport.send();
  if (sent && !turning_away.too_many()) co_await transport.linger();
}

}  // namespace weir::http
