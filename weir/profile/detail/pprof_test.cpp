// Tests of the format of pprof. tests/profile_test.py lets pprof itself read a profile.
#include "weir/profile/detail/pprof.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string_view>

#include "weir/profile/test/profile_fixture.hpp"

namespace weir::profile::pprof_test {
namespace {

/// A field of a message: a number, or bytes.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  std::string bytes = {};
};

std::uint64_t take_varint(std::string_view& data) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    if (data.empty() || shift > 63) throw std::runtime_error("bad varint");
    const auto byte = static_cast<unsigned char>(data.front());
    data.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<Field> fields_of(std::string_view data) {
  std::vector<Field> fields;
  while (!data.empty()) {
    const std::uint64_t tag = take_varint(data);
    Field field{tag >> 3, take_varint(data)};
    if ((tag & 7) == 2) {
      field.bytes = data.substr(0, field.value);
      data.remove_prefix(field.value);
    } else if ((tag & 7) != 0) {
      throw std::runtime_error("unexpected type");
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

std::vector<std::vector<Field>> messages(const std::vector<Field>& fields, std::uint64_t number) {
  std::vector<std::vector<Field>> found;
  for (const Field& each : fields)
    if (each.number == number) found.push_back(fields_of(each.bytes));
  return found;
}
std::uint64_t number_in(const std::vector<Field>& fields, std::uint64_t number) {
  for (const Field& each : fields)
    if (each.number == number) return each.value;
  return 0;
}
std::vector<std::uint64_t> packed(const std::vector<Field>& fields, std::uint64_t number) {
  std::vector<std::uint64_t> values;
  for (const Field& each : fields) {
    if (each.number != number) continue;
    std::string_view rest = each.bytes;
    while (!rest.empty()) values.push_back(take_varint(rest));
  }
  return values;
}

class PprofTest : public testing::Test {
 protected:
  void decode(const Profile& profile) {
    fields_ = fields_of(to_pprof(profile));
    for (const Field& each : fields_)
      if (each.number == 6) texts_.push_back(each.bytes);
  }
  std::string text(const std::vector<Field>& message, std::uint64_t number) const {
    return texts_.at(number_in(message, number));
  }
  /// Returns the name of the function at a location.
  std::string function_at(std::uint64_t location) const {
    for (const auto& each : messages(fields_, 4)) {
      if (number_in(each, 1) != location) continue;
      const std::uint64_t id = number_in(messages(each, 4).at(0), 1);
      for (const auto& function : messages(fields_, 5))
        if (number_in(function, 1) == id) return text(function, 2);
    }
    return "no location";
  }

  std::vector<Field> fields_;
  std::vector<std::string> texts_;
};

TEST_F(PprofTest, HasSamplesWithLocationsValuesAndLabels) {
  decode(made_profile(
      {{{.core = 3, .route = "GET /a", .activity = 0x300, .addresses = {0x100, 0x200}}, 7}},
      {{0x100, "inner"}, {0x200, "outer"}, {0x300, "handler"}}));
  const auto samples = messages(fields_, 2);
  ASSERT_EQ(samples.size(), 1u);
  const auto locations = packed(samples[0], 1);
  ASSERT_EQ(locations.size(), 2u);
  EXPECT_EQ(function_at(locations[0]), "inner") << "the innermost function is the first";
  EXPECT_EQ(function_at(locations[1]), "outer");
  EXPECT_EQ(packed(samples[0], 2), (std::vector<std::uint64_t>{7, 70'000'000}));
  std::map<std::string, std::string> labels;
  for (const auto& each : messages(samples[0], 3))
    labels[text(each, 1)] = text(each, 2) + std::to_string(number_in(each, 3));
  EXPECT_EQ(labels, (std::map<std::string, std::string>{
                        {"core", "3"}, {"route", "GET /a0"}, {"coroutine", "handler0"}}));
}

TEST_F(PprofTest, NamesAThreadWithoutALoop) {
  decode(made_profile(
      {{{.core = loop::CpuSample::no_core, .thread = "weir-pool", .addresses = {0x100}}, 1}}));
  const auto labels = messages(messages(fields_, 2).at(0), 3);
  ASSERT_EQ(labels.size(), 1u);
  EXPECT_EQ(text(labels[0], 1) + "=" + text(labels[0], 2), "thread=weir-pool");
}

TEST_F(PprofTest, DescribesItsValuesAndItsTime) {
  Profile profile = made_profile({{{.addresses = {0x100}}, 1}});
  profile.started = WallTime(std::chrono::seconds(5));
  profile.dropped = 12;
  decode(profile);
  ASSERT_EQ(texts_.at(0), "") << "the first text is empty";
  const auto types = messages(fields_, 1);
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(text(types[0], 1) + "/" + text(types[0], 2), "samples/count");
  EXPECT_EQ(text(types[1], 1) + "/" + text(types[1], 2), "cpu/nanoseconds");
  EXPECT_EQ(number_in(fields_, 12), 10'000'000u) << "period";
  EXPECT_EQ(number_in(fields_, 9), 5'000'000'000u) << "time";
  EXPECT_EQ(number_in(fields_, 10), 2'000'000'000u) << "duration";
  EXPECT_EQ(texts_.at(number_in(fields_, 13)), "dropped samples: 12");
}

TEST_F(PprofTest, HasMappingsWithBuildIds) {
  decode(made_profile({{{.addresses = {0x100}}, 1}}));
  const auto mappings = messages(fields_, 3);
  ASSERT_EQ(mappings.size(), 1u);
  EXPECT_EQ(number_in(mappings[0], 2), 0x100u);
  EXPECT_EQ(number_in(mappings[0], 3), 0x900u);
  EXPECT_EQ(number_in(mappings[0], 4), 0x40u);
  EXPECT_EQ(text(mappings[0], 5), "/bin/service");
  EXPECT_EQ(text(mappings[0], 6), "ab12");
  EXPECT_EQ(number_in(messages(fields_, 4).at(0), 2), number_in(mappings[0], 1));
}

TEST_F(PprofTest, SharesTextsAndFunctions) {
  decode(made_profile({{{.addresses = {0x100, 0x200}}, 1}, {{.addresses = {0x200}}, 1}},
                      {{0x100, "same"}, {0x200, "same"}}));
  EXPECT_EQ(messages(fields_, 5).size(), 1u);
  EXPECT_EQ(messages(fields_, 4).size(), 2u);
  std::sort(texts_.begin(), texts_.end());
  EXPECT_EQ(std::adjacent_find(texts_.begin(), texts_.end()), texts_.end());
}

TEST_F(PprofTest, IsValidWithoutSamples) {
  decode(made_profile({}));
  EXPECT_TRUE(messages(fields_, 2).empty());
  EXPECT_FALSE(texts_.empty());
}

}  // namespace
}  // namespace weir::profile::pprof_test
