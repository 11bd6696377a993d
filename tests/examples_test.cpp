// Tests every example program over real sockets, on every backend.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/client.hpp"
#include "tests/server.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::tests::examples_test {
namespace {

/// Returns `size` bytes of all values, without a short period.
std::string mixed_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t state = 1;
  for (char& each : bytes) {
    state = state * 1664525 + 1013904223;
    each = static_cast<char>(state >> 24);
  }
  return bytes;
}

std::size_t count_of(std::string_view part, std::string_view text) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string post_chunked(std::string_view target, std::string_view body, std::size_t piece) {
  std::string request = "POST " + std::string(target) +
                        " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (; !body.empty(); body.remove_prefix(std::min(piece, body.size()))) {
    const std::string_view part = body.substr(0, piece);
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), part.size(), 16);
    request.append(digits.data(), end.ptr).append("\r\n").append(part).append("\r\n");
  }
  return request + "0\r\n\r\n";
}

TEST(ExampleSimulated, AnHourOfVirtualTimePassesImmediately) {
  Process simulated = Process::example("simulated");
  EXPECT_EQ(simulated.wait_for_exit(), 0) << simulated.output();
  EXPECT_NE(simulated.output().find("heard 200 409 200 \n"), std::string::npos);
  const std::string said = simulated.output();
  const std::string command = said.substr(said.find("replay: ") + 8);
  const std::size_t space = command.find(' ');
  Process again(command.substr(0, space), {command.substr(space + 1, command.size() - space - 2)});
  EXPECT_EQ(again.wait_for_exit(), 0) << again.errors();
  EXPECT_EQ(again.output(), said);
}

class ExampleHello : public EachBackend {};
class ExampleEcho : public EachBackend {};
class ExampleParams : public EachBackend {};
class ExampleStreaming : public EachBackend {};
class ExampleDeadlines : public EachBackend {};
class ExampleBench : public EachBackend {};
class ExampleJson : public EachBackend {};
class ExamplePoolLab : public EachBackend {};
class ExampleFiles : public EachBackend {
 protected:
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.root())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  os::TemporaryTree folder_;
};
class ExampleChat : public EachBackend {};
class ExampleLiveRoutes : public EachBackend {};

