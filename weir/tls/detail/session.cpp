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

Session::Session(AnyStream inner, std::unique_ptr<RecordLayer> records, TlsInfo info, Buffer input,
                 Buffer output)
    : inner_(std::move(inner)),
      closing_sessions_(ClosingSessions::of(inner_->loop())),
      records_(std::move(records)),
      info_(std::move(info)),
      input_(std::move(input)),
      output_(std::move(output)) {}

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
    if (!input_.empty() || records_->has_input()) {
      open_records();
      continue;
    }
    if (!start_receive(*inner_, receive_)) return false;
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

/// Opens records until there is data or an end, or all input is used.
void Session::open_records() noexcept {
  try {
    switch (records_->open(input_, plain_, output_)) {
      case RecordLayer::Opened::data:
        if (input_.empty()) input_ = {};
        return;
      case RecordLayer::Opened::none:
        assert(input_.empty());
        break;
      case RecordLayer::Opened::closed:
        read_end_ = Errc::end_of_stream;
        break;
      case RecordLayer::Opened::failed:
        read_end_ = records_->error();
        write_end_ = system_error(EPIPE);
        break;
    }
  } catch (const std::bad_alloc&) {
    // Bytes are lost, so the stream must not continue as if it were complete.
    read_end_ = system_error(ENOMEM);
    write_end_ = system_error(EPIPE);
  }
  input_ = {};
}

/// Takes the result of the inner receive, which is not Errc::cancelled.
void Session::take_received() noexcept {
  const std::error_code error = receive_.error();
  if (!error) {
    assert(input_.empty());
    input_ = std::move(receive_.buffer);
  } else if (error == Errc::end_of_stream) {
    read_end_ = Error::truncated;
  } else {
    read_end_ = error;
  }
}

