// Tests of typed arguments: queries, forms, headers, cookies, bodies and values of from_request().
#include "weir/http/matching/arguments.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/test/heap_fixture.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::http {

enum class Order : std::uint8_t { newest, oldest };

struct Page {
  std::uint8_t page;
  std::optional<std::string> search;
  std::vector<int> tags;
};
struct Full {
  std::string text;
  double ratio;
  bool deep;
  Order order;
};
struct Renamed {
  int class_;
  int user_name;
};
struct Login {
  std::string name;
  int pin;
};
struct Note {
  std::string text;
};

}  // namespace weir::http

template <>
inline constexpr std::array weir::json::enumerators<weir::http::Order>{
    weir::json::Named{weir::http::Order::newest, "newest"},
    weir::json::Named{weir::http::Order::oldest, "oldest"}};
template <>
inline constexpr std::array weir::json::renames<weir::http::Renamed>{
    weir::json::Rename{"user_name", "user-name"}};

namespace weir::http::arguments_test {
namespace {

class ArgumentsTest : public LoopTest {
 protected:
  template <class F>
  Response answer(F function, std::string_view line = "GET /", std::string_view more = {},
                  std::string_view body = {}) {
    request_.emplace(line, body, more);
    const Handler handler = Handler::of(std::move(function));
    if (!handler.is_async()) return handler.call(request_->request(), params_);
    return run(handler.start(request_->request(), params_));
  }
  template <class F>
  std::string text_of(F function, std::string_view line = "GET /", std::string_view more = {},
                      std::string_view body = {}) {
    return sent_body(answer(std::move(function), line, more, body));
  }
  std::optional<TextRequest> request_;
  PathParams params_;
};

std::string show(const Page& page) {
  std::string shown = std::to_string(page.page) + "," + page.search.value_or("-");
  for (const int tag : page.tags) shown += "," + std::to_string(tag);
  return shown;
}
Response list(Query<Page> page) {
  return text(show(*page));
}
std::string errors(std::string_view details) {
  return R"("errors":[)" + std::string(details) + "]}";
}

TEST_F(ArgumentsTest, QueryFillsTheFieldsOfAStruct) {
  EXPECT_EQ(text_of(list, "GET /?page=7&search=a+b%26&tags=1&tags=-2"), "7,a b&,1,-2");
  EXPECT_EQ(text_of(list, "GET /?page=7"), "7,-");
  EXPECT_EQ(text_of(list, "GET /?&tags=3&&utm_source=x&page=0&search="), "0,,3");
  EXPECT_EQ(text_of(list, "GET /?p%61ge=%37"), "7,-") << "names and values are decoded";
  EXPECT_EQ(text_of(list, "GET /?page=7&sea%72ch=a"), "7,a");
  EXPECT_EQ(text_of(list, "GET /?page=7&" + std::string(70, 'x') + "%41=1"), "7,-");
  EXPECT_EQ(text_of(list, "GET /?page=7&search=100%&tags[]=1&%"), "7,100%")
      << "a stray percent is itself";
}

struct Choices {
  std::optional<int> most;
  std::optional<Order> order;
  std::optional<bool> deep;
  std::optional<std::string> word;
  std::optional<Checked<std::string, rule::Length<2, 4>>> tag;
};

TEST_F(ArgumentsTest, FieldThatIsLeftBlankIsNone) {
  const auto show = [](const Choices& all) {
    std::string out = all.word ? "word=" + *all.word : "-";
    return text(out + (all.most || all.order || all.deep || all.tag ? " some" : " none"));
  };
  const auto query = [&](const Query<Choices>& all) { return show(*all); };
  const auto form = [&](const Form<Choices>& all) { return show(*all); };
  const std::string blank = "most=&order=&deep=&word=&tag=";
  EXPECT_EQ(text_of(query, "GET /?" + blank), "word= none");
  EXPECT_EQ(text_of(form, "POST /", "", blank), "word= none");
  EXPECT_EQ(text_of(query, "GET /?most"), "- none");
  EXPECT_EQ(answer(query, "GET /?most=+").status(), Status::bad_request);
  EXPECT_EQ(answer(query, "GET /?tag=x").status(), Status::bad_request);
  EXPECT_EQ(answer(query, "GET /?most=&most=").status(), Status::bad_request) << "given twice";
  EXPECT_EQ(answer(list, "GET /?page=").status(), Status::bad_request) << "page is required";
}

struct Boxes {
  bool agree = false;
  bool send;
  bool keep = true;
};

TEST_F(ArgumentsTest, CheckboxIsABool) {
  const auto show = [](const Boxes& all) {
    return text(std::string(all.agree ? "a" : "") + (all.send ? "s" : "") + (all.keep ? "k" : ""));
  };
  const auto query = [&](const Query<Boxes>& all) { return show(*all); };
  const auto form = [&](const Form<Boxes>& all) { return show(*all); };
  EXPECT_EQ(text_of(form, "POST /", "", "agree=on"), "ak");
  EXPECT_EQ(text_of(form, "POST /", "", "other=1"), "k");
  EXPECT_EQ(text_of(form, "POST /", "", "agree=1&send=true&keep=0"), "as");
  EXPECT_EQ(text_of(form, "POST /", "", "agree=off&send=%6fn&keep=false"), "s");
  EXPECT_EQ(text_of(query, "GET /?agree=on&send=off"), "ak");
  EXPECT_EQ(answer(query, "GET /?agree=on").status(), Status::bad_request) << "send is required";
  for (const char* other : {"agree=", "agree=ON", "agree=2", "agree=yes"}) {
    EXPECT_EQ(answer(form, "POST /", "", other).status(), Status::unprocessable_content) << other;
  }
}

TEST_F(ArgumentsTest, QueryReadsAllTypes) {
  const auto show_all = [](const Query<Full>& all) {
    return text(all->text + "," + std::to_string(all->ratio) + "," + (all->deep ? "deep" : "flat") +
                "," + (all->order == Order::oldest ? "oldest" : "newest"));
  };
  EXPECT_EQ(text_of(show_all, "GET /?text=x&ratio=0.5&deep=true&order=oldest"),
            "x,0.500000,deep,oldest");
  EXPECT_EQ(text_of(show_all, "GET /?text=&ratio=-2e3&deep=false&order=newest"),
            ",-2000.000000,flat,newest");
  EXPECT_EQ(
      text_of(show_all, "GET /?text=x&ratio=inf&deep=2&order=new"),
      R"({"title":"Bad Request","status":400,)"
      R"("detail":"query ratio: expected a number, found \"inf\"",)" +
          errors(R"({"in":"query","name":"ratio","detail":"expected a number, found \"inf\""},)"
                 R"({"in":"query","name":"deep","detail":"expected true or false, found \"2\""},)"
                 R"({"in":"query","name":"order",)"
                 R"("detail":"expected \"newest\" or \"oldest\", found \"new\""})"));
}

