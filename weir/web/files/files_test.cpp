// Tests of files(): content, heads, preconditions, ranges and directories, in memory.
#include "weir/web/files/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "weir/web/encoding/compress.hpp"
#include "weir/web/files/detail/file_site.hpp"
#include "weir/web/files/test/files_fixture.hpp"

namespace weir::http::files_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(FilesTest, ServesContentWithItsTypeAndValidators) {
  write("a.txt", "hello");
  write("sub/page.html", "<p>");
  serve_files();
  const Answer text = get("/s/a.txt");
  EXPECT_EQ(text.status, 200);
  EXPECT_EQ(text.body, "hello");
  EXPECT_EQ(text.header("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(text.header("Content-Length"), "5");
  EXPECT_EQ(text.header("Accept-Ranges"), "bytes");
  EXPECT_THAT(text.header("ETag"), testing::MatchesRegex("\"[0-9a-f]{32}\""));
  EXPECT_NE(text.header("Last-Modified"), "");
  EXPECT_EQ(text.header("Vary"), "");
  EXPECT_EQ(get("/s/sub/page.html").header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(get("/s/sub/p%61ge.html").body, "<p>");
  EXPECT_EQ(get("/s/missing").status, 404);
  EXPECT_EQ(get("/s/a.txt/").status, 404);
  EXPECT_EQ(get("/s/a.txt/b").status, 404);
  EXPECT_EQ(send("POST", "/s/a.txt", "Content-Length: 0\r\n").status, 405);
}

TEST_F(FilesTest, AnswersHeadWithoutABody) {
  write("a.txt", "hello");
  write("big", mixed_text(100'000));
  serve_files();
  for (const auto* target : {"/s/a.txt", "/s/big"}) {
    const Answer whole = get(target);
    const Answer head = send("HEAD", target, "Range: bytes=0-1\r\n");
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.body, "");
    EXPECT_EQ(head.header("Content-Length"), std::to_string(whole.body.size()));
    EXPECT_EQ(head.header("ETag"), whole.header("ETag"));
  }
}

TEST_F(FilesTest, ServesLargeFilesInPieces) {
  const std::string content = mixed_text(300'001);
  write("big.bin", content);
  serve_files();
  for (const bool cached : {true, false}) {
    platform_.files().set_cached(cached);
    const Answer answer = get("/s/big.bin");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("Content-Type"), "application/octet-stream");
    EXPECT_TRUE(answer.complete);
    EXPECT_TRUE(answer.body == content);
  }
}

TEST_F(FilesTest, ServesFilesAroundTheLimitOfSmallOnes) {
  const std::string content = mixed_text(64 * 1024 + 1);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, content.size() - 1, content.size()}) {
    write("f" + std::to_string(size), content.substr(0, size));
  }
  serve_files();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, content.size() - 1, content.size()}) {
    const Answer answer = get("/s/f" + std::to_string(size));
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.complete);
    EXPECT_TRUE(answer.body == content.substr(0, size)) << size;
  }
}

TEST_F(FilesTest, EvaluatesPreconditions) {
  write("a.txt", "hello");
  serve_files();
  const Answer whole = get("/s/a.txt");
  const std::string etag = whole.header("ETag");
  const Answer unchanged = get("/s/a.txt", "If-None-Match: " + etag + "\r\nRange: bytes=0-1\r\n");
  EXPECT_EQ(unchanged.status, 304);
  EXPECT_EQ(unchanged.body, "");
  EXPECT_EQ(unchanged.header("ETag"), etag);
  EXPECT_EQ(unchanged.header("Content-Type"), "");
  EXPECT_EQ(get("/s/a.txt", "If-None-Match: W/" + etag + "\r\n").status, 304);
  EXPECT_EQ(get("/s/a.txt", "If-None-Match: \"x\"\r\n").status, 200);
  EXPECT_EQ(get("/s/a.txt", "If-Match: \"x\"\r\n").status, 412);
  const std::string date = whole.header("Last-Modified");
  EXPECT_EQ(get("/s/a.txt", "If-Modified-Since: " + date + "\r\n").status, 304);
  EXPECT_EQ(send("HEAD", "/s/a.txt", "If-Modified-Since: " + date + "\r\n").status, 304);
  EXPECT_EQ(get("/s/a.txt", "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n").status, 412);
}

