// Random names, and the rules of their answers.
#include "tools/simulate/name_zone.hpp"

#include <algorithm>
#include <utility>

namespace weir::simulate {
namespace {

using dns::Family;

constexpr Duration slow_answer = std::chrono::seconds(2);
constexpr std::size_t names_of_a_kind = 6;

std::uint32_t draw_ttl(sim::Random& random) {
  if (random.bernoulli(0.05)) return 0x80000000U + static_cast<std::uint32_t>(random.below(1000));
  return static_cast<std::uint32_t>(random.below(9));
}

void add_addresses(ZoneName& name, sim::Random& random, Family family, std::size_t count) {
  const std::uint32_t ttl = draw_ttl(random);
  for (std::size_t added = 0; added < count; ++added) {
    const bool other = random.bernoulli(0.3);
    name.addresses[index_of(family)].push_back(
        {unused_address(family, random.below(60000)), other ? draw_ttl(random) : ttl});
  }
}

void add_aliases(ZoneName& name, sim::Random& random, std::size_t count) {
  for (std::size_t added = 0; added < count; ++added) {
    name.aliases.push_back(
        {"alias" + std::to_string(added) + "." + std::to_string(random.below(1000)) + "x.example",
         draw_ttl(random)});
  }
}

std::size_t draw_count(sim::Random& random) {
  constexpr std::array<std::size_t, 8> counts{0, 1, 1, 2, 3, 31, 32, 40};
  return random.one_of(counts);
}

/// Draws a chain of aliases; 16 are the most that a client follows.
std::size_t draw_chain(sim::Random& random) {
  constexpr std::array<std::size_t, 8> lengths{0, 0, 0, 1, 2, 3, 16, 17};
  return random.one_of(lengths);
}

ZoneName draw_name(sim::Random& random) {
  ZoneName name;
  name.exists = random.bernoulli(0.85);
  for (const Family family : families) add_addresses(name, random, family, draw_count(random));
  add_aliases(name, random, draw_chain(random));
  if (random.bernoulli(0.7)) {
    name.absence = ZoneAbsence{draw_ttl(random), draw_ttl(random)};
  }
  return name;
}

/// Makes all servers answer, some of them over TCP only.
void let_all_answer(ZoneName& name, sim::Random& random) {
  for (AnswerMode& mode : name.modes) {
    mode = random.bernoulli(0.2) ? AnswerMode::truncated : AnswerMode::correct;
  }
}

void let_some_fail(ZoneName& name, sim::Random& random) {
  for (AnswerMode& mode : name.modes) {
    if (random.bernoulli(0.6)) mode = static_cast<AnswerMode>(random.below(answer_mode_count));
  }
}

/// Returns an entry with addresses that a client can connect to, or not.
ZoneName draw_connectable(sim::Random& random, const std::vector<Endpoint>& ipv4) {
  ZoneName name;
  let_all_answer(name, random);
  auto& ipv6_records = name.addresses[index_of(Family::ipv6)];
  auto& ipv4_records = name.addresses[index_of(Family::ipv4)];
  for (std::size_t left = random.below(3); left > 0; --left) {
    const bool own = random.bernoulli(0.3);
    ipv6_records.push_back({own ? dns::local_host_address(Family::ipv6)
                                : unused_address(Family::ipv6, random.below(60000)),
                            4});
  }
  for (std::size_t left = random.below(5); left > 0; --left) {
    const bool dead = ipv4.empty() || random.bernoulli(0.3);
    ipv4_records.push_back(
        {dead ? unused_address(Family::ipv4, random.below(60000)) : ipv4[random.below(ipv4.size())],
         4});
  }
  if (random.bernoulli(0.4)) name.delay[random.below(2)] = slow_answer;
  return name;
}

}  // namespace

Zone Zone::draw(sim::Random& random, const ZoneOptions& options) {
  Zone zone;
  for (std::size_t number = 0; number < 2; ++number) {
    zone.domains.push_back("zone" + std::to_string(number) + ".example");
  }
  const auto add = [&](std::string_view kind, std::size_t number, ZoneName name) {
    // Names of some labels; the number of dots decides when searches begin.
    std::string text = std::string(kind) + std::to_string(number);
    for (std::size_t more = random.below(3); more > 0; --more) text += ".sub";
    text += "." + zone.domains[random.below(zone.domains.size())];
    zone.names.emplace(text, std::move(name));
    return text;
  };
  for (std::size_t number = 0; number < names_of_a_kind; ++number) {
    ZoneName plain = draw_name(random);
    let_all_answer(plain, random);
    zone.plain.push_back(add("plain", number, std::move(plain)));
    ZoneName faulty = draw_name(random);
    let_all_answer(faulty, random);
    if (!options.only_right_answers) let_some_fail(faulty, random);
    zone.faulty.push_back(add("faulty", number, std::move(faulty)));
    zone.connectable.push_back(add("connectable", number, draw_connectable(random, options.ipv4)));
    ZoneName stable;
    stable.addresses[index_of(Family::ipv4)] = {{unused_address(Family::ipv4, number), 60}};
    zone.stable.push_back(add("stable", number, std::move(stable)));
  }
  zone.unknown.exists = false;
  if (random.bernoulli(0.7)) zone.unknown.absence = ZoneAbsence{draw_ttl(random), 3};
  return zone;
}

const ZoneName& Zone::find(std::string_view name) const {
  const auto found = names.find(name);
  return found == names.end() ? unknown : found->second;
}

Endpoint unused_address(Family family, std::size_t number) {
  const auto high = static_cast<std::uint8_t>(number >> 8);
  const auto low = static_cast<std::uint8_t>(number & 0xff);
  if (family == Family::ipv4) return Endpoint::ipv4({10, 200, high, low}, 0);
  return Endpoint::ipv6({0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, high, low}, 0);
}

}  // namespace weir::simulate
