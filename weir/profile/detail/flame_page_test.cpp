#include "weir/profile/detail/flame_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/profile/test/profile_fixture.hpp"

namespace weir::profile::flame_page_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(FoldedStacks, BeginWithTheRouteAndTheOutermostFunction) {
  const Profile profile = made_profile({{{.core = 0, .route = "GET /a", .addresses = {1, 2}}, 3},
                                        {{.core = 1, .route = "GET /a", .addresses = {1, 2}}, 4},
                                        {{.addresses = {2}}, 1}},
                                       {{1, "inner"}, {2, "outer"}});
  EXPECT_EQ(to_folded(profile), "(no request);outer 1\nGET /a;outer;inner 7\n");
}

TEST(FoldedStacks, NameAThreadWithoutALoopBehindTheRoute) {
  const Profile profile = made_profile({{{.core = loop::CpuSample::no_core,
                                          .thread = "weir-pool",
                                          .route = "GET /a",
                                          .addresses = {1}},
                                         3}},
                                       {{1, "job"}});
  EXPECT_EQ(to_folded(profile), "GET /a;weir-pool;job 3\n");
}

TEST(FoldedStacks, ReplaceSemicolonsInNames) {
  EXPECT_EQ(to_folded(made_profile({{{.addresses = {1}}, 1}}, {{1, "a;b\nc"}})),
            "(no request);a:b:c 1\n");
}

TEST(FlamePage, ShowsEachFunctionWithItsShare) {
  const std::string page = to_flame_page(
      made_profile({{{.route = "GET /a", .addresses = {1, 2}}, 3}, {{.addresses = {2}}, 1}},
                   {{1, "inner"}, {2, "outer"}}));
  EXPECT_THAT(page, HasSubstr("<title>all: 4 samples, 100.0 %</title>"));
  EXPECT_THAT(page, HasSubstr("<title>GET /a: 3 samples, 75.0 %</title>"));
  EXPECT_THAT(page, HasSubstr("<title>inner: 3 samples, 75.0 %</title>"));
  EXPECT_THAT(page, HasSubstr("4 samples at 100 Hz in 2.0 s, 0 dropped"));
}

TEST(FlamePage, EscapesNames) {
  const std::string page = to_flame_page(
      made_profile({{{.route = "GET /<b>", .addresses = {1}}, 1}}, {{1, "f<\"x&y'>"}}));
  EXPECT_THAT(page, HasSubstr("f&lt;&quot;x&amp;y&#39;&gt;: 1 samples"));
  EXPECT_THAT(page, Not(HasSubstr("/<b>")));
}

TEST(FlamePage, NeedsNothingThatItsPolicyForbids) {
  const std::string page = to_flame_page(made_profile({{{.addresses = {1}}, 1}}));
  for (const std::string_view forbidden :
       {"<script", "<style", " style=", "onclick", "href=", "src=", "<form"}) {
    EXPECT_THAT(page, Not(HasSubstr(forbidden)));
  }
  EXPECT_THAT(flame_page_policy, HasSubstr("default-src 'none'"));
}

TEST(FlamePage, LeavesOutWhatCannotBeSeen) {
  std::vector<std::pair<Stack, std::uint64_t>> stacks{{{.addresses = {1}}, 1'000'000}};
  for (std::uintptr_t address = 2; address < 20'000; ++address)
    stacks.push_back({{.addresses = {address}}, 1});
  EXPECT_LT(to_flame_page(made_profile(stacks)).size(), 20'000u);
}

TEST(FlamePage, IsAPageWithoutSamples) {
  EXPECT_THAT(to_flame_page(made_profile({})), HasSubstr("0 samples"));
}

TEST(FlamePage, DrawsDeepStacks) {
  Stack deep;
  for (std::uintptr_t address = 1; address <= 128; ++address) deep.addresses.push_back(address);
  EXPECT_THAT(to_flame_page(made_profile({{deep, 1}})), HasSubstr("<title>f128: 1 samples"));
}

}  // namespace
}  // namespace weir::profile::flame_page_test
