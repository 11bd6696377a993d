// One connection to the server under test: sending and receiving with limits.
#include "tools/weir/check/check_connection.hpp"

#include <utility>

#include "weir/net/tcp.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/timeout.hpp"
#include "weir/tls/client.hpp"

namespace weir::check {

Task<bool> CheckConnection::open() {
  auto stream = co_await timeout(target_.timeout, tcp::connect(target_.endpoint));
  if (!stream) {
    on_connect_error("no connection: " + stream.error().message());
    co_return false;
  }
  AnyStream plain(std::move(*stream));
  if (target_.tls == nullptr) {
    stream_.emplace(std::move(plain));
    co_return true;
  }
  auto secured = co_await target_.tls->connect(std::move(plain), target_.host);
  if (secured) {
    stream_.emplace(std::move(*secured));
  } else {
    on_connect_error("no TLS connection: " + secured.error().text());
  }
  co_return stream_.has_value();
}

void CheckConnection::on_connect_error(std::string reason) {
  connect_error_ = std::move(reason);
  closed_ = true;
}

Task<> CheckConnection::send_and_receive(std::string_view bytes, StopCondition until) {
  if (closed_) co_return;
  const auto both = co_await all(write(bytes), receive_then_stop_sending(until));
  static_cast<void>(both);
}

Task<> CheckConnection::write(std::string_view bytes) {
  const auto written = co_await (*stream_)->write(bytes);
  // A server that responds early may close before all is sent. The responses decide the verdict.
  static_cast<void>(written);
}

Task<> CheckConnection::receive_then_stop_sending(StopCondition until) {
  co_await receive(until);
  (*stream_)->cancel_write();
}

bool CheckConnection::is_met(const StopCondition& until) const noexcept {
  if (closed_ || !reader_.protocol_error().empty()) return true;
  return (until.final_count != 0 && reader_.final_count() >= until.final_count) ||
         (until.interim && reader_.interim());
}

Task<> CheckConnection::receive(StopCondition until) {
  const Context context = co_await this_context();
  const Instant end = after(context.loop->platform().now(), until.wait_timeout);
  while (!is_met(until) && !context.cancelled()) {
    const Duration left = end - context.loop->platform().now();
    if (left <= Duration::zero()) break;
    const auto input = co_await timeout(left, (*stream_)->read());
    process_input(input);
  }
}

void CheckConnection::process_input(const Result<Buffer>& input) {
  if (input) {
    reader_.read(input->text());
  } else if (input.error() == Errc::end_of_stream || input.error() == tls::Error::truncated) {
    reader_.end();
    truncated_ = input.error() == tls::Error::truncated;
    closed_by_server_ = !writing_finished_;
    closed_ = true;
  } else if (input.error() != Errc::timed_out && input.error() != Errc::cancelled) {
    reader_.reset();
    reset_ = closed_ = true;
  }
}

Task<bool> CheckConnection::wait_for_close(Duration wait_timeout) {
  StopCondition until;
  until.wait_timeout = wait_timeout;
  co_await receive(until);
  co_return closed_;
}

Task<bool> CheckConnection::send(std::string_view bytes, Duration wait_timeout) {
  if (closed_) co_return false;
  const auto written = co_await timeout(wait_timeout, (*stream_)->write(bytes));
  co_return written.has_value();
}

void CheckConnection::finish_writing() {
  if (closed_ || writing_finished_) return;
  writing_finished_ = true;
  static_cast<void>((*stream_)->finish_writing());
}

void CheckConnection::close() {
  closed_ = true;
  stream_.reset();
}

Outcome CheckConnection::outcome() const {
  Outcome outcome;
  outcome.responses = reader_.responses();
  outcome.final_count = reader_.final_count();
  outcome.interim = reader_.interim();
  outcome.closed_by_server = closed_by_server_;
  outcome.reset = reset_;
  outcome.truncated = truncated_;
  if (const TlsInfo* const tls = stream_ ? (*stream_)->tls() : nullptr) {
    outcome.tls = std::string(name_of(tls->version)) + ", " + std::string(tls->cipher);
  }
  outcome.protocol_error = reader_.protocol_error();
  outcome.connect_error = connect_error_;
  return outcome;
}

}  // namespace weir::check
