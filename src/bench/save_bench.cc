#include "bench/save_bench.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/machine.h"
#include "base/median.h"
#include "bench/bench_model.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/saver.h"
#include "comm/host_exchange.h"

namespace hlat {

namespace {

constexpr double kPatience = 3600;  // seconds, for one save

// A folder in `dir` that goes away with this; made and removed by rank 0.
class BenchFolder {
 public:
  BenchFolder(const std::filesystem::path& dir, Comm& world) : world_(world) {
    path_ = dir / fmt::format("hlat_bench_save_{}", broadcast_value(world, static_cast<int64_t>(getpid()), 0));
    if (world_.rank() == 0) {
      std::error_code error;
      std::filesystem::create_directories(path_, error);
      if (error) fail_storage(error.value(), "cannot create " + path_.string());
    }
    world_.barrier();
  }
  ~BenchFolder() {
    std::error_code ignored;
    if (world_.rank() == 0) std::filesystem::remove_all(path_, ignored);
  }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  Comm& world_;
  std::filesystem::path path_;
};

// The model under measurement, its steps and its saves.
class Run {
 public:
  Run(const Config& config, Backend& backend, Comm& world, int local_ranks, const std::filesystem::path& dir)
      : config_(config),
        world_(world),
        assembly_(config_, backend, world, local_ranks),
        staging_(assembly_.fit().lines(config_, assembly_.plan()).staging),
        model_(assembly_, config_, world),
        folder_(dir, world) {
    std::unique_ptr<Comm> commit = world.size() > 1 ? world.split(0, world.rank(), "checkpoint") : nullptr;
    saver_.emplace(model_.placed().executor().params(), model_.placed().device(), mesh().coord().dp, mesh().shape().dp, std::move(commit),
                   SaveOptions{.staging_bytes = staging_});
    model_.step().on_update([this](int bucket) { saver_->before_update(bucket); });
  }

  // Seconds of so many steps.
  double train(int64_t steps) {
    return model_.timed([&] {
      for (int64_t i = 0; i < steps; ++i) model_.run(++steps_, false);
      world_.barrier();
    });
  }

  void begin_save() {
    SaveRequest request;
    request.parent = folder_.path();
    request.index.run = "benchmark";
    request.index.step = ++saves_;
    request.index.config = "{}";
    saver_->begin(std::move(request));
  }

  bool saves() const { return saver_->busy(); }

  // Ends the save; of those before none is left.
  SaveOutcome end_save() {
    while (saver_->busy()) saver_->wait(kPatience);
    const SaveOutcome outcome = saver_->take_outcome().value();
    if (!outcome.problem.empty()) fail<FaultError>("a save failed: {}", outcome.problem);
    if (world_.rank() == 0 && saves_ > 1) remove_checkpoint(checkpoint_path(folder_.path(), saves_ - 1));
    world_.barrier();
    return outcome;
  }

  // Seconds until each rank has put as many bytes as it saves on the disk.
  double write_plainly() {
    constexpr size_t kBlock = size_t{16} << 20;
    std::vector<uint64_t> block(kBlock / sizeof(uint64_t));
    for (size_t i = 0; i < block.size(); ++i) block[i] = i * 0x9e3779b97f4a7c15u;  // nothing that a file system would leave out
    const std::filesystem::path path = folder_.path() / fmt::format("plain_{}", world_.rank());
    world_.barrier();
    const double start = now_s();
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) fail_storage(errno, "cannot create " + path.string());
    int error = 0;
    for (size_t left = assembly_.plan().saved_bytes; left > 0 && error == 0;) {
      const ssize_t n = ::write(fd, block.data(), std::min(left, kBlock));
      if (n < 0)
        error = errno == EINTR ? 0 : errno;
      else
        left -= static_cast<size_t>(n);
    }
    if (error == 0 && fsync(fd) != 0) error = errno;
    close(fd);
    world_.barrier();
    const double seconds = now_s() - start;
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    if (error != 0) fail_storage(error, "cannot write " + path.string());
    return seconds;
  }

  const Assembly& assembly() const { return assembly_; }
  const Mesh& mesh() const { return model_.mesh(); }
  size_t staging() const { return staging_; }

 private:
  Config config_;
  Comm& world_;
  Assembly assembly_;
  size_t staging_;
  BenchModel model_;
  BenchFolder folder_;
  std::optional<Saver> saver_;
  int64_t steps_ = 0, saves_ = 0;
};

// Something is saved, whatever the config says.
Config saving(Config config) {
  config.checkpoint.at_end = true;
  return config;
}

}  // namespace

