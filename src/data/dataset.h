// What a run reads, opened and checked: the tokenizer, the sources, and the mixtures that the config makes of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "data/data_state.h"
#include "data/embedded/corpus.h"
#include "data/file_source.h"
#include "data/loader.h"

namespace hlat {

class Dataset {
 public:
  // Opens all files, on `threads` threads. An Error names the file, source or key that is at fault.
  Dataset(const Config& config, int threads);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const SpecialTokens& special() const { return special_; }
  const Mixture& train() const { return train_; }
  bool validates() const { return validation_.validation > 0; }
  const Mixture& validation() const { return validation_; }  // of the held-out documents, where there are any
  DataIdentity identity() const;
  LoaderOptions loader_options() const { return loader_; }

  const EmbeddedCorpus* embedded() const { return corpus_.get(); }  // null with sources of files
  double floor() const;                                             // nats per token; NaN when the true source is unknown
  const std::vector<std::unique_ptr<FileSource>>& files() const { return sources_; }
  const std::vector<uint64_t>& held_out() const { return held_out_; }  // documents by source
  std::string describe() const;                                        // a few lines for the log
  std::vector<std::string> warnings() const;                           // about single sources

 private:
  void open_files(const DataConfig& data, int threads);
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
  int64_t lanes_ = 0, seq_len_ = 0;
};

// Bytes that the loader's queue and the held-out rows of one rank take on the host.
size_t loader_bytes(const Config& config);
int64_t validate_rows(const Config& config);  // 0: nothing is held out

}  // namespace hlat
