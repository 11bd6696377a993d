#include "tools/weir/check/probe.hpp"

#include "tools/weir/check/conversation.hpp"

namespace weir::check {
namespace {

Task<Outcome> ask_on_its_own(const Site& site, std::string request) {
  Conversation talk(site);
  Until until;
  until.finals = 1;
  until.longest = site.timeout;
  const bool opened = co_await talk.open();
  if (opened) co_await talk.ask(request, until);
  co_return talk.outcome();
}

}  // namespace

Task<Outcome> ask_once(const Site& site) {
  return ask_on_its_own(site, get_request(site));
}

Task<std::string> find_baseline(Site& site) {
  const Outcome got = co_await ask_once(site);
  const Answer* const answer = got.first();
  if (answer == nullptr) co_return describe(got);
  site.get.status = answer->status;
  site.get.body = answer->body;
  const std::string request = "POST " + site.post_path + " HTTP/1.1\r\nHost: " + site.authority +
                              "\r\nContent-Length: 5\r\n\r\nhello";
  const Outcome posted = co_await ask_on_its_own(site, request);
  if (const Answer* const accepted = posted.first()) {
    site.post.status = accepted->status;
    site.post.body = accepted->body;
  }
  co_return std::string();
}

Task<std::string> probe(const Site& site) {
  const Outcome outcome = co_await ask_once(site);
  const Answer* const answer = outcome.first();
  const bool right = answer != nullptr && answer->status == site.get.status;
  co_return right ? std::string() : describe(outcome);
}

}  // namespace weir::check
