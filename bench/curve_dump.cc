// Not a test: writes what a run starts from and what it reads, for tools/curve_reference.py.
//   curve_dump CONFIG DIR key=value ...      DIR/weights.bin (f32, in the order of names.txt), DIR/batches.bin (inputs, targets per step)
#include <fmt/format.h>

#include <fstream>

#include "config/load.h"
#include "data/embedded/corpus.h"
#include "data/lanes.h"
#include "support/real_run.h"

namespace hlat {
namespace {

void put(std::ofstream& out, const void* data, size_t bytes) {
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}

void write_weights(const Config& config, const std::string& dir) {
  RealRun run(config);
  std::ofstream weights(dir + "/weights.bin", std::ios::binary), names(dir + "/names.txt");
  const ParamStore& params = run.executor().params();
  for (ParamId id = 0; id < params.size(); ++id) {
    put(weights, params.weight(id).data, params.weight(id).bytes());
    names << params.spec(id).name << " " << params.weight(id).shape.str() << "\n";
  }
}

void write_batches(const Config& config, const std::string& dir) {
  const TrainConfig& t = config.train;
  const EmbeddedCorpus corpus(config.data.seed);
  const Mixture mixture = single_source(corpus);
  Lanes lanes(mixture, t.global_batch, t.seq_len);
  Readers readers(mixture);
  std::ofstream batches(dir + "/batches.bin", std::ios::binary);
  const auto width = static_cast<size_t>(t.seq_len);
  std::vector<int32_t> rows(static_cast<size_t>(t.global_batch) * (width + 1));
  for (int64_t step = 0; step < t.steps; ++step) {
    for (int64_t lane = 0; lane < t.global_batch; ++lane) lanes.read_row(lane, readers, &rows[static_cast<size_t>(lane) * (width + 1)]);
    for (const size_t shift : {size_t{0}, size_t{1}})
      for (size_t row = 0; row < rows.size(); row += width + 1) put(batches, &rows[row + shift], width * sizeof(int32_t));
  }
}

}  // namespace
}  // namespace hlat

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "curve_dump CONFIG DIR key=value ...\n");
    return 2;
  }
  const hlat::Config config = hlat::load_config(argv[1], {argv + 3, argv + argc}).config;
  hlat::write_weights(config, argv[2]);
  hlat::write_batches(config, argv[2]);
  return 0;
}
