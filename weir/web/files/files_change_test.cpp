// Tests of files() while files change: the cache, its limits, and files that shrink.
#include <gtest/gtest.h>

#include <string>

#include "weir/web/files/test/files_fixture.hpp"

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