struct Upload {
  std::filesystem::path file;
  std::optional<std::chrono::seconds> timeout;
  std::vector<std::chrono::sys_seconds> at;
};

TEST_F(ArgumentsTest, DurationsTimesAndPathsAreFields) {
  using std::chrono::sys_seconds;
  const auto show_upload = [](const Upload& upload) {
    std::string shown = upload.file.string();
    if (upload.timeout) shown += "," + std::to_string(upload.timeout->count());
    for (const sys_seconds each : upload.at) {
      shown += "," + std::to_string(each.time_since_epoch().count());
    }
    return text(shown);
  };
  const auto query = [&](const Query<Upload>& upload) { return show_upload(*upload); };
  const auto form = [&](const Form<Upload>& upload) { return show_upload(*upload); };
  const auto header = [](Header<"X-Timeout", std::chrono::milliseconds> timeout,
                         Cookie<"since", sys_seconds> since) {
    return text(std::to_string(timeout->count()) + "," +
                std::to_string(since->time_since_epoch().count()));
  };
  EXPECT_EQ(text_of(query,
                    "GET /?file=a%2Fb&timeout=2min&at=1970-01-01T00:00:07Z"
                    "&at=1970-01-01T01%3A00%3A08%2B01%3A00"),
            "a/b,120,7,8");
  EXPECT_EQ(text_of(form, "POST /", "", "file=a+b&at=1970-01-01T00%3A00%3A07Z"), "a b,7");
  EXPECT_EQ(text_of(header, "GET /", "X-Timeout: 1.5s\r\nCookie: since=1970-01-01T00:00:07Z\r\n"),
            "1500,7");
  std::string long_path;
  for (int count = 0; count < 200; ++count) long_path += "%2Fa";
  EXPECT_EQ(text_of(query, "GET /?file=" + long_path).size(), 400U);
  const auto detail_of = [&](std::string_view pair) {
    const Response response = answer(query, "GET /?file=a&" + std::string(pair));
    EXPECT_EQ(response.status(), Status::bad_request) << pair;
    return response.problem().violations.at(0).detail;
  };
  EXPECT_EQ(detail_of("timeout=250"),
            "expected a duration such as 250ms, 5s or 1h30min, a multiple of 1s, found \"250\"");
  EXPECT_EQ(detail_of("at=2016-12-31T23%3A59%3A60Z"),
            "expected a time without a leap second (seconds from 00 to 59), found "
            "\"2016-12-31T23:59:60Z\"");
  // An offset with a '+' that was not encoded: the text shows the space in its place.
  EXPECT_EQ(detail_of("at=1970-01-01T01:00:08+01:00"),
            "expected a time that ends with Z or an offset such as +01:00, found "
            "\"1970-01-01T01:00:08 01:00\"");
  EXPECT_EQ(answer(form, "POST /", "", "file=a%00b").problem().violations.at(0).detail,
            "expected a path without the character NUL, found \"a\\u0000b\"");
  EXPECT_TRUE(text_of(header, "GET /", "X-Timeout: secret\r\n")
                  .contains("expected a duration such as 250ms, 5s or 1h30min"));
}

