// From measurements to names: who is slow, who is wrong, who differs. Pure functions of what the ranks measured.
// Speeds of a shared machine vary. A rank or link is called slow when even its best is worse than what is typical elsewhere, by a factor:
// on a quiet machine best and typical are the same, on a busy one the typical falls and with it what is asked for.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hlat {

struct Speed {
  double typical = 0, best = 0;  // median and most of several rounds
};
// Ranks whose best is below the fastest rank's typical speed by more than this factor.
inline constexpr double kSlowRank = 1.3;
std::vector<size_t> slow_ranks(const std::vector<Speed>& by_rank, double factor = kSlowRank);

// Seconds that a message takes from a rank to another and back.
struct LinkTime {
  std::string axis;
  int a = 0, b = 0;
  double typical = 0, best = 0;
};
struct SlowPeer {
  int rank = 0;                   // all its links are slow,
  int other = -1;                 // or only that with this rank is
  double seconds = 0, usual = 0;  // of its quickest slow link, and what is usual on that axis
  std::string axis;
};
// Links are compared with others of their axis: a quarter of those must be sound. A link is slow by this factor, and by so many seconds.
inline constexpr double kSlowLink = 2;
inline constexpr double kLeastDelay = 1e-4;      // where a rank has its cores for itself
inline constexpr double kQuickDelay = 1e-3;      // from few messages
inline constexpr double kScheduledDelay = 2e-2;  // where a rank waits for a core that another has
std::vector<SlowPeer> slow_peers(const std::vector<LinkTime>& links, double least_delay = kLeastDelay);

// A message that came in wrong.
struct WrongLink {
  int from = 0, to = 0;
  bool operator<(const WrongLink& o) const { return from != o.from ? from < o.from : to < o.to; }
};
struct WrongPeer {
  int rank = 0;
  std::vector<int> from = {}, to = {};  // it takes wrong data from these, and hands it to those
};
// The fewest ranks that explain all wrong links, those with the most of them first; of two that explain as much the receiver.
std::vector<WrongPeer> wrong_peers(std::vector<WrongLink> links);

// What differs from most ranks: by name of the fact, the ranks, in order, with their value.
struct Minority {
  std::string fact, usual;
  std::map<std::string, std::vector<size_t>> others;  // ranks by value
};
std::vector<Minority> minorities(const std::vector<std::map<std::string, std::string>>& facts_by_rank);

// What of a collective's time the links are used for, as nccl-tests count: bus bandwidth = bytes / seconds * factor.
enum class Collective : unsigned char { all_reduce, all_gather, reduce_scatter, send_recv };
const char* name_of(Collective op);
double bus_factor(Collective op, int ranks);

}  // namespace hlat
