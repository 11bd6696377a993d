// Tests of the three formats of a page.
#include "weir/admin/detail/pages/page.hpp"

#include <gtest/gtest.h>

#include <string>

#include "weir/base/text/detail/printable.hpp"
#include "weir/json.hpp"

namespace weir::admin::page_test {
namespace {

using namespace std::chrono_literals;

Page sample_page(std::string name) {
  Page page{.name = "things", .title = "Things"};
  Section section{.key = "things", .title = "All", .note = "A note."};
  section.facts = {{"count", "count", Cell::number(1)}};
  section.columns = {{"name", "name"}, {"busy", "busy"}, {"age", "age"}};
  section.rows.push_back({Cell(std::move(name)).with(Tone::bad), Cell::share(0.25), Cell()});
  page.sections.push_back(std::move(section));
  return page;
}

const Frame frame{.title = "shop & co", .menu = {{"things", "Things"}}, .refresh = 2s};

TEST(AdminCell, IsForPeopleInTextAndPlainInJson) {
  EXPECT_EQ(Cell::number(1234567).to_text(), "1,234,567");
  EXPECT_EQ(Cell::number(1234567).to_json(), "1234567");
  EXPECT_EQ(Cell::bytes(1536).to_text(), "1.5 KiB");
  EXPECT_EQ(Cell::bytes(1023).to_text(), "1023 B");
  EXPECT_EQ(Cell::bytes(std::uint64_t{3} << 40).to_text(), "3.0 TiB");
  EXPECT_EQ(Cell::time(1500ms).to_text(), "1.5 s");
  EXPECT_EQ(Cell::time(1500ms).to_json(), "1.5");
  EXPECT_EQ(Cell::time(340us).to_text(), "340 us");
  EXPECT_EQ(Cell::time(Duration::zero()).to_text(), "0 s");
  EXPECT_EQ(Cell::time(90min).to_text(), "90 min");
  EXPECT_EQ(Cell::share(0.5).to_text(), "50.0 %");
  EXPECT_EQ(Cell::rate(2.345).to_text(), "2.3");
  EXPECT_EQ(Cell::rate(-1234.0).to_text(), "-1,234");
  EXPECT_EQ(Cell::flag(true).to_json(), "true");
  EXPECT_EQ(Cell().to_text(), "-");
  EXPECT_EQ(Cell().to_json(), "null");
  EXPECT_EQ(Cell::rate(1.0 / 0.0).to_json(), "null") << "JSON has no infinity";
}

TEST(AdminPage, EscapesEveryTextInHtml) {
  const std::string html = to_html(sample_page("<script>alert('1')</script>\x01\xff"), frame);
  EXPECT_EQ(html.find("<script"), html.npos);
  EXPECT_NE(html.find("&lt;script&gt;"), html.npos);
  EXPECT_NE(html.find("shop &amp; co"), html.npos);
  EXPECT_EQ(html.find('\x01'), html.npos);
  EXPECT_EQ(html.find("style="), html.npos) << "the policy forbids it";
  EXPECT_NE(html.find("<meta http-equiv=\"refresh\" content=\"2\">"), html.npos);
}

TEST(AdminPage, DoesNotReloadAPageWithAForm) {
  Page page = sample_page("a");
  ASSERT_NE(to_html(page, frame).find("http-equiv"), std::string::npos);
  page.sections[0].forms.emplace_back();
  EXPECT_EQ(to_html(page, frame).find("http-equiv"), std::string::npos);
}

TEST(AdminPage, EscapesLinksFormsAndPreformattedText) {
  Page page = sample_page("a");
  page.sections[0].rows[0][0] = Cell("x").linked("\"><script>");
  page.sections[0].forms.push_back({.action = "\"><script>",
                                    .hidden = {{"name", "\"><script>"}},
                                    .choice = "level",
                                    .choices = {"<script>"},
                                    .chosen = "<script>",
                                    .label = "<script>"});
  page.sections[0].preformatted = "a <script>\nb\n";
  const std::string html = to_html(page, frame);
  EXPECT_EQ(html.find("<script"), html.npos) << html;
  EXPECT_NE(html.find("a &lt;script&gt;\nb\n</pre>"), html.npos) << "lines stay lines";
}

TEST(AdminPage, HasNoControlCharactersInText) {
  const std::string text = to_text(sample_page("\x1b[2J\n\xc2\x9b"), frame);
  EXPECT_EQ(text.find('\x1b'), text.npos);
  const std::string hostile = "\xc2\x9b\xe2\x80\xae\x7f";
  for (const std::string& page :
       {to_text(sample_page(hostile), frame), to_json(sample_page(hostile), frame),
        to_html(sample_page(hostile), frame)}) {
    EXPECT_FALSE(page.contains("\xc2\x9b")) << page;
    EXPECT_FALSE(page.contains("\xe2\x80\xae")) << page;
    EXPECT_FALSE(page.contains('\x7f')) << page;
  }
  EXPECT_EQ(text.find('\x9b'), text.npos);
  EXPECT_NE(text.find("!! \\x1b[2J\\x0a\\xc2\\x9b"), text.npos) << text;
}

TEST(AdminPage, IsAnObjectWithItsSectionsInJson) {
  EXPECT_EQ(to_json(sample_page("a \"b\""), frame),
            R"({"page":"things","title":"shop & co",)"
            R"("things":[{"name":"a \"b\"","busy":0.25,"age":null}],"things_facts":{"count":1}})");
}

