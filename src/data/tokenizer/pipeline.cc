// Encoding of documents: the hot path. A word costs its scan and one look-up; the model runs for words that no cache knows.
#include "data/tokenizer/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "data/tokenizer/unicode.h"
#include "data/tokenizer/word_cache.h"

namespace hlat::tokenizer {
namespace {

// Where a document can be cut without changing an id. For the hand-written scanners that is known from the two characters at
// the place: no pattern reaches from a letter or a number to what is neither. Words of U+2581 style are cut before a space.
// Known patterns that have no scanner are cut between a letter or a number and a space.
// For other patterns the places are found by cutting into words and looking whether the parts give the same words.
enum class Rule { never, after_word, before_space, search };

bool adds_prefix(const SplitStep& s) { return s.prefix == SplitStep::Prefix::always; }

// What the normalizer leaves possible.
Rule rule_of(const Normalizer& normalizer) {
  Rule rule = Rule::after_word;
  for (const NormalizerStep& s : normalizer.steps) {
    // Steps other than these could look across a space.
    if (s.kind == NormalizerStep::replace) return Rule::search;
    if (!s.is_local()) return Rule::never;
    if (s.kind != NormalizerStep::prepend && s.normal_form != NormalForm::nfc) rule = Rule::before_space;
    if (s.kind == NormalizerStep::lowercase || s.kind == NormalizerStep::strip_accents) rule = Rule::before_space;
  }
  return rule;
}

Rule rule_of(const PipelineParts& parts) {
  Rule rule = rule_of(parts.normalizer);
  if (rule == Rule::search || rule == Rule::never) return rule;
  for (const SplitStep& s : parts.steps) {
    switch (s.kind) {
      // What comes after these cuts within words.
      case SplitStep::gpt2:
      case SplitStep::llama3:
      case SplitStep::qwen2:
      case SplitStep::cl100k: return rule;
      case SplitStep::joints:
      case SplitStep::each_space:
      case SplitStep::white_space: return Rule::before_space;
      case SplitStep::regex:
        if (s.at_space == patterns::AtSpace::unknown) return Rule::search;
        if (s.at_space == patterns::AtSpace::cut) return Rule::before_space;
        break;
      default: break;
    }
    // A part that starts with a space gets no other.
    if (adds_prefix(s)) rule = Rule::before_space;
  }
  return Rule::never;
}

struct Place {
  unicode::Char before;
  unicode::Char after;
};

bool is_word(const unicode::Char& c) { return unicode::kind(c.code) == unicode::kLetter || unicode::kind(c.code) == unicode::kNumber; }

bool is_safe(const Place& p, Rule rule, bool marks) {
  if (p.before.code == unicode::kInvalid || p.after.code == unicode::kInvalid) return false;
  constexpr uint32_t kMark = 0x2581;
  if (rule == Rule::before_space) {
    if (p.after.code != ' ') return false;
    return marks ? p.before.code != ' ' && p.before.code != kMark : is_word(p.before);
  }
  return is_word(p.before) && !is_word(p.after) && (unicode::traits(p.after.code) & unicode::kUnstable) == 0;
}

// The same question after normalization, which `at` does not disturb: some text on both sides is normalized for it.
bool touches_normalized(const PipelineParts& parts, std::string_view text, size_t at) {
  if (parts.normalized.empty()) return false;
  if (parts.normalizer.empty()) return parts.normalized.touches(text, at);
  const size_t span = 4 * parts.normalized.longest() + 16;
  size_t begin = at > span ? at - span : 0;
  size_t end = std::min(text.size(), at + span);
  while (begin > 0 && unicode::is_continuation(text[begin])) --begin;
  while (end < text.size() && unicode::is_continuation(text[end])) ++end;
  Normalizer::Buffers buffers;
  std::string clean;
  const auto normal = [&](size_t from, size_t to) {
    return std::string(parts.normalizer.apply(unicode::valid(text.substr(from, to - from), clean), true, buffers));
  };
  const std::string before = normal(begin, at);
  return parts.normalized.touches(before + normal(at, end), before.size());
}

bool touches_added(const PipelineParts& parts, std::string_view text, size_t at) {
  return (!parts.raw.empty() && parts.raw.touches(text, at)) || touches_normalized(parts, text, at);
}

size_t by_characters(const PipelineParts& parts, std::string_view text, size_t limit, Rule rule) {
  const bool marks = parts.normalizer.marks_spaces ||
                     std::any_of(parts.steps.begin(), parts.steps.end(), [](const SplitStep& s) { return s.kind == SplitStep::unmark; });
  const char* begin = text.data();
  const char* end = begin + text.size();
  for (size_t at = limit; at > 0; --at) {
    if (unicode::is_continuation(text[at]) || (rule == Rule::before_space && text[at] != ' ')) continue;
    if (!is_safe({unicode::decode_before(begin, begin + at), unicode::decode_any(begin + at, end)}, rule, marks)) continue;
    if (!touches_added(parts, text, at)) return at;
  }
  return 0;
}

// The stretch between added tokens that reaches `limit` or ends last before it; words of a text without normalizer.
struct Stretch {
  std::string_view text;
  TextStart start = TextStart::document;
};

Stretch stretch_at(const PipelineParts& parts, std::string_view text, size_t limit) {
  Stretch found{text.substr(0, 0), TextStart::document};
  const auto keep = [&](std::string_view p) {
    const auto begin = static_cast<size_t>(p.data() - text.data());
    if (begin < limit) found = {p, begin == 0 ? TextStart::document : TextStart::later};
  };
  const auto ignore = [](int32_t) {};
  const auto split = [&](std::string_view p) { parts.normalized.empty() ? keep(p) : parts.normalized.split(p, keep, ignore); };
  parts.raw.empty() ? split(text) : parts.raw.split(text, split, ignore);
  return found;
}

size_t by_search(const PipelineParts& parts, std::string_view text, size_t limit) {
  std::string clean;
  // Only where words are parts of the text itself can a place in one be told from a place in the other.
  if (!parts.normalizer.empty() || unicode::valid(text, clean).data() != text.data()) return 0;
  const auto rewrites = [](const SplitStep& s) {
    return s.kind == SplitStep::prefix_space || s.kind == SplitStep::unmark || s.kind == SplitStep::spell_bytes;
  };
  if (std::any_of(parts.steps.begin(), parts.steps.end(), rewrites)) return 0;
  Splitter splitter(parts.steps);
  std::vector<size_t> ends;
  const auto words = [&](std::string_view part, TextStart start) {
    splitter.run(part, start, [&](const char*, const char* end, const char*) { ends.push_back(static_cast<size_t>(end - text.data())); });
  };
  const Stretch stretch = stretch_at(parts, text, limit);
  words(stretch.text, stretch.start);
  const std::vector<size_t> whole = std::move(ends);
  const auto offset = static_cast<size_t>(stretch.text.data() - text.data());
  constexpr int kTries = 16;
  auto end = std::upper_bound(whole.begin(), whole.end(), limit);
  for (int i = 0; i < kTries && end != whole.begin(); ++i) {
    const size_t at = *--end;
    if (touches_added(parts, text, at)) continue;
    ends.clear();
    words(stretch.text.substr(0, at - offset), stretch.start);
    words(stretch.text.substr(at - offset), TextStart::continued);
    if (ends == whole) return at;
  }
  return 0;
}

size_t find_cut(const PipelineParts& parts, std::string_view text, size_t limit) {
  if (limit >= text.size()) return text.size();
  const Rule rule = rule_of(parts);
  if (rule == Rule::search) return by_search(parts, text, limit);
  return rule == Rule::never ? 0 : by_characters(parts, text, limit, rule);
}

class PipelineEncoder final : public Encoder {
 public:
  explicit PipelineEncoder(const PipelineParts& parts) : parts_(parts), splitter_(parts.steps), model_(parts.model->encoder()) {}

