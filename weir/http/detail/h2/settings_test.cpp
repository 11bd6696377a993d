// Tests of the settings of an HTTP/2 connection.
#include "weir/http/detail/h2/settings.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace weir::http::h2_settings_test {
namespace {

H2Error apply(H2Settings& settings, SettingId id, std::uint32_t value,
              H2Role role = H2Role::server) {
  return settings.apply(role, id, value).error;
}

std::string entries_of(H2Role role, const H2Limits& limits) {
  std::string out;
  const OwnSettings own(role, limits);
  for (const Setting& each : own.entries()) {
    out += std::to_string(static_cast<int>(each.id)) + "=" + std::to_string(each.value) + " ";
  }
  return out;
}

TEST(H2OwnSettings, OfAServerAnnounceItsLimits) {
  H2Limits limits;
  limits.stream_window = 1'000;
  limits.field_list_max = 2'000;
  limits.streams_max = 30;
  EXPECT_EQ(entries_of(H2Role::server, limits), "4=1000 6=2000 3=30 9=1 ");
  limits.connect_protocol = true;
  EXPECT_EQ(entries_of(H2Role::server, limits), "4=1000 6=2000 3=30 9=1 8=1 ");
}

TEST(H2OwnSettings, OfAClientRefusePushedStreams) {
  H2Limits limits;
  limits.stream_window = 1'000;
  limits.field_list_max = 2'000;
  limits.connect_protocol = true;
  EXPECT_EQ(entries_of(H2Role::client, limits), "4=1000 6=2000 2=0 ");
}

TEST(H2Settings, BeginWithTheValuesOfTheProtocol) {
  const H2Settings settings;
  EXPECT_EQ(settings.peer().header_table_size, 4096u);
  EXPECT_EQ(settings.peer().initial_window_size, 65'535u);
  EXPECT_EQ(settings.peer().max_concurrent_streams, 0xFFFFFFFFu);
  EXPECT_FALSE(settings.peer().connect_protocol);
  EXPECT_FALSE(settings.received());
  EXPECT_FALSE(settings.acknowledged());
}

TEST(H2Settings, RememberTheSmallestHeaderTable) {
  H2Settings settings;
  EXPECT_EQ(apply(settings, SettingId::header_table_size, 100), H2Error::no_error);
  EXPECT_EQ(apply(settings, SettingId::header_table_size, 8'000), H2Error::no_error);
  EXPECT_EQ(settings.peer().header_table_size, 8'000u);
  EXPECT_EQ(settings.peer().header_table_size_min, 100u);
}

TEST(H2Settings, TellTheChangeOfTheWindows) {
  H2Settings settings;
  const auto change = [&](std::uint32_t value) {
    const auto applied = settings.apply(H2Role::server, SettingId::initial_window_size, value);
    EXPECT_EQ(applied.error, H2Error::no_error);
    return applied.window_change;
  };
  EXPECT_EQ(change(65'536), 1);
  EXPECT_EQ(change(0), -65'536);
  EXPECT_EQ(change(0x7FFFFFFF), 0x7FFFFFFF);
  EXPECT_EQ(settings.peer().initial_window_size, 0x7FFFFFFFu);
}

TEST(H2Settings, RefuseAWindowThatIsTooLarge) {
  H2Settings settings;
  EXPECT_EQ(apply(settings, SettingId::initial_window_size, 0x80000000),
            H2Error::flow_control_error);
  EXPECT_EQ(settings.peer().initial_window_size, window_default);
}

TEST(H2Settings, LetOnlyAClientAllowPushedStreams) {
  H2Settings settings;
  EXPECT_EQ(apply(settings, SettingId::enable_push, 1, H2Role::server), H2Error::no_error);
  EXPECT_EQ(apply(settings, SettingId::enable_push, 2, H2Role::server), H2Error::protocol_error);
  EXPECT_EQ(apply(settings, SettingId::enable_push, 0, H2Role::client), H2Error::no_error);
  EXPECT_EQ(apply(settings, SettingId::enable_push, 1, H2Role::client), H2Error::protocol_error);
}

TEST(H2Settings, CheckTheSizeOfAFrame) {
  H2Settings settings;
  EXPECT_EQ(apply(settings, SettingId::max_frame_size, 16'383), H2Error::protocol_error);
  EXPECT_EQ(apply(settings, SettingId::max_frame_size, 16'384), H2Error::no_error);
  EXPECT_EQ(apply(settings, SettingId::max_frame_size, 0xFFFFFF), H2Error::no_error);
  EXPECT_EQ(apply(settings, SettingId::max_frame_size, 0x1000000), H2Error::protocol_error);
}

TEST(H2Settings, StoreTheLimitsOfThePeer) {
  H2Settings settings;
  EXPECT_EQ(apply(settings, SettingId::max_concurrent_streams, 7), H2Error::no_error);
  EXPECT_EQ(apply(settings, SettingId::max_header_list_size, 9), H2Error::no_error);
  EXPECT_EQ(settings.peer().max_concurrent_streams, 7u);
  EXPECT_EQ(settings.peer().max_header_list_size, 9u);
}

TEST(H2Settings, DoNotLetThePeerTakeExtendedConnectBack) {
  H2Settings settings;
  EXPECT_EQ(apply(settings, SettingId::enable_connect_protocol, 0), H2Error::no_error);
  EXPECT_EQ(apply(settings, SettingId::enable_connect_protocol, 2), H2Error::protocol_error);
  EXPECT_EQ(apply(settings, SettingId::enable_connect_protocol, 1), H2Error::no_error);
  EXPECT_TRUE(settings.peer().connect_protocol);
  EXPECT_EQ(apply(settings, SettingId::enable_connect_protocol, 0), H2Error::protocol_error);
  EXPECT_TRUE(settings.peer().connect_protocol);
}

TEST(H2Settings, FixTheKindOfPrioritiesWithTheFirstFrame) {
  H2Settings settings;
  EXPECT_EQ(apply(settings, SettingId::no_rfc7540_priorities, 2), H2Error::protocol_error);
  EXPECT_EQ(apply(settings, SettingId::no_rfc7540_priorities, 0), H2Error::no_error);
  EXPECT_EQ(apply(settings, SettingId::no_rfc7540_priorities, 1), H2Error::no_error);
  settings.on_end();
  EXPECT_TRUE(settings.received());
  EXPECT_EQ(apply(settings, SettingId::no_rfc7540_priorities, 1), H2Error::no_error);
  EXPECT_EQ(apply(settings, SettingId::no_rfc7540_priorities, 0), H2Error::protocol_error);
  EXPECT_TRUE(settings.peer().no_rfc7540_priorities);
}

TEST(H2Settings, IgnoreUnknownEntries) {
  H2Settings settings;
  const auto applied = settings.apply(H2Role::client, static_cast<SettingId>(0x1234), 5);
  EXPECT_EQ(applied.error, H2Error::no_error);
  EXPECT_EQ(applied.window_change, 0);
}

TEST(H2Settings, HoldFromTheFirstAcknowledgement) {
  H2Settings settings;
  EXPECT_TRUE(settings.on_acknowledged());
  EXPECT_TRUE(settings.acknowledged());
  EXPECT_FALSE(settings.on_acknowledged());
  EXPECT_TRUE(settings.acknowledged());
}

}  // namespace
}  // namespace weir::http::h2_settings_test
