#include "weir/http/ws/detail/extension.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir::http::extension_test {
namespace {

class WsExtension : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_deflate({})) GTEST_SKIP() << "this build has no zlib";
  }
};

/// Returns the response to an offer, or "no".
std::string accepted(std::string_view offers, const WebSocketCompression& own) {
  const auto acceptance = accept_deflate(offers, own);
  return acceptance ? acceptance->response : "no";
}

std::string in_words(const std::optional<WebSocketDeflate>& agreed) {
  if (!agreed) return "no";
  const auto words = [](const WebSocketDeflate::Direction& each) {
    return std::to_string(each.window_bits) + (each.has_context ? "+" : "-");
  };
  return words(agreed->server) + " " + words(agreed->client);
}

constexpr WebSocketCompression none{};
constexpr WebSocketCompression both{.send_window_bits = 15, .receive_window_bits = 15};
constexpr WebSocketCompression small{.send_window_bits = 10, .receive_window_bits = 11};

TEST_F(WsExtension, AcceptsOffers) {
  struct Case {
    std::string_view offer;
    WebSocketCompression own;
    std::string_view response;
  };
  const std::string name = "permessage-deflate";
  for (const Case& each : {
           Case{"permessage-deflate", none,
                "; server_no_context_takeover; client_no_context_takeover"},
           Case{"permessage-deflate", both, ""},
           Case{" Permessage-Deflate ;client_max_window_bits ", both, ""},
           Case{"permessage-deflate; client_max_window_bits", small,
                "; server_max_window_bits=10; client_max_window_bits=11"},
           Case{"permessage-deflate; client_max_window_bits=9", small,
                "; server_max_window_bits=10; client_max_window_bits=9"},
           Case{"permessage-deflate", small,
                "; client_no_context_takeover; server_max_window_bits=10"},
           Case{"permessage-deflate; server_max_window_bits=9", small,
                "; client_no_context_takeover; server_max_window_bits=9"},
           Case{"permessage-deflate; server_max_window_bits=15", both,
                "; server_max_window_bits=15"},
           Case{"permessage-deflate; server_max_window_bits=\"12\"", both,
                "; server_max_window_bits=12"},
           Case{"permessage-deflate; server_max_window_bits=12", none,
                "; server_no_context_takeover; client_no_context_takeover; "
                "server_max_window_bits=12"},
           Case{"permessage-deflate; server_no_context_takeover", both,
                "; server_no_context_takeover"},
           Case{"permessage-deflate; client_no_context_takeover", both,
                "; client_no_context_takeover"},
           Case{"permessage-deflate; client_max_window_bits=8", both, "; client_max_window_bits=8"},
           Case{"x-other, permessage-deflate", both, ""},
           Case{"permessage-deflate; unknown, permessage-deflate", both, ""},
           Case{"permessage-deflate; server_max_window_bits=8, permessage-deflate; "
                "server_max_window_bits=10",
                both, "; server_max_window_bits=10"},
       }) {
    EXPECT_EQ(accepted(each.offer, each.own), name + std::string(each.response)) << each.offer;
  }
}

TEST_F(WsExtension, DeclinesInvalidOffers) {
  for (const std::string_view offer :
       {"", ",", "x", "permessage-deflat", "permessage-deflate; x", "permessage-deflate; x=1",
        "permessage-deflate;", "permessage-deflate; server_no_context_takeover=1",
        "permessage-deflate; client_no_context_takeover=\"\"",
        "permessage-deflate; client_no_context_takeover; client_no_context_takeover",
        "permessage-deflate; server_max_window_bits", "permessage-deflate; server_max_window_bits=",
        "permessage-deflate; server_max_window_bits=7",
        "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_max_window_bits=010",
        "permessage-deflate; server_max_window_bits=+9",
        "permessage-deflate; server_max_window_bits=1 0",
        "permessage-deflate; server_max_window_bits=\"10",
        "permessage-deflate; server_max_window_bits=10; server_max_window_bits=10",
        "permessage-deflate; client_max_window_bits=",
        "permessage-deflate; client_max_window_bits=256",
        "permessage-deflate; client_max_window_bits; client_max_window_bits",
        "permessage-deflate; client_max_window_bits; client_max_window_bits=9",
        "permessage-deflate; \"server_no_context_takeover\"", "permessage-deflate=1",
        // Senders of zlib have no window of 256 bytes.
        "permessage-deflate; server_max_window_bits=8"}) {
    EXPECT_EQ(accepted(offer, both), "no") << offer;
  }
}

TEST_F(WsExtension, OffersAndChecksResponses) {
  EXPECT_EQ(deflate_offer(none),
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
            "client_max_window_bits");
  EXPECT_EQ(deflate_offer(both), "permessage-deflate; client_max_window_bits");
  EXPECT_EQ(deflate_offer(small),
            "permessage-deflate; server_max_window_bits=11; client_max_window_bits=10");
  struct Case {
    std::string_view response;
    WebSocketCompression own;
    std::string_view agreed;
  };
  for (const Case& each : {
           Case{"permessage-deflate", both, "15+ 15+"},
           Case{"permessage-deflate; server_no_context_takeover", both, "15- 15+"},
           Case{"permessage-deflate; client_no_context_takeover", both, "15+ 15-"},
           Case{"permessage-deflate; server_max_window_bits=9; client_max_window_bits=10", both,
                "9+ 10+"},
           Case{"permessage-deflate; client_max_window_bits=8", both, "15+ 8+"},
           Case{"permessage-deflate", none, "no"},
           Case{"permessage-deflate; server_no_context_takeover", none, "15- 15-"},
           Case{"permessage-deflate; server_max_window_bits=11", small, "11+ 10+"},
           Case{"permessage-deflate; server_max_window_bits=12", small, "no"},
           Case{"permessage-deflate", small, "no"},
           Case{"permessage-deflate; client_max_window_bits", both, "no"},
           Case{"permessage-deflate, permessage-deflate", both, "no"},
           Case{"permessage-deflate; x", both, "no"},
           Case{"x", both, "no"},
           Case{"", both, "no"},
       }) {
    EXPECT_EQ(in_words(check_deflate_response(each.response, each.own)), each.agreed)
        << each.response;
  }
}

TEST_F(WsExtension, ChecksOptions) {
  for (const WebSocketCompression& bad :
       {WebSocketCompression{.send_window_bits = 8}, WebSocketCompression{.send_window_bits = 16},
        WebSocketCompression{.receive_window_bits = -1}, WebSocketCompression{.level = 0},
        WebSocketCompression{.level = 10}}) {
    EXPECT_FALSE(can_deflate(bad));
  }
  EXPECT_TRUE(can_deflate(both));
}

}  // namespace
}  // namespace weir::http::extension_test