struct Defaults {
  int required;
  int first = 1;
  unsigned size = 20;
  double ratio = 0.5;
  std::string sort = "name";
  std::string search;
  Checked<int, rule::Range<1, 5>> stars = 3;
};

TEST_F(ArgumentsTest, FieldWithADefaultMayBeMissing) {
  const auto show_all = [](Query<Defaults> all) {
    return text(std::to_string(all->required) + "," + std::to_string(all->first) + "," +
                std::to_string(all->size) + "," + all->sort + "," + std::to_string(*all->stars));
  };
  EXPECT_EQ(text_of(show_all, "GET /?required=7&search="), "7,1,20,name,3");
  EXPECT_EQ(text_of(show_all, "GET /?required=7&search=&first=0&size=2&sort=age&stars=5"),
            "7,0,2,age,5");
  const Response missing = answer(show_all, "GET /?first=1");
  ASSERT_EQ(missing.problem().violations.size(), 2U);
  EXPECT_EQ(missing.problem().violations[0].name, "required");
  EXPECT_EQ(missing.problem().violations[1].name, "search");
  EXPECT_EQ(answer(show_all, "GET /?required=7&search=&size=x").status(), Status::bad_request);
}

TEST_F(ArgumentsTest, OneRuleOfDefaultsHoldsForQueriesFormsAndJson) {
  const auto shown = [](const Defaults& all) { return text(all.sort + all.search); };
  const auto query = [&](const Query<Defaults>& all) { return shown(*all); };
  const auto form = [&](const Form<Defaults>& all) { return shown(*all); };
  const auto json = [&](const Json<Defaults>& all) { return shown(*all); };
  EXPECT_EQ(text_of(query, "GET /?required=1&search=a"), "namea");
  EXPECT_EQ(text_of(form, "POST /", "", "required=1&search=a"), "namea");
  EXPECT_EQ(text_of(json, "POST /", "", R"({"required":1,"search":"a"})"), "namea");
  const auto missing = [](const Response& response) {
    std::string names;
    for (const Violation& each : response.problem().violations) {
      EXPECT_EQ(each.detail, "missing");
      names += each.name + " ";
    }
    return names;
  };
  EXPECT_EQ(missing(answer(query)), "required search ");
  EXPECT_EQ(missing(answer(form, "POST /", "", "x=1")), "required search ");
  EXPECT_EQ(missing(answer(json, "POST /", "", "{}")), "/required /search ");
}

