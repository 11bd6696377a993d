#include "tools/weir/load_connection.hpp"

#include <algorithm>

#include "tools/weir/load_worker.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::bench {
namespace {

// Before a connection that failed tries again, so that a server which is down is not hammered.
constexpr Duration pause_length = std::chrono::milliseconds(10);

constexpr std::size_t shown_bytes_max = 400;

constexpr std::uint64_t lost_records_max = 4096;  // of one connection, when the time is over

}  // namespace

LoadConnection::LoadConnection(LoadWorker& worker, unsigned index) noexcept
    : worker_(worker), index_(index), reader_(worker.reference()) {
  const Numbering& numbering = worker.plan().rules.numbering;
  if (numbering) number_ = numbering.first(worker.plan().connections_before + index);
}

Task<> LoadConnection::open() {
  LoadResult& result = worker_.result();
  auto stream = co_await timeout(worker_.plan().timeout, tcp::connect(worker_.plan().endpoint));
  if (stream) {
    ++result.connections;
    reader_ = ResponseReader(worker_.reference());
    stream_.emplace(std::move(*stream));
    co_return;
  }
  const std::error_code error = stream.error();
  if (error == Errc::cancelled) co_return;
  failed_ = true;
  const LoadFault fault = error == std::errc::connection_refused ? LoadFault::refused
                          : error == Errc::timed_out             ? LoadFault::timed_out
                                                                 : LoadFault::not_connected;
  result.faults.count(
      fault, "connecting to " + worker_.plan().endpoint.to_string() + ": " + error.message());
  worker_.lose_one();
}

Task<> LoadConnection::run() {
  if (worker_.plan().new_connections) return run_each_anew();
  return worker_.interval() == Duration::zero() ? run_in_turns() : run_on_schedule();
}

Task<> LoadConnection::run_in_turns() {
  while (!worker_.over()) {
    if (!stream_) co_await open();
    while (stream_) {
      const unsigned count = worker_.take(worker_.plan().depth);
      if (count == 0) co_return close();
      // The time of the last answer, where there was one, is the time of this request.
      if (due_ == Instant{}) due_ = worker_.now();
      const Exchange exchanged = co_await exchange(count);
      if (exchanged == Exchange::over) close();
    }
    co_await pause();
  }
}

Task<> LoadConnection::run_on_schedule() {
  interval_ = worker_.interval();
  Instant next = worker_.first_due(index_);
  while (!worker_.over()) {
    const Instant now = worker_.now();
    if (now < next) {
      const auto slept = co_await sleep_until(std::min(next, worker_.end()));
      if (!slept) break;
      continue;
    }
    if (!stream_) co_await open();
    if (stream_) {
      const auto behind = static_cast<std::uint64_t>((now - next) / interval_);
      const unsigned count = worker_.take(
          static_cast<unsigned>(std::min<std::uint64_t>(behind + 1, worker_.plan().depth)));
      if (count == 0) break;
      due_ = next;
      next = after(next, interval_ * count);
      const Exchange exchanged = co_await exchange(count);
      if (exchanged == Exchange::over) close();
    }
    co_await pause();
  }
  close();
  count_unsent(next);
}

void LoadConnection::count_unsent(Instant next) {
  if (worker_.end() == never || next >= worker_.end()) return;
  const Duration missed = worker_.end() - next;  // what is due at its very end is not any more
  std::uint64_t left = static_cast<std::uint64_t>((missed - Duration(1)) / interval_) + 1;
  worker_.result().unsent += left;
  // Of very many, some at a time, with the wait of the last of them.
  const std::uint64_t together = (left - 1) / lost_records_max + 1;
  while (left != 0) {
    const std::uint64_t count = std::min(together, left);
    left -= count;
    next = after(next, interval_ * static_cast<std::int64_t>(count - 1));
    worker_.record_lost(worker_.end() - next, count);
    next = after(next, interval_);
  }
}

