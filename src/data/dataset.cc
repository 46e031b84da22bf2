#include "data/dataset.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/format.h"
#include "data/token_count.h"

namespace hlat {
namespace {

std::vector<Segment> segments_of(const Config& c) {
  const DataConfig& d = c.data;
  const int64_t tokens = c.train.global_batch * c.train.seq_len;
  std::vector<Segment> list;
  if (d.stages.empty() || d.stages.front().first_step(tokens) > 1) {
    std::vector<double> weights;
    for (const SourceConfig& s : d.sources) weights.push_back(s.weight);
    list.push_back({1, shares(weights)});
  }
  for (const DataStage& stage : d.stages) {
    std::vector<double> weights;
    for (const SourceConfig& s : d.sources) weights.push_back(stage.weights.contains(s.id()) ? stage.weights.at(s.id()) : 0);
    append_segment(list, {stage.first_step(tokens), shares(weights)});
  }
  return list;
}

double largest_share(const std::vector<Segment>& segments, size_t source) {
  double share = 0;
  for (const Segment& g : segments) share = std::max(share, g.weights[source]);
  return share;
}

}  // namespace

std::string DatasetFacts::save() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Source& s : sources) list.push_back({{"files", s.files}, {"held_out", s.held_out}});
  return list.dump();
}

DatasetFacts DatasetFacts::parse(std::string_view text) try {
  DatasetFacts facts;
  for (const nlohmann::json& j : nlohmann::json::parse(text)) facts.sources.push_back({j.at("files"), j.at("held_out")});
  return facts;
} catch (const nlohmann::json::exception& e) {
  fail("the facts about the data cannot be read: {}", e.what());
}

Dataset::Dataset(const Config& config, int threads, const DatasetFacts* verified)
    : loader_{.workers = config.data.workers > 0 ? static_cast<int>(config.data.workers) : std::clamp(threads / 4, 1, 16),
              .prefetch = config.data.prefetch},
      vocab_(config.model.vocab),
      lanes_(config.train.global_batch),
      seq_len_(config.train.seq_len) {
  const DataConfig& d = config.data;
  if (!d.sources.empty()) {
    loaded_ = load_tokenizer(d.tokenizer);
    tokenizer_ = loaded_.get();
    choose_special(d);
    open_files(d, threads, verified);
  } else if (d.embedded) {
    corpus_ = std::make_unique<EmbeddedCorpus>(d.seed);
    tokenizer_ = &corpus_->tokenizer();
    special_.eos = WordTokenizer::kEos;
  } else {
    throw UsageError("data.embedded = false: no other data is named; name data.sources, or set data.embedded=true");
  }
  if (config.model.vocab < tokenizer_->vocab_size())
    throw UsageError(fmt::format("model.vocab = {}: {} has {} tokens", config.model.vocab,
                                 corpus_ ? "the embedded corpus" : "the tokenizer " + d.tokenizer, tokenizer_->vocab_size()));
  make_mixtures(config);
  check_split();
}

void Dataset::choose_special(const DataConfig& d) {
  const auto known = d.eos.empty() ? tokenizer_->eos() : tokenizer_->id_of(d.eos);
  if (!known && d.eos.empty())
    throw UsageError(
        fmt::format("data.tokenizer = {}: the file does not tell which token ends a document; give its text as data.eos", d.tokenizer));
  if (!known) throw UsageError(fmt::format("data.eos = {}: the tokenizer {} has no such token", d.eos, d.tokenizer));
  special_.eos = *known;
  if (!d.bos) return;
  special_.bos = tokenizer_->bos();
  if (!special_.bos) throw UsageError(fmt::format("data.bos = true: the tokenizer {} has no begin-of-text token", d.tokenizer));
}

void Dataset::open_files(const DataConfig& d, int threads, const DatasetFacts* verified) {
  HLAT_CHECK(verified == nullptr || verified->sources.size() == d.sources.size(), "facts of {} sources for {}", verified->sources.size(),
             d.sources.size());
  for (size_t i = 0; i < d.sources.size(); ++i) {
    const SourceConfig& s = d.sources[i];
    const DatasetFacts::Source* known = verified == nullptr ? nullptr : &verified->sources[i];
    ReaderOptions options{.field = s.field, .cache_dir = d.cache_dir, .bad_share = d.bad_share, .threads = threads, .work = &work_};
    const std::vector<std::string> paths = match_files(s.path);
    if (known != nullptr && known->files.size() != paths.size())
      fail("source {}: {} files match {}, but {} did in the process that opened them first: they changed during start-up", s.id(),
           paths.size(), s.path, known->files.size());
    std::vector<std::unique_ptr<DocumentFile>> files;
    for (size_t f = 0; f < paths.size(); ++f) {
      if (known != nullptr) options.verified = known->files[f];
      files.push_back(open_documents(paths[f], options));
    }
    sources_.push_back(std::make_unique<FileSource>(s.id(), std::move(files), *tokenizer_, special_));
    if (sources_.back()->documents() == 0) fail("source {}: there is no document in {}", s.id(), s.path);
    held_out_.push_back(known != nullptr ? known->held_out : count_held_out(*sources_.back(), d.validation));
  }
}

