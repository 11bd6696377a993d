// Tests of the cases with many slow clients against servers that let others pay.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/h2_wire.hpp"
#include "tools/weir/check/test/script_fixture.hpp"
#include "tools/weir/check/websocket_wire.hpp"
#include "weir/http/ws/detail/handshake.hpp"

namespace weir::check::share_scripts_test {
namespace {

class ShareScripts : public ScriptTest {
 protected:
  /// Keeps the connections of HTTP/2 open, and answers a GET of others with this status.
  std::string check_streams(std::string_view name, int status) {
    return check(name,
                 [=](tcp::Stream stream) { return serve_streams(std::move(stream), status); });
  }
  /// Serves complete uploads with `to_upload`, and GETs with `to_get`, while there are silent
  /// uploads; before, with 200.
  std::string check_uploads(int to_upload, int to_get) {
    silent_ = 0;
    return check("slow/crowd-gzip", [=, this](tcp::Stream stream) {
      return serve_uploads(std::move(stream), to_upload, to_get);
    });
  }
  std::string check_websockets(int status) {
    return check("websocket/crowd", [=, this](tcp::Stream stream) {
      return serve_websockets(std::move(stream), status);
    });
  }
  std::size_t silent_ = 0;

 private:
  static Task<> serve_streams(tcp::Stream stream, int status) {
    const auto input = co_await stream.read();
    if (!input) co_return;
    const bool is_attack = input->text().starts_with("PRI ");
    const std::string settings = h2_frame(http::FrameType::settings, 0, 0, "");
    const std::string bytes = is_attack ? settings : response(status);
    std::ignore = co_await stream.write(bytes);
    co_await read_to_end(stream);
  }
  Task<> serve_uploads(tcp::Stream stream, int to_upload, int to_get) {
    const auto input = co_await stream.read();
    if (!input) co_return;
    const std::string text(input->text());
    if (text.contains("Content-Length: 1000\r\n")) {
      ++silent_;
    } else {
      const int late = text.starts_with("POST ") ? to_upload : to_get;
      const int status = silent_ == 0 ? 200 : late;
      std::ignore = co_await stream.write(response(status));
    }
    co_await read_to_end(stream);
  }
  Task<> serve_websockets(tcp::Stream stream, int status) {
    const auto input = co_await stream.read();
    if (!input) co_return;
    const std::string text(input->text());
    const http::WsAccept accept = http::websocket_accept("dGhlIHNhbXBsZSBub25jZQ==");
    std::string bytes = response(status);
    if (text.contains("Sec-WebSocket-Key")) {
      bytes =
          "HTTP/1.1 101 X\r\nSec-WebSocket-Accept: " + std::string(accept.data(), accept.size()) +
          "\r\n\r\n\x8a\x04last";
    }
    std::ignore = co_await stream.write(bytes);
    co_await read_to_end(stream);
  }
};

TEST_F(ShareScripts, SlowStreamsCostOthersNothing) {
  for (const std::string_view name : {"http2/share-uploads", "http2/share-windows"}) {
    EXPECT_EQ(check_streams(name, 200), "passed: served");
    EXPECT_EQ(check_streams(name, 503), "failed: a GET beside them got: 503, kept open");
    EXPECT_EQ(connections_, 9U);
  }
  EXPECT_EQ(check_replies("http2/share-uploads", {{response(400), true}}),
            "not applicable: no HTTP/2: no HTTP/2 by prior knowledge");
}

TEST_F(ShareScripts, SilentUploadsCostOthersNothing) {
  EXPECT_EQ(check_uploads(200, 200), "passed: served");
  EXPECT_EQ(silent_, 160U);
  EXPECT_EQ(check_uploads(503, 200), "failed: an upload beside them got: 503");
  EXPECT_EQ(check_uploads(200, 503), "failed: a GET beside them got: 503, kept open");
}

TEST_F(ShareScripts, OpenWebSocketsCostOthersNothing) {
  target_.websocket_path = "/ws";
  EXPECT_EQ(check_websockets(200), "passed: 200 are open");
  EXPECT_EQ(check_websockets(502), "failed: 200 are open, a GET beside them got: 502, kept open");
  EXPECT_EQ(check_replies("websocket/crowd", {{response(200)}}),
            "not applicable: 200, kept open: the path is no WebSocket");
}

}  // namespace
}  // namespace weir::check::share_scripts_test
