// hlat ckpt average: the weighted mean of checkpoints, as a checkpoint of weights alone.
#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "base/error.h"
#include "base/format.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "checkpoint/average.h"
#include "cli/ckpt_args.h"
#include "cli/ckpt_commands.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/version.h"
#include "cli/work_shown.h"

namespace hlat {
namespace {

using Json = nlohmann::ordered_json;

struct AverageArgs {
  CheckpointArgs checkpoints;
  std::string out, weights, dtype;
};

std::vector<double> parse_shares(const std::string& text) {
  std::vector<double> shares;
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    double share = 0;
    const auto [next, error] = std::from_chars(p, end, share);
    if (error != std::errc() || (next < end && *next != ',')) fail<UsageError>("--weights {}: give numbers such as 0.3,0.7", text);
    shares.push_back(share);
    p = next < end ? next + 1 : end;
  }
  return shares;
}

void run_average(const AverageArgs& args) {
  AverageOptions options{.shares = parse_shares(args.weights), .hlat = version()};
  if (!args.dtype.empty()) options.dtype = args.dtype == "f32" ? DType::f32 : DType::bf16;
  const std::vector<std::filesystem::path> from = args.checkpoints.find();
  CheckpointAverage average(from, options);
  const double begin = now_s();
  std::filesystem::path made;
  {
    WorkShown shown(fmt::format("averaging {} checkpoints", from.size()), average.bytes());
    made = average.write(args.out, scan_threads(), shown.done());
  }
  const double seconds = now_s() - begin;
  const CheckpointIndex& index = average.index();
  if (args.checkpoints.json) {
    const Json record = Json::parse(index.find_record("average")->json);
    print_out(json_text(Json{{"folder", made.string()},
                             {"step", index.step},
                             {"tokens", index.tokens},
                             {"bytes", average.bytes()},
                             {"seconds", seconds},
                             {"average", record}},
                        2) +
              "\n");
    return;
  }
  print_out(fmt::format("{}: the average of the {} of {} checkpoints, {} in {}\n", made.string(),
                        average.of_masters() ? "masters" : "weights", from.size(), format_bytes(average.bytes()),
                        format_duration(seconds)));
}

}  // namespace

void add_ckpt_average(CLI::App& ckpt) {
  const auto args = std::make_shared<AverageArgs>();
  CLI::App* command = ckpt.add_subcommand("average", "the mean of checkpoints' masters, or weights, as a checkpoint of weights");
  add_checkpoint_args(*command, args->checkpoints, 2, 1 << 20);
  command->add_option("--out", args->out, "the folder that gets step_N, N of the last checkpoint")->required()->type_name("DIR");
  command->add_option("--weights", args->weights, "weights of the checkpoints, relative to each other; default: equal")
      ->type_name("W1,W2,...");
  command->add_option("--dtype", args->dtype, "bf16 or f32; default: that of the first checkpoint's weights")
      ->check(CLI::IsMember({"bf16", "f32"}).description(""))
      ->type_name("TYPE");
  show_example_and_memory(*command, "hlat ckpt average runs/a/checkpoints/step_100 runs/a/checkpoints/step_200 --out runs/a_mean",
                          "64 MiB, and for each checkpoint its index, 32 MiB, and 8 MiB more for each tensor\n"
                          "parallel rank that saved it, at most 256 MiB; whatever the size");
  command->callback([args] { run_average(*args); });
}

}  // namespace hlat