uint64_t Dataset::count_held_out(const FileSource& source, double share) {
  if (share <= 0) return 0;
  uint64_t count = 0;
  for (uint64_t i = 0; i < source.documents(); ++i) count += is_validation(source.hash(i), share) ? 1 : 0;
  work_.documents_walked += source.documents();
  return count;
}

DatasetFacts Dataset::facts() const {
  DatasetFacts facts;
  for (size_t i = 0; i < sources_.size(); ++i) facts.sources.push_back({.files = sources_[i]->identity(), .held_out = held_out_[i]});
  return facts;
}

void Dataset::make_mixtures(const Config& config) {
  const DataConfig& d = config.data;
  if (corpus_) {
    train_ = single_source(*corpus_, d.seed);
  } else {
    for (const auto& s : sources_) train_.sources.push_back(s.get()), train_.names.push_back(s->name());
    train_.segments = segments_of(config);
    train_.seed = d.seed;
  }
  train_.validation = d.validation;
  if (d.validation <= 0) return;
  // Held-out rows stay the same through all stages: the sources' own weights decide. A source with nothing held out cannot take part.
  std::vector<double> weights(train_.sources.size(), 1.0);
  for (size_t i = 0; i < sources_.size(); ++i) weights[i] = held_out_[i] == 0 ? 0 : d.sources[i].weight;
  if (std::all_of(weights.begin(), weights.end(), [](double w) { return w == 0; }))
    fail("data.validation = {} holds out none of the documents; give a larger share", d.validation);
  validation_ = train_;
  validation_.segments = {{1, shares(weights)}};
  validation_.split = Split::validation;
  validation_.cut_share = 1;  // rows begin with a document where there are enough of them
}

// A source with nothing left to train on would be searched for ever.
void Dataset::check_split() const {
  for (size_t i = 0; i < sources_.size(); ++i)
    if (held_out_[i] == sources_[i]->documents())
      fail("source {}: data.validation = {} holds out all of its {} documents; give a smaller share, or more documents",
           sources_[i]->name(), train_.validation, held_out_[i]);
}

DataIdentity Dataset::identity() const {
  return {.tokenizer = tokenizer_->fingerprint(),
          .eos = special_.eos,
          .bos = special_.bos.value_or(-1),
          .seed = train_.seed,
          .validation = train_.validation,
          .lanes = lanes_,
          .seq_len = seq_len_};
}

std::optional<double> Dataset::floor() const { return corpus_ ? corpus_->entropy() : std::nullopt; }

std::string Dataset::describe() const {
  std::string text = fmt::format("tokenizer: {}", tokenizer_->describe());
  if (const int64_t unused = vocab_ - tokenizer_->vocab_size(); unused > 0)
    text += fmt::format(" (model.vocab = {}: {} unused)", vocab_, unused);
  if (corpus_) return text + "\nsource embedded: tiny stories without end";
  for (size_t i = 0; i < sources_.size(); ++i) {
    const FileSource& s = *sources_[i];
    text += fmt::format("\nsource {}: {} file{}, {} documents ({} held out), {}", s.name(), s.files().size(),
                        s.files().size() == 1 ? "" : "s", s.documents(), held_out_[i], format_bytes(s.bytes()));
  }
  return text;
}

std::vector<std::string> Dataset::warnings() const {
  std::vector<std::string> list = tokenizer_->warnings();
  for (size_t i = 0; i < sources_.size(); ++i) {
    for (const auto& f : sources_[i]->files()) {
      if (f->report().bad > 0) list.push_back(describe_bad(f->report()));
    }
    const double share = largest_share(train_.segments, i);
    const auto step = static_cast<uint64_t>(share * static_cast<double>(lanes_ * seq_len_));
    // A token is rarely longer than this many bytes, so a source with more of them need not be tokenized to know.
    constexpr uint64_t kLongToken = 16;
    if (sources_[i]->bytes() < kLongToken * step) {
      const uint64_t tokens = count_tokens(train_, i, 1, step);
      if (tokens < step)
        list.push_back(
            fmt::format("source {}: its {} tokens are fewer than the {} that a step reads of it, so rows of a step repeat each other; "
                        "give more text, or a smaller train.global_batch or train.seq_len",
                        sources_[i]->name(), tokens, step));
    }
    if (validates() && held_out_[i] == 0)
      list.push_back(fmt::format("source {}: none of its {} documents is held out, so it is not validated", sources_[i]->name(),
                                 sources_[i]->documents()));
  }
  return list;
}

int64_t validate_rows(const Config& config) {
  if (config.data.validation <= 0) return 0;
  return config.data.validate_rows > 0 ? config.data.validate_rows : config.train.global_batch;
}

size_t loader_bytes(const Config& config) {
  const int64_t dp = std::max<int64_t>(1, config.parallel.dp), width = config.train.seq_len + 1;
  return Loader::row_bytes(config.train.global_batch / dp, config.train.seq_len, {.workers = 1, .prefetch = config.data.prefetch}) +
         static_cast<size_t>(validate_rows(config) / dp * width) * sizeof(int32_t);
}

}  // namespace hlat