SaveBench bench_save(const Config& config, Backend& backend, Comm& world, int local_ranks, const SaveBenchOptions& options) {
  Run run(saving(config), backend, world, local_ranks, options.dir);
  SaveBench b{.machine = run.assembly().describe(), .mesh = run.mesh().shape(), .options = options};
  b.rank_bytes = run.assembly().plan().saved_bytes;
  b.staging_bytes = run.staging();
  run.train(2);  // touches the memory, makes and records kernels
  run.begin_save();
  const double step_s = run.train(1);
  const SaveOutcome first = run.end_save();
  b.bytes = first.bytes;
  if (options.steps == 0) b.options.steps = std::max<int64_t>(2, static_cast<int64_t>(std::ceil(first.seconds / step_s)) + 1);
  b.options.steps = broadcast_value(world, b.options.steps, 0);
  std::vector<double> without, added, save, alone, plain, copy, wait;
  for (int64_t i = 0; i < options.saves; ++i) {
    without.push_back(run.train(b.options.steps));
    run.begin_save();
    added.push_back(run.train(b.options.steps) - without.back());
    b.saves_in_time += run.saves() ? 0 : 1;
    const SaveOutcome outcome = run.end_save();
    save.push_back(outcome.seconds);
    copy.push_back(outcome.copy_s);
    wait.push_back(outcome.update_wait_s);
    plain.push_back(run.write_plainly());
    run.begin_save();
    alone.push_back(run.end_save().seconds);
  }
  b.step_s = median(without) / static_cast<double>(b.options.steps);
  b.added_s = median(added);
  b.save_s = median(save);
  b.alone_s = median(alone);
  b.plain_s = median(plain);
  b.copy_s = median(copy);
  b.update_wait_s = median(wait);
  return b;
}

std::string SaveBench::limit() const {
  constexpr double kNear = 0.8;
  if (share_of_plain(save_s) >= kNear) return "the disk";
  if (share_of_plain(alone_s) >= kNear) return "the processor, which trains meanwhile: alone a save is as fast as the disk";
  return copy_s > kNear * save_s && staging_bytes >= rank_bytes ? "the copy to staging memory"
                                                                : "checksums and handing bytes to the system";
}

std::string save_bench_text(const SaveBench& b) {
  const auto rate = [&](double seconds) { return static_cast<double>(b.bytes) / seconds * 1e-9; };
  std::string s = fmt::format("{}\n", b.machine);
  if (b.mesh.ranks() > 1) s += fmt::format("ranks          {}: tp {} x pp {} x dp {}\n", b.mesh.ranks(), b.mesh.tp, b.mesh.pp, b.mesh.dp);
  s += fmt::format("checkpoint     {}; of a rank {}, through {} of staging\n", format_bytes(b.bytes), format_bytes(b.rank_bytes),
                   format_bytes(b.staging_bytes));
  s += fmt::format("a save adds    {:.3f} s to {} steps of {:.3f} s, {:.2f}%; median of {}\n", b.added_s, b.options.steps, b.step_s,
                   100 * b.added_share(), b.options.saves);
  s +=
      fmt::format("a save takes   {:.2f} s, {:.2f} GB/s with fsync and commit, {:.0f}% of plain writing; {} of {} ended within the steps\n",
                  b.save_s, rate(b.save_s), 100 * b.share_of_plain(b.save_s), b.saves_in_time, b.options.saves);
  s += fmt::format("  of it        copied after {:.2f} s; the host waited {:.2f} s for that before updates\n", b.copy_s, b.update_wait_s);
  s += fmt::format("without steps  {:.2f} s, {:.2f} GB/s, {:.0f}% of plain writing\n", b.alone_s, rate(b.alone_s),
                   100 * b.share_of_plain(b.alone_s));
  s += fmt::format("plain writing  {:.2f} s, {:.2f} GB/s: the same bytes in sequence, and fsync\n", b.plain_s, rate(b.plain_s));
  return s + fmt::format("limited by     {}\n", b.limit());
}

nlohmann::ordered_json save_bench_json(const SaveBench& b) {
  return {{"machine", b.machine},
          {"ranks", b.mesh.ranks()},
          {"saves", b.options.saves},
          {"steps", b.options.steps},
          {"bytes", b.bytes},
          {"rank_bytes", b.rank_bytes},
          {"staging_bytes", b.staging_bytes},
          {"step_s", b.step_s},
          {"added_s", b.added_s},
          {"added_share", b.added_share()},
          {"save_s", b.save_s},
          {"alone_s", b.alone_s},
          {"plain_s", b.plain_s},
          {"share_of_plain", b.share_of_plain(b.save_s)},
          {"alone_share_of_plain", b.share_of_plain(b.alone_s)},
          {"copy_s", b.copy_s},
          {"update_wait_s", b.update_wait_s},
          {"saves_in_time", b.saves_in_time},
          {"limited_by", b.limit()}};
}

}  // namespace hlat
