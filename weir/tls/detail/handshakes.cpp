#include "weir/tls/detail/handshakes.hpp"

#include <optional>
#include <utility>

#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/tls/detail/session.hpp"

namespace weir::tls::detail {

bool StepTurns::try_take() noexcept {
  const std::uint64_t turn = loop_.counters().turns.value();
  if (last_ == turn) return false;
  last_ = turn;
  return true;
}

Task<Result<>> StepTurns::wait() {
  WEIR_CO_TRY(auto first, co_await queue_.acquire());
  while (!try_take()) {
    WEIR_CO_TRY(co_await sleep(Duration::zero()));
  }
  co_return {};
}

Task<Outcome<Stream>> Handshakes::run(std::unique_ptr<SslEngine> engine, AnyStream inner) {
  counters_.begun.add();
  Buffers buffers;
  auto shaking = shake(*engine, *inner, buffers);
  const Result<> shaken = co_await timeout(limits_.timeout, std::move(shaking));
  if (shaken) {
    TlsInfo info = engine->info();
    counters_.count_success(info);
    co_return Stream(make_block<Session>(std::move(inner), std::move(engine), std::move(info),
                                         std::move(buffers.input), std::move(buffers.output)));
  }
  std::error_code code = shaken.error();
  if (code == Errc::timed_out) code = Error::timed_out;
  Failure failure = code == engine->error() ? engine->take_failure() : Failure(code);
  counters_.count_failure(failure.code());
  co_return std::unexpected(std::move(failure));
}

Task<Result<>> Handshakes::wait_for_permit(SemaphorePermit& permit) {
  std::optional<SemaphorePermit> free = permits_.try_acquire();
  if (free) {
    permit = std::move(*free);
    co_return {};
  }
  if (waiting_ >= limits_.waiting_max) co_return fail(Error::too_many_handshakes);
  ++waiting_;
  Result<SemaphorePermit> waited = co_await permits_.acquire();
  --waiting_;
  if (!waited) co_return fail(waited.error());
  permit = std::move(*waited);
  co_return {};
}

Task<Result<>> Handshakes::shake(SslEngine& engine, weir::Stream& inner, Buffers& buffers) {
  using Step = SslEngine::Step;
  SemaphorePermit permit;
  bool permitted = false;
  std::size_t received = 0;
  bool reads = engine.side() == SslEngine::Side::server;
  for (;;) {
    if (reads) {
      if (received >= limits_.input_bytes_max) co_return fail(Error::input_too_large);
      Result<Buffer> bytes = co_await inner.read();
      if (!bytes && bytes.error() == Errc::cancelled) co_return fail(Errc::cancelled);
      if (!bytes) co_return fail(Error::peer_left);
      received += bytes->size();
      buffers.input = std::move(*bytes);
    }
    reads = true;
    if (!permitted) {
      // A silent client holds no permit. A server asks for one when the first bytes have arrived.
      WEIR_CO_TRY(co_await wait_for_permit(permit));
      permitted = true;
    }
    WEIR_CO_TRY(co_await turns_.wait());
    const Step step = engine.handshake(buffers.input, buffers.output);
    // The tickets of TLS 1.3 travel with the first answer.
    const bool held = step == Step::finished && engine.may_hold_output();
    if (!held && !buffers.output.empty()) {
      const Result<> sent = co_await inner.write(buffers.output.bytes());
      buffers.output = {};
      if (!sent && sent.error() == Errc::cancelled) co_return fail(Errc::cancelled);
      if (!sent && step != Step::failed) co_return fail(Error::peer_left);
    }
    if (step == Step::failed) co_return fail(engine.error());
    if (buffers.input.empty()) buffers.input = {};
    if (step == Step::finished) co_return {};
  }
}

}  // namespace weir::tls::detail
