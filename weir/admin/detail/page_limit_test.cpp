// Tests of the limit of the bytes of a page.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "weir/admin/detail/listener_parts.hpp"

namespace weir::admin::page_limit_test {
namespace {

constexpr std::size_t menu_bytes = 2048;  // of the surroundings of a page

std::vector<std::string> all_formats(const Page& page) {
  return {to_html(page, {.title = "t"}), to_json(page, {.title = "t"}),
          to_text(page, {.title = "t"})};
}

Page page_with(std::size_t rows, const std::vector<Cell>& row) {
  Page page{.name = "own", .title = "Own"};
  Section section{.key = "own", .title = "Own"};
  section.columns = {{"first_key", "first"}, {"second_key", "second"}, {"third_key", "third"}};
  section.rows.assign(rows, row);
  page.sections.push_back(std::move(section));
  return page;
}

void limit(Page& page) {
  PageLimiter limiter(page);
  while (limiter.step()) continue;
}

TEST(LimitPage, LeavesPagesOfUsualSize) {
  Page page = page_with(1000, {"GET /users/{id}", Cell::number(1'000'000), Cell::share(0.5)});
  limit(page);
  EXPECT_EQ(page.sections[0].rows.size(), 1000U);
  EXPECT_EQ(page.sections[0].left_out, 0U);
}

TEST(LimitPage, BoundsTheBytesOfEachFormat) {
  const std::string quotes(500, '"');
  const std::string control(500, '\x01');
  const std::string plain(500, 'x');
  const std::string invalid(500, '\xff');
  std::string hidden;  // U+E0001, whose four bytes are twelve in JSON
  for (int count = 0; count < 125; ++count) hidden += "\xf3\xa0\x80\x81";
  std::vector<std::vector<Cell>> rows{{plain, plain, plain},
                                      {quotes, quotes, quotes},
                                      {control, control, control},
                                      {invalid, invalid, invalid},
                                      {hidden, hidden, hidden},
                                      {Cell::share(0.5), Cell::share(0.5), Cell::share(0.5)},
                                      {"a", "b", Cell("c").linked(quotes).with(Tone::bad)},
                                      {Cell(), Cell(), Cell()}};
  for (const std::vector<Cell>& row : rows) {
    Page page = page_with(100'000, row);
    limit(page);
    EXPECT_GT(page.sections[0].rows.size(), 20U);
    EXPECT_EQ(page.sections[0].left_out, 100'000 - page.sections[0].rows.size());
    for (const std::string& text : all_formats(page)) {
      EXPECT_LE(text.size(), page_bytes_max + menu_bytes);
    }
  }
}

TEST(LimitPage, CountsThePaddingOfTexts) {
  Page page = page_with(20'000, {"a", "b", "c"});
  page.sections[0].rows.front() = {std::string(10'000, 'x'), "b", "c"};
  limit(page);
  EXPECT_LE(to_text(page, {.title = "t"}).size(), page_bytes_max + menu_bytes);
}

TEST(LimitPage, CountsThePaddingOfCharactersWithSeveralBytes) {
  Page page = page_with(20'000, {"a", "b", "c"});
  std::string wide;
  for (int count = 0; count < 1000; ++count) wide += "\xe2\x82\xac";  // the euro sign
  page.sections[0].rows[0] = {std::string(3000, 'x'), "b", "c"};
  for (std::size_t row = 1; row < 20'000; ++row) page.sections[0].rows[row] = {wide, "b", "c"};
  limit(page);
  EXPECT_LE(to_text(page, {.title = "t"}).size(), page_bytes_max + menu_bytes);
}

TEST(LimitPage, CountsAllSectionsTogether) {
  Page page = page_with(3000, {std::string(100, 'x'), "b", "c"});
  page.sections.push_back(page.sections.front());
  page.sections.push_back({.key = "text", .title = "Text"});
  page.sections.back().preformatted.assign(1'000'000, '\n');
  limit(page);
  EXPECT_LT(page.sections[1].rows.size(), 3000U);
  for (const std::string& text : all_formats(page)) {
    EXPECT_LE(text.size(), page_bytes_max + menu_bytes);
  }
}

TEST(LimitPage, CutsFormsWithTheirRows) {
  Page page = page_with(50'000, {"a", "b", "c"});
  page.sections[0].forms.assign(50'000, {.action = "own",
                                         .hidden = {{"name", "a"}},
                                         .choice = "level",
                                         .choices = {"debug", "info"},
                                         .chosen = "info",
                                         .label = "Set"});
  limit(page);
  EXPECT_EQ(page.sections[0].forms.size(), page.sections[0].rows.size());
  EXPECT_LE(to_html(page, {.title = "t"}).size(), page_bytes_max + menu_bytes);
}

TEST(LimitPage, CutsPreformattedTextsAtALine) {
  Page page{.name = "own", .title = "Own"};
  page.sections.push_back({.key = "text", .title = "Text"});
  for (int line = 0; line < 100'000; ++line) page.sections[0].preformatted += "<a> & \"b\"\n";
  limit(page);
  EXPECT_TRUE(page.sections[0].preformatted.ends_with("\"b\"\n"));
  EXPECT_TRUE(page.sections[0].note.contains("left out"));
  for (const std::string& text : all_formats(page)) {
    EXPECT_LE(text.size(), page_bytes_max + menu_bytes);
  }
}

}  // namespace
}  // namespace weir::admin::page_limit_test
