// A fixture for tests of messages with their carrier as parameter: the version of HTTP, plain or
// over TLS.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "weir/http/client/client_limits.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/net/tcp.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/server.hpp"

namespace weir::http {

using namespace std::chrono_literals;

enum class CarrierProtocol : std::uint8_t { http_1_0, http_1_1, http_2 };
enum class CarrierLayer : std::uint8_t { plain, tls };

struct TestedCarrier {
  const char* name;
  CarrierProtocol protocol;
  CarrierLayer layer;

  friend void PrintTo(const TestedCarrier& carrier, std::ostream* out) { *out << carrier.name; }
};

inline constexpr TestedCarrier on_http_1_0{"http_1_0", CarrierProtocol::http_1_0,
                                           CarrierLayer::plain};
inline constexpr TestedCarrier on_http_1_0_tls{"http_1_0_tls", CarrierProtocol::http_1_0,
                                               CarrierLayer::tls};
inline constexpr TestedCarrier on_http_1_1{"http_1_1", CarrierProtocol::http_1_1,
                                           CarrierLayer::plain};
inline constexpr TestedCarrier on_http_1_1_tls{"http_1_1_tls", CarrierProtocol::http_1_1,
                                               CarrierLayer::tls};
inline constexpr TestedCarrier on_http_2{"http_2", CarrierProtocol::http_2, CarrierLayer::plain};
inline constexpr TestedCarrier on_http_2_tls{"http_2_tls", CarrierProtocol::http_2,
                                             CarrierLayer::tls};

inline auto every_carrier() {
  return testing::Values(on_http_1_0, on_http_1_0_tls, on_http_1_1, on_http_1_1_tls, on_http_2,
                         on_http_2_tls);
}
/// Returns the carriers whose connection has one request at a time.
inline auto carriers_of_http_1() {
  return testing::Values(on_http_1_0, on_http_1_0_tls, on_http_1_1, on_http_1_1_tls);
}
/// Returns the carriers that http::Client speaks.
inline auto carriers_of_clients() {
  return testing::Values(on_http_1_1, on_http_1_1_tls, on_http_2, on_http_2_tls);
}
inline std::string carrier_name(const testing::TestParamInfo<TestedCarrier>& info) {
  return info.param.name;
}

/// A server that speaks every version of HTTP, and a raw client that speaks that of the parameter.
/// A test adds its routes before it calls serve().
class CarrierTest : public testing::TestWithParam<TestedCarrier>, protected HttpFixture {
 protected:
  CarrierTest() {
    plain_http2_ = PlainHttp2::prior_knowledge;
    if (GetParam().layer == CarrierLayer::tls) secure();
  }
  void TearDown() override { shut_down(); }

  bool is_http2() const { return GetParam().protocol == CarrierProtocol::http_2; }
  /// Returns true if the end of the connection ends a body without a length.
  bool is_delimited_by_close() const { return GetParam().protocol == CarrierProtocol::http_1_0; }
  /// Returns the version in a request line of HTTP/1.
  const char* version() const { return is_delimited_by_close() ? "HTTP/1.0" : "HTTP/1.1"; }

  /// Returns the options of a client that speaks the protocol of the parameter, which is not
  /// HTTP/1.0.
  ClientOptions client_options() const {
    ClientOptions options;
    options.plain_http2 = is_http2();
    options.tls = tls_client_;
    return options;
  }
  std::string url(std::string_view path) const {
    return (tls_client_ != nullptr ? "https://" : "http://") + address_.to_string() +
           std::string(path);
  }

  Task<AnyStream> connect_as_carrier() {
    auto plain = co_await tcp::connect(address_);
    AnyStream stream(std::move(plain.value()));
    if (tls_client_ == nullptr) co_return std::move(stream);
    tls::Connector connector(*loop_, *tls_client_);
    auto securing = connector.connect(std::move(stream), "127.0.0.1");
    auto secured = co_await std::move(securing);
    co_return AnyStream(std::move(secured.value()));
  }

 private:
  void secure() {
    tls::SelfSigned certificate;
    certificate.names = {"127.0.0.1"};
    certificate.not_before = platform_.wall_time();
    const tls::Identity identity = tls::Identity::self_signed(certificate).value();
    tls::ServerOptions options;
    options.identities = {identity};
    options.protocols = {"h2", "http/1.1"};
    tls_ = std::make_shared<tls::Server>(std::move(options));
    tls::ClientOptions trusting;
    trusting.trust = {.system = false, .files = {}, .pem = identity.chain()};
    trusting.protocols = {is_http2() ? "h2" : "http/1.1"};
    tls_client_ = std::make_shared<tls::Client>(std::move(trusting));
  }

  std::shared_ptr<tls::Client> tls_client_;
};

}  // namespace weir::http
