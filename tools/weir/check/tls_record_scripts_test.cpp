// Tests of hostile records against TLS servers with faults.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/weir/check/test/script_fixture.hpp"
#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/detail/contexts.hpp"
#include "weir/tls/detail/ssl_engine.hpp"

namespace weir::check::tls_record_scripts_test {
namespace {

using namespace std::chrono_literals;
using tls::detail::RecordLayer;
using tls::detail::SslEngine;

/// The manner of a server after the handshake.
enum class Manner : std::uint8_t {
  correct,
  eager,               ///< answers before the request, and then reads
  silent,              ///< neither answers nor closes
  abrupt,              ///< closes without alert and close_notify
  ignores_truncation,  ///< takes an end without close_notify for an end in order
  renegotiates,        ///< performs a renegotiation
};

class TlsRecordScripts : public ScriptTest {
 protected:
  TlsRecordScripts() {
    target_.host = "a.example";
    tls::SelfSigned certificate;
    certificate.not_before = platform_.wall_time();
    options_.identities.push_back(tls::Identity::self_signed(certificate).value());
    auto snapshot = std::make_shared<tls::detail::ServerSnapshot>();
    snapshot->identities = options_.identities;
    snapshot->store = tls::detail::make_store({}).value();
    contexts_ = tls::detail::ServerContexts::make(options_, std::move(snapshot)).value();
    contexts_->set_ticket_keys(
        std::make_shared<const tls::TicketKeys>(tls::TicketKeys::random().value()));
  }

  std::string check_manner(std::string_view name, Manner manner) {
    return check(name,
                 [this, manner](tcp::Stream stream) { return serve(std::move(stream), manner); });
  }
  std::string kind(std::string_view name, Manner manner) {
    const std::string text = check_manner(name, manner);
    return text.substr(0, text.find(':'));
  }

 private:
  static Task<bool> send(tcp::Stream& stream, Buffer& output) {
    if (output.empty()) co_return true;
    const auto sent = co_await stream.write(output.bytes());
    output = {};
    co_return sent.has_value();
  }

  Task<> serve(tcp::Stream stream, Manner manner) {
    auto engine = SslEngine::make(contexts_->first(), SslEngine::Side::server).value();
    engine->set_clock(platform_);
    Buffer input;
    Buffer output;
    auto step = SslEngine::Step::needs_input;
    while (step == SslEngine::Step::needs_input) {
      auto bytes = co_await stream.read();
      if (!bytes) co_return;
      input = std::move(*bytes);
      step = engine->handshake(input, output);
      const bool sent = co_await send(stream, output);
      if (!sent) co_return;
    }
    if (step == SslEngine::Step::failed) co_return;
    if (manner == Manner::silent) {
      std::ignore = co_await sleep(60s);
      co_return;
    }
    if (manner == Manner::eager) std::ignore = engine->seal(to_bytes(response(200)), output);
    bool ends = co_await send(stream, output);
    ends = !ends;
    std::string text;
    bool asked = false;
    while (!ends) {
      if (input.empty()) {
        auto bytes = co_await stream.read();
        if (!bytes) {
          if (manner != Manner::ignores_truncation) break;
          std::ignore = engine->seal(to_bytes(response(200)), output);
          engine->seal_close(output);
          std::ignore = co_await send(stream, output);
          break;
        }
        input = std::move(*bytes);
      }
      // After its HelloRequest, which the client ignores, this engine takes the ClientHello.
      const bool asks = manner == Manner::renegotiates && !std::exchange(asked, true);
      if (asks) engine->seal_renegotiation(output);
      ends = respond(*engine, input, output, text, manner);
      const bool sent = co_await send(stream, output);
      if (!sent) break;
    }
  }

