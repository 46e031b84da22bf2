#include "runtime/open_data.h"

#include <algorithm>

#include "base/error.h"
#include "comm/host_exchange.h"
#include "config/resolve.h"
#include "data/token_count.h"
#include "parallel/mesh.h"

namespace hlat {

namespace {

// The first rank's text, on all ranks of the group.
std::string broadcast_text(Comm& group, std::string text) {
  text.resize(broadcast_value(group, text.size(), 0));
  group.broadcast_bytes(text.data(), text.size(), 0);
  return text;
}

}  // namespace

std::unique_ptr<Dataset> open_data(const Config& config, Comm& world, const std::vector<int>& on_host, int threads, ScanObserver observer) {
  const MeshShape shape = mesh_shape(config.parallel);
  std::vector<int> readers;
  for (const int rank : on_host)
    if (reads_batches(coord_of(rank, shape), shape)) readers.push_back(rank);
  const auto me = std::find(readers.begin(), readers.end(), world.rank());
  const bool reads = me != readers.end(), leads = reads && me == readers.begin();
  // Ranks that read nothing are groups of one.
  const auto group = world.split(reads ? readers.front() : world.rank(), reads ? static_cast<int>(me - readers.begin()) : 0, "data");
  std::unique_ptr<Dataset> data;
  if (world.rank() != 0) world.barrier();
  if (leads) data = std::make_unique<Dataset>(config, threads, nullptr, world.rank() == 0 ? std::move(observer) : ScanObserver());
  if (world.rank() == 0) world.barrier();
  const uint64_t first = broadcast_value(world, world.rank() == 0 ? data->content() : 0, 0);
  if (leads && data->content() != first)
    fail<UsageError>("rank {} finds other data than rank 0 under the same names: its host has other files, or other versions of them",
                     world.rank());
  if (!reads) return nullptr;
  const std::string facts = broadcast_text(*group, leads ? data->facts().save() : "");
  if (leads) return data;
  const DatasetFacts verified = DatasetFacts::parse(facts);
  return std::make_unique<Dataset>(config, threads, &verified);
}

Config with_steps(Config config, const Dataset* data, Comm& world, int threads) {
  if (config.train.epochs <= 0) return config;
  uint64_t tokens = 0;
  if (world.rank() == 0) {
    const Mixture& mixture = data->train();
    for (size_t s = 0; s < mixture.sources.size(); ++s) {
      if (mixture.sources[s]->documents() == 0)
        fail<UsageError>("train.epochs = {}: source {} has no end; give train.steps or train.tokens", config.train.epochs,
                         mixture.names[s]);
      const bool read = std::any_of(mixture.segments.begin(), mixture.segments.end(), [&](const Segment& g) { return g.weights[s] > 0; });
      if (read) tokens += count_tokens(mixture, s, threads);
    }
  }
  set_steps_from_epochs(config, broadcast_value(world, tokens, 0));
  return config;
}

}  // namespace hlat
