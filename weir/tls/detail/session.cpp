#include "weir/tls/detail/session.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "weir/tls/certificate/error.hpp"

namespace weir::tls::detail {

SessionOutput::SessionOutput(Session& owner) noexcept
    : loop::SendOperation([](loop::Runnable& self) {
        static_cast<SessionOutput&>(static_cast<loop::SendOperation&>(self)).session.on_sent();
      }),
      session(owner) {}

void SessionOutput::NextTurn::on_timer(loop::Timer& timer) {
  SessionOutput& output = static_cast<NextTurn&>(timer).output;
  output.session.inner().loop().ready(output);
}

Session::Session(AnyStream inner, std::unique_ptr<RecordLayer> records,
                 std::shared_ptr<const TlsInfo> info, Buffer input, Buffer output)
    : loop::ReceiveOperation([](loop::Runnable& self) {
        static_cast<Session&>(static_cast<loop::ReceiveOperation&>(self)).on_received();
      }),
      inner_(std::move(inner)),
      records_(std::move(records)),
      info_(std::move(info)) {
  ClosingSessions::of(inner_->loop());  // close() makes none
  this->input() = std::move(input);
  if (!output.empty()) this->output().output = std::move(output);
}

/// Returns the output. The first call makes it.
/// Errors: throws std::bad_alloc.
SessionOutput& Session::output() {
  if (output_ == nullptr) output_ = make_block<SessionOutput>(*this);
  return *output_;
}

/// Frees the output if nothing is sent any more.
void Session::release_output() noexcept {
  if (output_ == nullptr || output_->busy || output_->writer != nullptr) return;
  if (output_->output.empty() && !output_->end) output_ = nullptr;
}

// --- reading -------------------------------------------------------------------------------------

bool Session::receive(loop::ReceiveOperation& operation) {
  assert(reader_ == nullptr);
  operation.pending();
  if (advance_read(operation)) return true;
  reader_ = &operation;
  return false;
}

/// Continues a read. Returns false if it waits for the inner stream.
bool Session::advance_read(loop::ReceiveOperation& operation) {
  for (;;) {
    if (deliver(operation)) return true;
    if (!input().empty() || records_->has_input()) {
      open_records();
      continue;
    }
    if (!start_receive(*inner_, *this)) return false;
    take_received();
  }
}

/// Finishes the read if there is data or an end.
bool Session::deliver(loop::ReceiveOperation& operation) {
  if (!plain_.empty()) {
    if (operation.target.empty()) {
      operation.buffer = std::move(plain_);
    } else {
      operation.count = std::min(operation.target.size(), plain_.size());
      std::memcpy(operation.target.data(), plain_.data(), operation.count);
      plain_.consume(operation.count);
      if (plain_.empty()) plain_ = {};
    }
    operation.finish();
    return true;
  }
  if (!read_end_) return false;
  operation.finish(read_end_);
  return true;
}

/// Errors: throws std::bad_alloc.
RecordLayer::Opened Session::open_input() {
  if (output_ != nullptr) return records_->open(input(), plain_, output_->output);
  Buffer answers;
  const RecordLayer::Opened opened = records_->open(input(), plain_, answers);
  if (!answers.empty()) output().output = std::move(answers);
  return opened;
}

/// Opens records until there is data or an end, or all input is used.
void Session::open_records() noexcept {
  try {
    switch (open_input()) {
      case RecordLayer::Opened::data:
        if (input().empty()) input() = {};
        return;
      case RecordLayer::Opened::none:
        assert(input().empty());
        break;
      case RecordLayer::Opened::closed:
        read_end_ = Errc::end_of_stream;
        break;
      case RecordLayer::Opened::failed:
        read_end_ = records_->error();
        records_failed_ = true;
        break;
    }
  } catch (const std::bad_alloc&) {
    // Bytes are lost, so the stream must not continue as if it were complete.
    read_end_ = system_error(ENOMEM);
    records_failed_ = true;
  }
  input() = {};
}

/// Takes the result of the inner receive, which is not Errc::cancelled.
void Session::take_received() noexcept {
  if (!error()) return;  // the buffer is the input
  read_end_ = error() == Errc::end_of_stream ? make_error_code(Error::truncated) : error();
}

void Session::on_received() {
  loop::ReceiveOperation& operation = *std::exchange(reader_, nullptr);
  const bool cancelling = std::exchange(read_cancelling_, false);
  if (error() == Errc::cancelled) {
    operation.finish(Errc::cancelled);
  } else {
    take_received();
    if (cancelling) {
      if (!input().empty()) open_records();
      if (!deliver(operation)) operation.finish(Errc::cancelled);
    } else if (!advance_read(operation)) {
      reader_ = &operation;
      return;
    }
  }
  operation.run();  // may destroy this session
}

// --- writing -------------------------------------------------------------------------------------

bool Session::send(loop::SendOperation& operation) {
  operation.pending();
  operation.sent = 0;
  if (operation.partial) return end_send(operation, write_end());
  if (close_sealed_ && !write_end()) return end_send(operation, system_error(EPIPE));
  try {
    output();
  } catch (const std::bad_alloc&) {
    return end_send(operation, system_error(ENOMEM));
  }
  assert(output_->writer == nullptr);
  output_->piece = output_->piece_offset = 0;
  if (!advance_send(operation)) {
    output_->writer = &operation;
    return false;
  }
  release_output();
  return true;
}

bool Session::end_send(loop::SendOperation& operation, std::error_code error) noexcept {
  operation.finish(error);
  return true;
}

/// Continues a write. Returns false if it waits for the inner stream or the next turn.
bool Session::advance_send(loop::SendOperation& operation) {
  for (int batches = 0; batches < batches_per_turn; ++batches) {
    if (const std::error_code end = write_end()) return end_send(operation, end);
    try {
      seal_batch(operation);
      const bool whole = output_->piece == operation.pieces.size() && !output_->end;
      if (operation.last && whole && output_->batch_plain != 0) seal_end();
    } catch (const std::bad_alloc&) {
      output_->end = system_error(ENOMEM);
    }
    if (output_->end) continue;
    if (output_->batch_plain == 0) return end_send(operation, {});
    if (!start_output()) return false;
    finish_batch(operation);
  }
  output_->busy = true;
  Loop& loop = inner_->loop();
  loop.timers().start(output_->next_turn, loop.now());
  return false;
}

/// Seals the next bytes of the write, in as few records as possible.
void Session::seal_batch(const loop::SendOperation& operation) {
  SessionOutput& out = *output_;
  out.batch_plain = 0;
  const auto pieces = operation.pieces;
  Buffer joined;  // pieces that share a record
  while (out.piece < pieces.size() && out.batch_plain < batch_max && !out.end) {
    const Bytes rest = pieces[out.piece].subspan(out.piece_offset);
    const bool last = out.piece + 1 == pieces.size();
    const std::size_t room = RecordLayer::plain_max - joined.size();
    const std::size_t count = std::min(rest.size(), room);
    if (joined.empty() && (last || count == RecordLayer::plain_max)) {
      if (count != 0) seal(rest.first(count));
    } else if (count != 0) {
      if (!joined.owns_memory()) joined = Buffer::with_capacity();
      std::memcpy(joined.room().data(), rest.data(), count);
      joined.commit(count);
    }
    out.batch_plain += count;
    out.piece_offset += count;
    if (out.piece_offset == pieces[out.piece].size()) {
      ++out.piece;
      out.piece_offset = 0;
    }
    if (!joined.empty() &&
        (out.piece == pieces.size() || joined.size() == RecordLayer::plain_max)) {
      seal(joined);
      joined.clear();
    }
  }
  if (!joined.empty() && !out.end) seal(joined);
}

/// Appends the close_notify to the output, once. The end of the inner stream follows the output.
void Session::seal_end() {
  output().last = true;
  records_->seal_close(output_->output);
  close_sealed_ = true;
}

void Session::seal(Bytes plain) {
  Buffer& target = output_->output;
  // A full record is seldom the last one of its batch.
  if (plain.size() == RecordLayer::plain_max && !target.owns_memory()) {
    target = Buffer::with_capacity(BlockPool::block_max);
  }
  const std::error_code error = records_->seal(plain, target);
  if (error) output_->end = error;
}

/// Starts to send the output. Returns true if that has finished. Reading may append to the output
/// meanwhile.
bool Session::start_output() {
  SessionOutput& out = *output_;
  out.sending = std::move(out.output);
  out.sending_piece = out.sending.bytes();
  out.pieces = std::span<const Bytes>(&out.sending_piece, 1);
  out.sent = 0;
  out.busy = !start_send(*inner_, out);
  return !out.busy;
}

/// Ends a batch. The kernel may have taken whole records of a batch that has failed: all of its
/// bytes then count as sent, so that no caller takes them for bytes that the peer cannot have.
void Session::finish_batch(loop::SendOperation& operation) noexcept {
  SessionOutput& out = *output_;
  out.sending = {};
  const std::size_t plain = std::exchange(out.batch_plain, 0);
  if (!out.error() || out.sent != 0) operation.sent += plain;
  if (!out.error()) return;
  if (out.error() == Errc::cancelled) {
    // A part of a record may have been sent, so no further one can follow.
    out.end = system_error(EPIPE);
  } else {
    out.end = out.error();
  }
}

/// The inner send has ended, or it is the turn of the next batch.
void Session::on_sent() {
  SessionOutput& out = *output_;
  out.busy = false;
  if (out.writer == nullptr) return on_flushed();
  loop::SendOperation& operation = *std::exchange(out.writer, nullptr);
  const bool cancelling = std::exchange(out.cancelling, false);
  const bool cancelled = out.error() == Errc::cancelled;
  finish_batch(operation);
  if (cancelled) {
    end_send(operation, Errc::cancelled);
  } else if (cancelling && !write_end()) {
    // Completion beats cancellation, if this batch was the last one. Nothing can follow a part.
    const bool complete = out.piece == operation.pieces.size();
    if (!complete) out.end = system_error(EPIPE);
    end_send(operation, complete ? std::error_code() : make_error_code(Errc::cancelled));
  } else if (!advance_send(operation)) {
    out.writer = &operation;
    return;
  }
  release_output();
  operation.run();  // may destroy this session
}

std::size_t Session::sent_of(const loop::SendOperation& operation) const noexcept {
  const SessionOutput* const out = output_.get();
  if (out == nullptr || !out->busy || out->batch_plain == 0) return operation.sent;
  // The share of the batch that the inner stream has taken; records add a few bytes.
  const std::size_t taken = StreamLayer::sent_of(*inner_, *out);
  return operation.sent +
         out->batch_plain * std::min(taken, out->sending.size()) / out->sending.size();
}

// --- ending --------------------------------------------------------------------------------------

void Session::cancel(loop::Operation& operation) {
  if (&operation == reader_) {
    read_cancelling_ = true;
    cancel_operation(*inner_, *this);
  } else if (output_ != nullptr && &operation == output_->writer) {
    output_->cancelling = true;
    // Otherwise the next turn ends the write.
    if (output_->state() == State::pending) cancel_operation(*inner_, *output_);
  }
}

Result<> Session::finish_writing() {
  assert(output_ == nullptr || output_->writer == nullptr);
  if (finished_) return {};
  if (const std::error_code end = write_end()) return fail(end);
  try {
    if (!close_sealed_) seal_end();
  } catch (const std::bad_alloc&) {
    return fail(system_error(ENOMEM));
  }
  finished_ = true;
  if (output_ != nullptr && !output_->output.empty()) {
    if (!start_output()) return {};  // on_flushed() continues
    output_->sending = {};
    if (output_->error()) return fail(output_->error());
  }
  release_output();
  return inner_->finish_writing();
}

Result<> Session::set_close_mode(CloseMode mode) {
  close_mode_ = mode;
  return inner_->set_close_mode(mode);
}

/// The close_notify is sent, or has failed.
void Session::on_flushed() {
  if (closing_) {
    BlockPtr<Session>(this).reset();
    return;
  }
  output_->sending = {};
  output_->end = output_->error();
  release_output();
  if (!write_end()) std::ignore = inner_->finish_writing();  // the next read reports its failure
}

void Session::close(BlockPtr<Session> session) noexcept {
  Session& self = *session;
  assert(self.reader_ == nullptr && (self.output_ == nullptr || self.output_->writer == nullptr));
  // The inner stream may stay open below, but its observer need not live any longer.
  self.inner_->observe_hangup(nullptr);
  bool pending = self.output_ != nullptr && self.output_->busy;
  if (!pending && self.close_mode_ == CloseMode::orderly) {
    // A failed layer has an alert in the output; a broken write has nothing that can follow.
    try {
      if (!self.write_end() && !self.finished_) self.records_->seal_close(self.output().output);
    } catch (const std::bad_alloc&) {
      self.output_ = nullptr;
    }
    const bool broken = self.output_ != nullptr && self.output_->end;
    const bool has_output = !broken && self.output_ != nullptr && !self.output_->output.empty();
    pending = has_output && !self.start_output();
  }
  if (!pending) return;
  self.closing_ = true;
  cancel_operation(*self.inner_, *self.output_);
  ClosingSessions::of(self.inner_->loop()).add(*self.output_);
  std::ignore = session.release();  // on_flushed() destroys it
}

void Session::abandon(BlockPtr<Session> session) noexcept {
  if (session->output_->state() == State::pending) session->output_->finish(Errc::cancelled);
  // A stream that is never destroyed does not close its socket, which exists no more.
  alignas(AnyStream) std::array<std::byte, sizeof(AnyStream)> forgotten;
  new (forgotten.data()) AnyStream(std::move(session->inner_));
}

ClosingSessions::~ClosingSessions() {
  while (SessionOutput* const output = sessions_.pop_front()) {
    Session::abandon(BlockPtr<Session>(&output->session));
  }
}

}  // namespace weir::tls::detail