TEST_P(ExampleHello, AnswersOnItsRoutes) {
  Server server("hello", GetParam());
  Client client = server.connect();
  const auto root = client.exchange(get("/"));
  ASSERT_TRUE(root) << root.error().message();
  EXPECT_EQ(root->status, 200);
  EXPECT_EQ(root->reason, "OK");
  EXPECT_EQ(root->body, "Hello, World!\n");
  EXPECT_EQ(root->header("Content-Length"), "14");
  EXPECT_EQ(root->header("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_TRUE(root->header("Date").ends_with(" GMT")) << root->header("Date");
  EXPECT_FALSE(root->has_header("Connection"));

  const auto named = client.exchange(get("/hello/w%C3%B6rld%2F!"));
  ASSERT_TRUE(named) << named.error().message();
  EXPECT_EQ(named->body, "Hello, w\xC3\xB6rld/!!\n");

  const auto note = client.exchange(post("/users/7/notes", "so be it"));
  ASSERT_TRUE(note) << note.error().message();
  EXPECT_EQ(note->body, "user 7 said so be it\n");

  const auto chunked = client.exchange(post_chunked("/users/-3/notes", "in small chunks", 2));
  ASSERT_TRUE(chunked) << chunked.error().message();
  EXPECT_EQ(chunked->body, "user -3 said in small chunks\n");

  const auto misfit = client.exchange(post("/users/seven/notes", "x"));
  ASSERT_TRUE(misfit) << misfit.error().message();
  EXPECT_EQ(misfit->status, 404);
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleHello, AnswersOtherMethods) {
  Server server("hello", GetParam());
  Client client = server.connect();
  const auto head = client.exchange("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HEAD");
  ASSERT_TRUE(head) << head.error().message();
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->header("Content-Length"), "14");

  const auto wrong = client.exchange(post("/", "x"));
  ASSERT_TRUE(wrong) << wrong.error().message();
  EXPECT_EQ(wrong->status, 405);
  EXPECT_TRUE(wrong->header("Allow").contains("GET")) << wrong->header("Allow");

  const auto options = client.exchange("OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_LT(options->status, 300);
  EXPECT_TRUE(options->header("Allow").contains("GET")) << options->header("Allow");

  const auto unknown = client.exchange("BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(unknown) << unknown.error().message();
  EXPECT_EQ(unknown->status, 405);
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleHello, AnswersAPipelineInOrder) {
  Server server("hello", GetParam());
  Client client = server.connect();
  constexpr int count = 1000;
  std::string batch;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    // Every seventh request has a body, and the others do not wait for it.
    batch += i % 7 == 0 ? post("/users/" + number + "/notes", "hi") : get("/hello/" + number);
  }
  ASSERT_TRUE(client.send(batch));
  for (int i = 0; i < count; ++i) {
    const auto answer = client.read();
    ASSERT_TRUE(answer) << i << ": " << answer.error().message();
    const std::string number = std::to_string(i);
    EXPECT_EQ(answer->body,
              i % 7 == 0 ? "user " + number + " said hi\n" : "Hello, " + number + "!\n");
  }
  EXPECT_EQ(client.unread(), "");
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleHello, RequestsABodyWith100Continue) {
  Server server("hello", GetParam());
  Client client = server.connect();
  ASSERT_TRUE(
      client.send("POST /users/1/notes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
                  "Expect: 100-continue\r\n\r\n"));
  const auto interim = client.read();
  ASSERT_TRUE(interim) << interim.error().message();
  EXPECT_EQ(interim->status, 100);
  const auto final = client.exchange("hello");
  ASSERT_TRUE(final) << final.error().message();
  EXPECT_EQ(final->body, "user 1 said hello\n");
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleHello, FinishesTheAnswersOfAClientThatHasEndedSending) {
  Server server("hello", GetParam());
  Client client = server.connect();
  ASSERT_TRUE(client.send(get("/hello/1") + post("/users/2/notes", "x") + get("/hello/3")));
  client.finish_sending();
  for (const char* const body : {"Hello, 1!\n", "user 2 said x\n", "Hello, 3!\n"}) {
    const auto answer = client.read();
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->body, body);
  }
  EXPECT_TRUE(client.expect_end());
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleEcho, SendsBackWhatEachPeerSent) {
  Server server("echo", GetParam());
  const std::string bytes = mixed_bytes(1 << 20);
  std::vector<std::string> received(4);
  std::vector<std::thread> peers;
  for (std::string& mine : received) {
    peers.emplace_back([&] {
      Client peer = server.connect();
      std::thread sender([&] {
        ASSERT_TRUE(peer.send(bytes));
        peer.finish_sending();
      });
      auto all = peer.read_to_end();
      sender.join();
      ASSERT_TRUE(all) << all.error().message();
      mine = std::move(*all);
    });
  }
  for (std::thread& each : peers) each.join();
  for (const std::string& mine : received) EXPECT_TRUE(mine == bytes) << mine.size();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleParams, PassesParametersToHandlers) {
  Server server("params", GetParam());
  Client client = server.connect();
  const auto body = [&](std::string_view target) {
    const auto answer = client.exchange(get(target));
    if (!answer) return answer.error().message();
    return answer->status == 200 ? answer->body : std::to_string(answer->status);
  };
  EXPECT_EQ(body("/sum/2/40"), "42\n");
  EXPECT_EQ(body("/sum/-2/%34%30"), "38\n");
  EXPECT_EQ(body("/sum/2147483647/1"), "2147483648\n");
  EXPECT_EQ(body("/sum/2/forty"), "404");
  EXPECT_EQ(body("/sum/2/99999999999"), "404");
  EXPECT_EQ(body("/sum/2"), "404");
  EXPECT_EQ(body("/versions/v12.7"), "v12.7 is 12 point 7\n");
  EXPECT_EQ(body("/versions/12.7"), "404");
  EXPECT_EQ(body("/versions/v12.7x"), "404");
  EXPECT_EQ(body("/files/a/b%2Fc//d%20e"), "[a][b/c][][d e]\n");
  EXPECT_EQ(body("/files/a/../b"), "400");
}

TEST_P(ExampleParams, ReadsQueriesAndHeaders) {
  Server server("params", GetParam());
  Client client = server.connect();
  const auto found = client.exchange(
      "GET /search?x=1&q=a+b%26c&q=late HTTP/1.1\r\nHost: localhost\r\nuser-agent:  probe/1 "
      "\r\n\r\n");
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->body, "searching for a b&c\n");
  EXPECT_EQ(found->header("X-Agent"), "probe/1");
  const auto nothing = client.exchange(get("/search?p=1"));
  ASSERT_TRUE(nothing) << nothing.error().message();
  EXPECT_EQ(nothing->status, 400);
}

