#include "train/row_statistics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

namespace hlat {

namespace {

uint64_t mixed_word(uint64_t z) {
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
  return z ^ (z >> 32);
}

// A number for each key, of at most as many keys as it is made for; -1 at first.
class SmallTable {
 public:
  explicit SmallTable(size_t keys) : mask_(std::bit_ceil(2 * keys + 1) - 1), keys_(mask_ + 1), values_(mask_ + 1, -1) {}
  int32_t& operator[](uint64_t key) {
    size_t at = mixed_word(key) & mask_;
    while (values_[at] >= 0 && keys_[at] != key) at = (at + 1) & mask_;
    keys_[at] = key;
    return values_[at];
  }

 private:
  size_t mask_;
  std::vector<uint64_t> keys_;
  std::vector<int32_t> values_;
};

using Row = std::span<const int32_t>;

// Windows are found by a rolling hash and compared token by token: a hash that two of them share costs a repetition, and adds none.
double repetition_of(Row row) {
  const auto size = static_cast<int64_t>(row.size());
  if (size <= RowStatistics::kRepeat) return 0;
  constexpr uint64_t kBase = 0x9e3779b97f4a7c15u;
  uint64_t hash = 0, leaving = 1;  // leaving: kBase^kRepeat
  for (int64_t i = 0; i < RowStatistics::kRepeat; ++i) leaving *= kBase;
  SmallTable first(row.size());
  int64_t repeated = 0, covered = 0;  // tokens before `covered` are counted
  for (int64_t end = 1; end <= size; ++end) {
    hash = hash * kBase + static_cast<uint64_t>(row[static_cast<size_t>(end - 1)]) + 1;
    const int64_t begin = end - RowStatistics::kRepeat;
    if (begin > 0) hash -= leaving * (static_cast<uint64_t>(row[static_cast<size_t>(begin - 1)]) + 1);
    if (begin < 0) continue;
    int32_t& place = first[hash];
    if (place < 0) {
      place = static_cast<int32_t>(begin);
    } else if (std::equal(row.begin() + begin, row.begin() + end, row.begin() + place)) {
      repeated += end - std::max(begin, covered);
      covered = end;
    }
  }
  return static_cast<double>(repeated) / static_cast<double>(size);
}

// How often each token was seen, as a predictor.
class Frequencies {
 public:
  Frequencies(size_t tokens, int64_t vocab) : counts_(tokens), vocab_(static_cast<double>(vocab)) {}
  double operator()(int32_t token) {
    const int32_t count = std::max(counts_[static_cast<uint64_t>(token)], 0);
    return (static_cast<double>(count) + different_ / vocab_) / (seen_ + different_);
  }
  void add(int32_t token) {
    int32_t& count = counts_[static_cast<uint64_t>(token)];
    if (count < 0) count = 0, ++different_;
    ++count, ++seen_;
  }

 private:
  SmallTable counts_;
  double vocab_, seen_ = 0, different_ = 1;
};

// The earlier place that agrees with what was read last.
class Match {
 public:
  explicit Match(Row row) : row_(row), places_(row.size()) {}

  // Of row[at], from what stands before it: -1 without a match.
  int32_t predicted() const { return length_ > 0 ? row_[static_cast<size_t>(next_)] : -1; }
  double confidence() const {
    const auto length = static_cast<double>(length_);
    return length_ == 0 ? 0 : (of_length().hits + length / (length + 8)) / (of_length().trials + 1);
  }
  // row[at] is known.
  void advance(int64_t at) {
    const bool hit = length_ > 0 && row_[static_cast<size_t>(at)] == predicted();
    if (length_ > 0) of_length().trials += 1, of_length().hits += hit ? 1 : 0;
    ++next_;
    length_ = hit ? std::min(length_ + 1, RowStatistics::kLongest) : 0;
    if (at + 1 < RowStatistics::kContext) return;
    int32_t& place = places_[context(at)];
    if (length_ == 0 && place >= 0) look(place, at + 1);
    place = static_cast<int32_t>(at + 1);
  }

 private:
  struct Trials {
    double hits = 0, trials = 0;
  };
  Trials& of_length() { return trials_[static_cast<size_t>(std::bit_width(static_cast<uint64_t>(length_)))]; }
  const Trials& of_length() const { return trials_[static_cast<size_t>(std::bit_width(static_cast<uint64_t>(length_)))]; }
  uint64_t context(int64_t at) const {
    uint64_t hash = 0;
    for (int64_t i = at + 1 - RowStatistics::kContext; i <= at; ++i)
      hash = mixed_word(hash + static_cast<uint64_t>(row_[static_cast<size_t>(i)]) + 1);
    return hash;
  }
  void look(int64_t place, int64_t now) {
    while (length_ < std::min(place, RowStatistics::kLongest) &&
           row_[static_cast<size_t>(place - 1 - length_)] == row_[static_cast<size_t>(now - 1 - length_)])
      ++length_;
    next_ = place;
  }

  Row row_;
  SmallTable places_;  // by context: what follows the latest place that has it
  int64_t next_ = 0, length_ = 0;
  std::array<Trials, 8> trials_{};
};

double copy_baseline_of(Row row, int64_t vocab) {
  if (row.size() < 2) return 0;
  Frequencies frequencies(row.size(), vocab);
  Match match(row);
  double nats = 0;
  for (size_t t = 0; t < row.size(); ++t) {
    const double c = match.confidence();
    if (t > 0) nats -= std::log(c * (match.predicted() == row[t] ? 1 : 0) + (1 - c) * frequencies(row[t]));
    match.advance(static_cast<int64_t>(t));
    frequencies.add(row[t]);
  }
  return nats / static_cast<double>(row.size() - 1);
}

}  // namespace

RowStatistics row_statistics(std::span<const int32_t> row, int64_t vocab) {
  return {.repetition = repetition_of(row), .copy_baseline = copy_baseline_of(row, vocab)};
}

}  // namespace hlat
