// What a run reads, opened and checked: the tokenizer, the sources, and the mixtures that the config makes of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "data/data_state.h"
#include "data/dataset_facts.h"
#include "data/embedded/corpus.h"
#include "data/file_source.h"
#include "data/loader.h"
#include "data/reader/open_all.h"

namespace hlat {

// Documents that the model is scored on, and their share in the score of all.
struct ValidationSet {
  std::string name;  // the source; SOURCE/held_out where that also has validation files, which then have its name
  double weight = 1;
  Mixture mixture;
};

class Dataset {
 public:
  // Opens all files, on `threads` threads. An Error names the file, source or key that is at fault. `verified` are the facts of the same
  // data that another process of this machine has opened: indices are then neither made nor hashed nor walked.
  // The observer is told how far the scan of files without an index is.
  Dataset(const Config& config, int threads, const DatasetFacts* verified = nullptr, ScanObserver observer = {});

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const SpecialTokens& special() const { return special_; }
  const Mixture& train() const { return train_; }  // as the config makes it
  // One for each source that has held-out documents, and one for each that has files to validate on; weights sum to 1.
  const std::vector<ValidationSet>& validation_sets() const { return validation_sets_; }
  DataIdentity identity() const;
  LoaderOptions loader_options() const { return loader_; }

  DatasetFacts facts() const;
  uint64_t content() const;  // a hash of all that decides batches and rows to validate on: equal on hosts with the same data
  const DataWork& work() const { return work_; }
  std::optional<double> floor() const;  // nats per token that no model's loss is below, where the true source is known
  const std::vector<std::unique_ptr<FileSource>>& files() const { return sources_; }
  const std::vector<std::unique_ptr<FileSource>>& validation_files() const { return validation_files_; }  // null: the source has none
  std::string describe() const;                                                                           // a few lines for the log
  std::vector<std::string> warnings() const;  // about the tokenizer and single sources

 private:
  void open_files(const DataConfig& data, int threads, const DatasetFacts* verified);
  std::unique_ptr<FileSource> open_source(const DataConfig& data, const SourceConfig& source, const std::string& path, FoundFiles found,
                                          const std::vector<uint64_t>* verified, int threads);
  void remark_on_shared(const std::vector<FoundFiles>& found);
  uint64_t count_held_out(const FileSource& source, double share);
  void choose_special(const DataConfig& data);
  void make_mixtures(const Config& config);
  void make_validation_sets(const DataConfig& data);
  void check_split() const;

  std::unique_ptr<EmbeddedCorpus> corpus_;
  std::unique_ptr<Tokenizer> loaded_;
  const Tokenizer* tokenizer_ = nullptr;
  SpecialTokens special_;
  std::vector<std::unique_ptr<FileSource>> sources_;
  std::vector<uint64_t> held_out_;
  std::vector<std::unique_ptr<FileSource>> validation_files_;
  std::vector<std::string> remarks_;  // on the files that were found
  ScanObserver observer_;
  std::shared_ptr<reader::OpenFiles> open_files_;
  Mixture train_;
  std::vector<ValidationSet> validation_sets_;
  LoaderOptions loader_;
  int64_t vocab_ = 0, lanes_ = 0, seq_len_ = 0;
  DataWork work_;
};

// Bytes that the loader's queue and the held-out rows of one rank take on the host.
size_t loader_bytes(const Config& config);
int64_t validate_rows(const Config& config);  // of each validation set; 0: nothing is validated

}  // namespace hlat