TEST_P(ExampleParams, CountsLargeBodies) {
  Server server("params", GetParam());
  Client client = server.connect();
  const std::string bytes = mixed_bytes(5'000'000);
  const auto counted = client.exchange(post("/count", bytes));
  ASSERT_TRUE(counted) << counted.error().message();
  EXPECT_EQ(counted->body, "5000000 bytes\n");
  const auto chunked = client.exchange(post_chunked("/count", bytes, 70'001));
  ASSERT_TRUE(chunked) << chunked.error().message();
  EXPECT_EQ(chunked->body, "5000000 bytes\n");
  const auto large = client.exchange(
      "POST /count HTTP/1.1\r\nHost: localhost\r\nContent-Length: 67108865\r\n\r\n");
  ASSERT_TRUE(large) << large.error().message();
  EXPECT_EQ(large->status, 413);
  EXPECT_TRUE(client.expect_end());
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

std::string lines(int count) {
  std::string text;
  for (int line = 1; line <= count; ++line) text += "line " + std::to_string(line) + "\n";
  return text;
}

TEST_P(ExampleStreaming, ProducesBodiesPieceByPiece) {
  Server server("streaming", GetParam());
  Client client = server.connect();
  const auto many = client.exchange(get("/lines/200000"));
  ASSERT_TRUE(many) << many.error().message();
  EXPECT_EQ(many->header("Transfer-Encoding"), "chunked");
  EXPECT_TRUE(many->body == lines(200000)) << many->body.size();
  const auto none = client.exchange(get("/lines/0"));
  ASSERT_TRUE(none) << none.error().message();
  EXPECT_EQ(none->status, 200);
  EXPECT_EQ(none->body, "");
  const auto head = client.exchange("HEAD /lines/9 HTTP/1.1\r\nHost: localhost\r\n\r\n", "HEAD");
  ASSERT_TRUE(head) << head.error().message();
  const auto batch = client.pipeline(get("/lines/30000"), 8);
  ASSERT_TRUE(batch) << batch.error().message();
  for (const Response& each : *batch) EXPECT_TRUE(each.body == lines(30000));
  const auto old = client.exchange("GET /lines/1000 HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(old) << old.error().message();
  EXPECT_TRUE(old->ended_by_close);
  EXPECT_EQ(old->body, lines(1000));
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleStreaming, SendsTicksAsTheyHappen) {
  Server server("streaming", GetParam());
  const auto ticks = server.exchange(get("/ticks"));
  ASSERT_TRUE(ticks) << ticks.error().message();
  std::string expected;
  for (int tick = 0; tick < 5; ++tick) expected += "data: tick " + std::to_string(tick) + "\n\n";
  EXPECT_EQ(ticks->body, expected);
  EXPECT_EQ(ticks->header("Content-Type"), "text/event-stream");
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleStreaming, ConsumesBodiesPieceByPiece) {
  Server server("streaming", GetParam());
  Client client = server.connect();
  const std::string bytes = mixed_bytes(3'000'000);
  const unsigned sum = std::accumulate(bytes.begin(), bytes.end(), 0u, [](unsigned sum, char each) {
    return sum * 31 + static_cast<unsigned char>(each);
  });
  const std::string expected = std::to_string(sum) + "\n";
  for (const std::string& request :
       {post("/checksum", bytes), post_chunked("/checksum", bytes, 999),
        post_chunked("/checksum", bytes, 1'000'000)}) {
    const auto answer = client.exchange(request);
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->body, expected);
  }
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleDeadlines, AnswersWhenWorkIsCancelled) {
  Server server("deadlines", GetParam());
  Client client = server.connect();
  const auto quick = client.exchange(get("/wait/1"));
  ASSERT_TRUE(quick) << quick.error().message();
  EXPECT_EQ(quick->body, "it answered\n");
  const auto slow = client.exchange(get("/wait/3600000"));
  ASSERT_TRUE(slow) << slow.error().message();
  EXPECT_EQ(slow->status, 504);
  const auto fastest = client.exchange(get("/fastest"));
  ASSERT_TRUE(fastest) << fastest.error().message();
  EXPECT_EQ(fastest->body, "backup answered\n");
  const auto both = client.exchange(get("/both"));
  ASSERT_TRUE(both) << both.error().message();
  EXPECT_EQ(both->body, "one answered\ntwo answered\n");
  const auto endless = client.exchange(get("/endless"));
  ASSERT_TRUE(endless) << endless.error().message();
  EXPECT_EQ(endless->status, 503);
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleDeadlines, ASlowHandlerDelaysNoOtherClient) {
  Server server("deadlines", GetParam(), {"--cores", "1"});
  Client slow = server.connect();
  ASSERT_TRUE(slow.send(get("/wait/150") + get("/wait/0")));
  Client quick = server.connect();
  for (int i = 0; i < 20; ++i) {
    const auto answer = quick.exchange(get("/wait/0"));
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->status, 200);
  }
  for (int i = 0; i < 2; ++i) {
    const auto answer = slow.read();
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->body, "it answered\n");
  }
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleBench, TheAnswerHas128BytesInAll) {
  Server server("bench", GetParam());
  Client client = server.connect();
  ASSERT_TRUE(client.send(get("/")));
  client.finish_sending();
  const auto all = client.read_to_end();
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_EQ(all->size(), 128u) << *all;
  EXPECT_TRUE(all->starts_with("HTTP/1.1 200 OK\r\n")) << *all;
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleBench, ServesPlainHttpBesideHttps) {
  // free_address() keeps no port, so another program may be faster.
  for (int tries = 0; tries < 5; ++tries) {
    const std::uint16_t port = free_address().port();
    for (const std::string address : {"", "127.0.0.1"}) {
      std::vector<std::string> arguments{"--tls-self-signed",
                                         "--cores",
                                         "1",
                                         "--backend",
                                         std::string(GetParam().option),
                                         "--port",
                                         std::to_string(port)};
      if (!address.empty()) arguments.insert(arguments.end(), {"--address", address});
      Process process = Process::example("bench", arguments);
      const std::uint16_t plain = address.empty() ? port + 1 : port;
      const auto server = os::Address::parse("127.0.0.2:" + std::to_string(plain)).value();
      const auto is_taken = [&] { return process.errors().contains("in use"); };
      bool serves = false;
      std::ignore = eventually([&] {
        if (auto client = Client::connect(server)) {
          const auto answer = client->exchange(get("/"));
          serves = answer && answer->body == "Hello Weir\n";
        }
        return serves || is_taken();
      });
      if (is_taken()) break;
      EXPECT_TRUE(serves) << process.errors();
      process.signal(SIGTERM);
      EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
      if (!address.empty()) return;
    }
  }
  ADD_FAILURE() << "no free port";
}

TEST_P(ExampleBench, PingsReturnTheirSequence) {
  Server server("bench", GetParam());
  Client client = server.connect();
  for (const int sequence : {0, 1, -1, 2147483647}) {
    for (const char* const path : {"/ping", "/ping/elsewhere"}) {
      const std::string number = std::to_string(sequence);
      const auto answer = client.exchange(post(path, "{\"sequence\": " + number + "}"));
      ASSERT_TRUE(answer) << answer.error().message();
      EXPECT_EQ(answer->body, "{\"sequence\":" + number + "}");
      EXPECT_EQ(answer->header("Content-Type"), "application/json");
    }
  }
  for (const std::string wrong : {"", "{}", "{\"sequence\": }", "{\"sequence\": 1} x"}) {
    const auto answer = client.exchange(post("/ping", wrong));
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->status, wrong == "{}" ? 422 : 400) << wrong;
  }
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleJson, OrdersBecomeInvoices) {
  Server server("json", GetParam());
  Client client = server.connect();
  const auto invoice = client.exchange(
      post("/invoices", R"({"customer":"Ann","items":[{"name":"tea","cents":250,"count":2},)"
                        R"({"name":"cup","cents":999}],"shipping":"express"})"));
  ASSERT_TRUE(invoice) << invoice.error().message();
  EXPECT_EQ(invoice->body, R"({"customer":"Ann","lines":["2 x tea: 500","1 x cup: 999"],)"
                           R"("total_cents":2998})");
  EXPECT_EQ(invoice->header("Content-Type"), "application/json");
  const auto wrong = client.exchange(
      post("/invoices", R"({"customer":"Ann","items":[{"name":"tea","cents":"2.50"}]})"));
  ASSERT_TRUE(wrong) << wrong.error().message();
  EXPECT_EQ(wrong->status, 422);
  EXPECT_NE(wrong->body.find("items[0].cents: expected an integer, found a string"),
            std::string::npos)
      << wrong->body;
  const auto empty = client.exchange(post("/invoices", R"({"customer":"Ann","items":[]})"));
  ASSERT_TRUE(empty) << empty.error().message();
  EXPECT_EQ(empty->status, 400);
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

std::string put(std::string_view target, std::string_view body, std::size_t length) {
  return "PUT " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n" +
         std::string(body);
}
std::string put(std::string_view target, std::string_view body) {
  return put(target, body, body.size());
}

TEST_P(ExampleFiles, ServesWhatWasUploaded) {
  Server server("files", GetParam(), {folder_.root()});
  Client client = server.connect();
  const std::string bytes = mixed_bytes(9'000'001);
  for (const auto& [name, request, status] :
       {std::tuple("/files/one.bin", put("/files/one.bin", bytes), 201),
        std::tuple("/files/two-2", post_chunked("/files/two-2", bytes, 70'001), 201),
        std::tuple("/files/one.bin", put("/files/one.bin", bytes.substr(7)), 204)}) {
    const auto stored = client.exchange(request);
    ASSERT_TRUE(stored) << stored.error().message();
    EXPECT_EQ(stored->status, status);
    const auto served = client.exchange(get(name));
    ASSERT_TRUE(served) << served.error().message();
    EXPECT_EQ(served->status, 200);
    EXPECT_TRUE(served->body == bytes.substr(bytes.size() - served->body.size()));
    EXPECT_GE(served->body.size(), bytes.size() - 7);
  }
  const auto empty = client.exchange(put("/files/empty", ""));
  ASSERT_TRUE(empty) << empty.error().message();
  const auto nothing = client.exchange(get("/files/empty"));
  ASSERT_TRUE(nothing) << nothing.error().message();
  EXPECT_EQ(nothing->body, "");
  const auto missing = client.exchange(get("/files/three"));
  ASSERT_TRUE(missing) << missing.error().message();
  EXPECT_EQ(missing->status, 404);
  EXPECT_EQ(names().size(), 3u);
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleFiles, StoresOnlyUnderTheRequestsConditions) {
  Server server("files", GetParam(), {folder_.root()});
  const auto status = [&](std::string_view target, std::string_view field) {
    return server
        .exchange("PUT " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n" + std::string(field) +
                  "\r\nContent-Length: 3\r\n\r\nnew")
        ->status;
  };
  EXPECT_EQ(status("/files/a", "If-Match: *"), 412);
  EXPECT_EQ(status("/files/a", "If-None-Match: *"), 201);
  EXPECT_EQ(status("/files/a", "If-None-Match: *"), 412);
  EXPECT_EQ(status("/files/a", "If-Match: *"), 204);
  EXPECT_EQ(status("/files/a", "Content-Range: bytes 0-2/6"), 400);
  std::filesystem::create_directory(folder_.path("folder"));
  EXPECT_EQ(server.exchange(get("/files/folder"))->status, 404);
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleFiles, ACutUploadLeavesNothing) {
  Server server("files", GetParam(), {folder_.root()});
  const std::string bytes = mixed_bytes(1'000'000);
  ASSERT_EQ(server.exchange(put("/files/kept", "the old one"))->status, 201);
  for (const bool orderly : {true, false}) {
    for (const std::string name : {"kept", "new"}) {
      Client client = server.connect();
      ASSERT_TRUE(client.send(put("/files/" + name, bytes, bytes.size() + 1)));
      EXPECT_TRUE(eventually([&] { return names().size() == 2; })) << "an upload has begun";
      if (orderly) {
        client.finish_sending();
        const auto answer = client.read();
        ASSERT_TRUE(answer) << answer.error().message();
        EXPECT_EQ(answer->status, 400);
      } else {
        client.reset();
      }
      EXPECT_TRUE(eventually([&] { return names().size() == 1; })) << "the part is removed";
    }
  }
  EXPECT_EQ(names(), std::vector<std::string>{"kept"});
  EXPECT_EQ(server.exchange(get("/files/kept"))->body, "the old one");
  EXPECT_EQ(server.exchange(get("/files/new"))->status, 404);
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleFiles, RejectsUploadsThatAreTooLarge) {
  constexpr std::size_t most = 16 * 1024 * 1024;
  Server server("files", GetParam(), {folder_.root()});
  const auto announced = server.exchange(put("/files/large", "", most + 1));
  ASSERT_TRUE(announced) << announced.error().message();
  EXPECT_EQ(announced->status, 413);
  // This upload announces no length. Its last chunk, of one byte, exceeds the limit.
  Client client = server.connect();
  const auto refused = client.exchange(post_chunked("/files/large", mixed_bytes(most + 1), 65'536));
  ASSERT_TRUE(refused) << refused.error().message();
  EXPECT_EQ(refused->status, 413);
  EXPECT_EQ(names(), std::vector<std::string>{});
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleFiles, RejectsNamesOutsideTheFolder) {
  folder_.write("store/.secret", "secret");
  folder_.write("outside", "secret");
  Server server("files", GetParam(), {folder_.path("store")});
  const std::vector<std::string> wrong = {"",
                                          ".",
                                          "..",
                                          "%2e%2e",
                                          "../outside",
                                          "..%2Foutside",
                                          "%2e%2e%2foutside",
                                          ".secret",
                                          "a%2Fb",
                                          "a/b",
                                          "a%00",
                                          "%00",
                                          "a%20b",
                                          "a%5Cb",
                                          "%C3%A4",
                                          "/etc/passwd",
                                          "%2Fetc%2Fpasswd",
                                          std::string(256, 'n')};
  for (const std::string& name : wrong) {
    for (const std::string& request : {get("/files/" + name), put("/files/" + name, "x")}) {
      const auto answer = server.exchange(request);
      ASSERT_TRUE(answer) << name << ": " << answer.error().message();
      EXPECT_TRUE(answer->status == 400 || answer->status == 404) << name << answer->status;
    }
  }
  EXPECT_EQ(names().size(), 2u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path("store")), {}), 1);
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

/// Returns the report of the lab when all `count` operations have ended.
std::string report_of(Client& client, std::size_t count) {
  std::string body;
  EXPECT_TRUE(eventually([&] {
    const auto answer = client.exchange(get("/report/0"));
    if (!answer || answer->status != 200) return false;
    body = answer->body;
    return count_of("\"arrived_ns\"", body) >= count;
  })) << body;
  return body;
}

TEST_P(ExamplePoolLab, AnswersImmediatelyAndReportsEachOperation) {
  Server server("pool_lab", GetParam(), {"--pool", "3"});
  Client client = server.connect();
  // The cheap endpoint answers while the pool is busy, and so do further tests.
  for (const char* const test : {"/test/cpu/50", "/test/sleep/1", "/test/mix/50"}) {
    const auto accepted = client.exchange(post(test, ""));
    ASSERT_TRUE(accepted) << accepted.error().message();
    EXPECT_EQ(accepted->status, 202);
    const auto cheap = client.exchange(get("/"));
    ASSERT_TRUE(cheap) << cheap.error().message();
    EXPECT_EQ(cheap->body, "cheap\n");
  }
  const std::string report = report_of(client, 30);
  EXPECT_EQ(count_of("\"took_ns\":", report), 30U) << report;
  EXPECT_TRUE(report.starts_with(R"({"size":3,"running":0,"queued":0,"reason":"initial size",)"))
      << report;
  EXPECT_TRUE(client.exchange(get("/report/30"))->body.ends_with(R"("ended":[]})"));
  for (const char* const unknown :
       {"/test/naps/1", "/test/cpu/many", "/report/x", "/test/cpu/-1", "/test/cpu/10000001"}) {
    const auto answer = client.exchange(post(unknown, ""));
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_GE(answer->status, 400) << unknown;
  }
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExamplePoolLab, AnAutomaticPoolIsReportedWithTheReasonOfItsSize) {
  Server server("pool_lab", GetParam(), {"--pool", "auto"});
  Client client = server.connect();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client.exchange(post("/test/sleep/1", "")));
  const std::string report = report_of(client, 50);
  EXPECT_NE(report.find(R"("running":0,"queued":0,"reason":")"), std::string::npos) << report;
  EXPECT_EQ(report.find(R"("reason":"")"), std::string::npos) << report;
  const std::string_view key = "\"took_ns\":";
  for (auto at = report.find(key); at != report.npos; at = report.find(key, at + 1)) {
    EXPECT_GE(std::stoll(report.substr(at + key.size())), 50'000'000) << "the operation has slept";
  }
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

INSTANTIATE_TEST_SUITE_P(On, ExamplePoolLab, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ExampleFiles, testing::ValuesIn(all_backends), name_of);

/// Returns the numbers before each `words` in `text`.
std::vector<std::size_t> numbers_before(std::string_view text, std::string_view words) {
  std::vector<std::size_t> numbers;
  for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1)) {
    const auto start = text.find_last_not_of("0123456789", at - 1) + 1;
    numbers.push_back(std::stoul(std::string(text.substr(start, at - start))));
  }
  return numbers;
}

TEST(ExampleRealTime, CountsEveryRunTwice) {
  Process process = Process::example("real_time", {"200"});
  ASSERT_EQ(process.wait_for_exit(), 0) << process.errors();
  const std::string output = process.output();
  const auto real_time = output.find("with real time: ");
  ASSERT_TRUE(output.starts_with("without real time: ") && real_time != output.npos) << output;
  for (const std::string& part : {output.substr(0, real_time), output.substr(real_time)}) {
    EXPECT_EQ(numbers_before(part, " runs"), std::vector<std::size_t>{200}) << part;
    const auto missed = numbers_before(part, " missed");
    ASSERT_EQ(missed.size(), 1U) << part;
    const auto histogram = numbers_before(part.substr(part.find('\n') + 1), "\n");
    ASSERT_EQ(histogram.size(), 10U) << part;
    EXPECT_EQ(std::accumulate(histogram.begin(), histogram.end(), std::size_t{0}), 200U) << part;
    // One value may be exactly the last bound, which is the period.
    EXPECT_GE(histogram.back(), missed.front()) << part;
    EXPECT_LE(histogram.back(), missed.front() + 1) << part;
  }
}

/// Returns true if `text` arrives in time. The received bytes stay in the client.
bool receives(Client& client, std::string_view text) {
  return eventually([&] { return client.unread().contains(text); });
}

/// Returns the bytes that have arrived since. It reads the socket without the client's buffer.
std::string read_available(const Client& client) {
  std::string taken;
  std::array<char, 65536> bytes;
  for (;;) {
    const auto count = ::recv(client.descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count <= 0) return taken;
    taken.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

bool has_ended(const Client& client) {
  char byte = 0;
  const auto count = ::recv(client.descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN);
}

/// Returns clients of a chat, on any cores. All have received the line of the last client.
std::vector<Client> joined(const Server& server, int count) {
  std::vector<Client> clients;
  std::string line;
  for (int i = 0; i < count; ++i) {
    clients.push_back(server.connect());
    line = "client " + std::to_string(i) + " has come\n";
    EXPECT_TRUE(clients.back().send(line));
    EXPECT_TRUE(receives(clients.back(), line));
  }
  for (Client& each : clients) EXPECT_TRUE(receives(each, line));
  return clients;
}

TEST_P(ExampleChat, AllClientsReceiveAllLinesInOneOrder) {
  constexpr int talkers = 8;
  constexpr int words = 20;  // fewer lines than the chat keeps, so no client misses any
  Server server("chat", GetParam());
  std::vector<Client> clients = joined(server, talkers);
  for (int word = 0; word < words; ++word) {
    for (int i = 0; i < talkers; ++i) {
      const std::string line = std::to_string(i) + ":" + std::to_string(word) + "\n";
      Client& client = clients[static_cast<std::size_t>(i)];
      EXPECT_TRUE(word % 2 == 0 ? client.send(line) : client.send_in_pieces(line));
    }
  }
  std::string first;
  for (Client& client : clients) {
    const auto heard = [&] {
      const std::string all = client.unread();
      return all.substr(all.find("client 7 has come"));
    };
    EXPECT_TRUE(
        eventually([&] { return std::ranges::count(heard(), '\n') == 1 + talkers * words; }));
    if (first.empty()) first = heard();
    EXPECT_EQ(heard(), first);
  }
  for (int i = 0; i < talkers; ++i) {
    std::size_t at = 0;
    for (int word = 0; word < words; ++word) {
      at = first.find("\n" + std::to_string(i) + ":" + std::to_string(word) + "\n", at);
      ASSERT_NE(at, std::string::npos) << "word " << word << " of " << i;
    }
  }
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
  for (const Client& client : clients) EXPECT_TRUE(has_ended(client));
}

TEST_P(ExampleChat, ContinuesAfterClientsVanishOrSendTooMuch) {
  Server server("chat", GetParam());
  std::vector<Client> clients = joined(server, 5);
  EXPECT_TRUE(clients[0].send("the beginning of a li"));
  clients[0].reset();
  EXPECT_TRUE(clients[1].send("a last word\n"));
  clients[1].finish_sending();
  EXPECT_TRUE(clients[2].send(std::string(1001, 'x')));
  EXPECT_TRUE(
      eventually([&] { return read_available(clients[2]).empty() && has_ended(clients[2]); }));
  EXPECT_TRUE(receives(clients[3], "a last word\n"));
  EXPECT_TRUE(clients[3].send("who is there?\n"));
  EXPECT_TRUE(receives(clients[4], "who is there?\n"));
  EXPECT_FALSE(clients[4].unread().contains("beginning"));
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleChat, DoesNotWaitForAClientThatDoesNotRead) {
  Server server("chat", GetParam());
  std::vector<Client> clients = joined(server, 2);
  Client& silent = clients[0];
  Client& talker = clients[1];
  // Sends more than the kernel buffers for a connection, in rounds that the talker reads.
  const std::string word(998, 'x');
  std::string lines;
  for (int line = 0; line < 100; ++line) lines += word + ".\n";
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(talker.send(lines));
    std::string heard;
    ASSERT_TRUE(eventually([&] {
      heard += read_available(talker);
      return heard.size() >= lines.size();
    })) << round;
    ASSERT_TRUE(heard == lines) << round;
  }
  // The server disconnects a client that has read nothing for ten seconds, as on a slow machine.
  EXPECT_TRUE(eventually(
      [&] { return silent.unread().contains(" lines missed so far)\n") || has_ended(silent); }));
  silent.close();  // a drain would wait for this client
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

std::string del(std::string_view target) {
  return "DELETE" + get(target).substr(3);
}

TEST_P(ExampleLiveRoutes, PagesAreAddedAndRemovedOnEveryCore) {
  Server server("live_routes", GetParam());
  Client client = server.connect();
  EXPECT_EQ(client.exchange(get("/greeting"))->status, 404);
  for (const std::string text : {"hello", "good evening"}) {
    ASSERT_EQ(client.exchange(put("/pages/greeting", text))->status, 204);
    // The requests use several connections, because the kernel chooses their cores.
    for (int count = 0; count < 8; ++count) {
      EXPECT_EQ(server.exchange(get("/greeting"))->body, text);
    }
  }
  EXPECT_EQ(client.exchange(put("/pages/a%7Bb", "x"))->status, 400);
  EXPECT_EQ(client.exchange(put("/pages/pages%2F%7Bany%7D", "x"))->status, 400);
  EXPECT_EQ(client.exchange(get("/pages/any"))->status, 405);
  ASSERT_EQ(client.exchange(del("/pages/greeting"))->status, 204);
  for (int count = 0; count < 8; ++count) EXPECT_EQ(server.exchange(get("/greeting"))->status, 404);
  EXPECT_EQ(client.exchange(del("/pages/greeting"))->status, 404);
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

INSTANTIATE_TEST_SUITE_P(On, ExampleLiveRoutes, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ExampleChat, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ExampleJson, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ExampleHello, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ExampleEcho, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ExampleParams, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ExampleStreaming, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ExampleDeadlines, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ExampleBench, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::examples_test
