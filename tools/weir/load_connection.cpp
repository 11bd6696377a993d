// One connection of a load: closed loop, fixed rate, or one connection per request.
#include "tools/weir/load_connection.hpp"

#include <algorithm>

#include "tools/weir/load_worker.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::bench {
namespace {

// Pause before a failed connection tries again, which protects a server that is down.
constexpr Duration pause_length = std::chrono::milliseconds(10);

constexpr std::size_t shown_bytes_max = 400;

constexpr std::uint64_t lost_records_max = 4096;  // per connection, when the time is over

/// Returns true if the peer has ended the connection, with or without a close_notify of TLS. A
/// complete response needs none (RFC 9112 §9.8).
bool is_end(std::error_code error) {
  return error == Errc::end_of_stream || error == tls::Error::truncated;
}

}  // namespace

LoadConnection::LoadConnection(LoadWorker& worker, unsigned index) noexcept
    : worker_(worker), index_(index), reader_(worker.reference()) {
  const NumberPlaceholder& number_placeholder = worker.plan().rules.number_placeholder;
  if (number_placeholder)
    number_ = number_placeholder.first(worker.plan().first_connection_index + index);
}

Task<> LoadConnection::open() {
  auto stream = co_await timeout(worker_.plan().timeout, tcp::connect(worker_.plan().endpoint));
  if (stream) {
    ++worker_.result().connections;
    reader_ = ResponseReader(worker_.reference());
    if (tls::Connector* const connector = worker_.connector(index_)) {
      co_return co_await secure(std::move(*stream), *connector);
    }
    stream_.emplace(std::move(*stream));
    co_return;
  }
  const std::error_code error = stream.error();
  if (error == Errc::cancelled) co_return worker_.on_cancelled();
  const LoadError fault = error == std::errc::connection_refused ? LoadError::refused
                          : error == Errc::timed_out             ? LoadError::timed_out
                                                                 : LoadError::not_connected;
  on_open_error(fault, error.message());
}

Task<> LoadConnection::secure(tcp::Stream stream, tls::Connector& connector) {
  AnyStream plain(std::move(stream));
  auto secured = co_await connector.connect(std::move(plain), worker_.plan().tls_host);
  if (secured) {
    ++worker_.result().handshakes;
    if (secured->tls()->resumed) ++worker_.result().resumed;
    stream_.emplace(std::move(*secured));
    co_return;
  }
  const tls::Failure& failure = secured.error();
  if (failure.code() == Errc::cancelled) co_return worker_.on_cancelled();
  const bool late = failure == tls::Error::timed_out;
  on_open_error(late ? LoadError::timed_out : LoadError::handshake, failure.text());
}

void LoadConnection::on_open_error(LoadError fault, const std::string& reason) {
  failed_ = true;
  worker_.result().errors.count(
      fault, "connecting to " + worker_.plan().endpoint.to_string() + ": " + reason);
  worker_.count_lost_request();
}

Task<> LoadConnection::run() {
  if (worker_.interval() != Duration::zero()) return run_open_loop();
  return worker_.plan().new_connections ? run_connection_per_request() : run_closed_loop();
}

Task<> LoadConnection::run_closed_loop() {
  while (!worker_.is_done()) {
    if (!stream_) co_await open();
    while (stream_) {
      const unsigned count = worker_.acquire_requests(worker_.plan().depth);
      if (count == 0) co_return close();
      // The time of the last response, if any, is the send time of this request.
      if (due_ == Instant{}) due_ = worker_.now();
      const Exchange exchanged = co_await exchange(count);
      if (exchanged == Exchange::over) close();
    }
    co_await pause();
  }
}

Task<> LoadConnection::run_open_loop() {
  interval_ = worker_.interval();
  Instant next = worker_.first_send_time(index_);
  while (!worker_.is_done()) {
    const Instant now = worker_.now();
    if (now < next) {
      const auto slept = co_await sleep_until(std::min(next, worker_.end()));
      if (!slept) {
        worker_.on_cancelled();
        break;
      }
      continue;
    }
    if (!stream_) co_await open();
    if (stream_) {
      const auto behind = static_cast<std::uint64_t>((now - next) / interval_);
      const unsigned count = worker_.acquire_requests(
          static_cast<unsigned>(std::min<std::uint64_t>(behind + 1, worker_.plan().depth)));
      if (count == 0) break;
      due_ = next;
      next = after(next, interval_ * count);
      const Exchange exchanged = co_await exchange(count);
      const bool closing = worker_.plan().new_connections;
      if (closing && exchanged == Exchange::done) co_await read_end();
      if (closing || exchanged == Exchange::over) close();
    }
    co_await pause();
  }
  close();
  count_unsent(next);
}

void LoadConnection::count_unsent(Instant next) {
  if (worker_.end() == never || next >= worker_.end()) return;
  // A request that is due exactly at the end does not count.
  const Duration missed = worker_.end() - next;
  std::uint64_t left = static_cast<std::uint64_t>((missed - Duration(1)) / interval_) + 1;
  worker_.result().unsent += left;
  // Record very many requests in groups, each with the wait of its last request.
  const std::uint64_t together = (left - 1) / lost_records_max + 1;
  while (left != 0) {
    const std::uint64_t count = std::min(together, left);
    left -= count;
    next = after(next, interval_ * static_cast<std::int64_t>(count - 1));
    worker_.record_lost(worker_.end() - next, count);
    next = after(next, interval_);
  }
}

