#include "data/dataset.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/rng.h"
#include "data/token_count.h"

namespace hlat {
namespace {

// Errors name the key.
FoundFiles files_of(size_t source, const char* key, const std::string& pattern) try {
  return find_files(pattern);
} catch (const UsageError& e) {
  throw UsageError(fmt::format("data.sources[{}].{}: {}", source, key, e.what()));
}

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

std::string what_is_wrong(const FileSource& source) {
  std::string text;
  for (const std::string& file : source.bad_files()) text += "\n" + file;
  return text;
}

// The most that a config can have.
int64_t validation_sets(const Config& c) {
  const int64_t held_out = c.data.validation > 0 ? std::max<int64_t>(1, static_cast<int64_t>(c.data.sources.size())) : 0;
  return held_out +
         std::count_if(c.data.sources.begin(), c.data.sources.end(), [](const SourceConfig& s) { return !s.validation.empty(); });
}

}  // namespace

Dataset::Dataset(const Config& config, int threads, const DatasetFacts* verified, ScanObserver observer)
    : observer_(std::move(observer)),
      open_files_(std::make_shared<reader::OpenFiles>()),
      loader_{.workers = config.data.workers > 0 ? static_cast<int>(config.data.workers) : std::clamp(threads / 4, 1, 16),
              .prefetch = config.data.prefetch},
      vocab_(config.model.vocab),
      lanes_(config.train.global_batch),
      seq_len_(config.train.seq_len) {
  const DataConfig& d = config.data;
  if (!d.sources.empty()) {
    loaded_ = load_tokenizer_of(d);
    tokenizer_ = loaded_.get();
    choose_special(d);
    open_files(d, threads, verified);
    observer_ = {};
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
  std::vector<FoundFiles> train, validation(d.sources.size());
  std::set<uint64_t> only_validated;
  for (size_t i = 0; i < d.sources.size(); ++i) {
    train.push_back(files_of(i, "path", d.sources[i].path));
    if (!d.sources[i].validation.empty()) validation[i] = files_of(i, "validation", d.sources[i].validation);
    for (const FoundFile& f : validation[i].files) only_validated.insert(f.stamp.inode);
  }
  for (size_t i = 0; i < d.sources.size(); ++i) {
    const size_t left_out = std::erase_if(train[i].files, [&](const FoundFile& f) { return only_validated.contains(f.stamp.inode); });
    if (train[i].files.empty()) fail<UsageError>("source {}: all of its files are named as files to validate on", d.sources[i].id());
    if (left_out > 0)
      train[i].remarks.push_back(fmt::format("{} of the files that {} names only validated on", left_out, left_out == 1 ? "is" : "are"));
  }
  remark_on_shared(train);
  for (size_t i = 0; i < d.sources.size(); ++i) {
    const SourceConfig& s = d.sources[i];
    const DatasetFacts::Source* known = verified == nullptr ? nullptr : &verified->sources[i];
    sources_.push_back(open_source(d, s, s.path, std::move(train[i]), known == nullptr ? nullptr : &known->files, threads));
    validation_files_.push_back(nullptr);
    if (!s.validation.empty())
      validation_files_.back() =
          open_source(d, s, s.validation, std::move(validation[i]), known == nullptr ? nullptr : &known->validation_files, threads);
    held_out_.push_back(known != nullptr ? known->held_out : count_held_out(*sources_.back(), d.validation));
  }
}

std::unique_ptr<FileSource> Dataset::open_source(const DataConfig& d, const SourceConfig& s, const std::string& path, FoundFiles found,
                                                 const std::vector<uint64_t>* verified, int threads) {
  if (verified != nullptr && verified->size() != found.files.size())
    fail("source {}: {} files match {}, but {} did in the process that opened them first: they changed during start-up", s.id(),
         found.files.size(), path, verified->size());
  for (const std::string& remark : found.remarks) remarks_.push_back(fmt::format("source {}: {}", s.id(), remark));
  const ReaderOptions options{.field = s.field,
                              .cache_dir = d.cache_dir,
                              .bad_share = d.bad_share,
                              .threads = threads,
                              .separator = s.separator,
                              .allow_broken = d.allow_broken,
                              .work = &work_,
                              .files = open_files_};
  auto files = open_all({.name = s.id(),
                         .pattern = path,
                         .files = std::move(found.files),
                         .verified = verified == nullptr ? std::span<const uint64_t>() : std::span(*verified),
                         .observer = observer_},
                        options);
  auto source = std::make_unique<FileSource>(s.id(), std::move(files), *tokenizer_, special_);
  if (source->documents() == 0) fail<UsageError>("source {}: there is no document in {}{}", s.id(), path, what_is_wrong(*source));
  if (source->documents() == source->empty())
    fail<UsageError>("source {}: all of its {} documents in {} are empty: there is nothing to train on but end tokens", s.id(),
                     source->documents(), path);
  return source;
}

// A file in two sources is read for both, which their weights hardly mean.
void Dataset::remark_on_shared(const std::vector<FoundFiles>& found) {
  std::map<uint64_t, std::pair<size_t, const std::string*>> seen;
  std::map<std::pair<size_t, size_t>, std::vector<const std::string*>> shared;
  for (size_t i = 0; i < found.size(); ++i)
    for (const FoundFile& f : found[i].files) {
      const auto [first, fresh] = seen.emplace(f.stamp.inode, std::pair(i, &f.path));
      if (!fresh) shared[{first->second.first, i}].push_back(&f.path);
    }
  for (const auto& [pair, files] : shared)
    remarks_.push_back(fmt::format("sources {} and {} share {} file{}, which are read for both: {}{}", pair.first + 1, pair.second + 1,
                                   files.size(), files.size() == 1 ? "" : "s", *files.front(), files.size() == 1 ? "" : ", ..."));
}

uint64_t Dataset::count_held_out(const FileSource& source, double share) {
  if (share <= 0) return 0;
  uint64_t count = 0;
  for (uint64_t i = 0; i < source.documents(); ++i) count += is_validation(source.hash(i), share) ? 1 : 0;
  work_.documents_walked += source.documents();
  return count;
}

uint64_t Dataset::content() const {
  std::string text = facts().save();
  for (const std::string& name : train_.names) text += "/" + name;
  const DataIdentity id = identity();
  return hash_name(text + fmt::format("/{}/{}/{}", id.tokenizer, id.eos, id.bos));
}

DatasetFacts Dataset::facts() const {
  DatasetFacts facts;
  for (size_t i = 0; i < sources_.size(); ++i)
    facts.sources.push_back({.files = sources_[i]->identity(),
                             .held_out = held_out_[i],
                             .validation_files = validation_files_[i] ? validation_files_[i]->identity() : std::vector<uint64_t>()});
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
  make_validation_sets(d);
}

// Sets and weights stay the same through all stages: the sources' own weights decide. The two sets of a source share its weight.
void Dataset::make_validation_sets(const DataConfig& d) {
  for (size_t i = 0; i < train_.sources.size(); ++i) {
    const bool files = !corpus_ && validation_files_[i], held_out = d.validation > 0 && (corpus_ || held_out_[i] > 0);
    const double weight = (corpus_ ? 1 : d.sources[i].weight) / (files && held_out ? 2 : 1);
    if (held_out) {
      Mixture m = single_source(*train_.sources[i], d.seed);
      m.validation = d.validation;
      m.split = Split::validation;
      m.cut_share = 1;  // rows begin with a document where there are enough of them
      validation_sets_.push_back({train_.names[i] + (files ? "/held_out" : ""), weight, std::move(m)});
    }
    if (files) validation_sets_.push_back({train_.names[i], weight, single_source(*validation_files_[i], d.seed)});
  }
  if (d.validation > 0 && validation_sets_.empty())
    fail<UsageError>(
        "data.validation = {} holds out none of the {} documents; give a larger share, data.sources[].validation files of their "
        "own, or a data.sources[].separator where a text file holds several documents",
        d.validation,
        std::accumulate(sources_.begin(), sources_.end(), uint64_t{0}, [](uint64_t sum, const auto& s) { return sum + s->documents(); }));
  double sum = 0;
  for (const ValidationSet& set : validation_sets_) sum += set.weight;
  for (ValidationSet& set : validation_sets_) set.weight = sum > 0 ? set.weight / sum : 1.0 / static_cast<double>(validation_sets_.size());
}

// A source with nothing left to train on would be searched for ever.
void Dataset::check_split() const {
  for (size_t i = 0; i < sources_.size(); ++i)
    if (held_out_[i] == sources_[i]->documents())
      fail<UsageError>("source {}: data.validation = {} holds out all of its {} documents; give a smaller share, or more documents",
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
    text += fmt::format("\nsource {}: {} file{}, {} documents ({} held out{}), {}", s.name(), s.files().size(),
                        s.files().size() == 1 ? "" : "s", s.documents(), held_out_[i],
                        s.empty() > 0 ? fmt::format(", {} empty", s.empty()) : "", format_bytes(s.bytes()));
    if (const auto& v = validation_files_[i])
      text += fmt::format("\n  validated on: {} file{}, {} documents, {}", v->files().size(), v->files().size() == 1 ? "" : "s",
                          v->documents(), format_bytes(v->bytes()));
  }
  return text;
}

std::vector<std::string> Dataset::warnings() const {
  std::vector<std::string> list = tokenizer_->warnings();
  list.insert(list.end(), remarks_.begin(), remarks_.end());
  for (size_t i = 0; i < sources_.size(); ++i) {
    for (const FileSource* s : {sources_[i].get(), validation_files_[i].get()})
      if (s != nullptr)
        for (std::string& text : s->bad_files()) list.push_back(std::move(text));
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
    if (train_.validation > 0 && held_out_[i] == 0)
      list.push_back(fmt::format("source {}: none of its {} documents is held out, so it is not validated{}", sources_[i]->name(),
                                 sources_[i]->documents(), validation_files_[i] ? " on any but its own files" : ""));
  }
  return list;
}

int64_t validate_rows(const Config& config) {
  if (validation_sets(config) == 0) return 0;
  return config.data.validate_rows > 0 ? config.data.validate_rows : config.train.global_batch;
}

size_t loader_bytes(const Config& config) {
  const int64_t dp = std::max<int64_t>(1, config.parallel.dp), width = config.train.seq_len + 1;
  return Loader::row_bytes(config.train.global_batch / dp, config.train.seq_len, {.workers = 1, .prefetch = config.data.prefetch}) +
         static_cast<size_t>(validation_sets(config) * validate_rows(config) / dp * width) * sizeof(int32_t);
}

}  // namespace hlat
