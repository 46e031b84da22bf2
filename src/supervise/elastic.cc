#include "supervise/elastic.h"

#include <algorithm>

#include "base/error.h"
#include "config/validate.h"

namespace hlat {
namespace {

std::string counted(int64_t count, const char* what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

int64_t total_slots(const std::vector<Host>& hosts) {
  int64_t sum = 0;
  for (const Host& host : hosts) sum += host.slots;
  return sum;
}

// Slots that tp groups can use without crossing a host.
std::vector<Host> whole_groups(std::vector<Host> hosts, int64_t tp) {
  for (Host& host : hosts) host.slots = static_cast<int>(host.slots / tp * tp);
  return hosts;
}

// Whether the config's rules allow this many replicas.
bool allows_replicas(Config config, int64_t dp) {
  config.parallel.dp = dp;
  const std::vector<Violation> wrong = validate(config);
  return std::ranges::none_of(wrong, [](const Violation& v) { return std::ranges::count(v.keys, "parallel.dp") > 0; });
}

// Why largest_dp passes over so many replicas.
std::string why_not(const Config& c, int64_t dp) {
  const int64_t micro_batch = std::max<int64_t>(1, c.train.micro_batch);
  if (c.train.global_batch % (micro_batch * dp) != 0)
    return fmt::format("dp x train.micro_batch ({}) must divide train.global_batch ({})", micro_batch, c.train.global_batch);
  Config asked = c;
  asked.parallel.dp = dp;
  for (const Violation& v : validate(asked))
    if (std::ranges::count(v.keys, "parallel.dp") > 0) return v.message;
  return "its groups do not fit the hosts";
}

// The largest number of replicas that so many slots allow, and at most `limit`; 0: none. Fixed in the config: that or 0.
int64_t largest_dp(const Config& c, int64_t slots, int64_t limit) {
  const int64_t fit = slots / (c.parallel.tp * c.parallel.pp);
  if (c.parallel.dp > 0) return fit >= c.parallel.dp && limit >= c.parallel.dp ? c.parallel.dp : 0;
  const int64_t micro_batches = c.train.global_batch / std::max<int64_t>(1, c.train.micro_batch);
  int64_t dp = std::min({fit, limit, micro_batches});
  while (dp > 0 && (micro_batches % dp != 0 || !allows_replicas(c, dp))) --dp;
  return dp;
}

struct Placement {
  int64_t dp = 0;
  std::vector<Host> usable;  // slots that the ranks fill from the front
};

// Within hosts; across them where that is the only way, or where it is asked for.
Placement place(const Config& c, const std::vector<Host>& hosts, int64_t limit, bool across) {
  Placement found{.usable = whole_groups(hosts, c.parallel.tp)};
  found.dp = largest_dp(c, total_slots(found.usable), limit);
  if (Placement wide{.dp = largest_dp(c, total_slots(hosts), limit), .usable = hosts}; found.dp == 0 || (across && wide.dp > found.dp))
    found = std::move(wide);
  return found;
}

// Replicas that launch.ranks asks for; without it as many as there may be.
int64_t asked_dp(const Config& c, const std::vector<Host>& first) {
  return c.launch.ranks > 0 ? c.launch.ranks / (c.parallel.tp * c.parallel.pp) : total_slots(first);
}

// Whether tensor parallel groups must cross hosts for the ranks that launch.ranks asks for.
bool crosses_hosts(const Config& c, const std::vector<Host>& first) {
  return c.launch.ranks > 0 && place(c, first, asked_dp(c, first), false).dp < asked_dp(c, first);
}

// The first hosts, and of the spares as few as reach `wanted`, or the largest number that is possible.
Placement place_with_spares(const Config& c, const std::vector<Host>& first, const std::vector<Host>& spares, int64_t wanted, bool across) {
  std::vector<Host> hosts = first;
  Placement best = place(c, hosts, wanted, across);
  for (const Host& spare : spares) {
    if (best.dp == wanted) break;
    hosts.push_back(spare);
    if (Placement more = place(c, hosts, wanted, across); more.dp > best.dp) best = std::move(more);
  }
  return best;
}

// What lives of these hosts, in their order.
std::vector<Host> left_of(const std::vector<Host>& hosts, const std::vector<Host>& living) {
  std::vector<Host> left;
  for (const Host& host : hosts) {
    const auto place = std::ranges::find(living, host.name, &Host::name);
    if (place != living.end() && place->slots > 0) left.push_back({host.name, std::min(host.slots, place->slots)});
  }
  return left;
}

// Ranks fill the usable slots from the front.
void fill_hosts(MeshChoice& choice, const std::vector<Host>& usable, const std::vector<Host>& living) {
  int64_t rest = choice.ranks();
  for (const Host& host : usable) {
    const int take = static_cast<int>(std::min<int64_t>(rest, host.slots));
    if (take > 0) choice.hosts.push_back({host.name, take});
    rest -= take;
  }
  for (const Host& host : living) {
    const auto used = std::ranges::find(choice.hosts, host.name, &Host::name);
    const int idle = host.slots - (used == choice.hosts.end() ? 0 : used->slots);
    if (idle > 0) choice.idle.push_back({host.name, idle});
  }
}

std::string idle_words(const std::vector<Host>& idle) {
  std::string words;
  for (const Host& host : idle)
    words += fmt::format("{}{} on {}", words.empty() ? "; idle: " : ", ", counted(host.slots, "slot"), host.name);
  return words;
}

// The ranks that the run is to have when nothing is gone.
int64_t wanted_dp(const Config& c, const std::vector<Host>& first) {
  const ParallelConfig& p = c.parallel;
  const int64_t group = p.tp * p.pp;
  if (c.launch.ranks > 0 && (c.launch.ranks % group != 0 || (p.dp > 0 && c.launch.ranks != p.ranks())))
    fail<UsageError>("launch.ranks ({}) must be {} ({} tp x {} pp{})", c.launch.ranks,
                     p.dp > 0 ? fmt::format("{}", p.ranks()) : fmt::format("a multiple of {}", group), p.tp, p.pp,
                     p.dp > 0 ? fmt::format(" x {} dp", p.dp) : "");
  const int64_t limit = asked_dp(c, first);
  const int64_t dp = place(c, first, limit, crosses_hosts(c, first)).dp;
  if (dp > 0 && (c.launch.ranks == 0 || dp == limit)) return dp;
  const int64_t slots = total_slots(first);
  if (dp > 0 && slots >= c.launch.ranks)
    fail<UsageError>("launch.ranks ({}) is dp {}, which the config does not allow: {}; the next below is dp {}", c.launch.ranks, limit,
                     why_not(c, limit), dp);
  const int64_t needed = std::max(c.launch.ranks, group * std::max<int64_t>(1, p.dp));
  fail<UsageError>("{} ranks are needed (tp {} x pp {}{}), but {} {}", needed, p.tp, p.pp, p.dp > 0 ? fmt::format(" x dp {}", p.dp) : "",
                   counted(static_cast<int64_t>(first.size()), "host"),
                   fmt::format("{} {}{}", first.size() == 1 ? "has" : "have", counted(slots, "slot"),
                               c.launch.spares > 0 ? fmt::format(", not counting {}", counted(c.launch.spares, "spare")) : ""));
}

}  // namespace

MeshChoice choose_mesh(const Config& config, const std::vector<Host>& hosts, const std::vector<Host>& living, int least_dp) {
  const auto spares = static_cast<size_t>(config.launch.spares);
  if (spares >= hosts.size())
    fail<UsageError>("launch.spares ({}) leaves none of {}", spares, counted(static_cast<int64_t>(hosts.size()), "host"));
  const auto border = hosts.end() - static_cast<std::ptrdiff_t>(spares);
  const std::vector<Host> first(hosts.begin(), border), last(border, hosts.end());
  const int64_t wanted = wanted_dp(config, first);

  MeshChoice choice;
  choice.tp = static_cast<int>(config.parallel.tp);
  choice.pp = static_cast<int>(config.parallel.pp);
  const std::vector<Host> left = left_of(first, living), spare = left_of(last, living);
  const Placement placed = place_with_spares(config, left, spare, wanted, crosses_hosts(config, first));
  const int64_t group = config.parallel.tp * config.parallel.pp, all = wanted * group;
  if (placed.dp == 0 || (placed.dp < wanted && !config.launch.elastic)) {
    const int64_t needed = config.launch.elastic && config.parallel.dp == 0 ? group : all;
    const char* rule = needed == group ? "" : config.parallel.dp > 0 ? "; parallel.dp is fixed" : "; launch.elastic is off";
    choice.words = fmt::format("{} of {} left, needed: {}{}", total_slots(left) + total_slots(spare), counted(total_slots(hosts), "slot"),
                               needed, rule);
    return choice;
  }
  if (placed.dp < least_dp) {
    choice.words = fmt::format("dp {} is possible, and less than dp {} does not work", placed.dp, least_dp);
    return choice;
  }
  choice.dp = static_cast<int>(placed.dp);
  std::vector<Host> alive = left;
  alive.insert(alive.end(), spare.begin(), spare.end());
  fill_hosts(choice, placed.usable, alive);
  choice.words = fmt::format("{} of {}: dp {}{}", choice.ranks(), counted(all, "rank"), choice.dp, idle_words(choice.idle));
  return choice;
}

}  // namespace hlat
