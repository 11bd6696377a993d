#include "tools/weir/check/record_wire.hpp"

#include <algorithm>
#include <utility>

#include "weir/task/timeout.hpp"
#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/detail/contexts.hpp"
#include "weir/tls/detail/session_cache.hpp"

namespace weir::check {

using tls::detail::RecordLayer;
using tls::detail::SslEngine;

namespace {

constexpr Duration renegotiation_timeout = std::chrono::seconds(1);

/// Makes the client's side of a connection that verifies nothing.
tls::Outcome<std::unique_ptr<SslEngine>> make_engine(
    const std::string& name, TlsVersion newest,
    std::shared_ptr<tls::detail::SessionCache> sessions) {
  tls::ClientOptions options;
  options.trust = {};
  options.verification = tls::Verification::none;
  WEIR_TRY(tls::detail::StorePtr store, tls::detail::make_store({}));
  const tls::detail::ClientSnapshot nothing{.trust = {}, .store = std::move(store)};
  WEIR_TRY(const auto context, tls::detail::make_client_context(options, nothing));
  WEIR_TRY(auto engine, SslEngine::make(*context, SslEngine::Side::client));
  engine->set_version_max(newest);
  WEIR_TRY(engine->set_host(name, false, std::move(sessions)));
  return engine;
}

std::string text_of(const Buffer& buffer) {
  return std::string(buffer.text());
}

}  // namespace

void RecordWire::use_sessions(std::string name,
                              std::shared_ptr<tls::detail::SessionCache> sessions) {
  name_ = std::move(name);
  sessions_ = std::move(sessions);
}

Task<bool> RecordWire::open(TlsVersion newest) {
  const bool connected = co_await connect(nullptr);
  if (!connected) co_return false;
  std::string trouble = "no TLS connection: timed out";
  auto shaken = co_await timeout(target().timeout, shake(newest));
  if (shaken) trouble = std::move(*shaken);
  if (!trouble.empty()) set_trouble(trouble);
  co_return trouble.empty();
}

/// Returns why there is no TLS connection; empty: there is one.
Task<std::string> RecordWire::shake(TlsVersion newest) {
  auto engine = make_engine(name_, newest, sessions_);
  if (!engine) co_return engine.error().text();
  engine_ = std::move(*engine);
  Buffer input;
  for (;;) {
    Buffer output;
    const SslEngine::Step step = engine_->handshake(input, output);
    if (!output.empty()) {
      const auto sent = co_await stream().write(output.bytes());
      if (!sent) co_return "no TLS connection: " + sent.error().message();
    }
    if (step == SslEngine::Step::failed) {
      co_return "no TLS connection: " + engine_->take_failure().text();
    }
    if (step == SslEngine::Step::finished) break;
    auto bytes = co_await stream().read();
    if (!bytes) co_return "no TLS connection: " + bytes.error().message();
    input = std::move(*bytes);
  }
  if (!input.empty()) open_records(std::move(input));
  co_return std::string();
}

std::string RecordWire::sealed(std::string_view plain) {
  Buffer output;
  const std::error_code error = engine_->seal(to_bytes(plain), output);
  return error ? std::string() : text_of(output);
}

std::string RecordWire::sealed_close() {
  Buffer output;
  engine_->seal_close(output);
  return text_of(output);
}

std::string RecordWire::sealed_key_update() {
  Buffer output;
  engine_->seal_key_update(output);
  return text_of(output);
}

Task<> RecordWire::exchange(std::string_view bytes, Until until) {
  until_ = until;
  if (is_done()) co_return;
  if (bytes.empty()) co_return co_await receive(target().timeout);
  co_await transfer(bytes, target().timeout);
}

bool RecordWire::is_done() const noexcept {
  return end_ != End::none || (until_ == Until::response && responses_.final_count() != 0);
}

/// Opens the server's records. The answers of OpenSSL to them are dropped.
void RecordWire::open_records(Buffer input) {
  for (;;) {
    Buffer plain;
    Buffer output;
    switch (engine_->open(input, plain, output)) {
      case RecordLayer::Opened::data:
        responses_.read(plain.text());
        continue;
      case RecordLayer::Opened::none:
        return;
      case RecordLayer::Opened::closed:
        responses_.end();
        end_ = End::close_notify;
        return;
      case RecordLayer::Opened::failed:
        end_ = engine_->error() == tls::Error::peer_alert ? End::alert : End::cut;
        return;
    }
  }
}

Task<bool> RecordWire::renegotiate() {
  Buffer output;
  engine_->seal_renegotiation(output);
  auto step = SslEngine::Step::needs_input;
  while (step == SslEngine::Step::needs_input) {
    const auto sent = co_await timeout(renegotiation_timeout, stream().write(output.bytes()));
    output = {};
    auto input = co_await timeout(renegotiation_timeout, stream().read());
    if (!sent || !input) break;
    step = engine_->handshake(*input, output);
  }
  co_return step == SslEngine::Step::finished;
}

void RecordWire::finish_writing() {
  static_cast<void>(stream().finish_writing());
}

bool RecordWire::accepted() const noexcept {
  return std::ranges::any_of(responses_.responses(), [](const Response& each) {
    return each.status >= 200 && each.status < 300;
  });
}

std::string RecordWire::describe() const {
  if (!trouble().empty()) return trouble();
  std::string text;
  for (const Response& each : responses_.responses()) {
    text += (text.empty() ? "" : ", ") + std::to_string(each.status);
  }
  if (text.empty()) text = "no answer";
  switch (end_) {
    case End::none:
      return text + ", kept open";
    case End::close_notify:
      return text + ", close_notify";
    case End::alert:
      return text + ", alert";
    case End::cut:
      return text + ", closed without close_notify";
  }
  return text;
}

}  // namespace weir::check
