// One connection to the server under test: sending and receiving with limits.
#include "tools/weir/check/check_connection.hpp"

#include "weir/net/tls_info.hpp"
#include "weir/tls/certificate/error.hpp"

namespace weir::check {

Task<bool> CheckConnection::open() {
  return connect(target().tls);
}

Task<> CheckConnection::send_and_receive(std::string_view bytes, StopCondition until) {
  until_ = until;
  return transfer(bytes, until.wait_timeout);
}

bool CheckConnection::is_done() const noexcept {
  if (!reader_.protocol_error().empty()) return true;
  return (until_.final_count != 0 && reader_.final_count() >= until_.final_count) ||
         (until_.interim && reader_.interim());
}

Task<> CheckConnection::receive(StopCondition until) {
  until_ = until;
  return Wire::receive(until.wait_timeout);
}

void CheckConnection::on_end(std::error_code error) {
  if (error == Errc::end_of_stream || error == tls::Error::truncated) {
    reader_.end();
    truncated_ = error == tls::Error::truncated;
    closed_by_server_ = !writing_finished_;
  } else {
    reader_.reset();
    reset_ = true;
  }
}

Task<bool> CheckConnection::wait_for_close(Duration wait_timeout) {
  StopCondition until;
  until.wait_timeout = wait_timeout;
  co_await receive(until);
  co_return is_closed();
}

void CheckConnection::finish_writing() {
  if (is_closed() || writing_finished_) return;
  writing_finished_ = true;
  static_cast<void>(stream().finish_writing());
}

Outcome CheckConnection::outcome() const {
  Outcome outcome;
  outcome.responses = reader_.responses();
  outcome.final_count = reader_.final_count();
  outcome.interim = reader_.interim();
  outcome.closed_by_server = closed_by_server_;
  outcome.reset = reset_;
  outcome.truncated = truncated_;
  if (const TlsInfo* const info = tls()) {
    outcome.tls = std::string(name_of(info->version)) + ", " + std::string(info->cipher);
  }
  outcome.protocol_error = reader_.protocol_error();
  outcome.connect_error = trouble();
  return outcome;
}

}  // namespace weir::check
