// hlat bench machine: measures this machine and writes its machine file.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/file.h"
#include "bench/machine_bench.h"
#include "burnin/disk_check.h"
#include "cli/commands.h"
#include "cli/config_args.h"
#include "cli/on_ranks.h"
#include "cli/print.h"
#include "config/resolve.h"
#include "param/precision.h"
#include "plan/machine_file.h"
#include "plan/micro_batch.h"
#include "runtime/backends.h"

namespace hlat {
namespace {

struct MachineArgs {
  ConfigArgs config;
  std::string out, name, dir = ".";
  double seconds = 0;  // 0: by the device
};

// The step that ops are taken from may be of a layout that this machine has too few ranks for.
Config planned(const Config& c) {
  return with_ranks(c, c.parallel.tp * c.parallel.pp * std::max<int64_t>(1, c.parallel.dp), RanksAre::planned);
}

// What of the given config holds for this process: its device.
ConfigArgs device_of(const Config& c) {
  ConfigArgs here;
  here.overrides = {fmt::format("device.backend={}", c.device.backend), fmt::format("device.threads={}", c.device.threads),
                    fmt::format("device.isa={}", c.device.isa), fmt::format("device.deterministic={}", c.device.deterministic),
                    fmt::format("parallel.comm={}", c.parallel.comm)};
  return here;
}

void write_file(const std::string& path, const std::string& text) {
  OutputFile file(path, OutputFile::Mode::create_new);
  file.write(text);
}

void run_machine(const MachineArgs& args) {
  const Config given = args.config.load().config;
  if (std::filesystem::exists(args.out)) fail<UsageError>("--out {}: is there already; name another file, or remove it", args.out);
  on_ranks(device_of(given), [&](const Config& here, const Session& session) {
    const auto backend = make_backend(here.device, session.place());
    const bool host = backend->device_id().empty();
    Config config = planned(given);
    config.train.micro_batch = smallest_micro_batch(config);
    if (args.config.path.empty() && !host && !precision_of(config).fp8) config.train.precision = PrecisionKind::mixed;
    MachineBenchOptions options{.name = args.name.empty() ? std::filesystem::path(args.out).stem().string() : args.name,
                                .seconds = args.seconds > 0 ? args.seconds
                                           : host           ? 60
                                                            : 120,
                                .step = !args.config.path.empty(),
                                .threads = here.device.threads > 0 ? static_cast<int>(here.device.threads) : session.threads(),
                                .cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency())),
                                .own_cores = session.cores(),
                                .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))};
    if (session.rank() == 0) {
      const DiskMeasured disk = measure_disk(args.dir, size_t{256} << 20, 4, false);
      options.disk_write = disk.write;
      options.disk_read = disk.read;
    }
    const MachineBench bench = bench_machine(config, *backend, session.world(), session.local_ranks(), options);
    if (session.rank() != 0) return;
    write_file(args.out, machine_text(bench.machine));
    print_out(fmt::format("{}wrote          {}\n", machine_bench_text(bench), args.out));
  });
}

}  // namespace

void add_bench_machine_command(CLI::App& bench) {
  const auto args = std::make_shared<MachineArgs>();
  CLI::App* command = bench.add_subcommand("machine", "this machine's ops, links and disk, as a machine file for hlat plan");
  add_config_args(*command, args->config,
                  "hlat bench machine --out my.yaml --config configs/llama-134m.yaml; for links: mpirun -n 2 hlat ...", false);
  command->add_option("--out", args->out, "the machine file to write")->type_name("FILE")->required();
  command->add_option("--name", args->name, "name of the machine; default: that of the file")->type_name("NAME");
  command->add_option("--seconds", args->seconds, "time for the ops; default: 60, on a GPU 120")
      ->check(within(0.1, 3600.0))
      ->type_name("S");
  command->add_option("--dir", args->dir, "a folder on the disk of checkpoints; what is written there is removed")->type_name("DIR");
  command->callback([args] { run_machine(*args); });
}

}  // namespace hlat