Task<> LoadConnection::run_connection_per_request() {
  while (worker_.acquire_requests(1) != 0) {
    due_ = worker_.now();
    co_await open();
    if (stream_) {
      const Exchange exchanged = co_await exchange(1);
      if (exchanged == Exchange::done) co_await read_end();
      close();
    }
    co_await pause();
  }
}

Task<LoadConnection::Exchange> LoadConnection::exchange(unsigned count) {
  outstanding_ = count;
  waiting_since_ = worker_.loop_time();
  const auto written = co_await (*stream_)->write(requests(count));
  if (!written) co_return on_io_error(written.error());
  while (outstanding_ != 0) {
    const auto input = co_await (*stream_)->read();
    if (!input) co_return on_io_error(input.error());
    worker_.result().bytes_received += input->size();
    if (const unsigned whole = reader_.read(input->text(), outstanding_)) on_responses(whole);
    if (reader_.error() != ResponseError::none) co_return on_response_error();
    if (outstanding_ != 0 && reader_.idle() && reader_.closes()) break;
  }
  waiting_since_ = never;
  if (!reader_.closes() || worker_.plan().new_connections) co_return Exchange::done;
  ++worker_.result().closed_by_server;
  count_lost(worker_.result().unanswered);
  co_return Exchange::over;
}

/// Returns the bytes of `count` requests. The reader expects their numbers from now on.
std::string_view LoadConnection::requests(unsigned count) {
  const LoadPlan& plan = worker_.plan();
  const NumberPlaceholder& number_placeholder = plan.rules.number_placeholder;
  if (!number_placeholder) return worker_.requests(count);
  reader_.expect(number_);
  numbered_.assign(worker_.requests(count));
  for (std::size_t at = number_placeholder.offset; at < numbered_.size();
       at += plan.request.size()) {
    numbered_.replace(at, number_placeholder.digits, number_placeholder.text(number_));
    number_ = number_placeholder.next(number_);
  }
  return numbered_;
}

Task<> LoadConnection::read_end() {
  ErrorCounts& errors = worker_.result().errors;
  waiting_since_ = worker_.loop_time();
  const auto input = co_await (*stream_)->read();
  waiting_since_ = never;
  if (input) {
    failed_ = true;
    errors.count(ResponseError::unexpected,
                 "after the answer: " + std::string(input->text().substr(0, shown_bytes_max)));
  } else if (input.error() == Errc::cancelled && timed_out_) {
    failed_ = true;
    errors.count(LoadError::not_closed, "the request had Connection: close");
  } else if (!is_end(input.error()) && input.error() != Errc::cancelled) {
    failed_ = true;
    errors.count(LoadError::reset, "after the answer: " + input.error().message());
  }
}

void LoadConnection::on_responses(unsigned count) {
  const Instant now = worker_.now();
  outstanding_ -= count;
  waiting_since_ = now;
  if (interval_ == Duration::zero()) {
    worker_.record(now - due_, count);
    if (outstanding_ == 0) due_ = now;
    return;
  }
  for (; count != 0; --count) {
    worker_.record(now - due_, 1);
    due_ = after(due_, interval_);
  }
}

void LoadConnection::count_lost(std::uint64_t& count) {
  count += outstanding_;
  const Instant now = worker_.now();
  for (; outstanding_ != 0; --outstanding_) {
    if (interval_ == Duration::zero()) continue;
    worker_.record_lost(now - due_, 1);
    due_ = after(due_, interval_);
  }
}

LoadConnection::Exchange LoadConnection::on_io_error(std::error_code error) {
  LoadResult& result = worker_.result();
  if (error == Errc::end_of_stream) {
    // The end of the connection may be the end of the body.
    if (reader_.end() != 0) {
      on_responses(1);
      if (worker_.plan().new_connections) return Exchange::done;
      ++result.closed_by_server;
      count_lost(result.unanswered);
      return Exchange::over;
    }
    if (reader_.error() != ResponseError::none) return on_response_error();
  }
  count_lost(abandoned_ ? result.abandoned : result.unanswered);
  if (error == Errc::cancelled && !timed_out_) {
    if (!abandoned_) worker_.on_cancelled();
    return Exchange::over;
  }
  failed_ = true;
  const LoadError fault = timed_out_      ? LoadError::timed_out
                          : is_end(error) ? LoadError::ended
                                          : LoadError::reset;
  result.errors.count(fault, timed_out_ ? "no answer in time" : error.message());
  return Exchange::over;
}

LoadConnection::Exchange LoadConnection::on_response_error() {
  failed_ = true;
  if (outstanding_ != 0) --outstanding_;  // this response counts as an error
  count_lost(worker_.result().unanswered);
  worker_.result().errors.count(reader_.error(), reader_.describe_error());
  return Exchange::over;
}

void LoadConnection::cancel_if_waiting_since(Instant since) {
  if (waiting_since_ > since || !stream_) return;
  timed_out_ = true;
  (*stream_)->cancel_read();
  (*stream_)->cancel_write();
}

void LoadConnection::abandon() {
  if (!stream_) return;
  abandoned_ = !timed_out_;
  if (outstanding_ != 0 && waiting_since_ <= worker_.measurement_begin()) {
    ++worker_.result().starved;
  }
  (*stream_)->cancel_read();
  (*stream_)->cancel_write();
}

void LoadConnection::close() {
  stream_.reset();
  outstanding_ = 0;
  due_ = {};
  waiting_since_ = never;
  timed_out_ = abandoned_ = false;
}

Task<> LoadConnection::pause() {
  if (std::exchange(failed_, false)) std::ignore = co_await sleep(pause_length);
}

}  // namespace weir::bench
