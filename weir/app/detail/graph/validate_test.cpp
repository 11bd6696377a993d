// Tests of the validation of the service graph.
#include "weir/app/detail/graph/graph.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "weir/app/test/app_fixture.hpp"

namespace weir::validate_test {
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
  /// Checks that the start fails with one error for each entry, which contains its parts in order.
  void expect(const std::vector<std::vector<std::string_view>>& wanted) {
    EXPECT_EQ(start().error(), Errc::bad_configuration);
    EXPECT_TRUE(lines_.empty()) << "something was made";
    EXPECT_EQ(app_.errors().size(), wanted.size());
    for (const auto& parts : wanted) EXPECT_TRUE(is_there(parts)) << parts.front();
    for (const std::string& each : app_.errors()) {
      EXPECT_NE(std::ranges::find(platform_.logged(), "weir: " + each), platform_.logged().end());
      if (HasFailure()) ADD_FAILURE() << each;
    }
  }

  void expect_exactly(const std::vector<std::string>& wanted) {
    EXPECT_EQ(start().error(), Errc::bad_configuration);
    EXPECT_EQ(app_.errors(), wanted);
  }

 private:
  bool is_there(const std::vector<std::string_view>& parts) const {
    return std::ranges::any_of(app_.errors(), [&](const std::string& problem) {
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

struct Noisy : JournaledService {
  explicit Noisy(const Journal& journal) : JournaledService(journal, "noisy") {}
};

TEST_F(ProblemsTest, AMissingProviderIsReported) {
  app_.per_core<Noisy>();
  app_.per_core<Reader>();
  expect({{"Reader requires ", "Database", "no service provides it"}});
}

TEST_F(ProblemsTest, AnAmbiguousProviderIsReported) {
  app_.per_core<Noisy>();
  app_.per_core<Postgres, Database>();
  app_.per_core<Sqlite, Database>();
  app_.per_core<Reader>();
  expect({{"Reader requires ", "Database", "several: ", "Postgres, ", "Sqlite"}});
}

TEST_F(ProblemsTest, SeveralProvidersAreFineWithoutADependant) {
  app_.per_core<Postgres, Database>();
  app_.per_core<Postgres, Database>();
  app_.per_core<Sqlite, Database>();
  ASSERT_TRUE(start());
  stop();
}

TEST_F(ProblemsTest, ACycleIsReported) {
  app_.per_core<Noisy>();
  app_.per_core<Hen>();
  app_.per_core<Egg>();
  expect({{"dependency cycle: ", "Hen -> ", "Egg -> ", "Hen"}});
}

TEST_F(ProblemsTest, AServiceThatRequiresItselfIsReported) {
  app_.per_core([](const Config&) { return Config(); });
  expect({{"dependency cycle: ", "Config -> ", "Config"}});
}

TEST_F(ProblemsTest, AWritableSharedServiceIsReported) {
  app_.shared<Config>();
  app_.per_core<Writer>();
  app_.per_core<Configured>();
  expect({{"Writer requires ", "Config", "shared (take it as const)"}});
}

TEST_F(ProblemsTest, AWritableOptionalSharedServiceIsReported) {
  app_.shared<Config>();
  struct Last {};
  app_.per_core([](inject::Optional<Config>) { return Last(); });
  expect({{"Last takes ", "Config as writable"}});
}

TEST_F(ProblemsTest, ASharedServiceMayNotTakeAPerCoreOne) {
  app_.per_core<Config>();
  app_.shared<Configured>();
  expect({{"Configured requires ", "Config, which is per core", "itself shared"}});
}

TEST_F(ProblemsTest, AnInvalidCoreIsReported) {
  app_.on_core<Config>(7);
  expect({{"Config is registered on core 7", "number of cores is 1"}});
}

TEST_F(ProblemsTest, EndlessRequestsAreReported) {
  app_.per_core([](inject::Requester, const Config&) { return Config(); });
  app_.per_core<Configured>();
  expect({{"endless chain of instances per requester", "Config"}});
}

TEST_F(ProblemsTest, AllErrorsAreReportedOnce) {
  app_.per_core<Noisy>();
  app_.per_core<Reader>();
  app_.per_core<Reader>();
  app_.per_core<Configured>();
  app_.per_core<Hen>();
  app_.per_core<Egg>();
  expect({{"Reader requires "}, {"Configured requires "}, {"dependency cycle"}});
}

TEST_F(ProblemsTest, ErrorsOfAllKindsAreReportedTogether) {
  app_.per_core<Noisy>();
  app_.per_core<Reader>();
  app_.shared<Config>();
  app_.shared<Config>();
  app_.per_core<Configured>();
  app_.per_core<Hen>();
  app_.per_core<Egg>();
  expect({{"Reader requires ", "Database", "no service provides it"},
          {"Configured requires ", "Config", "several: "},
          {"dependency cycle: "}});
}

template <class T>
std::string name() {
  return std::string(inject::type<T>.name);
}

TEST_F(ProblemsTest, EightCandidatesAreNamed) {
  std::string names = name<Postgres>();
  for (int i = 1; i < 8; ++i) names += ", " + name<Postgres>();
  for (int i = 0; i < 8; ++i) app_.per_core<Postgres, Database>();
  app_.per_core<Reader>();
  const std::string several =
      name<Reader>() + " requires " + name<Database>() + ", but there are several: " + names;
  expect_exactly({several + " (select one with a filter)"});
  app_.per_core<Sqlite, Database>();
  expect_exactly({several + ", ... (select one with a filter)"});
}

struct Leads {
  explicit Leads(Hen&) {}
};

TEST_F(ProblemsTest, ACycleIsNamedWithoutThePathToIt) {
  app_.per_core<Leads>();
  app_.per_core<Hen>();
  app_.per_core<Egg>();
  app_.per_core([](const Config&) { return Config(); });
  expect_exactly({"dependency cycle: " + name<Hen>() + " -> " + name<Egg>() + " -> " + name<Hen>(),
                  "dependency cycle: " + name<Config>() + " -> " + name<Config>()});
}

TEST_F(ProblemsTest, SeveralPathsToOneServiceAreNoCycle) {
  struct Top {};
  app_.per_core([](Configured&, Writer&, Config&) { return Top(); });
  app_.per_core<Configured>();
  app_.per_core<Writer>();
  app_.per_core<Config>();
  EXPECT_TRUE(start());
  EXPECT_TRUE(app_.errors().empty());
  stop();
}

TEST_F(ProblemsTest, APlacementThatDoesNotFitIsNamed) {
  app_.per_core<Config>();
  app_.shared<Configured>();
  expect_exactly({name<Configured>() + " requires " + name<Config>() + ", which is per core, but " +
                  name<Configured>() + " is itself shared"});
}

TEST_F(ProblemsTest, APerCoreServiceMayBeTakenAsWritable) {
  struct Last {};
  app_.per_core<Config>();
  app_.per_core<Writer>();
  app_.per_core([](inject::Optional<Config>) { return Last(); });
  EXPECT_TRUE(start());
  stop();
}

struct Own {
  explicit Own(inject::Requester) {}
};

TEST_F(ProblemsTest, AnInstanceForOneRequesterMayBeTakenAsWritable) {
  struct Last {};
  app_.shared<Own>();
  app_.per_core([](Own&) { return Last(); });
  EXPECT_TRUE(start());
  EXPECT_TRUE(app_.errors().empty());
  stop();
}

TEST_F(ProblemsTest, AnEndlessChainIsNamed) {
  app_.per_core([](inject::Requester, const Config&) { return Config(); });
  app_.per_core<Configured>();
  expect_exactly(
      {"endless chain of instances per requester: " + name<Config>() + " requires itself"});
}

struct Moon;
struct Sun {
  Sun(inject::Requester, Moon&) {}
};
struct Moon {
  Moon(inject::Requester, Sun&) {}
};
struct Sky {
  explicit Sky(Sun&) {}
};

TEST_F(ProblemsTest, AnEndlessChainThroughSeveralServicesIsNamed) {
  app_.per_core<Sun>();
  app_.per_core<Moon>();
  app_.per_core<Sky>();
  expect_exactly(
      {"endless chain of instances per requester: " + name<Moon>() + " requires itself"});
}

struct OwnReader {
  OwnReader(inject::Requester, const Config&) {}
};
struct UsesOwnReader {
  explicit UsesOwnReader(const OwnReader&) {}
};

TEST_F(ProblemsTest, AnInstanceForOneRequesterIsAsSharedAsItsRequester) {
  App app;
  app.per_core<Config>();
  app.shared<OwnReader>();
  app.per_core<UsesOwnReader>();
  EXPECT_TRUE(run(app.start()));
  run(app.stop());
  app_.per_core<Config>();
  app_.shared<OwnReader>();
  app_.shared<UsesOwnReader>();
  expect_exactly({name<OwnReader>() + " requires " + name<Config>() + ", which is per core, but " +
                  name<OwnReader>() + " is itself shared"});
}

}  // namespace
}  // namespace weir::validate_test
