// A server with one raw client of HTTP/2, in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"

namespace weir::http {

class H2ConnectionFixture : public HttpFixture {
 public:
  explicit H2ConnectionFixture(const MemoryPlatformOptions& options = {}) : HttpFixture(options) {
    plain_http2_ = PlainHttp2::prior_knowledge;
  }

  /// Serves, connects and shakes hands.
  void begin(const Limits& limits = {}, std::string_view entries = {}) {
    serve(limits);
    peer_ = &connect();
    receiver_ = frames::Receiver();
    EXPECT_TRUE(answer(frames::preface(entries)).ends_with("settings_ack\n"));
  }
  /// Sends frames and returns a description of those that the server sends.
  std::string answer(std::string_view input) {
    std::string lines = receiver_.read(talk(*peer_, input));
    for (std::string bytes(1, 'x'); !bytes.empty();) {
      settle();  // the server goes on when the client has read
      bytes = peer_->take();
      lines += receiver_.read(bytes);
    }
    return lines;
  }
  std::string received() { return answer({}); }

  MemoryPeer* peer_ = nullptr;
  frames::Receiver receiver_;
};

}  // namespace weir::http
