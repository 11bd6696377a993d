// Tests of responses and their bodies.
#include "weir/http/message/response.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/http/syntax/status_category.hpp"
#include "weir/http/test/compile_time_text.hpp"
#include "weir/http/test/heap_fixture.hpp"

namespace weir::http::response_test {
namespace {

using std::string_view_literals::operator""sv;

TEST(Body, HoldsTextsOfEveryLength) {
  for (std::size_t size = 0; size <= 2 * Body::inline_max; ++size) {
    const std::string text(size, 'b');
    const std::string_view view = text;
    EXPECT_EQ(Body(view).text(), text);
    EXPECT_EQ(Body(text).text(), text);
    EXPECT_EQ(Body(text.c_str()).text(), text);
    EXPECT_EQ(Body(std::string(text)).text(), text);
    Body first(view);
    const Body moved(std::move(first));
    EXPECT_EQ(moved.text(), text);
    EXPECT_FALSE(moved.is_stream());
  }
  EXPECT_EQ(Body::inline_max, 62U);
}

TEST(Body, NeedsHeapMemoryOnlyAboveItsInlineSize) {
  for (const std::size_t size : {Body::inline_max - 1, Body::inline_max, Body::inline_max + 1}) {
    const std::string text(size, 'b');
    const std::uint64_t before = TestHeap::news;
    const Body body{std::string_view(text)};
    const std::uint64_t allocations = TestHeap::news - before;
    if (!TestHeap::replaced) continue;
    EXPECT_EQ(allocations, size <= Body::inline_max ? 0U : 1U) << size;
  }
}

TEST(Body, TakesTheMemoryOfALongString) {
  std::string text(1000, 'b');
  const char* const address = text.data();
  const Body body(std::move(text));
  EXPECT_EQ(body.text().data(), address);
  EXPECT_EQ(body.text().size(), 1000U);
}

TEST(Body, CopiesAShortStringAndAView) {
  std::string text(Body::inline_max, 'b');
  const Body shorter(std::string_view{text});
  std::string longer(100, 'c');
  const Body owned(std::string_view{longer});
  text.assign(text.size(), 'x');
  longer.assign(longer.size(), 'x');
  EXPECT_EQ(shorter.text(), std::string(Body::inline_max, 'b'));
  EXPECT_EQ(owned.text(), std::string(100, 'c'));
}

TEST(Body, RefersToALiteral) {
  static constexpr char literal[] = "a literal\0with a NUL";
  const Body body{Literal(literal)};
  EXPECT_EQ(body.text(), std::string_view(literal, sizeof literal - 1));
  EXPECT_EQ(body.text().data(), static_cast<const char*>(literal));
}

TEST(Body, HoldsABuffer) {
  Buffer buffer = Buffer::with_capacity(100);
  std::memcpy(buffer.room().data(), "bytes", 5);
  buffer.commit(5);
  const char* const address = buffer.text().data();
  const Body body(std::move(buffer));
  EXPECT_EQ(body.text(), "bytes");
  EXPECT_EQ(body.text().data(), address);
  EXPECT_FALSE(body.is_stream());
}

TEST(Body, IsEmptyByDefault) {
  Body body;
  EXPECT_EQ(body.text(), "");
  EXPECT_FALSE(body.is_stream());
  EXPECT_EQ(body.stream(), nullptr);
}

Task<Result<>> write_nothing(BodySink&) {
  co_return {};
}

TEST(Body, AStreamHasAFunctionInsteadOfBytes) {
  Body body{StreamFunction(write_nothing)};
  EXPECT_TRUE(body.is_stream());
  ASSERT_NE(body.stream(), nullptr);
  EXPECT_TRUE(*body.stream());
  EXPECT_EQ(body.text(), "");
}

// Checks at compile time.

/// True if a MediaType of this text compiles.
template <CompileTimeText Text>
concept IsMediaType = requires { typename CompileTimeUse<(MediaType(Text.text), 0)>; };

static_assert(IsMediaType<""> && IsMediaType<" "> && IsMediaType<"~"> && IsMediaType<"text/csv">);
static_assert(!IsMediaType<"a/b\r\nSet-Cookie: c"> && !IsMediaType<"\t"> && !IsMediaType<"\x1f"> &&
              !IsMediaType<"\x7f"> && !IsMediaType<"\x80"> && !IsMediaType<"a/b\0"> &&
              !IsMediaType<"/\xff">);

TEST(MediaTypes, HoldEveryPrintableCharacter) {
  constexpr MediaType type(" ~a/b; c=\"d\"");
  EXPECT_EQ(type.text(), " ~a/b; c=\"d\"");
  EXPECT_EQ(MediaType("").text(), "");
}

TEST(Response, HasAStatusATypeAndABody) {
  const Response ok;
  EXPECT_EQ(ok.status(), Status::ok);
  EXPECT_EQ(ok.content_type(), "");
  EXPECT_EQ(ok.body().text(), "");
  EXPECT_TRUE(ok.is_plain());
  Response gone = Status::gone;
  EXPECT_EQ(gone.status(), Status::gone);
  gone.set_status(Status::found);
  EXPECT_EQ(gone.status(), Status::found);
  const Response full(Status::accepted, "a/b", Body(Literal("c")));
  EXPECT_EQ(full.status(), Status::accepted);
  EXPECT_EQ(full.content_type(), "a/b");
  EXPECT_EQ(full.body().text(), "c");
}

TEST(Response, IsMadeFromTextOrHtml) {
  const std::string owned = "owned";
  for (const Response& response : {text("literal"), text(owned), html("literal"), html(owned)}) {
    EXPECT_EQ(response.status(), Status::ok);
    EXPECT_TRUE(response.is_plain());
    EXPECT_FALSE(response.body().is_stream());
  }
  EXPECT_EQ(text("literal").body().text(), "literal");
  EXPECT_EQ(text(owned).body().text(), "owned");
  EXPECT_EQ(text("literal").content_type(), "text/plain; charset=utf-8");
  EXPECT_EQ(text(owned).content_type(), "text/plain; charset=utf-8");
  EXPECT_EQ(html("literal").body().text(), "literal");
  EXPECT_EQ(html(owned).body().text(), "owned");
  EXPECT_EQ(html("literal").content_type(), "text/html; charset=utf-8");
  EXPECT_EQ(html(owned).content_type(), "text/html; charset=utf-8");
  const Response streamed = stream("a/b", write_nothing);
  EXPECT_EQ(streamed.status(), Status::ok);
  EXPECT_EQ(streamed.content_type(), "a/b");
  EXPECT_TRUE(streamed.body().is_stream());
}

TEST(Response, AddsAndReplacesHeaders) {
  Response response;
  response.add_header("A", "1");
  response.add_header("a", "2");
  response.add_header("B", "3");
  EXPECT_EQ(response.headers().lines(), "A: 1\r\na: 2\r\nB: 3\r\n");
  response.set_header("a", "4");
  EXPECT_EQ(response.headers().lines(), "B: 3\r\na: 4\r\n");
  EXPECT_EQ(response.invalid_header(), "");
  EXPECT_FALSE(response.is_plain());
  EXPECT_EQ(response.cause(), std::error_code());
  const Response moved = std::move(response);
  EXPECT_EQ(moved.headers().lines(), "B: 3\r\na: 4\r\n");
}

TEST(Response, IsInvalidWithAHeaderOfTheServer) {
  for (const std::string_view name : {"Content-Length", "content-length", "TRANSFER-ENCODING",
                                      "Connection", "date"}) {  // "1" is no date
    Response added;
    added.add_header(name, "1");
    EXPECT_EQ(added.invalid_header(), name);
    EXPECT_TRUE(added.headers().empty()) << name;
    Response set;
    set.set_header(name, "1");
    EXPECT_EQ(set.invalid_header(), name);
    EXPECT_TRUE(set.headers().empty()) << name;
  }
  Response response;
  for (const std::string_view name :
       {"Content-Lengths", "X-Date", "Dat", "Connections", "Content-Type", "Transfer-Encodin"}) {
    response.add_header(name, "1");
    response.set_header(name, "2");
    EXPECT_EQ(response.headers().get(name), "2");
  }
  EXPECT_EQ(response.invalid_header(), "");
}

TEST(Body, SharesATextWithACache) {
  auto text = std::make_shared<const std::string>(100, 'x');
  const Body body(text);
  EXPECT_EQ(text.use_count(), 2);
  EXPECT_EQ(body.text().data(), text->data());
  EXPECT_EQ(body.length(), 100U);
  EXPECT_FALSE(body.is_stream());
}

TEST(Response, TakesAllHeadersOfAList) {
  Headers headers;
  EXPECT_TRUE(headers.add("A", "1"));
  EXPECT_TRUE(headers.add("B", "2"));
  Response response;
  response.add_header("C", "3");
  response.set_headers(headers);
  EXPECT_EQ(response.headers().lines(), "A: 1\r\nB: 2\r\n");
  EXPECT_EQ(response.invalid_header(), "");
  EXPECT_TRUE(headers.add("Date", "now"));
  response.set_headers(headers);
  EXPECT_EQ(response.invalid_header(), "Date");
}

TEST(Response, IsInvalidWithAHeaderThatCouldSplitIt) {
  for (const std::string_view value : {"a\r\nB: c"sv, "a\n"sv, "\0"sv, "\x7f"sv}) {
    Response added;
    added.add_header("X-Name", value);
    EXPECT_EQ(added.invalid_header(), "X-Name");
    Response set;
    set.set_header("X-Name", value);
    EXPECT_EQ(set.invalid_header(), "X-Name");
    EXPECT_TRUE(set.headers().empty());
  }
}

TEST(Response, NamesItsFirstInvalidHeaderInPrintableCharacters) {
  const auto shown = [](std::string_view name) {
    Response response;
    response.add_header(name, "v");
    response.add_header("Second One", "v");
    response.set_header("Third One", "v");
    return std::string(response.invalid_header());
  };
  EXPECT_EQ(shown(""), "(an empty name)");
  EXPECT_EQ(shown("a b"), "a b");
  EXPECT_EQ(shown("a:~!"), "a:~!");
  EXPECT_EQ(shown("a\r\nb"), "a??b");
  EXPECT_EQ(shown("\x1f\x7f\x80\xff"), "????");
  EXPECT_EQ(shown(std::string(63, 'n') + " "), std::string(63, 'n') + " ");
  EXPECT_EQ(shown(std::string(64, 'n') + " "), std::string(64, 'n'));
  EXPECT_EQ(shown(std::string(65, 'n') + " "), std::string(64, 'n'));
}

TEST(Response, IsMadeOfATextAndAStatus) {
  const std::string owned(100, 'x');
  EXPECT_EQ(text("made", Status::created).status(), Status::created);
  EXPECT_EQ(text(owned, Status::accepted).status(), Status::accepted);
  EXPECT_EQ(text(owned).status(), Status::ok);
  EXPECT_EQ(html("made", Status::gone).status(), Status::gone);
  EXPECT_EQ(html(owned, Status::gone).content_type(), html_type);
}

TEST(Response, MayHaveNoContentOrAnotherLocation) {
  EXPECT_EQ(no_content().status(), Status::no_content);
  EXPECT_TRUE(no_content().is_plain());
  const Response seen = redirect("/notes/7");
  EXPECT_EQ(seen.status(), Status::see_other);
  EXPECT_EQ(seen.headers().get("Location"), "/notes/7");
  EXPECT_EQ(redirect("/b", Status::permanent_redirect).status(), Status::permanent_redirect);
  EXPECT_EQ(redirect("/b\r\nSet-Cookie: a").invalid_header(), "Location");
  EXPECT_EQ(redirect("/caf\xc3\xa9 1?q=\xc3\xa9").headers().get("Location"),
            "/caf%C3%A9%201?q=%C3%A9");
}

TEST(Response, IsNoRedirectWithoutALocationOrItsStatus) {
  EXPECT_EQ(redirect("").invalid_header(), "Location, which is empty");
  EXPECT_EQ(redirect("/b", Status::ok).invalid_header(), "Location of a status 200");
  for (const int code : {200, 300, 304, 305, 306, 309, 404}) {
    EXPECT_FALSE(redirect("/b", static_cast<Status>(code)).invalid_header().empty()) << code;
  }
  for (const int code : {301, 302, 303, 307, 308}) {
    EXPECT_EQ(redirect("/b", static_cast<Status>(code)).invalid_header(), "") << code;
  }
}

TEST(Response, KeepsItsCause) {
  Response response;
  response.set_cause({});
  EXPECT_TRUE(response.is_plain());
  EXPECT_EQ(response.cause(), std::error_code());
  response.set_cause(Errc::conflict);
  EXPECT_FALSE(response.is_plain());
  EXPECT_EQ(response.cause(), Errc::conflict);
  EXPECT_TRUE(response.headers().empty());
  response.set_cause({});
  EXPECT_EQ(response.cause(), std::error_code());
}

TEST(Response, AddsNamesToVaryOnce) {
  Response response;
  response.add_vary("Origin");
  response.add_vary("origin");
  EXPECT_EQ(response.headers().get("Vary"), "Origin");
  response.add_header("vary", "Accept , Accept-Encoding");
  response.add_vary("Accept");
  response.add_vary("X-A");
  EXPECT_EQ(response.headers().get("Vary"), "Origin, Accept , Accept-Encoding, X-A");
  EXPECT_EQ(response.headers().count(), 1U);
  response.set_header("Vary", "*");
  response.add_vary("Origin");
  EXPECT_EQ(response.headers().get("Vary"), "*");
}

/// A category of a floor above http.
struct TeaCategory final : StatusCategory {
  const char* name() const noexcept override { return "tea"; }
  std::string message(int) const override { return "the pot is empty"; }
  Status status_of(int value) const noexcept override {
    return value == 1 ? Status::conflict : Status::internal_error;
  }
};

TEST(Response, ErrorOfAStatusCategoryHasItsStatusAndItsText) {
  static const TeaCategory category;
  const Response conflict{std::error_code(1, category)};
  EXPECT_EQ(conflict.status(), Status::conflict);
  EXPECT_EQ(conflict.problem().detail, "the pot is empty");
  EXPECT_TRUE(conflict.needs_error_page());
  const Response failed{std::error_code(2, category)};
  EXPECT_EQ(failed.status(), Status::internal_error);
  EXPECT_EQ(failed.problem().detail, "");
  const Response other(Errc::conflict);
  EXPECT_EQ(other.problem().detail, "");
}

}  // namespace
}  // namespace weir::http::response_test
