#include "weir/app/handles/handles.hpp"

#include <functional>
#include <string>
#include <vector>

#include "weir/app/test/app_fixture.hpp"

namespace weir {
namespace {

enum class Region { europe, asia };
struct InAsia {
  bool operator()(Region region) const { return region == Region::asia; }
};
struct Anonymous {
  bool operator()(const Properties& properties) const {
    return properties.get<Region>() == nullptr;
  }
};

struct Store : Said {
  Store(const Journal& journal, std::string name) : Said(journal, name), name_(name) {}
  Task<> stop() {
    say("stopping");
    static_cast<void>(co_await sleep(1s));
  }
  std::string name_;
};

/// Writes down which stores it sees.
struct User : Said {
  User(const Journal& journal, Optional<Store> one, All<Store> all, Optional<Store, InAsia> asian)
      : Said(journal, "user"), one_(one), all_(all), asian_(asian) {
    look();
    one_.on_change([this] { look(); });
    all_.on_change([this] { look(); });
    asian_.on_change([this] { look(); });
  }
  void look() {
    std::string names = one_ ? one_->name_ + ":" : "none:";
    for (Store& each : all_) names += " " + each.name_;
    if (asian_) names += " asian " + asian_->name_;
    say("sees " + names);
  }
  Optional<Store> one_;
  All<Store> all_;
  Optional<Store, InAsia> asian_;
};

class ProvidersTest : public AppTest {
 protected:
  ServiceId store(const std::string& name, Properties properties = {}) {
    return app_.per_core([name](const Journal& journal) { return Store(journal, name); },
                         {.properties = std::move(properties)});
  }
  std::vector<std::string> take() { return std::exchange(lines_, {}); }
  /// What the user saw last, before the line `end`.
  std::string last_seen(const std::string& end = {}) const {
    std::string last;
    for (const std::string& each : lines_) {
      if (each == end) break;
      if (each.starts_with("user sees ")) last = each;
    }
    return last;
  }
};

using Lines = std::vector<std::string>;

TEST_F(ProvidersTest, NobodyNeedBeThere) {
  app_.per_core<User>();
  ASSERT_TRUE(start());
  EXPECT_EQ(take(), (Lines{"user made", "user sees none:"}));
  stop();
}

TEST_F(ProvidersTest, TheyComeAndGo) {
  app_.per_core<User>();
  ASSERT_TRUE(start());
  take();
  const ServiceId a = store("a");
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(last_seen(), "user sees a: a");
  EXPECT_EQ(take().front(), "a made");
  const ServiceId b = store("b", {Region::asia});
  ASSERT_TRUE(run(app_.apply()));
  take();
  ASSERT_TRUE(run(app_.stop(a)));
  EXPECT_EQ(lines_.back(), "a gone");
  EXPECT_EQ(last_seen("a stopping"), "user sees b: b asian b") << "it is told before";
  ASSERT_TRUE(run(app_.start(a)));
  EXPECT_EQ(last_seen(), "user sees b: b a asian b");
  ASSERT_TRUE(run(app_.remove(b)));
  EXPECT_EQ(last_seen("b stopping"), "user sees a: a");
  stop();
  EXPECT_TRUE(said("user gone"));
}

TEST_F(ProvidersTest, FiltersChoose) {
  app_.per_core<User>();
  store("a", {Region::europe});
  store("b", {Region::asia});
  store("c");
  struct Last {};
  std::string chosen;
  app_.per_core([&chosen](Chosen<Store, InAsia> asian, Chosen<Store, Anonymous> anonymous) {
    chosen = asian->name_ + anonymous.get().name_;
    return Last();
  });
  ASSERT_TRUE(start());
  EXPECT_EQ(chosen, "bc");
  stop();
}

TEST_F(ProvidersTest, AFilterThatTakesNobodyIsAProblem) {
  store("a", {Region::europe});
  struct Last {};
  app_.per_core([](Chosen<Store, InAsia>) { return Last(); });
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  ASSERT_EQ(app_.problems().size(), 1U);
  EXPECT_NE(app_.problems().front().find("its filter"), std::string::npos);
}

TEST_F(ProvidersTest, AnotherChosenOneTakesTheRemovedOnesPlace) {
  const ServiceId a = store("a", {Region::asia});
  store("b", {Region::asia});
  struct Last {};
  Lines chosen;
  app_.per_core([&chosen](Chosen<Store, InAsia> asian) {
    chosen.push_back(asian->name_);
    return Last();
  });
  ASSERT_TRUE(start());
  ASSERT_TRUE(run(app_.remove(a)));
  EXPECT_EQ(chosen, (Lines{"a", "b"}));
  stop();
}

struct Sibling {
  explicit Sibling(All<Sibling> all) : all_(all) {}
  All<Sibling> all_;
};

TEST_F(ProvidersTest, NobodySeesItself) {
  Sibling* first = nullptr;
  app_.per_core<Sibling>();
  app_.per_core<Sibling>();
  struct Last {};
  app_.per_core([&first](All<Sibling> all) {
    if (!all.empty()) first = &*all.begin();
    return Last();
  });
  ASSERT_TRUE(start());
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->all_.size(), 1U);
  EXPECT_NE(&*first->all_.begin(), first);
  stop();
}

}  // namespace
}  // namespace weir
