#include "tests/messages/memory_wire.hpp"

#include <utility>

namespace weir::tests::messages {

Task<Result<>> MemoryPipe::send(std::string piece) {
  while (held_ >= window && end_ == End::open && !closed_) WEIR_CO_TRY(co_await taken_.wait());
  if (end_ != End::open || closed_) co_return fail(Errc::closed);
  if (piece.empty()) co_return {};
  held_ += piece.size();
  sent_bytes_ += piece.size();
  pieces_.push_back(std::move(piece));
  came_.set();
  co_return {};
}

void MemoryPipe::finish(End end) {
  if (end_ == End::open) end_ = end;
  came_.set();
  taken_.set();
}

void MemoryPipe::close() {
  closed_ = true;
  taken_.set();
}

std::optional<std::string> MemoryPipe::take() {
  if (pieces_.empty()) return std::nullopt;
  std::string piece = std::move(pieces_.front());
  pieces_.pop_front();
  held_ -= piece.size();
  taken_.set();
  return piece;
}

Task<Result<>> MemoryPipe::wait() {
  if (!pieces_.empty() || end_ != End::open) co_return {};
  co_return co_await came_.wait();
}

void MemoryWire::leave() {
  request_body.cut();
  response_body.close();
  if (on_left) on_left();
}

}  // namespace weir::tests::messages