struct Flags {
  std::vector<bool> flags;
};

TEST_F(ArgumentsTest, QueryTakesAVectorOfTruthValues) {
  const auto show_flags = [](const Query<Flags>& query) {
    std::string shown;
    for (const bool each : query->flags) shown += each ? "1" : "0";
    return text(shown);
  };
  EXPECT_EQ(text_of(show_flags, "GET /?flags=true&flags=false&flags=true"), "101");
  EXPECT_EQ(answer(show_flags, "GET /?flags=2").status(), Status::bad_request);
}

TEST_F(ArgumentsTest, QueryUsesTheNamesOfJson) {
  const auto sum = [](Query<Renamed> names) {
    return text(std::to_string(names->class_ + names->user_name));
  };
  EXPECT_EQ(text_of(sum, "GET /?class=1&user-name=2"), "3");
}

TEST_F(ArgumentsTest, QueryNamesAllPartsThatDoNotFit) {
  const std::string body = text_of(list, "GET /?page=256&tags=1&tags=x&search=a&search=b");
  EXPECT_EQ(body, R"({"title":"Bad Request","status":400,)"
                  R"("detail":"query page: expected an integer from 0 to 255, found \"256\"",)" +
                      errors(R"({"in":"query","name":"page",)"
                             R"("detail":"expected an integer from 0 to 255, found \"256\""},)"
                             R"({"in":"query","name":"tags",)"
                             R"("detail":"expected an integer from -2147483648 to 2147483647, )"
                             R"(found \"x\""},)"
                             R"({"in":"query","name":"search","detail":"given twice"})"));
  EXPECT_TRUE(
      text_of(list).ends_with(errors(R"({"in":"query","name":"page","detail":"missing"})")));
  EXPECT_EQ(answer(list).status(), Status::bad_request);
}

struct Review {
  Checked<int, rule::Range<1, 5>> stars;
  Checked<std::string, rule::Length<1, 300>> text;
  std::optional<Checked<std::string, rule::OneOf<"red", "green">>> color;
};