TEST(AdminPage, SaysThatATableIsEmpty) {
  Page page = sample_page("a");
  page.sections[0].rows.clear();
  page.sections[0].when_empty = "Nothing <here>.";
  EXPECT_NE(to_html(page, frame).find("Nothing &lt;here&gt;."), std::string::npos);
  EXPECT_NE(to_text(page, frame).find("Nothing <here>."), std::string::npos);
  EXPECT_NE(to_json(page, frame).find("\"things\":[]"), std::string::npos);
}

TEST(AdminPage, ChoosesAFormat) {
  EXPECT_EQ(choose_format("json", "text/html"), Format::json);
  EXPECT_EQ(choose_format("text", ""), Format::text);
  EXPECT_EQ(choose_format("pdf", "application/json"), Format::html);
  EXPECT_EQ(choose_format("", ""), Format::html);
  EXPECT_EQ(choose_format("", "*/*"), Format::html);
  EXPECT_EQ(choose_format("", "application/json"), Format::json);
  EXPECT_EQ(choose_format("", "Text/Plain;charset=utf-8"), Format::text);
  EXPECT_EQ(choose_format("", "text/html,application/xhtml+xml,*/*;q=0.8"), Format::html);
  EXPECT_EQ(choose_format("", "text/html;q=0.5, application/json ; q=0.9"), Format::json);
  EXPECT_EQ(choose_format("", "application/json;q=0, text/plain;q=0.1"), Format::text);
  EXPECT_EQ(choose_format("", "application/json;q=7;,,;=;,text/plain;q="), Format::html);
}

TEST(AdminPage, SaysHowManyRowsAreLeftOut) {
  Page page = sample_page("a");
  page.sections[0].left_out = 1234;
  EXPECT_TRUE(to_html(page, frame).contains("1,234 more rows are not shown."));
  EXPECT_TRUE(to_text(page, frame).contains("1,234 more rows are not shown.\n"));
  EXPECT_TRUE(to_json(page, frame).contains(R"("things_left_out":1234)"));
}

TEST(AdminPage, HasOnlyValidUtf8InText) {
  const auto shown = [](std::string name) { return to_text(sample_page(std::move(name)), frame); };
  for (const std::string bad : {"\xff", "\x9b", "\xc1\x81", "\xe0\x81\x81", "\xed\xa0\x80",
                                "\xf4\x90\x80\x80", "\xe2\x82", "\xf0\x80\x80\x80"}) {
    const std::string text = shown("a" + bad + "z");
    EXPECT_TRUE(text.contains("a" + to_printable(bad) + "z")) << text;
  }
  EXPECT_TRUE(shown("a\u00e9\u20ac\U0001f600z").contains("a\u00e9\u20ac\U0001f600z"));
}

TEST(AdminPage, AlignsTheColumnsOfText) {
  Page page = sample_page("a");
  page.sections[0].rows.push_back({"longer name", Cell::share(1), "x"});
  EXPECT_EQ(to_text(page, frame),
            "shop & co: Things\n\nAll\nA note.\ncount  1\n"
            "name            busy  age\n"
            "!! a          25.0 %  -\n"
            "longer name  100.0 %  x\n");
}

}  // namespace
}  // namespace weir::admin::page_test
