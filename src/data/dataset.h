// What a run reads, opened and checked: the tokenizer, the sources, and the mixtures that the config makes of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "data/data_state.h"
#include "data/embedded/corpus.h"
#include "data/file_source.h"
#include "data/loader.h"

namespace hlat {

// What the first process of a machine found out about its data, for the others there: they need not hash the document indices nor walk
// them again, and notice when theirs are not the same.
struct DatasetFacts {
  struct Source {
    std::vector<uint64_t> files;  // fingerprints
    uint64_t held_out = 0;        // documents
    bool operator==(const Source&) const = default;
  };
  std::vector<Source> sources;  // in the order of the config; none of the embedded corpus

  std::string save() const;  // JSON
  static DatasetFacts parse(std::string_view text);
  bool operator==(const DatasetFacts&) const = default;
};

class Dataset {
 public:
  // Opens all files, on `threads` threads. An Error names the file, source or key that is at fault. `verified` are the facts of the same
  // data that another process of this machine has opened: indices are then neither made nor hashed nor walked.
  Dataset(const Config& config, int threads, const DatasetFacts* verified = nullptr);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const SpecialTokens& special() const { return special_; }
  const Mixture& train() const { return train_; }  // as the config makes it
  bool validates() const { return validation_.validation > 0; }
  const Mixture& validation() const { return validation_; }  // of the held-out documents, where there are any
  DataIdentity identity() const;
  LoaderOptions loader_options() const { return loader_; }

  DatasetFacts facts() const;
  const DataWork& work() const { return work_; }
  std::optional<double> floor() const;  // nats per token that no model's loss is below, where the true source is known
  const std::vector<std::unique_ptr<FileSource>>& files() const { return sources_; }
  std::string describe() const;               // a few lines for the log
  std::vector<std::string> warnings() const;  // about the tokenizer and single sources

 private:
  void open_files(const DataConfig& data, int threads, const DatasetFacts* verified);
  uint64_t count_held_out(const FileSource& source, double share);
  void choose_special(const DataConfig& data);
  void make_mixtures(const Config& config);
  void check_split() const;

  std::unique_ptr<EmbeddedCorpus> corpus_;
  std::unique_ptr<Tokenizer> loaded_;
  const Tokenizer* tokenizer_ = nullptr;
  SpecialTokens special_;
  std::vector<std::unique_ptr<FileSource>> sources_;
  std::vector<uint64_t> held_out_;
  Mixture train_, validation_;
  LoaderOptions loader_;
  int64_t vocab_ = 0, lanes_ = 0, seq_len_ = 0;
  DataWork work_;
};

// Bytes that the loader's queue and the held-out rows of one rank take on the host.
size_t loader_bytes(const Config& config);
int64_t validate_rows(const Config& config);  // 0: nothing is held out

}  // namespace hlat