  /// Opens the records of `input`, and appends the answers to `output`.
  /// Returns: true if the connection ends.
  static bool respond(SslEngine& engine, Buffer& input, Buffer& output, std::string& text,
                      Manner manner) {
    const bool abrupt = manner == Manner::abrupt;
    for (;;) {
      Buffer plain;
      Buffer dropped;
      const auto opened = engine.open(input, plain, abrupt ? dropped : output);
      if (opened == RecordLayer::Opened::none) return false;
      if (opened != RecordLayer::Opened::data) {
        if (!abrupt && opened == RecordLayer::Opened::closed) engine.seal_close(output);
        return true;
      }
      text += plain.text();
      const std::size_t end = text.find("\r\n\r\n");
      if (end == text.npos || manner == Manner::eager) continue;
      if (text.contains("Content-Length: 10\r\n")) continue;  // its body never comes
      std::ignore = engine.seal(to_bytes(response(text.starts_with("X") ? 400 : 200)), output);
      if (text.contains("Connection: close")) {
        if (!abrupt) engine.seal_close(output);
        return true;
      }
      text.clear();
    }
  }

  tls::ServerOptions options_;
  std::unique_ptr<tls::detail::ServerContexts> contexts_;
};

std::vector<std::string> names() {
  const CaseRegistry registry;
  std::vector<std::string> all;
  bool records = false;
  for (const Case& each : registry.cases()) {
    records = records || each.name == "tls/mac";
    if (records) all.push_back(each.name);
  }
  return all;
}

TEST_F(TlsRecordScripts, CorrectServerPassesAll) {
  const auto all = names();
  EXPECT_EQ(all.size(), 19U);
  for (const std::string& name : all) {
    const std::string text = check_manner(name, Manner::correct);
    EXPECT_TRUE(text.starts_with("passed: ")) << name << " " << text;
  }
}

TEST_F(TlsRecordScripts, ServerThatDoesNotCloseFails) {
  for (const std::string& name : names()) {
    if (name == "tls/renegotiation") continue;
    EXPECT_EQ(check_manner(name, Manner::silent), "failed: no answer, kept open") << name;
  }
}

TEST_F(TlsRecordScripts, ServerThatAnswersBrokenRecordsFails) {
  for (const char* name : {"tls/mac", "tls/mac-in-1.2", "tls/record-repeated", "tls/record-swapped",
                           "tls/record-too-long", "tls/request-plain", "tls/alerts-plain",
                           "tls/ccs-late", "tls/hello-late", "tls/cut-head", "tls/cut-body",
                           "tls/cut-record", "tls/flood-key-updates"}) {
    const std::string text = check_manner(name, Manner::eager);
    EXPECT_TRUE(text.starts_with("failed: 200, ")) << name << " " << text;
  }
}

TEST_F(TlsRecordScripts, EndWithoutCloseNotifyMustNotCompleteARequest) {
  for (const char* name : {"tls/cut-head", "tls/cut-body", "tls/cut-record"}) {
    EXPECT_EQ(check_manner(name, Manner::ignores_truncation), "failed: 200, close_notify") << name;
  }
}

TEST_F(TlsRecordScripts, ServerThatClosesWithoutAWordFailsUnlessLenient) {
  for (const char* name :
       {"tls/mac", "tls/record-repeated", "tls/request-plain", "tls/close", "tls/close-notify"}) {
    target_.lenient = false;
    const std::string text = check_manner(name, Manner::abrupt);
    EXPECT_TRUE(text.starts_with("failed: ")) << name << " " << text;
    EXPECT_TRUE(text.ends_with(", closed without close_notify (--lenient accepts it)")) << text;
    target_.lenient = true;
    EXPECT_EQ(kind(name, Manner::abrupt), "passed") << name;
  }
}

TEST_F(TlsRecordScripts, RenegotiationIsFound) {
  EXPECT_EQ(check_manner("tls/renegotiation", Manner::renegotiates),
            "failed: the server has performed it");
  EXPECT_EQ(check_manner("tls/renegotiation", Manner::correct),
            "passed: the server has not performed it");
}

}  // namespace
}  // namespace weir::check::tls_record_scripts_test