TEST_F(FilesTest, ServesOneRange) {
  const std::string content = mixed_text(200'000);
  write("a.txt", "hello");
  write("big", content);
  serve_files();
  const Answer part = get("/s/a.txt", "Range: bytes=1-2\r\n");
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "el");
  EXPECT_EQ(part.header("Content-Range"), "bytes 1-2/5");
  EXPECT_EQ(part.header("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_NE(part.header("ETag"), "");
  EXPECT_EQ(get("/s/a.txt", "Range: bytes=-100\r\n").body, "hello");
  EXPECT_EQ(get("/s/a.txt", "Range: bytes=-100\r\n").status, 206);
  const Answer end = get("/s/big", "Range: bytes=100000-\r\n");
  EXPECT_EQ(end.status, 206);
  EXPECT_TRUE(end.body == content.substr(100'000));
  const Answer behind = get("/s/a.txt", "Range: bytes=5-\r\n");
  EXPECT_EQ(behind.status, 416);
  EXPECT_EQ(behind.header("Content-Range"), "bytes */5");
  EXPECT_EQ(get("/s/a.txt", "Range: bytes=9-1\r\n").status, 200);
  EXPECT_EQ(get("/s/a.txt", "Range: bytes=0-1\r\nRange: bytes=2-3\r\n").status, 200);
}

TEST_F(FilesTest, ServesSeveralRangesAsMultipart) {
  const std::string content = mixed_text(200'000);
  write("big.txt", content);
  serve_files();
  const Answer answer = get("/s/big.txt", "Range: bytes=0-1,100000-179999,-2\r\n");
  EXPECT_EQ(answer.status, 206);
  ASSERT_TRUE(answer.complete);
  EXPECT_EQ(answer.header("Content-Range"), "");
  const std::string type = answer.header("Content-Type");
  ASSERT_THAT(type, testing::StartsWith("multipart/byteranges; boundary="));
  const std::string boundary = type.substr(type.find('=') + 1);
  EXPECT_EQ(boundary.size(), 32u);
  const auto head = [&](const std::string& range) {
    return "\r\n--" + boundary +
           "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: " + range +
           "/200000\r\n\r\n";
  };
  EXPECT_TRUE(answer.body == head("bytes 0-1") + content.substr(0, 2) +
                                 head("bytes 100000-179999") + content.substr(100'000, 80'000) +
                                 head("bytes 199998-199999") + content.substr(199'998) + "\r\n--" +
                                 boundary + "--\r\n");
}

TEST_F(FilesTest, IgnoresARangeOfAnotherVersion) {
  write("a.txt", "hello");
  serve_files();
  pass(10s);
  const Answer whole = get("/s/a.txt");
  const std::string etag = whole.header("ETag");
  const auto status = [&](const std::string& condition) {
    return get("/s/a.txt", "Range: bytes=0-1\r\nIf-Range: " + condition + "\r\n").status;
  };
  EXPECT_EQ(status(etag), 206);
  EXPECT_EQ(status("W/" + etag), 200);
  EXPECT_EQ(status("\"x\""), 200);
  EXPECT_EQ(status(whole.header("Last-Modified")), 206);
  EXPECT_EQ(status("Thu, 01 Jan 1970 00:00:00 GMT"), 200);
}

TEST_F(FilesTest, ServesNeighboursToClientsThatAcceptThem) {
  write("a.js", "plain");
  write("a.js.br", "brotli");
  write("a.js.gz", "gzip");
  write("b.js", "plain");
  serve_files({.precompressed = true});
  const Answer plain = get("/s/a.js");
  EXPECT_EQ(plain.body, "plain");
  EXPECT_EQ(plain.header("Vary"), "Accept-Encoding");
  EXPECT_EQ(plain.header("Content-Encoding"), "");
  const Answer brotli = get("/s/a.js", "Accept-Encoding: gzip, br, zstd\r\n");
  EXPECT_EQ(brotli.body, "brotli");
  EXPECT_EQ(brotli.header("Content-Encoding"), "br");
  EXPECT_EQ(brotli.header("Content-Type"), "text/javascript; charset=utf-8");
  EXPECT_EQ(brotli.header("Vary"), "Accept-Encoding");
  EXPECT_NE(brotli.header("ETag"), plain.header("ETag"));
  EXPECT_EQ(get("/s/a.js", "Accept-Encoding: zstd, gzip;q=0.1\r\n").body, "gzip");
  EXPECT_EQ(get("/s/a.js", "Accept-Encoding: zstd\r\n").body, "plain");
  EXPECT_EQ(get("/s/a.js", "Accept-Encoding: identity;q=0, br;q=0.1\r\n").body, "brotli");
  EXPECT_EQ(get("/s/a.js", "Accept-Encoding: *;q=0\r\n").body, "plain");
  EXPECT_EQ(get("/s/b.js", "Accept-Encoding: br\r\n").header("Vary"), "");
  const std::string known = "If-None-Match: " + plain.header("ETag") + "\r\n";
  EXPECT_EQ(get("/s/a.js", known + "Accept-Encoding: br\r\n").status, 200);
  const Answer unchanged = get("/s/a.js", known);
  EXPECT_EQ(unchanged.status, 304);
  EXPECT_EQ(unchanged.header("Vary"), "Accept-Encoding");
  const Answer part = get("/s/a.js", "Accept-Encoding: br\r\nRange: bytes=0-1\r\n");
  EXPECT_EQ(part.body, "br");
  EXPECT_EQ(part.header("Content-Range"), "bytes 0-1/6");
  EXPECT_EQ(get("/s/a.js.gz").header("Content-Type"), "application/gzip");
}

TEST_F(FilesTest, ServesNoNeighboursByDefault) {
  write("a.js", "plain");
  write("a.js.br", "brotli");
  serve_files();
  EXPECT_EQ(get("/s/a.js", "Accept-Encoding: br\r\n").body, "plain");
}

TEST_F(FilesTest, ServesTheIndexOfADirectory) {
  write("index.html", "root");
  write("sub/index.html", "sub");
  write("empty/x", "");
  serve_files();
  EXPECT_EQ(get("/s/").body, "root");
  EXPECT_EQ(get("/s/").header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(get("/s/sub/").body, "sub");
  EXPECT_EQ(get("/s/empty/").status, 404);
  EXPECT_EQ(get("/s/none/").status, 404);
}

TEST_F(FilesTest, RedirectsDirectoriesWithoutASlash) {
  write("sub/x:y/index.html", "deep");
  serve_files();
  const Answer root = get("/s");
  EXPECT_EQ(root.status, 301);
  EXPECT_EQ(root.header("Location"), "./s/");
  EXPECT_EQ(get("/s/sub?a=1&b").header("Location"), "./sub/?a=1&b");
  const Answer deep = get("/s/sub/x:y");
  EXPECT_EQ(deep.status, 301);
  EXPECT_EQ(deep.header("Location"), "./x:y/");
  EXPECT_EQ(get("/s/sub/x:y/").body, "deep");
}

TEST_F(FilesTest, ListsADirectoryOnlyByOption) {
  write("b<i>.txt", "");
  write("sub dir/x", "");
  write(".hidden", "");
  serve_files({.listing = true});
  const Answer page = get("/s/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("<a href=\"./b%3Ci%3E.txt\">b&lt;i&gt;.txt</a>"));
  EXPECT_THAT(page.body, HasSubstr("<a href=\"./sub%20dir/\">sub dir/</a>"));
  EXPECT_THAT(page.body, Not(HasSubstr("hidden")));
  EXPECT_THAT(page.body, Not(HasSubstr("../")));
  EXPECT_THAT(get("/s/sub%20dir/").body, HasSubstr("../"));
  EXPECT_EQ(get("/s/none/").status, 404);
}

TEST_F(FilesTest, ListsAtMostTheLimitOfEntries) {
  write("a", "");
  write("b", "");
  write("many/a", "");
  for (int each = 0; each < 10; ++each) write("many/b" + std::to_string(each), "");
  serve_files({.listing = true, .listing_max = 1});
  const Answer page = get("/s/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr(">a</a>"));
  EXPECT_THAT(page.body, Not(HasSubstr(">b</a>")));
  EXPECT_THAT(page.body, HasSubstr("the first 1 names; the folder has more"));
  EXPECT_EQ(get("/s/many/").status, 500) << "more than ten times the limit";
}

TEST_F(FilesTest, ListOfAllEntriesSaysNothingOfMore) {
  write("a", "");
  write("b", "");
  serve_files({.listing = true, .listing_max = 2});
  EXPECT_THAT(get("/s/").body, HasSubstr(">b</a>"));
  EXPECT_THAT(get("/s/").body, Not(HasSubstr("more")));
}

TEST(ListingPage, EndsAtItsLimitOfBytes) {
  std::vector<os::DirectoryEntry> entries;
  for (int each = 0; each < 10'000; ++each) {
    entries.push_back({std::to_string(each) + std::string(200, '"'), os::FileKind::file});
  }
  const std::string page = listing_page(entries, {});
  EXPECT_GT(page.size(), listing_bytes_max);
  EXPECT_LT(page.size(), listing_bytes_max + 4096);
  EXPECT_THAT(page, HasSubstr("names; the folder has more"));
  EXPECT_THAT(page, Not(HasSubstr("the first 10000 names")));
}

TEST_F(FilesTest, AListWaitsForItsPlace) {
  for (int each = 0; each < 4000; ++each) write(std::string(200, 'a') + std::to_string(each), "");
  serve_files({.listing = true});
  std::vector<MemoryPeer*> readers;
  for (int each = 0; each < 5; ++each) {
    readers.push_back(&connect());
    readers.back()->send("GET /s/ HTTP/1.1\r\nHost: a\r\n\r\n");
    settle();
  }
  EXPECT_TRUE(readers[3]->received().starts_with("HTTP/1.1 200"));
  EXPECT_EQ(readers[4]->received(), "") << "four lists are sent";
  pass(2s);
  EXPECT_TRUE(readers[4]->received().starts_with("HTTP/1.1 200"))
      << "a slow reader loses its place";
  for (MemoryPeer* const each : readers) each->reset();
  settle();
}

TEST_F(FilesTest, EqualFilesHaveEqualTags) {
  write("a.txt", "hello");
  write("big1", mixed_text(100'000));
  write("big2", mixed_text(100'000));
  pass(5s);
  write("b.txt", "hello");
  write("c.txt", "hallo");
  serve_files();
  EXPECT_EQ(get("/s/a.txt").header("ETag"), get("/s/b.txt").header("ETag"));
  EXPECT_NE(get("/s/a.txt").header("ETag"), get("/s/c.txt").header("ETag"));
  EXPECT_NE(get("/s/big1").header("ETag"), get("/s/big2").header("ETag")) << "two inodes";
}

TEST_F(FilesTest, A304BehindCompressHasTheTagOfIts200) {
  write("text.txt", std::string(5'000, 'x'));
  write("picture.png", std::string(5'000, 'x'));
  write("short.txt", "x");
  write("ready.txt", std::string(5'000, 'x'));
  write("ready.txt.gz", std::string(100, 'z'));
  write("large.txt", std::string(100'000, 'x'));
  routes_.use(compress());
  serve_files({.precompressed = true});
  pass(10s);
  const std::string accepts = "Accept-Encoding: gzip\r\n";
  for (const std::string name :
       {"text.txt", "picture.png", "short.txt", "ready.txt", "large.txt"}) {
    SCOPED_TRACE(name);
    const Answer whole = get("/s/" + name, accepts);
    const std::string tag = whole.header("ETag");
    const bool compressed = name == "text.txt" || name == "large.txt";
    EXPECT_EQ(tag.starts_with("W/"), compressed) << tag;
    const Answer known = get("/s/" + name, accepts + "If-None-Match: " + tag + "\r\n");
    EXPECT_EQ(known.status, 304);
    EXPECT_EQ(known.header("ETag"), tag);
    EXPECT_EQ(known.header("Vary"), whole.header("Vary"));
    EXPECT_EQ(known.header("Content-Type"), "");
    EXPECT_EQ(known.body, "");
    const std::string since = "If-Modified-Since: " + whole.header("Last-Modified") + "\r\n";
    const Answer unchanged = get("/s/" + name, accepts + since);
    EXPECT_EQ(unchanged.status, 304);
    EXPECT_EQ(unchanged.header("ETag"), tag);
    EXPECT_EQ(unchanged.header("Vary"), whole.header("Vary"));
    EXPECT_EQ(unchanged.body, "");
  }
}

TEST_F(FilesTest, LastModifiedIsNotLaterThanDate) {
  const WallTime now = platform_.wall_time();
  platform_.set_wall_time(now + std::chrono::hours(24 * 365));
  write("a.txt", "hello");
  platform_.set_wall_time(now);
  serve_files();
  const Answer answer = get("/s/a.txt");
  EXPECT_EQ(answer.header("Last-Modified"), answer.header("Date"));
  const std::string since = "If-Modified-Since: " + answer.header("Last-Modified") + "\r\n";
  EXPECT_EQ(get("/s/a.txt", since).status, 304);
}

TEST_F(FilesTest, FallsBackToOnePageOfAnApplication) {
  write("index.html", "app");
  write("a.js", "script");
  serve_files({.spa_fallback = "index.html"});
  EXPECT_EQ(get("/s/users/7").body, "app");
  EXPECT_EQ(get("/s/users/").body, "app");
  EXPECT_EQ(get("/s/a.js").body, "script");
  EXPECT_EQ(get("/s/b.js").status, 404);
  EXPECT_EQ(get("/s/.git").status, 404);
}

TEST_F(FilesTest, SetsCacheControlByPattern) {
  write("assets/deep/a.js", "");
  write("a.js", "");
  write("index.html", "");
  serve_files(
      {.cache_control = {{"assets/**", "max-age=31536000, immutable"}, {"*.html", "no-cache"}}});
  EXPECT_EQ(get("/s/assets/deep/a.js").header("Cache-Control"), "max-age=31536000, immutable");
  EXPECT_EQ(get("/s/").header("Cache-Control"), "no-cache");
  EXPECT_EQ(get("/s/a.js").header("Cache-Control"), "");
}

TEST_F(FilesTest, UsesTheMediaTypesOfTheProgram) {
  write("a.Foo", "");
  write("a.txt", "");
  serve_files({.media_types = {{"foo", "application/x-foo"}, {"txt", "text/x-own"}}});
  EXPECT_EQ(get("/s/a.Foo").header("Content-Type"), "application/x-foo");
  EXPECT_EQ(get("/s/a.txt").header("Content-Type"), "text/x-own");
}

TEST(Files, RejectsOptionsThatNoHeaderCanHold) {
  EXPECT_THROW(files("/", {.cache_control = {{"*", "a\nb"}}}), std::invalid_argument);
  EXPECT_THROW(files("/", {.media_types = {{"x", ""}}}), std::invalid_argument);
}

TEST_F(FilesTest, IsServedAtTheRoot) {
  write("index.html", "root");
  write("sub/index.html", "sub");
  routes_.mount("", files("/www"));
  ASSERT_TRUE(routes_.check()) << routes_.error_text();
  serve();
  EXPECT_EQ(get("/").body, "root");
  EXPECT_EQ(get("/sub").header("Location"), "./sub/");
  EXPECT_EQ(get("//sub").status, 404);
}

}  // namespace
}  // namespace weir::http::files_test