  void encode(std::string_view text, std::vector<int32_t>& ids) override { document(text, TextStart::document, ids); }
  void resume(std::string_view text, std::vector<int32_t>& ids) override { document(text, TextStart::continued, ids); }
  size_t cut(std::string_view text, size_t limit) const override { return find_cut(parts_, text, limit); }

 private:
  void document(std::string_view text, TextStart start, std::vector<int32_t>& ids) {
    out_ = &ids;
    pending_ = queued_ = 0;
    text = unicode::valid(text, clean_);
    split(parts_.raw, text, start, [this](std::string_view piece, TextStart s) {
      const std::string_view normal = parts_.normalizer.apply(piece, s == TextStart::continued, normal_);
      split(parts_.normalized, normal, s, [this](std::string_view p, TextStart at) {
        splitter_.run(p, at, [this](const char* begin, const char* end, const char* limit) { word(begin, end, limit); });
      });
    });
    look_up();
  }

  template <class Piece>
  void split(const AddedTokens& added, std::string_view text, TextStart start, const Piece& piece) {
    if (added.empty()) {
      if (!text.empty()) piece(text, start);
      return;
    }
    added.split(
        text, [&](std::string_view p) { piece(p, p.data() == text.data() ? start : TextStart::later); },
        [this](int32_t id) {
          look_up();
          put({&id, 1});
        });
  }

