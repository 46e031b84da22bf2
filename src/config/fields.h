// The one list of configuration keys: one `fields(visit, struct)` per section, and `sections(visit, config)` over them.
// A visitor is called as visit(name, member, help, limits). Reading, overrides, checks, help, the reference and printing
// all follow from these lists; nothing else names a key's spelling, range or meaning. A new key is one line here.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "config/config.h"
#include "config/presets.h"

namespace hlat {

// What a value must satisfy besides its type; bounds of a list hold for each item.
struct Limits {
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();
  bool lo_open = false;  // lo itself is excluded
  bool hi_open = false;
  bool zero_is_auto = false;                   // 0 stands for `auto` and is written so
  bool optional = false;                       // a text may be empty
  std::vector<std::string_view> choices = {};  // of a text; empty: free
};

inline Limits range(double lo, double hi) { return {.lo = lo, .hi = hi}; }
inline Limits above(double lo, double hi) { return {.lo = lo, .hi = hi, .lo_open = true}; }
inline Limits below(double lo, double hi) { return {.lo = lo, .hi = hi, .hi_open = true}; }
inline Limits auto_or(double lo, double hi) { return {.lo = lo, .hi = hi, .zero_is_auto = true}; }
inline Limits one_of(std::vector<std::string_view> names) { return {.choices = std::move(names)}; }
inline Limits optional_text() { return {.optional = true}; }
inline Limits none_or(std::vector<std::string_view> names) { return {.optional = true, .choices = std::move(names)}; }

// Steps and tokens of a micro-batch are counted in 32 bits in places (noise keys, kernel indices).
inline constexpr double kMaxCount = 2147483647;
inline constexpr double kMaxTokens = 4611686018427387904.0;  // 2^62

template <class Visit>
void fields(Visit& v, RunConfig& c) {
  v("dir", c.dir, "the run folder; relative, as all paths are, to the folder where hlat is started", Limits{});
  v("seed", c.seed, "seed of initial weights and rounding noise; data.seed is that of the order of documents", Limits{});
  v("tensorboard", c.tensorboard, "write TensorBoard event files next to metrics.jsonl", Limits{});
  v("sample_lines", c.sample_lines, "texts generated when training ends", range(0, 1000));
  v("lease_s", c.lease_s, "seconds of silence after which another process may take over the run folder", range(1, 86400));
}

template <class Visit>
void fields(Visit& v, ModelConfig& c) {
  v("preset", c.preset, "a known shape; the other keys override its values", none_or(preset_names()));
  v("layers", c.layers, "transformer blocks", range(1, 65536));
  v("hidden", c.hidden, "width of the residual stream", range(2, 1048576));
  v("heads", c.heads, "query heads", range(1, 65536));
  v("kv_heads", c.kv_heads, "key and value heads; auto: as many as heads", auto_or(1, 65536));
  v("ffn", c.ffn, "width of the feed-forward layer", range(1, 4194304));
  v("vocab", c.vocab, "tokens in the vocabulary; auto: those of the tokenizer, rounded up to a multiple of 64", auto_or(2, 16777216));
  v("rope_theta", c.rope_theta, "base of the rotary position frequencies", range(1, 1e12));
  v("rope_scaling", c.rope_scaling, "how rotary frequencies are stretched for sequences longer than the model was trained on",
    one_of({"none", "linear", "llama3"}));
  v("rope_factor", c.rope_factor, "by how much rope_scaling stretches", range(1, 1e6));
  v("rope_low_freq_factor", c.rope_low_freq_factor, "llama3: wavelengths above rope_original_len / this are stretched by the whole factor",
    range(1e-6, 1e6));
  v("rope_high_freq_factor", c.rope_high_freq_factor, "llama3: wavelengths below rope_original_len / this are not stretched",
    range(1e-6, 1e6));
  v("rope_original_len", c.rope_original_len, "llama3: sequence length that the model was trained on before", range(1, 16777216));
  v("norm_eps", c.norm_eps, "added to the mean square in RMSNorm", range(1e-12, 1));
  v("tied", c.tied, "the output head uses the embedding matrix", Limits{});
  v("init_std", c.init_std, "standard deviation of the initial weights; see scaled_init for output projections", above(0, 100));
  v("scaled_init", c.scaled_init, "output projections start with init_std / sqrt(2 * layers); false: with init_std", Limits{});
  v("coalesced", c.coalesced, "one matrix product for q, k and v, one for gate and up; false: one for each, for comparison", Limits{});
}

template <class Visit>
void fields(Visit& v, TrainConfig& c) {
  v("steps", c.steps, "optimizer steps", range(1, kMaxCount));
  v("tokens", c.tokens, "length of the run in tokens, rounded up to whole steps, instead of train.steps; 0: not given",
    range(0, kMaxTokens));
  v("epochs", c.epochs, "length of the run in passes over the training documents, instead of train.steps; 0: not given", range(0, 1e9));
  v("seq_len", c.seq_len, "tokens per sequence", range(1, 16777216));
  v("global_batch", c.global_batch, "sequences per optimizer step", range(1, 16777216));
  v("micro_batch", c.micro_batch, "sequences per forward and backward; auto: as many as fit the device's memory", auto_or(1, 16777216));
  v("precision", c.precision, "types and rounding of weights, activations and optimizer state", Limits{});
  v("recompute", c.recompute, "what the backward recomputes instead of keeping it in memory", Limits{});
  v("loss_chunk", c.loss_chunk, "tokens whose logits exist at one time", range(1, kMaxCount));
}

template <class Visit>
void fields(Visit& v, PrecisionConfig& c) {
  const Limits type = none_or({"f32", "bf16"}), rounding = none_or({"nearest", "stochastic"});
  v("activations", c.activations, "type of activations and their gradients; empty, here and below: as train.precision has it", type);
  v("weights", c.weights, "type of the weights that the model computes with", type);
  v("masters", c.masters, "copy of the weights that the optimizer updates", none_or({"f32", "none"}));
  v("moments", c.moments, "type of the optimizer's moments", type);
  v("grads", c.grads, "type in which gradients are accumulated over micro-batches", type);
  v("dp_sums", c.dp_sums, "type in which gradients are summed over data parallel ranks", type);
  v("tp_sums", c.tp_sums, "type in which partial products are summed over tensor parallel ranks", type);
  v("softmax", c.softmax, "arithmetic of the softmax of attention; bf16 takes plain, slow kernels", type);
  v("norms", c.norms, "arithmetic of RMSNorm", type);
  v("loss", c.loss, "arithmetic of the cross-entropy", type);
  v("round_weights", c.round_weights, "how weights are rounded when the optimizer stores them", rounding);
  v("round_moments", c.round_moments, "how moments are rounded when the optimizer stores them", rounding);
  v("round_activations", c.round_activations, "how activations and their gradients are rounded; stochastic takes plain, slow kernels",
    rounding);
  v("round_sums", c.round_sums, "how accumulated and summed gradients are rounded", rounding);
  v("products", c.products, "operands of the products of linear layers: fp8, or the type of activations", none_or({"fp8", "activations"}));
  v("fp8_grads", c.fp8_grads, "type of gradients as operands of FP8 products", none_or({"e5m2", "e4m3"}));
  v("weight_grads", c.weight_grads, "operands of the products that make gradients of weights, with FP8 products", none_or({"fp8", "bf16"}));
  v("keyed_noise", c.keyed_noise, "noise of stochastic rounding is a function of the global element; false: replicas diverge", Limits{});
}

template <class Visit>
void fields(Visit& v, ParallelConfig& c) {
  v("tp", c.tp, "ranks that split every matrix (tensor parallel)", range(1, 65536));
  v("pp", c.pp, "pipeline stages the layers are spread over", range(1, 65536));
  v("dp", c.dp, "replicas that split the batch (data parallel); auto: ranks / (tp * pp)", auto_or(1, 16777216));
  v("sequence", c.sequence, "between tensor parallel regions the tokens are split over tp; no effect with tp 1", Limits{});
  v("zero1", c.zero1, "the optimizer state is split over dp", Limits{});
  v("chunks", c.chunks, "pieces of the model in each pipeline stage (interleaved schedule)", range(1, 65536));
  v("cuts", c.cuts, "first layer of each of the pp * chunks pieces except the first; []: even", range(1, 65535));
  v("bucket_mb", c.bucket_mb, "MiB of gradients reduced by one message", range(1, 65536));
  v("health_every", c.health_every, "steps between comparisons of the replicas; 0: never", range(0, kMaxCount));
  v("timeout_s", c.timeout_s, "seconds after which a silent peer ends the run", range(1, 1000000));
  v("start_timeout_s", c.start_timeout_s, "seconds that each phase of the start-up may take", range(1, 1000000));
  v("comm", c.comm, "how ranks on GPUs exchange tensors: by NCCL or through host memory; auto: NCCL where each has its own GPU",
    one_of({"auto", "nccl", "staged"}));
}

template <class Visit>
void fields(Visit& v, OptimConfig& c) {
  v("lr", c.lr, "highest learning rate", above(0, 100));
  v("schedule", c.schedule, "how the learning rate falls after warm-up", Limits{});
  v("warmup", c.warmup, "steps of linear warm-up from 0", range(0, kMaxCount));
  v("schedule_steps", c.schedule_steps, "where the schedule ends; auto: at train.steps", auto_or(1, kMaxCount));
  v("min_ratio", c.min_ratio, "lowest learning rate as a share of lr", range(0, 1));
  v("decay_share", c.decay_share, "warmup_stable_decay: share of the steps in the final decay", range(0, 1));
  v("beta1", c.beta1, "decay of the first moment", below(0, 1));
  v("beta2", c.beta2, "decay of the second moment", below(0, 1));
  v("eps", c.eps, "added to the root of the second moment", range(1e-30, 1));
  v("weight_decay", c.weight_decay, "decoupled weight decay", range(0, 100));
  v("decay_norms", c.decay_norms, "weight decay also on norm weights", Limits{});
  v("clip", c.clip, "largest global gradient norm; 0: no clipping", range(0, 1e30));
}

template <class Visit>
void fields(Visit& v, SourceConfig& c) {
  v("name", c.name, "its name in stages and reports; empty: its path", optional_text());
  v("path", c.path, "files of documents: a pattern such as c4/**/*.jsonl.zst, or a folder", Limits{});
  v("weight", c.weight, "share of the tokens, relative to the other sources", range(0, 1e12));
  v("field", c.field, "key or column that holds the text", Limits{});
  v("separator", c.separator, "what separates the documents of a text file: line, blank_line or a text; empty: a file is a document",
    optional_text());
  v("validation", c.validation, "files that are only validated on, a pattern; empty: none", optional_text());
}

template <class Visit>
void fields(Visit& v, DataStage& c) {
  v("from_step", c.from_step, "first step of the stage; auto: by from_tokens", auto_or(1, kMaxCount));
  v("from_tokens", c.from_tokens, "the stage begins when this many tokens were trained on", range(0, kMaxTokens));
  v("weights", c.weights, "share of the tokens by name of the source; a source that is not named gets none", Limits{});
}

template <class Visit>
void fields(Visit& v, DataConfig& c) {
  v("embedded", c.embedded, "train on the embedded corpus when no sources are named", Limits{});
  v("tokenizer", c.tokenizer, "tokenizer.json, tekken.json, a .model file of SentencePiece, or ranks of tiktoken", optional_text());
  v("sources", c.sources, "what to read; each source is all files that its path matches", Limits{});
  v("stages", c.stages, "later weights of the sources, in the order of their start", Limits{});
  v("validation", c.validation, "share of the documents held out, chosen by their content", range(0, 0.5));
  v("validate_every", c.validate_every, "steps between evaluations of the held-out documents; 0: only at the end", range(0, kMaxCount));
  v("validate_rows", c.validate_rows, "sequences per evaluation and source; auto: train.global_batch", auto_or(1, 16777216));
  v("bos", c.bos, "put the tokenizer's begin-of-text token before each document", Limits{});
  v("eos", c.eos, "text of the token that ends a document; empty: as the tokenizer file says", optional_text());
  v("workers", c.workers, "threads of a rank that read and tokenize; auto: one for every four of device.threads", auto_or(1, 1024));
  v("prefetch", c.prefetch, "steps for which rows are read ahead", range(1, 65536));
  v("cache_dir", c.cache_dir, "folder for document indices; empty: next to the data", optional_text());
  v("bad_share", c.bad_share, "share of documents of a file that may be unreadable; more is an error", range(0, 1));
  v("allow_broken", c.allow_broken, "train on what can be read of a broken file; false: it is an error", Limits{});
  v("seed", c.seed, "order of the documents", Limits{});
}

template <class Visit>
void fields(Visit& v, CheckpointConfig& c) {
  v("every", c.every, "steps between saves; 0: not by steps", range(0, kMaxCount));
  v("minutes", c.minutes, "minutes between saves; 0: not by time", range(0, 1e6));
  v("at_end", c.at_end, "save when training ends", Limits{});
  v("keep", c.keep, "how many of the latest checkpoints are kept", range(1, 1e6));
  v("keep_every", c.keep_every, "the first checkpoint at or after each multiple of this many steps is never removed; 0: none",
    range(0, kMaxCount));
  v("weights_every_tokens", c.weights_every_tokens, "tokens between bf16 copies of the weights alone, which are never removed; 0: none",
    range(0, kMaxTokens));
  v("dir", c.dir, "where checkpoints are; empty: folder checkpoints in run.dir", optional_text());
  v("staging_mb", c.staging_mb, "MiB of host memory per rank that a save copies the state to; auto: as much as the state, where it fits",
    auto_or(8, 16777216));
  v("max_wait_s", c.max_wait_s, "seconds that an update waits for a save whose staging memory is full; the save is then given up",
    range(1, 1000000));
  v("grace_s", c.grace_s, "seconds from SIGTERM, SIGUSR1 or Ctrl-C to the end of the process, saving included", range(1, 1000000));
  v("resume_from", c.resume_from, "a checkpoint folder, or a step of this run, to continue from; empty: the latest of this run",
    optional_text());
  v("init_from", c.init_from, "a checkpoint folder whose weights a new run starts with, with a fresh optimizer; empty: none",
    optional_text());
}

template <class Visit>
void fields(Visit& v, EvalConfig& c) {
  v("every", c.every, "steps between evaluations of eval.tasks while the model trains; 0: not by steps", range(0, kMaxCount));
  v("every_tokens", c.every_tokens, "tokens between evaluations of eval.tasks while the model trains; 0: not by tokens",
    range(0, kMaxTokens));
  v("at_end", c.at_end, "evaluate eval.tasks when training ends", Limits{});
  v("tasks", c.tasks, "tasks and groups of tasks, separated by commas; hlat eval --list names them", optional_text());
  v("data", c.data, "the folder of evaluation data", optional_text());
  v("task_dir", c.task_dir, "a folder of tasks of your own, one YAML file each; empty: none", optional_text());
  v("limit", c.limit, "only the first N examples of each task; 0: all", range(0, kMaxCount));
  v("cache_tokens", c.cache_tokens,
    "tokens whose keys and values are kept while tasks are evaluated; auto: those of a micro-batch and of one sequence",
    auto_or(1, kMaxCount));
}

template <class Visit>
void fields(Visit& v, LossConfig& c) {
  v("rule", c.rule, "what a spike is; robust: a loss far above its running median; hlat: a gradient norm above its mean over 20 steps",
    one_of({"none", "robust", "hlat"}));
  v("window", c.window, "robust: steps of the running median", range(8, 100000));
  v("factor", c.factor, "robust: spreads (scaled median deviations) above the median", range(1, 1e6));
  v("norm_rise", c.norm_rise, "hlat: how far the gradient norm is above its mean over the last 20 steps", above(0, 1e6));
  v("on_spike", c.on_spike, "what follows a spike; skip: the update is left out; rollback: back to a checkpoint, then skip",
    one_of({"continue", "skip", "rollback", "stop"}));
  v("on_nonfinite", c.on_nonfinite, "what follows a loss or gradient that is not finite; rollback needs hlat launch, else it stops",
    one_of({"skip", "rollback", "stop"}));
  v("skips", c.skips, "batches that may be skipped among the last 1000 steps; one more stops the run", range(0, 1000));
  v("alarms", c.alarms, "rules that watch the run (docs/alarms.md): all, none, or names separated by commas", Limits{});
  v("on_alarm", c.on_alarm, "what follows an alarm; rollback needs hlat launch, else it stops", one_of({"continue", "rollback", "stop"}));
}

template <class Visit>
void fields(Visit& v, MonitorConfig& c) {
  v("every", c.every, "steps between measurements of norms, updates and activations by layer; 0: never", range(0, kMaxCount));
  v("probe_every", c.probe_every, "steps between losses of a fixed batch; auto: at a cost of less than 0.2 % of the time",
    auto_or(1, kMaxCount));
  v("positions", c.positions, "equal parts of a sequence whose losses are measured separately", range(1, 1024));
}

template <class Visit>
void fields(Visit& v, LaunchConfig& c) {
  v("hosts", c.hosts,
    "hosts and their slots, \"node1:8,node2:8\", or a file with lines \"node1 slots=8\"; empty: those of the job, or this one",
    optional_text());
  v("ranks", c.ranks, "ranks to start; auto: those of the layout, with parallel.dp = auto one for each slot", auto_or(1, 16777216));
  v("spares", c.spares, "hosts, the last of launch.hosts, that are used only in place of others", range(0, 65536));
  v("starter", c.starter, "what starts the ranks; auto: srun in a Slurm job, else mpirun", one_of({"auto", "mpirun", "srun"}));
  v("remote", c.remote, "command that runs a command on another host, called as REMOTE HOST COMMAND", Limits{});
  v("mpirun", c.mpirun, "further arguments for mpirun", optional_text());
  v("restarts", c.restarts, "restarts of the whole run, at most", range(0, 1e9));
  v("same_failure", c.same_failure, "the launch stops when the same failure occurs this often at the same step", range(1, 1e6));
  v("backoff_s", c.backoff_s, "longest pause before a restart, in seconds; none where the run made progress", range(0, 86400));
  v("hang_s", c.hang_s, "seconds without progress that count as a hang, after the start; auto: from the run's own step times",
    auto_or(1, 1e6));
  v("start_hang_s", c.start_hang_s, "seconds without progress that count as a hang while ranks start", range(1, 1e6));
  v("patience_s", c.patience_s, "seconds to wait for a lost host before the run continues without it", range(0, 1e6));
  v("elastic", c.elastic, "continue with fewer data parallel replicas when hosts are lost; needs parallel.dp = auto", Limits{});
  v("straggler", c.straggler, "report a rank whose compute time is above its peers' by this factor; 0: never", range(0, 1000));
  v("straggler_steps", c.straggler_steps, "steps over which stragglers are looked for", range(4, 64));
  v("evict", c.evict, "replace or leave out the host of a straggler", Limits{});
  v("check", c.check, "when hlat check --short and hlat check --model run before the ranks; restarts: also before each restart",
    one_of({"none", "start", "restarts"}));
}

template <class Visit>
void fields(Visit& v, FaultConfig& c) {
  v("inject", c.inject, "faults to inject, \"kill rank=1 step=20; hang rank=0 step=40\" (docs/faults.md)", optional_text());
  v("every_s", c.every_s, "seconds between random faults, on average; 0: none", range(0, 1e9));
  v("kinds", c.kinds, "kinds of the random faults, separated by commas; empty: all that recover on the same mesh", optional_text());
  v("seed", c.seed, "seed of the random faults", Limits{});
}

template <class Visit>
void fields(Visit& v, DeviceConfig& c) {
  v("backend", c.backend, "where the step runs; auto: on a GPU if there is one; CUDA_VISIBLE_DEVICES chooses among several GPUs",
    one_of({"auto", "cpu", "cuda"}));
  v("threads", c.threads, "CPU threads of a rank; auto: its cores, divided by the ranks of this machine that share them", auto_or(1, 4096));
  v("isa", c.isa, "instruction set of hlat's own CPU kernels; auto: the best this CPU has",
    one_of({"auto", "amx", "avx512", "avx2", "generic"}));
  v("graphs", c.graphs, "on a GPU with one rank, record each micro-batch as a CUDA graph and launch that", Limits{});
  v("deterministic", c.deterministic, "the same run gives the same bits; false also allows GPU kernels that are not deterministic",
    Limits{});
}

template <class Visit>
void sections(Visit& v, Config& c) {
  v("run", c.run, "The run and what it leaves behind.");
  v("model", c.model, "The shape of the model.");
  v("train", c.train, "The training step.");
  v("precision", c.precision, "Single choices that override train.precision.");
  v("parallel", c.parallel, "How ranks share the work. Without mpirun, srun or hlat launch there is one rank.");
  v("optim", c.optim, "AdamW and its learning-rate schedule.");
  v("data", c.data, "What the model reads.");
  v("checkpoint", c.checkpoint, "What a run saves, and what it starts from.");
  v("eval", c.eval, "Tasks that are evaluated while the model trains.");
  v("loss", c.loss, "What follows an abnormal loss or gradient, or an alarm.");
  v("monitor", c.monitor, "What is measured inside the step.");
  v("launch", c.launch, "hlat launch: where ranks run, and what happens when one of them fails.");
  v("fault", c.fault, "Injected faults, for tests and drills.");
  v("device", c.device, "The machine.");
}

// One key of one Config, with its type erased; `value` points into that Config.
struct Field {
  using Value = std::variant<int64_t*, uint64_t*, double*, bool*, std::string*, std::vector<int64_t>*, PrecisionKind*, ScheduleKind*,
                             Recompute*, Weights*, std::vector<SourceConfig>*, std::vector<DataStage>*>;
  std::string_view section;
  std::string item;       // "sources[0]" for a key of an item of a list, else empty
  std::string_view leaf;  // the key as its struct has it
  std::string_view help;
  Limits limits;
  Value value;
  std::string name() const { return item.empty() ? std::string(leaf) : item + "." + std::string(leaf); }  // in its section
  std::string key() const { return std::string(section) + "." + name(); }
};

// Whether T is a list whose items have keys of their own.
template <class T>
inline constexpr bool kIsItemList = false;
template <class T>
inline constexpr bool kIsItemList<std::vector<T>> = !std::is_arithmetic_v<T>;

struct Section {
  std::string_view name;
  std::string_view help;
};

// A list of items is a field itself, followed by those of its items.
std::vector<Field> all_fields(Config& c);

bool is_item_list(const Field& f);
void resize_items(const Field& f, size_t size);  // of an item list; other Fields of the Config are then stale
size_t items(const Field& f);
Config with_items(size_t size);  // defaults, with so many items in every list, for names and help
std::vector<Section> all_sections();

}  // namespace hlat
