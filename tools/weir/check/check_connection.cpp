#include "tools/weir/check/conversation.hpp"

#include "weir/task/timeout.hpp"
#include "weir/task/combinators.hpp"

namespace weir::check {

Task<bool> Conversation::open() {
  auto stream = co_await timeout(site_.timeout, tcp::connect(site_.endpoint));
  if (stream) {
    stream_.emplace(std::move(*stream));
  } else {
    failure_ = "no connection: " + stream.error().message();
    over_ = true;
  }
  co_return stream_.has_value();
}

Task<> Conversation::ask(std::string_view bytes, Until until) {
  if (over_) co_return;
  const auto both = co_await all(put(bytes), hear_then_stop_sending(until));
  static_cast<void>(both);
}

Task<> Conversation::put(std::string_view bytes) {
  const auto written = co_await stream_->write(bytes);
  // Who answers before all is sent may close before all is sent: what came tells.
  static_cast<void>(written);
}

Task<> Conversation::hear_then_stop_sending(Until until) {
  co_await hear(until);
  stream_->cancel_write();
}

bool Conversation::heard(const Until& until) const noexcept {
  if (over_ || !reader_.fault().empty()) return true;
  return (until.finals != 0 && reader_.finals() >= until.finals) ||
         (until.interim && reader_.interim());
}

Task<> Conversation::hear(Until until) {
  const Context context = co_await this_context();
  const Instant end = after(context.loop->host().now(), until.longest);
  while (!heard(until) && !context.cancelled()) {
    const Duration left = end - context.loop->host().now();
    if (left <= Duration::zero()) break;
    const auto input = co_await timeout(left, stream_->read());
    take(input);
  }
}

void Conversation::take(const Result<Buffer>& input) {
  if (input) {
    reader_.read(input->text());
  } else if (input.error() == Errc::end_of_stream) {
    reader_.end();
    ended_ = !finished_;
    over_ = true;
  } else if (input.error() != Errc::timed_out && input.error() != Errc::cancelled) {
    reader_.reset();
    reset_ = over_ = true;
  }
}

Task<bool> Conversation::hear_end(Duration longest) {
  Until until;
  until.longest = longest;
  co_await hear(until);
  co_return over_;
}

Task<bool> Conversation::send(std::string_view bytes, Duration longest) {
  if (over_) co_return false;
  const auto written = co_await timeout(longest, stream_->write(bytes));
  co_return written.has_value();
}

void Conversation::finish() {
  if (over_ || finished_) return;
  finished_ = true;
  static_cast<void>(stream_->finish_writing());
}

void Conversation::close() {
  over_ = true;
  stream_.reset();
}

Outcome Conversation::outcome() const {
  Outcome outcome;
  outcome.answers = reader_.answers();
  outcome.finals = reader_.finals();
  outcome.interim = reader_.interim();
  outcome.ended = ended_;
  outcome.reset = reset_;
  outcome.fault = reader_.fault();
  outcome.failure = failure_;
  return outcome;
}

}  // namespace weir::check
