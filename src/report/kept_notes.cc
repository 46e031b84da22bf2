#include "report/kept_notes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hlat {

namespace {

constexpr double kAboveAll = std::numeric_limits<double>::infinity();

double size_of_note(const LossNote& n) {
  if (n.cause == "asked") return -kAboveAll;
  if (n.kind == "non_finite" || n.cause == "non_finite" || !std::isfinite(n.loss)) return kAboveAll;
  return n.loss - (std::isfinite(n.median) ? n.median : 0);
}

// Some limits are for what is too small.
double size_of_note(const AlarmNote& a) {
  const double factor = a.value / a.limit;
  return std::isfinite(factor) && factor > 0 ? std::abs(std::log(factor)) : kAboveAll;
}

// Places of the largest, of equal ones the latest; in their order.
template <class SizeOf>
std::vector<size_t> largest_places(size_t count, size_t most, const SizeOf& size_of) {
  std::vector<size_t> places(count);
  std::iota(places.begin(), places.end(), 0);
  if (count <= most) return places;
  std::sort(places.begin(), places.end(), [&](size_t a, size_t b) {
    const auto x = size_of(a), y = size_of(b);
    return x != y ? x > y : a > b;
  });
  places.resize(most);
  std::sort(places.begin(), places.end());
  return places;
}

template <class Note>
std::vector<const Note*> kept_notes(const std::vector<Note>& all, size_t most) {
  std::vector<const Note*> kept;
  const size_t latest = all.size() > most ? most / 2 : 0, others = all.size() - latest;
  for (const size_t i : largest_places(others, most - latest, [&](size_t place) { return size_of_note(all[place]); }))
    kept.push_back(&all[i]);
  for (size_t i = others; i < all.size(); ++i) kept.push_back(&all[i]);
  return kept;
}

int importance(const RunEvent& e) {
  if (e.kind == "save") return 0;
  const bool told_elsewhere = e.by.empty() && (e.kind == "spike" || e.kind == "skip" || e.kind == "non_finite" || e.kind == "alarm");
  return told_elsewhere ? 1 : 2;
}

}  // namespace

std::vector<const LossNote*> kept_losses(const std::vector<LossNote>& all, size_t most) { return kept_notes(all, most); }
std::vector<const AlarmNote*> kept_alarms(const std::vector<AlarmNote>& all, size_t most) { return kept_notes(all, most); }

KeptEvents kept_events(const RunOverview& run, size_t most) {
  std::vector<const RunEvent*> own;
  for (const RunEvent& e : run.events)
    if (e.time >= run.run.begin) own.push_back(&e);
  KeptEvents kept;
  kept.all_saves = static_cast<size_t>(std::count_if(own.begin(), own.end(), [](const RunEvent* e) { return e->kind == "save"; }));
  kept.all = own.size() - kept.all_saves;
  for (const size_t i : largest_places(own.size(), most, [&](size_t place) { return importance(*own[place]); }))
    kept.events.push_back(own[i]);
  return kept;
}

}  // namespace hlat