Task<> LoadConnection::run_each_anew() {
  while (worker_.take(1) != 0) {
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
  const auto written = co_await stream_->write(requests(count));
  if (!written) co_return broken(written.error());
  while (outstanding_ != 0) {
    const auto input = co_await stream_->read();
    if (!input) co_return broken(input.error());
    worker_.result().bytes_received += input->size();
    if (const unsigned whole = reader_.read(input->text(), outstanding_)) answered(whole);
    if (reader_.fault() != ResponseFault::none) co_return faulty();
    if (outstanding_ != 0 && reader_.idle() && reader_.closes()) break;
  }
  waiting_since_ = never;
  if (!reader_.closes() || worker_.plan().new_connections) co_return Exchange::done;
  ++worker_.result().closed_by_server;
  lose(worker_.result().unanswered);
  co_return Exchange::over;
}

/// To be sent together. Their responses' numbers are expected from now on.
std::string_view LoadConnection::requests(unsigned count) {
  const LoadPlan& plan = worker_.plan();
  const Numbering& numbering = plan.rules.numbering;
  if (!numbering) return worker_.requests(count);
  reader_.expect(number_);
  numbered_.assign(worker_.requests(count));
  for (std::size_t at = numbering.offset; at < numbered_.size(); at += plan.request.size()) {
    numbered_.replace(at, numbering.digits, numbering.text(number_));
    number_ = numbering.next(number_);
  }
  return numbered_;
}

Task<> LoadConnection::read_end() {
  Faults& faults = worker_.result().faults;
  waiting_since_ = worker_.loop_time();
  const auto input = co_await stream_->read();
  waiting_since_ = never;
  if (input) {
    failed_ = true;
    faults.count(ResponseFault::unexpected,
                 "after the answer: " + std::string(input->text().substr(0, shown_bytes_max)));
  } else if (input.error() == Errc::cancelled && timed_out_) {
    failed_ = true;
    faults.count(LoadFault::not_closed, "asked to by Connection: close");
  } else if (input.error() != Errc::end_of_stream && input.error() != Errc::cancelled) {
    failed_ = true;
    faults.count(LoadFault::reset, "after the answer: " + input.error().message());
  }
}

void LoadConnection::answered(unsigned count) {
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

void LoadConnection::lose(std::uint64_t& count) {
  count += outstanding_;
  const Instant now = worker_.now();
  for (; outstanding_ != 0; --outstanding_) {
    if (interval_ == Duration::zero()) continue;
    worker_.record_lost(now - due_, 1);
    due_ = after(due_, interval_);
  }
}

LoadConnection::Exchange LoadConnection::broken(std::error_code error) {
  LoadResult& result = worker_.result();
  if (error == Errc::end_of_stream) {
    // Where the end of the connection is the end of the body, this is how that looks.
    if (reader_.end() != 0) {
      answered(1);
      if (worker_.plan().new_connections) return Exchange::done;
      ++result.closed_by_server;
      lose(result.unanswered);
      return Exchange::over;
    }
    if (reader_.fault() != ResponseFault::none) return faulty();
  }
  lose(abandoned_ ? result.abandoned : result.unanswered);
  if (error == Errc::cancelled && !timed_out_) return Exchange::over;  // nobody wants it any more
  failed_ = true;
  const LoadFault fault = timed_out_                     ? LoadFault::timed_out
                          : error == Errc::end_of_stream ? LoadFault::ended
                                                         : LoadFault::reset;
  result.faults.count(fault, timed_out_ ? "no answer in time" : error.message());
  return Exchange::over;
}

LoadConnection::Exchange LoadConnection::faulty() {
  failed_ = true;
  if (outstanding_ != 0) --outstanding_;  // this one counts as a fault
  lose(worker_.result().unanswered);
  worker_.result().faults.count(reader_.fault(), reader_.describe_fault());
  return Exchange::over;
}

void LoadConnection::give_up_before(Instant since) {
  if (waiting_since_ > since || !stream_) return;
  timed_out_ = true;
  stream_->cancel_read();
  stream_->cancel_write();
}

void LoadConnection::abandon() {
  if (!stream_) return;
  abandoned_ = !timed_out_;
  if (outstanding_ != 0 && waiting_since_ <= worker_.begin_of_measuring()) {
    ++worker_.result().starved;
  }
  stream_->cancel_read();
  stream_->cancel_write();
}

void LoadConnection::close() {
  stream_.reset();
  outstanding_ = 0;
  due_ = {};
  waiting_since_ = never;
  timed_out_ = abandoned_ = false;
}

Task<> LoadConnection::pause() {
  if (std::exchange(failed_, false)) static_cast<void>(co_await sleep(pause_length));
}

}  // namespace weir::bench
