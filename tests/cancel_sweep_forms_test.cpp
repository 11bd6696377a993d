// Cancels the reading of multipart forms at any time on every real backend; see
// tests/cancel_sweep.hpp.
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "tests/cancel_sweep.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/net/files.hpp"
#include "weir/web/forms/multipart.hpp"

namespace weir::tests::cancel_sweep_forms_test {
namespace {

/// A body that arrives in pieces.
class SlowBody final : public http::BodySource {
 public:
  Task<Result<Bytes>> read_piece() override {
    if (next_ == pieces.size()) co_return Bytes();
    WEIR_CO_TRY(co_await sleep(short_delay / 4));
    co_return to_bytes(pieces[next_++]);
  }
  Task<Result<std::string_view>> collect() override { co_return fail(Errc::unsupported); }
  const http::Headers& trailers() const noexcept override { return trailers_; }
  os::Address peer_address() const override { return {}; }

 private:
  static constexpr std::array<std::string_view, 5> pieces{"--XX\r\nContent-Disposition: form-data;",
                                                          " name=a\r\n\r\n12", "34\r\n--X",
                                                          "5\r\n--XX-", "-"};

  http::Headers trailers_;
  std::size_t next_ = 0;
};

/// A request with one part, "1234" CRLF "--X5".
class SlowRequest {
 public:
  SlowRequest() {
    http::HeadParser parser{http::HeadLimits()};
    EXPECT_EQ(parser.parse(text_, head_).kind, http::ParseResult::Kind::complete);
  }
  http::Multipart form() { return std::move(*http::Multipart::of(request_, {})); }

 private:
  std::string text_ =
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=XX\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  http::RequestHead head_;
  SlowBody body_;
  http::Request request_{head_, body_};
};

constexpr std::string_view content = "1234\r\n--X5";

Task<> next_part(CancelInjector& injector, SweepEnvironment&) {
  SlowRequest request;
  http::Multipart form = request.form();
  auto part = co_await injector.run_with_cancel(form.next_part());
  if (!succeeded(part)) part = co_await form.next_part();
  EXPECT_EQ((*part)->name(), "a");
  auto text = co_await (*part)->text();
  EXPECT_EQ(text, content);
  auto end = co_await injector.run_with_cancel(form.next_part());
  if (!succeeded(end)) end = co_await form.next_part();
  EXPECT_EQ(*end, nullptr);
}

Task<> reading(CancelInjector& injector, SweepEnvironment&) {
  SlowRequest request;
  http::Multipart form = request.form();
  const auto part = co_await form.next_part();
  std::string text;
  auto first = co_await injector.run_with_cancel((*part)->read());
  if (succeeded(first)) text = to_text(*first);
  const auto rest = co_await (*part)->text();
  text += *rest;
  EXPECT_EQ(text, content);
}

Task<> reading_a_text(CancelInjector& injector, SweepEnvironment&) {
  SlowRequest request;
  http::Multipart form = request.form();
  const auto part = co_await form.next_part();
  const auto text = co_await injector.run_with_cancel((*part)->text());
  if (succeeded(text)) {
    EXPECT_EQ(*text, content);
  }
  const auto end = co_await form.next_part();
  EXPECT_EQ(*end, nullptr);
}

Task<> saving(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  SlowRequest request;
  http::Multipart form = request.form();
  const auto part = co_await form.next_part();
  const auto saved = co_await injector.run_with_cancel((*part)->save_to(folder.root()));
  const auto entries = co_await files::list(folder.root());
  if (!succeeded(saved)) {
    EXPECT_TRUE(entries->empty()) << "a cancelled upload left a file";
    co_return;
  }
  EXPECT_EQ(entries->size(), 1U);
  const auto text = co_await files::read_file(saved->path());
  EXPECT_EQ(*text, content);
  EXPECT_EQ(saved->bytes(), content.size());
}

constexpr std::array of_forms = {
    SweepCase{"http::Multipart::next_part", next_part},
    SweepCase{"http::Part::read", reading},
    SweepCase{"http::Part::text", reading_a_text},
    SweepCase{"http::Part::save_to", saving},
};

class CancelSweepOfForms : public CancelSweep {};

TEST_P(CancelSweepOfForms, Reads) {
  sweep_all(of_forms);
}
TEST(CancelSweepInTheWorld, MultipartForms) {
  sweep_all_in_world(of_forms);
}

INSTANTIATE_TEST_SUITE_P(On, CancelSweepOfForms, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::cancel_sweep_forms_test