void Session::on_received() {
  loop::ReceiveOperation& operation = *std::exchange(reader_, nullptr);
  const bool cancelling = std::exchange(read_cancelling_, false);
  if (receive_.error() == Errc::cancelled) {
    operation.finish(Errc::cancelled);
  } else {
    take_received();
    if (cancelling) {
      if (!input_.empty()) open_records();
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
  assert(writer_ == nullptr);
  operation.pending();
  operation.sent = 0;
  piece_ = piece_offset_ = 0;
  if (advance_send(operation)) return true;
  writer_ = &operation;
  return false;
}

bool Session::end_send(loop::SendOperation& operation, std::error_code error) noexcept {
  operation.finish(error);
  return true;
}

/// Continues a write. Returns false if it waits for the inner stream.
bool Session::advance_send(loop::SendOperation& operation) {
  for (;;) {
    if (write_end_) return end_send(operation, write_end_);
    if (finished_) return end_send(operation, system_error(EPIPE));
    try {
      seal_batch(operation);
    } catch (const std::bad_alloc&) {
      write_end_ = system_error(ENOMEM);
    }
    if (write_end_) continue;
    if (batch_plain_ == 0) return end_send(operation, {});
    if (!start_output()) return false;
    finish_batch(operation);
  }
}

/// Seals the next bytes of the write, in as few records as possible.
void Session::seal_batch(const loop::SendOperation& operation) {
  batch_plain_ = 0;
  const auto pieces = operation.pieces;
  Buffer joined;  // pieces that share a record
  while (piece_ < pieces.size() && batch_plain_ < batch_max && !write_end_) {
    const Bytes rest = pieces[piece_].subspan(piece_offset_);
    const bool last = piece_ + 1 == pieces.size();
    const std::size_t room = RecordLayer::plain_max - joined.size();
    const std::size_t count = std::min(rest.size(), room);
    if (joined.empty() && (last || count == RecordLayer::plain_max)) {
      if (count != 0) seal(rest.first(count));
    } else if (count != 0) {
      if (!joined.owns_memory()) joined = Buffer::with_capacity();
      std::memcpy(joined.room().data(), rest.data(), count);
      joined.commit(count);
    }
    batch_plain_ += count;
    piece_offset_ += count;
    if (piece_offset_ == pieces[piece_].size()) {
      ++piece_;
      piece_offset_ = 0;
    }
    if (!joined.empty() && (piece_ == pieces.size() || joined.size() == RecordLayer::plain_max)) {
      seal(joined);
      joined.clear();
    }
  }
  if (!joined.empty() && !write_end_) seal(joined);
}

void Session::seal(Bytes plain) {
  const std::error_code error = records_->seal(plain, output_);
  if (error) write_end_ = error;
}

/// Starts to send the output. Returns true if that has finished. Reading may append to the output
/// meanwhile.
bool Session::start_output() {
  sending_ = std::move(output_);
  sending_piece_ = sending_.bytes();
  send_.pieces = std::span<const Bytes>(&sending_piece_, 1);
  send_.sent = 0;
  send_pending_ = !start_send(*inner_, send_);
  return !send_pending_;
}

void Session::finish_batch(loop::SendOperation& operation) noexcept {
  sending_ = {};
  if (!send_.error()) {
    operation.sent += std::exchange(batch_plain_, 0);
  } else if (send_.error() == Errc::cancelled) {
    // A part of a record may have been sent, so no further one can follow.
    write_end_ = system_error(EPIPE);
  } else {
    write_end_ = send_.error();
  }
}

void Session::on_sent() {
  send_pending_ = false;
  if (writer_ == nullptr) return on_flushed();
  loop::SendOperation& operation = *std::exchange(writer_, nullptr);
  const bool cancelling = std::exchange(write_cancelling_, false);
  const bool cancelled = send_.error() == Errc::cancelled;
  finish_batch(operation);
  if (cancelled) {
    end_send(operation, Errc::cancelled);
  } else if (cancelling && !write_end_) {
    // Completion beats cancellation, if this batch was the last one. Nothing can follow a part.
    const bool complete = piece_ == operation.pieces.size();
    if (!complete) write_end_ = system_error(EPIPE);
    end_send(operation, complete ? std::error_code() : make_error_code(Errc::cancelled));
  } else if (!advance_send(operation)) {
    writer_ = &operation;
    return;
  }
  operation.run();  // may destroy this session
}

std::size_t Session::sent_of(const loop::SendOperation& operation) const noexcept {
  if (!send_pending_ || batch_plain_ == 0) return operation.sent;
  // The share of the batch that the inner stream has taken; records add a few bytes.
  const std::size_t taken = StreamLayer::sent_of(*inner_, send_);
  return operation.sent + batch_plain_ * std::min(taken, sending_.size()) / sending_.size();
}

// --- ending --------------------------------------------------------------------------------------

void Session::cancel(loop::Operation& operation) {
  if (&operation == reader_) {
    read_cancelling_ = true;
    cancel_operation(*inner_, receive_);
  } else if (&operation == writer_) {
    write_cancelling_ = true;
    cancel_operation(*inner_, send_);
  }
}

Result<> Session::finish_writing() {
  assert(writer_ == nullptr);
  if (finished_) return {};
  if (write_end_) return fail(write_end_);
  try {
    records_->seal_close(output_);
  } catch (const std::bad_alloc&) {
    return fail(system_error(ENOMEM));
  }
  finished_ = true;
  if (output_.empty()) return inner_->finish_writing();
  if (!start_output()) return {};  // on_flushed() continues
  sending_ = {};
  if (send_.error()) return fail(send_.error());
  return inner_->finish_writing();
}

/// The close_notify is sent, or has failed.
void Session::on_flushed() {
  sending_ = {};
  if (closing_) {
    BlockPtr<Session>(this).reset();
  } else if (send_.error()) {
    write_end_ = send_.error();
  } else {
    std::ignore = inner_->finish_writing();  // the next read reports why it has failed
  }
}

void Session::close(BlockPtr<Session> session) noexcept {
  assert(session->reader_ == nullptr && session->writer_ == nullptr);
  // The inner stream may stay open below, but its observer need not live any longer.
  session->inner_->observe_hangup(nullptr);
  bool pending = session->send_pending_;
  if (!pending) {
    // A failed layer has an alert in the output; a broken write has nothing that can follow.
    try {
      if (!session->write_end_ && !session->finished_) {
        session->records_->seal_close(session->output_);
      }
    } catch (const std::bad_alloc&) {
      session->output_ = {};
    }
    pending = !session->output_.empty() && !session->start_output();
  }
  if (!pending) return;
  session->closing_ = true;
  cancel_operation(*session->inner_, session->send_);
  session->closing_sessions_.add(*session);
  std::ignore = session.release();  // on_flushed() destroys it
}

void Session::abandon(BlockPtr<Session> session) noexcept {
  if (session->send_.state() == loop::Operation::State::pending) {
    session->send_.finish(Errc::cancelled);
  }
  // A stream that is never destroyed does not close its socket, which exists no more.
  alignas(AnyStream) std::array<std::byte, sizeof(AnyStream)> forgotten;
  new (forgotten.data()) AnyStream(std::move(session->inner_));
}

ClosingSessions::~ClosingSessions() {
  while (Session* const session = sessions_.pop_front()) {
    Session::abandon(BlockPtr<Session>(session));
  }
}

}  // namespace weir::tls::detail
