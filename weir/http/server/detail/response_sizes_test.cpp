// Tests that responses arrive whole however much room the output of their connection has left.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "weir/http/test/http_fixture.hpp"

namespace weir::http::response_sizes_test {
namespace {

constexpr std::size_t output_bytes = 16 * 1024;

std::string get_of(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n";
}

class ResponseSizesTest : public HttpTest {
 protected:
  ResponseSizesTest() {
    routes_.get("/size/{size}",
                [](int size) { return text(std::string(static_cast<std::size_t>(size), 'x')); });
    routes_.get("/plain", [] { return text(std::string(120, 'p')); });
    routes_.get("/header", [] {
      Response response = text(std::string(120, 'h'));
      response.add_header("X-Long", std::string(200, 'v'));
      return response;
    });
    routes_.get("/created", [] {
      Response response = text(std::string(120, 'c'));
      response.set_status(Status::created);
      return response;
    });
    routes_.get("/streams", [] { return stream(text_type, write_two); });
    routes_.get("/empty", [] { return stream(text_type, write_none); });
    routes_.get("/fails", [] { return stream(text_type, write_error); });
    routes_.get("/broken", []() -> Result<Response> { return fail(Errc::bad_configuration); });
    routes_.get("/long-header/{size}", [](int size) {
      Response response = text("body\n");
      response.add_header("X-Long", std::string(static_cast<std::size_t>(size), 'v'));
      return response;
    });
  }
  static Task<Result<>> write_two(BodySink& sink) {
    if (auto sent = co_await sink.write("one"); !sent) co_return sent;
    co_return co_await sink.write("two");
  }
  static Task<Result<>> write_none(BodySink&) { co_return {}; }
  static Task<Result<>> write_error(BodySink&) { co_return fail(Errc::not_found); }

  /// Fills the output with a response of a size from `output_bytes` - 700 on, so that every number
  /// of bytes is left for the response to `path` behind it.
  void expect_whole_for_all_rooms(std::string_view path, std::string_view status,
                                  const std::string& body) {
    SCOPED_TRACE(path);
    MemoryPeer& peer = connect();
    for (std::size_t size = output_bytes - 700; size <= output_bytes; ++size) {
      const std::string text =
          talk(peer, get_of("/size/" + std::to_string(size)) + get_of(path) + get_of("/plain"));
      const auto answers = sim::parse_http_responses(text);
      ASSERT_EQ(sim::statuses_of(answers), "200 " + std::string(status) + " 200") << size;
      ASSERT_EQ(answers[0].body, std::string(size, 'x')) << size;
      ASSERT_EQ(answers[1].body, body) << size;
      ASSERT_EQ(answers[2].body, std::string(120, 'p')) << size;
    }
    peer.close();
    settle();
    expect_at_rest();
  }
};

TEST_F(ResponseSizesTest, CommonResponseFitsInAnyRoom) {
  serve();
  expect_whole_for_all_rooms("/plain", "200", std::string(120, 'p'));
}

TEST_F(ResponseSizesTest, ResponseWithHeadersFitsInAnyRoom) {
  serve();
  expect_whole_for_all_rooms("/header", "200", std::string(120, 'h'));
  expect_whole_for_all_rooms("/created", "201", std::string(120, 'c'));
}

TEST_F(ResponseSizesTest, StreamFitsInAnyRoom) {
  serve();
  expect_whole_for_all_rooms("/streams", "200", "onetwo");
  expect_whole_for_all_rooms("/empty", "200", "");
  expect_whole_for_all_rooms("/fails", "404", R"({"title":"Not Found","status":404})");
}

TEST_F(ResponseSizesTest, ErrorOfAHandlerIsCountedOnceInAnyRoom) {
  serve();
  for (std::size_t size = output_bytes - 700; size <= output_bytes; size += 3) {
    const std::uint64_t before = server_->counters().handler_failures.value();
    EXPECT_EQ(statuses(get_of("/size/" + std::to_string(size)) + get_of("/broken")), "200 500");
    ASSERT_EQ(server_->counters().handler_failures.value(), before + 1) << size;
    ASSERT_EQ(platform_.logged().size(), before + 1) << size;
  }
}

TEST_F(ResponseSizesTest, HeadMayBeLargerThanTheOutput) {
  serve();
  for (const std::size_t size :
       {output_bytes - 500, output_bytes - 200, output_bytes - 1, output_bytes, 50'000UL}) {
    const std::string path = "/long-header/" + std::to_string(size);
    const auto answers = sim::parse_http_responses(
        talk(connect(), get_of("/plain") + get_of(path) + get_of("/plain")));
    ASSERT_EQ(sim::statuses_of(answers), "200 200 200") << size;
    EXPECT_EQ(answers[1].header("X-Long"), std::string(size, 'v'));
    EXPECT_EQ(answers[1].body, "body\n");
  }
}

}  // namespace
}  // namespace weir::http::response_sizes_test
