// Tests of files() while files change: the cache, its limits, and files that shrink.
#include <gtest/gtest.h>

#include <string>

#include "weir/http/matching/detail/route_table.hpp"
#include "weir/web/files/test/files_fixture.hpp"
#include "weir/web/middleware/trusted_proxies.hpp"

namespace weir::http::files_change_test {
namespace {

TEST_F(FilesTest, SeesAChangeAfterOneSecond) {
  write("a.txt", "old");
  serve_files();
  pass(10s);
  const Answer old = get("/s/a.txt");
  write("a.txt", "newer");
  EXPECT_EQ(get("/s/a.txt").body, "old");
  pass(1s);
  const Answer fresh = get("/s/a.txt");
  EXPECT_EQ(fresh.body, "newer");
  EXPECT_NE(fresh.header("ETag"), old.header("ETag"));
  ASSERT_TRUE(platform_.files().remove("/www/a.txt"));
  pass(1s);
  EXPECT_EQ(get("/s/a.txt").status, 404);
  write("a.txt", "again");
  EXPECT_EQ(get("/s/a.txt").body, "again");
}

TEST_F(FilesTest, ComparesWithEachRequestByOption) {
  write("a.txt", "old");
  serve_files({.revalidate_after = Duration::zero()});
  EXPECT_EQ(get("/s/a.txt").body, "old");
  write("a.txt", "newer");
  EXPECT_EQ(get("/s/a.txt").body, "newer");
}

TEST_F(FilesTest, ReadsAFileAgainThatChangedShortlyBefore) {
  write("a.txt", "old");
  serve_files();
  const Answer old = get("/s/a.txt");
  EXPECT_EQ(old.body, "old");
  write("a.txt", "new");  // the same size in the same instant
  pass(1s);
  const std::string known = "If-None-Match: " + old.header("ETag") + "\r\n";
  EXPECT_EQ(get("/s/a.txt", known).status, 200);
  EXPECT_EQ(get("/s/a.txt").body, "new");
}

// rsync -t and tar replace a file by one with the same size and the same time of modification.
TEST_F(FilesTest, GivesAReplacedLargeFileAnotherTag) {
  const std::string text = mixed_text(100'000);
  const std::string other = text.substr(1) + text.substr(0, 1);
  write("big", text);
  write("next", other);  // in the same instant
  serve_files();
  pass(10s);
  const Answer old = get("/s/big");
  EXPECT_TRUE(old.body == text);
  const std::string tag = old.header("ETag");
  EXPECT_FALSE(tag.starts_with("W/"));
  EXPECT_EQ(get("/s/big", "If-None-Match: " + tag + "\r\n").status, 304);
  const std::string range = "Range: bytes=5-9\r\n";
  EXPECT_EQ(get("/s/big", range + "If-Range: " + tag + "\r\n").status, 206);
  ASSERT_TRUE(platform_.files().rename("/www/next", "/www/big"));
  pass(2s);
  const Answer fresh = get("/s/big", "If-None-Match: " + tag + "\r\n");
  EXPECT_EQ(fresh.status, 200);
  EXPECT_TRUE(fresh.body == other);
  EXPECT_EQ(fresh.header("Last-Modified"), old.header("Last-Modified"));
  EXPECT_NE(fresh.header("ETag"), tag);
  EXPECT_EQ(get("/s/big", range + "If-Range: " + tag + "\r\n").status, 200);
  EXPECT_EQ(get("/s/big", "If-Match: " + tag + "\r\n").status, 412);
}

TEST_F(FilesTest, GivesALargeFileAWeakTagUntilItIsSettled) {
  write("big", mixed_text(100'000));
  serve_files();
  const std::string weak = get("/s/big").header("ETag");
  EXPECT_TRUE(weak.starts_with("W/\"")) << weak;
  EXPECT_EQ(get("/s/big", "Range: bytes=0-4\r\nIf-Range: " + weak + "\r\n").status, 200);
  pass(10s);
  EXPECT_EQ(get("/s/big").header("ETag"), weak.substr(2));
  EXPECT_EQ(get("/s/big", "If-None-Match: " + weak + "\r\n").status, 304);
}

TEST_F(FilesTest, KeepsTheVersionThatIsBeingSent) {
  const std::string old = mixed_text(400'000);
  write("big", old);
  serve_files();
  MemoryPeer& peer = connect();
  std::string text = talk(peer, "GET /s/big HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_LT(text.size(), old.size());
  write("next", mixed_text(500'000));
  ASSERT_TRUE(platform_.files().rename("/www/next", "/www/big"));
  pass(2s);
  EXPECT_EQ(get("/s/big").body.size(), 500'000u);
  for (std::size_t before = 0; before != text.size();) {
    before = text.size();
    settle();
    text += peer.take();
  }
  const auto answers = sim::parse_http_responses(text);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].complete && answers[0].body == old);
}

TEST_F(FilesTest, CutsTheConnectionIfAFileShrinks) {
  write("big", mixed_text(400'000));
  serve_files();
  MemoryPeer& peer = connect();
  std::string text = talk(peer, "GET /s/big HTTP/1.1\r\nHost: a\r\n\r\n");
  write("big", mixed_text(70'000));
  for (std::size_t before = 0; before != text.size();) {
    before = text.size();
    settle();
    text += peer.take();
  }
  const auto answers = sim::parse_http_responses(text);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header("Content-Length"), "400000");
  EXPECT_FALSE(answers[0].complete);
  EXPECT_TRUE(peer.ended() || peer.was_reset());
}

TEST_F(FilesTest, SendsNoMoreThanTheLengthIfAFileGrows) {
  write("big", mixed_text(70'000));
  serve_files();
  EXPECT_EQ(get("/s/big").body.size(), 70'000u);
  write("big", mixed_text(90'000));
  const Answer answer = get("/s/big");
  EXPECT_EQ(answer.header("Content-Length"), "70000");
  EXPECT_EQ(answer.body.size(), 70'000u);
}

TEST_F(FilesTest, HoldsAtMostTheLimitsOfItsCache) {
  for (int each = 0; each < 8; ++each) {
    write("small" + std::to_string(each), mixed_text(1000));
    write("big" + std::to_string(each), mixed_text(70'000));
  }
  serve_files({.cache_bytes_max = 2500, .cache_entries_max = 5, .open_files_max = 1});
  for (int round = 0; round < 2; ++round) {
    for (int each = 0; each < 8; ++each) {
      EXPECT_EQ(get("/s/small" + std::to_string(each)).body.size(), 1000u);
      EXPECT_EQ(get("/s/big" + std::to_string(each)).body.size(), 70'000u);
    }
  }
  EXPECT_LE(platform_.open_descriptors(), 2u + 16u * 2u);  // the listener, one file, connections
}

/// Serves large files to clients that read nothing.
class FilesLimits : public FilesTest {
 protected:
  static constexpr int files_count = 12;

  void serve_large(FilesOptions options) {
    for (int each = 0; each < files_count; ++each) write(name(each), mixed_text(3'000'000));
    routes_.use<ClientAddress>(trusted_proxies({.proxies = {"127.0.0.1"}}));
    serve_files(std::move(options));
    closed_ = platform_.open_descriptors();
  }
  static std::string name(int file) { return "big" + std::to_string(file); }
  /// Asks for a file, and reads only the status.
  std::string begin(int file, std::string_view address) {
    peers_.push_back(&connect());
    peers_.back()->send("GET /s/" + name(file) + " HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " +
                        std::string(address) + "\r\n\r\n");
    settle();
    return peers_.back()->received().substr(9, 3);
  }
  std::size_t files_open() const { return platform_.open_descriptors() - closed_ - peers_.size(); }
  void leave() {
    for (MemoryPeer* const each : peers_) each->reset();
    peers_.clear();
    settle();
  }

  std::size_t closed_ = 0;
  std::vector<MemoryPeer*> peers_;
};

TEST_F(FilesLimits, CountTheFilesOfSlowReaders) {
  serve_large({.open_files_max = 8});
  EXPECT_EQ(begin(0, "192.0.2.1"), "200");
  EXPECT_EQ(begin(1, "192.0.2.2"), "200");
  std::string statuses;
  for (int file = 2; file < files_count; ++file) statuses += begin(file, "192.0.2.1") + " ";
  EXPECT_EQ(statuses, "200 200 200 503 503 503 503 503 503 503 ") << "half of the places";
  EXPECT_TRUE(peers_.back()->received().contains("Retry-After: 1\r\n"));
  EXPECT_LE(files_open(), 8U);
  EXPECT_EQ(begin(11, "192.0.2.2"), "200") << "others have places";
  EXPECT_EQ(begin(11, "192.0.2.1"), "503") << "also for a file that is being sent";
  EXPECT_EQ(begin(11, "192.0.2.3"), "200");
  leave();
  EXPECT_LE(files_open(), 8U);
  EXPECT_EQ(begin(9, "192.0.2.1"), "200");
  leave();
}

TEST_F(FilesLimits, CloseAFileWithItsLastReader) {
  serve_large({.open_files_max = 0});
  EXPECT_EQ(begin(0, "192.0.2.1"), "200");
  EXPECT_EQ(begin(0, "192.0.2.2"), "200");
  EXPECT_EQ(begin(1, "192.0.2.2"), "503");
  EXPECT_EQ(files_open(), 1U);
  leave();
  EXPECT_EQ(files_open(), 0U);
  EXPECT_EQ(begin(1, "192.0.2.2"), "200");
  leave();
}

TEST_F(FilesLimits, APlaceGoesToTheReadersThatAreLeft) {
  serve_large({.open_files_max = 8});
  for (int file = 0; file < 4; ++file) {
    EXPECT_EQ(begin(file, "192.0.2.1"), "200");
    EXPECT_EQ(begin(file, "192.0.2.2"), "200") << file;
  }
  for (std::size_t each : {0U, 2U, 4U, 6U}) peers_[each]->reset();
  settle();
  std::string statuses;
  for (int file = 4; file < 8; ++file) statuses += begin(file, "192.0.2.1") + " ";
  EXPECT_EQ(statuses, "200 200 503 503 ") << "half of the four that are left";
  leave();
}

TEST_F(FilesLimits, ShareAFileWithoutACache) {
  serve_large({.cache_bytes_max = 0, .cache_entries_max = 0, .open_files_max = 1});
  for (int reader = 0; reader < 4; ++reader) {
    EXPECT_EQ(begin(0, "192.0.2." + std::to_string(reader)), "200");
  }
  EXPECT_EQ(files_open(), 1U);
  leave();
  EXPECT_EQ(files_open(), 0U);
}

TEST_F(FilesTest, ManyRequestsFallBackAtTheSameTime) {
  serve_files({.spa_fallback = "index.html"});
  std::vector<MemoryPeer*> peers;
  for (int each = 0; each < 100; ++each) {
    peers.push_back(&connect());
    peers.back()->send("GET /s/page" + std::to_string(each) + " HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  settle();
  for (MemoryPeer* const each : peers) EXPECT_EQ(each->received().substr(9, 3), "404");
}

TEST_F(FilesLimits, LetHeadAnd304PassWithoutAPlace) {
  serve_large({.open_files_max = 1});
  const std::string tag = send("HEAD", "/s/big1").header("ETag");
  EXPECT_EQ(begin(0, "192.0.2.1"), "200");
  EXPECT_EQ(send("HEAD", "/s/big1").header("Content-Length"), "3000000");
  EXPECT_EQ(get("/s/big1", "If-None-Match: " + tag + "\r\n").status, 304);
  EXPECT_EQ(get("/s/big1").status, 503);
  leave();
}

TEST_F(FilesLimits, AreDemandsOfTheirCore) {
  const FilesOptions options{.precompressed = true, .open_files_max = 50};
  serve_files(options);
  const RouteDemands demands = server_->routes().table().demands(*loop_);
  EXPECT_EQ(demands.descriptors, 4 * (50U + 32U))
      << "once for both routes, with files being opened";
  EXPECT_GE(demands.core_bytes, options.cache_bytes_max);
  EXPECT_GE(demands.request_bytes, 4 * 64U * 1024U);
}

TEST_F(FilesTest, AnswersWithoutACache) {
  write("a.txt", "hello");
  serve_files({.cache_entries_max = 0});
  EXPECT_EQ(get("/s/a.txt").body, "hello");
  EXPECT_EQ(get("/s/a.txt").body, "hello");
}

TEST_F(FilesTest, AnswersManyRequestsDuringOneCheck) {
  write("a.txt", "hello");
  serve_files();
  EXPECT_EQ(get("/s/a.txt").body, "hello");
  pass(5s);
  std::string requests;
  for (int each = 0; each < 20; ++each) requests += "GET /s/a.txt HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(statuses(requests).size(), std::string("200 ").size() * 20 - 1);
}

TEST_F(FilesTest, LeavesNothingBehindWhenAClientLeaves) {
  write("a.txt", "hello");
  write("big", mixed_text(400'000));
  serve_files({.open_files_max = 0});
  for (const auto* target : {"/s/big", "/s/a.txt"}) {
    MemoryPeer& peer = connect();
    peer.send("GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    turn();
    peer.reset();
    settle();
    MemoryPeer& reader = connect();
    EXPECT_NE(talk(reader, "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n"), "");
    reader.reset();
    pass(2s);
    expect_at_rest();
  }
}

class FilesOnThreads : public FilesTest {
 protected:
  FilesOnThreads() : FilesTest({.files = MemoryFiles::by_threads}) {}
};

TEST_F(FilesOnThreads, ServesFilesThatAreNotInMemory) {
  const std::string content = mixed_text(200'000);
  write("big", content);
  serve_files();
  platform_.files().set_cached(false);
  EXPECT_TRUE(get("/s/big").body == content);
}

}  // namespace
}  // namespace weir::http::files_change_test
