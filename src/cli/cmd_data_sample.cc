// hlat data sample: the embedded corpus as files, to try the data path with.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/seed_option.h"
#include "config/config.h"
#include "data/embedded/sample_files.h"

namespace hlat {
namespace {

struct SampleArgs {
  std::string out;
  uint64_t documents = 10000;
  uint64_t seed = DataConfig{}.seed;
  bool json = false;
};

template <class Write>
void write_stories(const EmbeddedCorpus& corpus, uint64_t documents, const Write& write) {
  constexpr uint64_t kAtOnce = 4096;
  for (uint64_t i = 0; i < documents; i += kAtOnce) write(sample_lines(corpus, i, std::min(kAtOnce, documents - i)));
}

void run_sample(const SampleArgs& args) {
  const EmbeddedCorpus corpus(args.seed);
  if (args.out.empty()) {
    write_stories(corpus, args.documents, [](const std::string& lines) { print_out(lines); });
    return;
  }
  const std::filesystem::path dir = args.out;
  std::error_code failed;
  std::filesystem::create_directories(dir, failed);
  if (failed) fail_storage(failed.value(), "--out: cannot make the folder " + args.out);
  const std::filesystem::path stories = dir / "stories.jsonl", tokenizer = dir / "tokenizer.json";
  for (const std::filesystem::path& file : {stories, tokenizer})
    if (std::filesystem::exists(file))
      fail<UsageError>("--out {}: there is a {} already; give another folder", args.out, file.filename().string());
  OutputFile file(stories, OutputFile::Mode::create_new);
  write_stories(corpus, args.documents, [&](const std::string& lines) { file.write(lines); });
  OutputFile(tokenizer, OutputFile::Mode::create_new).write(sample_tokenizer(corpus));
  if (args.json)
    print_out(fmt::format(
        "{}\n",
        json_text(nlohmann::ordered_json{{"stories", stories.string()}, {"tokenizer", tokenizer.string()}, {"documents", args.documents}},
                  2)));
  else
    print_out(fmt::format("{}: {} stories\n{}: a tokenizer for them\n", stories.string(), args.documents, tokenizer.string()));
}

}  // namespace

void add_data_sample_command(CLI::App& data) {
  const auto args = std::make_shared<SampleArgs>();
  CLI::App* command = data.add_subcommand("sample", "write stories of the embedded corpus as JSON lines");
  CLI::Option* out =
      command->add_option("--out", args->out, "folder for stories.jsonl and tokenizer.json; default: stories to standard output")
          ->type_name("FOLDER");
  command->add_option("--documents", args->documents, "how many stories")->check(within(uint64_t{1}, uint64_t{1} << 40))->type_name("N");
  command->add_option("--seed", args->seed, "another number gives other stories")->check(seed_number())->type_name("N");
  command->add_flag("--json", args->json, "print one JSON object about the files")->needs(out);
  show_example(*command, "hlat data sample --out stories --documents 20000");
  command->callback([args] { run_sample(*args); });
}

}  // namespace hlat
