// Tests of multipart forms in handlers.
#include "weir/web/forms/multipart.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/router/router.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http_testing/test_client.hpp"

namespace weir::http::multipart_test {
namespace {

std::string part(std::string_view head, std::string_view content) {
  return "--XX\r\nContent-Disposition: form-data; " + std::string(head) + "\r\n\r\n" +
         std::string(content) + "\r\n";
}
const std::string last = "--XX--\r\n";

Task<Result<Response>> describe(Multipart form) {
  std::string found;
  for (;;) {
    WEIR_CO_TRY(Part* const part, co_await form.next_part());
    if (part == nullptr) break;
    found.append(part->name()).append("(").append(part->content_type()).append(")");
    if (part->is_file()) found.append(part->safe_file_name());
    WEIR_CO_TRY(const std::string content, co_await part->text(100'000));
    found.append("=" + std::to_string(content.size()) + " ");
  }
  WEIR_CO_TRY(Part* const behind, co_await form.next_part());
  EXPECT_EQ(behind, nullptr);
  co_return text(found);
}

Task<Result<Response>> names(Multipart form) {
  std::string found;
  for (;;) {
    WEIR_CO_TRY(Part* const part, co_await form.next_part());
    if (part == nullptr) break;
    found.append(part->name());
  }
  co_return text(found);
}

Task<Result<Response>> pieces(Multipart form) {
  std::string found;
  WEIR_CO_TRY(Part* const part, co_await form.next_part());
  for (;;) {
    WEIR_CO_TRY(const Bytes piece, co_await part->read());
    if (piece.empty()) break;
    found.append(to_text(piece));
  }
  WEIR_CO_TRY(const Bytes behind, co_await part->read());
  EXPECT_TRUE(behind.empty());
  co_return text(found);
}

Task<Result<Response>> one_text(Multipart form) {
  WEIR_CO_TRY(Part* const part, co_await form.next_part());
  WEIR_CO_TRY(std::string content, co_await part->text(10));
  co_return text(std::move(content));
}

Task<Result<Response>> few_parts(Request& request) {
  auto form = Multipart::of(request, {.parts_max = 1});
  if (!form) co_return std::move(form.error());
  for (;;) {
    WEIR_CO_TRY(Part* const part, co_await form->next_part());
    if (part == nullptr) break;
  }
  co_return no_content();
}

Router routes() {
  Router router;
  router.post("/describe", describe, {.body_max = 1'000'000});
  router.post("/names", names);
  router.post("/pieces", pieces, {.body_max = 1'000'000});
  router.post("/text", one_text);
  router.post("/few", few_parts);
  router.post("/small", describe, {.body_max = 200});
  return router;
}

class MultipartTest : public testing::Test {
 protected:
  TestResponse post(std::string_view url, std::string body,
                    std::string_view type = "multipart/form-data; boundary=XX") {
    ClientRequest request = client_.request(Method::post, url);
    request.set_body("multipart/form-data; boundary=XX", Body(std::move(body)));
    request.set_header("Content-Type", type);
    return client_.send(std::move(request));
  }

  TestClient client_{routes()};
};

TEST_F(MultipartTest, HandlerReadsTheParts) {
  const std::string body = part("name=title", "hello") +
                           part("name=file; filename=\"../a.png\"\r\nContent-Type: image/png",
                                std::string(90'000, 'x')) +
                           part("name=empty", "") + last;
  EXPECT_EQ(post("/describe", body).body(),
            "title(text/plain)=5 file(image/png)a.png=90000 empty(text/plain)=0 ");
}

TEST_F(MultipartTest, TakesTheFormOfDotNet) {
  const auto head = "name=picture; filename=sea.txt; filename*=utf-8''sea.txt";
  EXPECT_EQ(post("/describe", part(head, "blue") + last).body(), "picture(text/plain)sea.txt=4 ");
}

TEST_F(MultipartTest, NextPartDropsTheRestOfAPart) {
  EXPECT_EQ(post("/names", part("name=a", std::string(50'000, 'x')) + part("name=b", "") +
                               part("name=a", "2") + last)
                .body(),
            "aba");
  EXPECT_EQ(post("/names", last).body(), "");
}

TEST_F(MultipartTest, PiecesAreTheContent) {
  std::string content;
  for (int each = 0; each < 20'000; ++each) content += std::to_string(each) + "\r\n--";
  EXPECT_EQ(post("/pieces", part("name=a", content) + last).body(), content);
}

TEST_F(MultipartTest, MalformedFormIsAnsweredWithAReason) {
  const TestResponse response = post("/names", part("name=a; name=b", "") + last);
  EXPECT_EQ(response.status(), 400);
  EXPECT_EQ(response.body(),
            "{\"title\":\"Bad Request\",\"status\":400,\"detail\":\"multipart form: a part has two "
            "names or two file names\"}");
  EXPECT_EQ(post("/names", part("name=a", "1")).status(), 400);
  EXPECT_EQ(post("/names", "").status(), 400);
}

TEST_F(MultipartTest, TooMuchIsAnsweredWith413) {
  EXPECT_EQ(post("/text", part("name=a", "0123456789") + last).body(), "0123456789");
  const TestResponse response = post("/text", part("name=a", "0123456789a") + last);
  EXPECT_EQ(response.status(), 413);
  EXPECT_NE(response.body().find("a part is too long"), std::string::npos);
  EXPECT_EQ(post("/few", part("name=a", "") + last).status(), 204);
  EXPECT_EQ(post("/few", part("name=a", "") + part("name=b", "") + last).status(), 413);
  EXPECT_EQ(post("/small", part("name=a", std::string(200, 'x')) + last).status(), 413);
}

/// A server that saves the parts of forms below /up.
class SavedFileTest : public HttpTest {
 protected:
  SavedFileTest() {
    EXPECT_TRUE(platform_.files().make_directory("/up", 0777));
    routes_.post("/keep", [](Multipart form) { return save_all(std::move(form), true); });
    routes_.post("/drop", [](Multipart form) { return save_all(std::move(form), false); });
    serve();
  }
  static Task<Result<Response>> save_all(Multipart form, bool keep) {
    std::vector<SavedFile> saved;
    std::string sizes;
    for (;;) {
      WEIR_CO_TRY(Part* const part, co_await form.next_part());
      if (part == nullptr) break;
      WEIR_CO_TRY(SavedFile file, co_await part->save_to("/up"));
      sizes += std::to_string(file.bytes()) + " ";
      saved.push_back(std::move(file));
    }
    for (SavedFile& each : saved) {
      if (keep) each.keep();
    }
    co_return text(sizes);
  }
  static std::string post(std::string_view target, const std::string& body) {
    return "POST " + std::string(target) +
           " HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=XX\r\n"
           "Content-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  std::size_t count_files() {
    return platform_.files().list_beneath("/up", "", os::BeneathLinks::none, 100)->size();
  }
};

TEST_F(SavedFileTest, StaysOnlyIfItIsKept) {
  const std::string two = part("name=a", "12") + part("name=b", "123");
  EXPECT_TRUE(talk(connect(), post("/keep", two + last)).ends_with("2 3 "));
  EXPECT_EQ(count_files(), 2U);
  EXPECT_TRUE(talk(connect(), post("/drop", two + last)).ends_with("2 3 "));
  EXPECT_EQ(count_files(), 2U);
  EXPECT_TRUE(talk(connect(), post("/keep", two)).starts_with("HTTP/1.1 400 "));
  EXPECT_EQ(count_files(), 2U) << "a form that is cut off leaves no file of its parts";
}

TEST_F(SavedFileTest, IsRemovedIfTheClientLeaves) {
  const std::string whole = post("/keep", part("name=a", "12") + part("name=b", "123") + last);
  MemoryPeer& peer = connect();
  talk(peer, whole.substr(0, whole.size() - 10));
  peer.reset();
  settle();
  EXPECT_EQ(count_files(), 0U);
}

TEST_F(MultipartTest, OtherTypesDoNotReachTheHandler) {
  EXPECT_EQ(post("/names", "{}", "application/json").status(), 415);
  EXPECT_EQ(post("/names", last, "multipart/mixed; boundary=XX").status(), 415);
  const TestResponse response = post("/names", last, "multipart/form-data");
  EXPECT_EQ(response.status(), 400);
  EXPECT_NE(response.body().find("no valid boundary"), std::string::npos);
}

}  // namespace
}  // namespace weir::http::multipart_test