  // Short words wait in a queue while their place in the cache comes nearer. Their bytes are in the key, so the text may go.
  void word(const char* begin, const char* end, const char* limit) {
    const std::string_view w(begin, static_cast<size_t>(end - begin));
    if (w.size() > ShortWordCache::kMaxBytes) {
      look_up();
      encode_word(w, w.size() <= LongWordCache::kMaxBytes);
      return;
    }
    const ShortWordCache::Key key = ShortWordCache::key_of(w, limit - begin >= 16);
    short_.prefetch(key);
    queue_[queued_++] = key;
    if (queued_ == queue_.size()) look_up();
  }

  void look_up() {
    for (size_t i = 0; i < queued_; ++i) {
      const ShortWordCache::Entry* entry = short_.find(queue_[i]);
      if (entry == nullptr) [[unlikely]] {
        const ShortWordCache::Key key = queue_[i];
        const std::span<const int32_t> ids = encode_word(ShortWordCache::bytes_of(key), true);
        if (ids.size() <= ShortWordCache::kMaxIds) short_.put(key, ids);
        continue;
      }
      // All of the entry's room is copied, which is cheaper than asking how much of it is used.
      std::memcpy(&buffer_[pending_], entry->ids.data(), sizeof entry->ids);
      pending_ += entry->count;
    }
    queued_ = 0;
    flush();
  }

  std::span<const int32_t> encode_word(std::string_view w, bool cached) {
    std::span<const int32_t> ids;
    if (!cached || !long_.find(w, ids)) {
      model_->encode(w, word_ids_);
      ids = word_ids_;
      if (cached) long_.put(w, ids);
    }
    put(ids);
    return ids;
  }

  void put(std::span<const int32_t> ids) {
    flush();
    out_->insert(out_->end(), ids.begin(), ids.end());
  }

  void flush() {
    out_->insert(out_->end(), buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(pending_));
    pending_ = 0;
  }

  const PipelineParts& parts_;
  Splitter splitter_;
  std::unique_ptr<WordEncoder> model_;
  ShortWordCache short_;
  LongWordCache long_;
  std::string clean_;
  Normalizer::Buffers normal_;
  std::vector<int32_t> word_ids_;
  std::vector<int32_t>* out_ = nullptr;
  std::array<ShortWordCache::Key, 64> queue_{};
  size_t queued_ = 0;
  std::array<int32_t, 64 * ShortWordCache::kMaxIds> buffer_{};  // room for the ids of a full queue
  size_t pending_ = 0;                                          // ids in the buffer
};

class PipelineTokenizer final : public Tokenizer {
 public:
  explicit PipelineTokenizer(PipelineParts parts) : parts_(std::move(parts)) {}

  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<PipelineEncoder>(parts_); }
  std::string decode(std::span<const int32_t> ids) const override { return parts_.decoder.decode(ids); }
  int64_t vocab_size() const override { return parts_.vocab.size(); }
  std::optional<int32_t> id_of(std::string_view token) const override { return parts_.vocab.find(token); }
  std::optional<int32_t> eos() const override { return parts_.eos; }
  std::optional<int32_t> bos() const override { return parts_.bos; }
  bool is_fallback(int32_t id) const override {
    return id >= 0 && static_cast<size_t>(id) < parts_.fallback.size() && parts_.fallback[static_cast<size_t>(id)];
  }
  std::string describe() const override { return fmt::format("{}, {} tokens", parts_.kind, parts_.vocab.size()); }
  uint64_t fingerprint() const override { return parts_.fingerprint; }
  std::vector<std::string> warnings() const override { return parts_.warnings; }

 private:
  PipelineParts parts_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_pipeline_tokenizer(PipelineParts parts) { return std::make_unique<PipelineTokenizer>(std::move(parts)); }

}  // namespace hlat::tokenizer