TEST_F(ArgumentsTest, RulesStandInTheTypes) {
  const auto query = [](const Query<Review>& review) {
    return text(std::to_string(*review->stars) + *review->text + **review->color);
  };
  const auto form = [](const Form<Review>&) { return Status::ok; };
  const auto json = [](const Json<Review>&) { return Status::ok; };
  const auto header = [](Header<"X-Stars", Checked<int, rule::Range<1, 5>>>) { return Status::ok; };
  EXPECT_EQ(text_of(query, "GET /?stars=5&text=%C3%A4&color=red"), "5\u00e4red");
  std::string escaped;
  for (int count = 0; count < 300; ++count) escaped += "%C3%A4";
  EXPECT_EQ(answer(query, "GET /?stars=5&color=red&text=" + escaped).status(), Status::ok);
  EXPECT_EQ(answer(query, "GET /?stars=5&color=red&text=" + escaped + "x").status(),
            Status::bad_request);
  // These 400 bytes would have one character if only the first bytes of characters counted.
  for (const char* const bytes : {"%80", "%C3", "%ED%A0%80"}) {
    std::string invalid = "a";
    for (int count = 0; count < 400; ++count) invalid += bytes;
    EXPECT_EQ(answer(query, "GET /?stars=5&color=red&text=" + invalid).status(),
              Status::bad_request);
  }
  EXPECT_EQ(answer(query, "GET /?stars=5&color=red&text=a%80").status(), Status::bad_request);
  const std::string details = text_of(query, "GET /?stars=6&text=&color=blue");
  EXPECT_TRUE(details.contains(R"("detail":"expected an integer from 1 to 5, found \"6\"")"));
  EXPECT_TRUE(
      details.contains(R"("detail":"expected a string of 1 to 300 characters, found \"\"")"));
  EXPECT_TRUE(details.contains(
      R"("detail":"expected a string that is \"red\" or \"green\", found \"blue\"")"));
  const Response wrong_form = answer(form, "POST /", "", "stars=0&text=a");
  EXPECT_EQ(wrong_form.status(), Status::unprocessable_content);
  EXPECT_EQ(wrong_form.problem().violations.size(), 1U);
  const Response wrong_json = answer(json, "POST /", "", R"({"stars":0,"text":"","color":"x"})");
  EXPECT_EQ(wrong_json.status(), Status::unprocessable_content);
  ASSERT_EQ(wrong_json.problem().violations.size(), 3U);
  EXPECT_EQ(wrong_json.problem().violations[0].name, "/stars");
  EXPECT_EQ(wrong_json.problem().violations[0].detail, "expected an integer from 1 to 5, found 0");
  EXPECT_EQ(answer(header, "GET /", "X-Stars: 5\r\n").status(), Status::ok);
  EXPECT_EQ(answer(header, "GET /", "X-Stars: 6\r\n").status(), Status::bad_request);
}

TEST_F(ArgumentsTest, LimitsWhatAClientCanMakeItKeep) {
  std::string many = "GET /?page=1";
  for (int count = 0; count < 1025; ++count) many += "&tags=1";
  EXPECT_TRUE(text_of(list, many).contains("more than 1024 values"));
  EXPECT_EQ(answer(list, many.substr(0, many.size() - 7)).status(), Status::ok);
  std::string wrong = "GET /?page=1";
  for (int count = 0; count < 40; ++count) wrong += "&tags=x";
  const auto violations = answer(list, wrong).problem().violations;
  std::size_t bytes = 0;
  for (const Violation& each : violations) bytes += each.name.size() + each.detail.size();
  EXPECT_LE(bytes, Problem::violation_bytes_max);
  EXPECT_GT(violations.size(), 8U);
  const std::string long_value = text_of(list, "GET /?page=" + std::string(1000, 'y'));
  EXPECT_LT(long_value.size(), 500U);
  EXPECT_TRUE(long_value.contains(R"(yyy\"...)")) << long_value;
  EXPECT_EQ(answer(list, "GET /?page=%30" + std::string(300, '0')).status(), Status::bad_request);
}

TEST_F(ArgumentsTest, OptionalQueryIsEmptyWithoutAQuery) {
  const auto maybe = [](const std::optional<Query<Page>>& page) {
    return text(page ? show(**page) : "none");
  };
  EXPECT_EQ(text_of(maybe), "none");
  EXPECT_EQ(text_of(maybe, "GET /?page=2"), "2,-");
  EXPECT_EQ(answer(maybe, "GET /?page=x").status(), Status::bad_request);
}

TEST_F(ArgumentsTest, HeaderIsFoundInAnyCase) {
  const auto name = [](Header<"X-Name"> value) { return text(*value); };
  const auto count = [](Header<"x-count", int> value) { return text(std::to_string(*value)); };
  EXPECT_EQ(text_of(name, "GET /", "x-name: Ann\r\nX-Name: Bob\r\n"), "Ann");
  EXPECT_EQ(text_of(count, "GET /", "X-Count: 42\r\n"), "42");
  EXPECT_TRUE(
      text_of(name).ends_with(errors(R"({"in":"header","name":"X-Name","detail":"missing"})")));
  EXPECT_TRUE(text_of(count, "GET /", "X-Count: +4\r\n")
                  .contains(R"("detail":"expected an integer from -2147483648 to 2147483647")"));
}

TEST_F(ArgumentsTest, CookieIsOneOfThePairs) {
  const auto session = [](Cookie<"id"> value) { return text(*value); };
  EXPECT_EQ(text_of(session, "GET /", "Cookie: a=1; id=x=y; id=z\r\n"), "x=y");
  EXPECT_EQ(text_of(session, "GET /", "Cookie: id=\"quoted\";b\r\n"), "quoted");
  EXPECT_EQ(text_of(session, "GET /", "Cookie: id=\r\n"), "");
  EXPECT_EQ(text_of(session, "GET /", "Cookie: id=\"\r\n"), "\"");
  EXPECT_EQ(text_of(session, "GET /", "Cookie: x=1\r\ncookie: ;; id=second\r\n"), "second");
  for (const char* const cookies :
       {"Cookie: xid=1; ID=2; idx=3; id\r\n", "X-Cookie: id=1\r\n", ""}) {
    EXPECT_TRUE(text_of(session, "GET /", cookies)
                    .ends_with(errors(R"({"in":"cookie","name":"id","detail":"missing"})")));
  }
  const auto number = [](const std::optional<Cookie<"n", int>>& value) {
    return text(value ? std::to_string(**value) : "none");
  };
  EXPECT_EQ(text_of(number, "GET /", "Cookie: n=7\r\n"), "7");
  EXPECT_EQ(text_of(number), "none");
  EXPECT_EQ(answer(number, "GET /", "Cookie: n=x\r\n").status(), Status::bad_request);
  EXPECT_FALSE(text_of(number, "GET /", "Cookie: n=secret\r\n").contains("secret"));
}

TEST_F(ArgumentsTest, AllPartsOfTheHeadAreCheckedTogether) {
  const auto handler = [](Query<Renamed>, Header<"X-A", int>, Cookie<"c", int>) {
    return Status::ok;
  };
  const Response response = answer(handler, "GET /?class=x&user-name=1", "X-A: y\r\n");
  ASSERT_EQ(response.problem().violations.size(), 3U);
  EXPECT_EQ(response.problem().violations[0].in, "query");
  EXPECT_EQ(response.problem().violations[1].in, "header");
  EXPECT_EQ(response.problem().violations[2].in, "cookie");
}

TEST_F(ArgumentsTest, FormFillsTheFieldsOfAStruct) {
  constexpr std::string_view form = "Content-Type: application/x-www-form-urlencoded\r\n";
  const auto sync = [](Form<Login> login) {
    return text(login->name + std::to_string(login->pin));
  };
  const auto async = [](Form<Login> login) -> Task<Response> {
    std::ignore = co_await sleep(1s);
    co_return text(login->name + std::to_string(login->pin));
  };
  EXPECT_EQ(text_of(sync, "POST /", form, "name=Ann+B%C3%A9&pin=12&send=ok"), "Ann B\u00e912");
  EXPECT_EQ(text_of(async, "POST /", form, "pin=1&name="), "1");
  EXPECT_EQ(text_of(sync, "POST /", "", "name=a&pin=1"), "a1");
  EXPECT_EQ(
      text_of(sync, "POST /", "Content-Type: Application/X-WWW-Form-Urlencoded; charset=utf-8\r\n",
              "name=a&pin=1"),
      "a1");
  EXPECT_EQ(answer(sync, "POST /", "Content-Type: text/plain\r\n", "name=a&pin=1").status(),
            Status::unsupported_media_type);
  const Response wrong = answer(sync, "POST /", form, "name=a&pin=x");
  EXPECT_EQ(wrong.status(), Status::unprocessable_content);
  EXPECT_EQ(sent_body(wrong),
            R"({"title":"Unprocessable Content","status":422,)"
            R"("detail":"form pin: expected an integer from -2147483648 to 2147483647, )"
            R"(found \"x\"",)" +
                errors(R"({"in":"form","name":"pin","detail":)"
                       R"("expected an integer from -2147483648 to 2147483647, found \"x\""})"));
  EXPECT_EQ(answer(sync, "POST /", form, "").problem().violations.size(), 2U);
}

TEST_F(ArgumentsTest, FormWithABadEscapeIsMalformed) {
  const auto login = [](Form<Login> form) { return text(form->name); };
  for (const std::string_view body :
       {"name=%zz&pin=1", "name=a&pin=1&%zz=1", "name=a&pin=1&other=%4", "pin=1&name=%",
        "name=a&pin=1&x=%41%4g", "na%6=a&pin=1"}) {
    const Response response = answer(login, "POST /", "", body);
    EXPECT_EQ(response.status(), Status::bad_request) << body;
    ASSERT_EQ(response.problem().violations.size(), 1U) << body;
    EXPECT_EQ(response.problem().violations[0].offset, body.rfind('%')) << body;
  }
  EXPECT_EQ(text_of(login, "POST /", "", "n%61me=%4a&pin=1&%7E=%7e"), "J");
}

TEST_F(ArgumentsTest, FormIsInUtf8) {
  const auto login = [](Form<Login> form) { return text(form->name); };
  const auto status_of = [&](std::string_view parameters) {
    const std::string type =
        "Content-Type: application/x-www-form-urlencoded;" + std::string(parameters) + "\r\n";
    return answer(login, "POST /", type, "name=a&pin=1").status();
  };
  for (const std::string_view parameters : {"", "charset=UTF-8", " charset=\"utf-8\"", "a=b"}) {
    EXPECT_EQ(status_of(parameters), Status::ok) << parameters;
  }
  for (const std::string_view parameters : {"charset=latin1", "charset=utf-16", "charset", "=x"}) {
    EXPECT_EQ(status_of(parameters), Status::unsupported_media_type) << parameters;
  }
}

TEST_F(ArgumentsTest, JsonStandsAnywhereAmongTheParameters) {
  params_.add("7");
  const auto sync = [](const Json<Note>& note, int user, const Request& request) {
    return text(note->text + std::to_string(user) + std::string(request.path()));
  };
  const auto async = [](int user, Json<Note> note, Scope&) -> Task<Response> {
    std::ignore = co_await sleep(1s);
    co_return text(std::to_string(user) + note->text);
  };
  EXPECT_EQ(text_of(sync, "POST /p", "", R"({"text":"a"})"), "a7/p");
  EXPECT_EQ(text_of(async, "POST /p", "", R"({"text":"a"})"), "7a");
  EXPECT_EQ(answer(sync, "POST /p", "", "{}").status(), Status::unprocessable_content);
  EXPECT_EQ(answer(sync, "POST /p", "Content-Type: text/plain\r\n", "{}").status(),
            Status::unsupported_media_type);
}

TEST_F(ArgumentsTest, OptionalBodyIsEmptyWithoutABody) {
  const auto maybe = [](const std::optional<Json<Note>>& note) {
    return text(note ? (*note)->text : "none");
  };
  EXPECT_EQ(text_of(maybe, "POST /", "Content-Type: text/plain\r\n"), "none");
  EXPECT_EQ(text_of(maybe, "POST /", "Content-Length: 12\r\n", R"({"text":"a"})"), "a");
  EXPECT_EQ(answer(maybe, "POST /", "Content-Length: 1\r\n", "x").status(), Status::bad_request);
  EXPECT_EQ(
      answer(maybe, "POST /", "Content-Type: text/plain\r\nContent-Length: 1\r\n", "x").status(),
      Status::unsupported_media_type);
}

TEST_F(ArgumentsTest, BodyByReferenceLivesAsLongAsATaskWithAScope) {
  const auto handler = [](Scope&, const Json<Note>& note) -> Task<Response> {
    std::ignore = co_await sleep(1s);
    co_return text(note->text);
  };
  const std::string long_text(100, 'x');
  EXPECT_EQ(text_of(handler, "POST /", "", R"({"text":")" + long_text + R"("})"), long_text);
}

struct User {
  std::string name;

  static std::expected<User, Response> from_request(const Request& request) {
    ++calls;
    const auto token = request.header("Authorization");
    if (!token) {
      Response refused = problem(Status::unauthorized, "log in first");
      refused.set_header("WWW-Authenticate", "Bearer");
      return std::unexpected(std::move(refused));
    }
    return User{std::string(*token)};
  }
  static inline int calls = 0;
};
struct Tenant {
  static Result<Tenant> from_request(const Request& request) {
    if (!request.header("X-Tenant")) return fail(Errc::not_found);
    return Tenant();
  }
};
struct Agent {
  std::string_view text;
  static Agent from_request(const Request& request) {
    return {request.header("User-Agent").value_or("unknown")};
  }
};
struct Locked {
  static std::expected<Locked, Status> from_request(const Request&) {
    return std::unexpected(Status::locked);
  }
};

TEST_F(ArgumentsTest, TypesMakeTheirValuesFromTheRequest) {
  const auto hello = [](User user, Agent agent) {
    return text(user.name + std::string(agent.text));
  };
  const auto later = [](User user, Json<Note> note) -> Task<Response> {
    co_return text(user.name + note->text);
  };
  EXPECT_EQ(text_of(hello, "GET /", "Authorization: Ann\r\n"), "Annunknown");
  User::calls = 0;
  EXPECT_EQ(text_of(later, "POST /", "Authorization: Ann\r\n", R"({"text":"!"})"), "Ann!");
  EXPECT_EQ(User::calls, 1) << "the user is looked up once";
  const Response refused = answer(hello);
  EXPECT_EQ(refused.status(), Status::unauthorized);
  EXPECT_EQ(refused.headers().get("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(answer([](Tenant) { return Status::ok; }).cause(), Errc::not_found);
  EXPECT_EQ(answer([](const Locked&) { return Status::ok; }).status(), Status::locked);
}

TEST_F(ArgumentsTest, TheUserIsKnownBeforeTheRestIsRead) {
  const auto sync = [](Query<Login>, const Json<Note>&, User, Locked) { return Status::ok; };
  EXPECT_EQ(answer(sync, "POST /", "Content-Type: text/plain\r\n", "x").status(),
            Status::unauthorized);
  EXPECT_EQ(answer(sync, "POST /", "Authorization: a\r\n", "x").status(), Status::locked);
  const auto late = [](Query<Login>, Json<Note>, User) -> Task<Status> { co_return Status::ok; };
  EXPECT_EQ(answer(late, "POST /", "Content-Type: text/plain\r\n", "x").status(),
            Status::unauthorized);
  constexpr std::string_view other = "Authorization: a\r\nContent-Type: text/plain\r\n";
  EXPECT_EQ(answer(late, "POST /", other, "x").status(), Status::bad_request) << "the query";
  EXPECT_EQ(answer(late, "POST /?name=a&pin=1", other, "x").status(),
            Status::unsupported_media_type);
}

TEST_F(ArgumentsTest, ArgumentsNeedNoMemoryButThatOfTheirValues) {
  struct Numbers {
    int first;
    std::optional<double> second;
    std::string third;
  };
  const Handler handler =
      Handler::of([](int, Query<Numbers> query, Header<"X-A"> header, Cookie<"c", int> cookie,
                     const Json<Numbers>& json, const std::optional<Header<"X-B">>& none) {
        return *cookie + query->first + json->first == 6 && *header == "text" && !none
                   ? Status::ok
                   : Status::conflict;
      });
  const Handler form = Handler::of([](Form<Numbers> numbers) {
    return numbers->first == 1 && numbers->third == "a b" ? Status::ok : Status::conflict;
  });
  TextRequest request("POST /?first=1&second=2.5&third=sh%6Frt", {},
                      "X-A: text\r\nCookie: a=b; c=3\r\n");
  params_.add("7");
  const std::uint64_t before = TestHeap::news;
  const Response answered = handler.call_with_body(request.request(), params_,
                                                   R"({"first":2,"second":0.5,"third":"short"})");
  const Response formed = form.call_with_body(request.request(), params_, "first=1&third=a+b");
  const std::uint64_t allocations = TestHeap::news - before;
  EXPECT_EQ(answered.status(), Status::ok);
  EXPECT_EQ(formed.status(), Status::ok);
  EXPECT_EQ(allocations, 0U);
}

}  // namespace
}  // namespace weir::http::arguments_test
