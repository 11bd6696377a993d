#include "weir/app/problems.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "weir/app/test/app_fixture.hpp"

namespace weir {
namespace {

struct Database {
  virtual ~Database() = default;
};
struct Postgres : Database {};
struct Sqlite : Database {};
struct Config {};
struct Reader {
  explicit Reader(Database&) {}
};
struct Configured {
  explicit Configured(const Config&) {}
};
struct Writer {
  explicit Writer(Config&) {}
};
struct Egg;
struct Hen {
  explicit Hen(Egg&) {}
};
struct Egg {
  explicit Egg(Hen&) {}
};

class ProblemsTest : public AppTest {
 protected:
  /// Starting fails with a problem for each of these, whose parts it contains in this order.
  void expect(const std::vector<std::vector<std::string_view>>& wanted) {
    EXPECT_EQ(start().error(), Errc::bad_configuration);
    EXPECT_TRUE(lines_.empty()) << "something was made";
    EXPECT_EQ(app_.problems().size(), wanted.size());
    for (const auto& parts : wanted) EXPECT_TRUE(is_there(parts)) << parts.front();
    for (const std::string& each : app_.problems()) {
      EXPECT_NE(std::ranges::find(host_.logged(), "weir: " + each), host_.logged().end());
      if (HasFailure()) ADD_FAILURE() << each;
    }
  }

 private:
  bool is_there(const std::vector<std::string_view>& parts) const {
    return std::ranges::any_of(app_.problems(), [&](const std::string& problem) {
      std::size_t from = 0;
      for (const std::string_view part : parts) {
        from = problem.find(part, from);
        if (from == problem.npos) return false;
        from += part.size();
      }
      return true;
    });
  }
};

struct Noisy : Said {
  explicit Noisy(const Journal& journal) : Said(journal, "noisy") {}
};

TEST_F(ProblemsTest, SomebodyIsMissing) {
  app_.per_core<Noisy>();
  app_.per_core<Reader>();
  expect({{"Reader requires ", "Database", "nobody provides it"}});
}

TEST_F(ProblemsTest, SeveralWouldDo) {
  app_.per_core<Noisy>();
  app_.per_core<Postgres, Database>();
  app_.per_core<Sqlite, Database>();
  app_.per_core<Reader>();
  expect({{"Reader requires ", "Database", "several: ", "Postgres, ", "Sqlite"}});
}

TEST_F(ProblemsTest, SeveralAreFineWhereNobodyHasToChoose) {
  app_.per_core<Postgres, Database>();
  app_.per_core<Postgres, Database>();
  app_.per_core<Sqlite, Database>();
  ASSERT_TRUE(start());
  stop();
}

TEST_F(ProblemsTest, ACycle) {
  app_.per_core<Noisy>();
  app_.per_core<Hen>();
  app_.per_core<Egg>();
  expect({{"a cycle: ", "Hen -> ", "Egg -> ", "Hen"}});
}

TEST_F(ProblemsTest, AServiceThatRequiresItself) {
  app_.per_core([](const Config&) { return Config(); });
  expect({{"a cycle: ", "Config -> ", "Config"}});
}

TEST_F(ProblemsTest, WritingWhatIsShared) {
  app_.shared<Config>();
  app_.per_core<Writer>();
  app_.per_core<Configured>();
  expect({{"Writer requires ", "Config", "shared: take it as const"}});
}

TEST_F(ProblemsTest, WritingAnyThatIsShared) {
  app_.shared<Config>();
  struct Last {};
  app_.per_core([](Optional<Config>) { return Last(); });
  expect({{"Last takes ", "Config to write"}});
}

TEST_F(ProblemsTest, ASharedServiceHasNoCore) {
  app_.per_core<Config>();
  app_.shared<Configured>();
  expect({{"Configured requires ", "Config, which is per core", "itself shared"}});
}

TEST_F(ProblemsTest, ACoreThatIsNotThere) {
  app_.on_core<Config>(7);
  expect({{"Config shall be on core 7", "there are only 1"}});
}

TEST_F(ProblemsTest, EndlessRequests) {
  app_.per_core([](Requester, const Config&) { return Config(); });
  app_.per_core<Configured>();
  expect({{"made for each other", "Config"}});
}

TEST_F(ProblemsTest, AllAreToldAtOnceAndNoneTwice) {
  app_.per_core<Noisy>();
  app_.per_core<Reader>();
  app_.per_core<Reader>();
  app_.per_core<Configured>();
  app_.per_core<Hen>();
  app_.per_core<Egg>();
  expect({{"Reader requires "}, {"Configured requires "}, {"a cycle"}});
}

TEST_F(ProblemsTest, OfAllKindsAtOnce) {
  app_.per_core<Noisy>();
  app_.per_core<Reader>();
  app_.shared<Config>();
  app_.shared<Config>();
  app_.per_core<Configured>();
  app_.per_core<Hen>();
  app_.per_core<Egg>();
  expect({{"Reader requires ", "Database", "nobody provides it"},
          {"Configured requires ", "Config", "several: "},
          {"a cycle: "}});
}

}  // namespace
}  // namespace weir
