#include "config/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

namespace hlat {
namespace {

// Our key (an answer that begins with "!" is a whole sentence instead) and the names that others have for it, between blanks.
struct Row {
  std::string_view ours;
  std::string_view theirs;
};

constexpr std::array kModel = {
    Row{"model.preset", " model_name model_name_or_path model_type model_config architecture config_name "},
    Row{"model.layers", " num_layers num_hidden_layers n_layer n_layers nlayers depth "},
    Row{"model.hidden", " hidden_size d_model n_embd n_embed dim embed_dim embedding_size hidden_dim model_dim "},
    Row{"model.heads", " num_attention_heads num_heads n_head n_heads nhead "},
    Row{"model.kv_heads", " num_key_value_heads num_kv_heads n_kv_head n_kv_heads num_query_groups "},
    Row{"model.ffn", " intermediate_size ffn_hidden_size ffn_dim d_ff mlp_hidden_size feed_forward_size n_inner "},
    Row{"model.vocab", " vocab_size padded_vocab_size n_vocab "},
    Row{"model.rope_theta", " rope_base rotary_base "},
    Row{"model.norm_eps", " rms_norm_eps layernorm_epsilon layer_norm_eps layer_norm_epsilon norm_epsilon "},
    Row{"model.tied", " tie_word_embeddings tie_embeddings weight_tying share_embeddings_and_output_weights "},
    Row{"model.init_std", " initializer_range init_method_std "},
    Row{"!there is no dropout", " dropout attention_dropout hidden_dropout resid_dropout embd_dropout "},
    Row{"!the layers have no biases", " bias has_bias attention_bias mlp_bias add_bias_linear "},
};

constexpr std::array kTrain = {
    Row{"train.steps", " max_steps max_iters train_iters train_steps num_steps num_train_steps total_steps training_steps iterations "},
    Row{"train.tokens", " max_tokens total_tokens train_tokens num_tokens "},
    Row{"train.epochs", " num_epochs num_train_epochs max_epochs "},
    Row{"train.tokens, the samples times train.seq_len", " train_samples num_samples "},
    Row{"train.seq_len",
        " seq_length sequence_length max_seq_len max_seq_length max_length block_size context_length ctx_len n_ctx n_positions"
        " max_position_embeddings encoder_seq_length model_max_length "},
    Row{"!train.global_batch is the sequences per optimizer step, train.micro_batch those per forward and backward", " batch_size bs "},
    Row{"train.global_batch", " global_batch_size train_batch_size total_batch_size "},
    Row{"train.micro_batch",
        " micro_batch_size per_device_train_batch_size per_device_batch_size device_batch_size train_micro_batch_size_per_gpu "},
    Row{"!it follows from train.global_batch / (train.micro_batch x parallel.dp)",
        " gradient_accumulation_steps gradient_accumulation grad_accumulation_steps grad_acc_steps grad_accum accumulate_grad_batches "},
    Row{"train.precision", " dtype torch_dtype params_dtype param_dtype fp16 bf16 tf32 amp mixed_precision "},
    Row{"!train.precision=fp8 is FP8 (E4M3, gradients E5M2), precision.fp8_grads=e4m3 takes E4M3 for gradients too",
        " fp8 fp8_format fp8_training enable_fp8 fp8_linear float8 "},
    Row{"!FP8 scales are per tensor and delayed, of the largest values of 16 steps; train.precision=fp8 has no keys for them",
        " fp8_recipe fp8_amax_history_len fp8_amax_compute_algo fp8_margin fp8_interval "},
    Row{"precision.weight_grads", " fp8_wgrad "},
    Row{"train.recompute",
        " gradient_checkpointing activation_checkpointing checkpoint_activations activations_checkpoint_granularity"
        " activations_checkpoint_recompute recompute_granularity recompute_activations "},
};

constexpr std::array kOptim = {
    Row{"optim.lr", " learning_rate max_lr peak_lr base_lr lr_max "},
    Row{"optim.min_ratio, a share of optim.lr", " min_lr lr_min min_learning_rate min_lr_ratio min_lr_rate eta_min "},
    Row{"optim.warmup, in steps",
        " warmup_steps warmup_iters num_warmup_steps lr_warmup_steps lr_warmup_iters warmup_ratio warmup_fraction lr_warmup_fraction "},
    Row{"optim.schedule", " lr_scheduler lr_scheduler_type lr_decay_style decay_lr scheduler sched "},
    Row{"optim.schedule_steps", " lr_decay_iters lr_decay_steps "},
    Row{"!give optim.beta1 and optim.beta2", " betas adam_betas "},
    Row{"optim.beta1", " adam_beta1 "},
    Row{"optim.beta2", " adam_beta2 "},
    Row{"optim.eps", " epsilon adam_eps adam_epsilon "},
    Row{"optim.weight_decay", " wd "},
    Row{"optim.decay_norms", " do_layer_norm_weight_decay "},
    Row{"optim.clip", " grad_clip clip_grad clip_grad_norm max_grad_norm max_norm gradient_clip_val gradient_clipping "},
    Row{"!AdamW is the only optimizer", " optimizer_type optimizer_name optim_type "},
};

constexpr std::array kParallel = {
    Row{"parallel.tp",
        " tensor_model_parallel_size tensor_parallel_size tensor_parallel_degree tensor_parallel tp_size tp_degree model_parallel_size "},
    Row{"parallel.pp",
        " pipeline_model_parallel_size pipeline_parallel_size pipeline_parallel_degree pipeline_parallel pp_size pp_degree "},
    Row{"parallel.dp", " data_parallel_size data_parallel data_parallel_replicate_degree dp_size "},
    Row{"!ranks are started by mpirun -n or srun -n, and parallel.dp=auto uses them",
        " num_gpus n_gpus gpus ngpus devices num_nodes nnodes nproc_per_node world_size "},
    Row{"parallel.sequence", " sequence_parallel sp sp_size "},
    Row{"!there is no context parallelism; parallel.sequence splits the tokens over parallel.tp",
        " context_parallel_size context_parallel_degree context_parallel cp cp_size "},
    Row{"!there are no experts", " ep ep_size expert_parallel expert_parallel_size expert_model_parallel_size num_experts "},
    Row{"parallel.zero1", " zero_stage zero_optimization use_zero_1 use_distributed_optimizer distributed_optimizer "},
    Row{"parallel.chunks", " virtual_pipeline_model_parallel_size virtual_pipeline_parallel_size vpp vpp_size "},
    Row{"parallel.cuts", " pipeline_cuts "},
    Row{"parallel.bucket_mb", " bucket_cap_mb bucket_size_collectives reduce_bucket_size "},
    Row{"parallel.timeout_s", " ddp_timeout distributed_timeout distributed_timeout_minutes "},
};

constexpr std::array kData = {
    Row{"data.sources[0].path",
        " path paths file files dataset dataset_name dataset_path data_path data_dir data_files data_prefix train_data train_data_path "
        "train_dir train_file"
        " train_files "},
    Row{"data.sources[0].field", " text_column text_column_name text_field text_key json_key json_keys dataset_text_field "},
    Row{"data.sources[0].validation", " val_file val_files val_dir val_data validation_file valid_data_path eval_dataset "},
    Row{"data.tokenizer", " tokenizer_name tokenizer_path tokenizer_model tokenizer_name_or_path tokenizer_file vocab_file "},
    Row{"data.validation, a share", " split val_split val_ratio eval_split validation_split validation_split_percentage splits_string "},
    Row{"data.validate_every", " eval_interval eval_steps eval_every eval_freq val_check_interval "},
    Row{"data.validate_rows", " eval_iters eval_batch_size per_device_eval_batch_size limit_val_batches max_eval_samples "},
    Row{"data.workers", " num_workers num_proc dataloader_num_workers "},
    Row{"data.prefetch", " prefetch_factor dataloader_prefetch_factor "},
    Row{"data.bos", " add_bos add_bos_token "},
    Row{"data.eos", " eos_token "},
};

constexpr std::array kRest = {
    Row{"run.dir", " output_dir out_dir run_dir save_dir log_dir logging_dir exp_dir explicit_log_dir dirpath "},
    Row{"run.tensorboard", " report_to use_tensorboard tensorboard_dir create_tensorboard_logger "},
    Row{"!the run folder has metrics.jsonl and TensorBoard's files (run.tensorboard); nothing is sent elsewhere",
        " wandb wandb_log wandb_project use_wandb enable_wandb mlflow comet "},
    Row{"run.seed", " random_seed manual_seed "},
    Row{"!every step is recorded in metrics.jsonl of the run folder", " logging_steps log_interval log_every log_every_n_steps "},
    Row{"checkpoint.every, in steps",
        " save_steps save_interval save_every save_freq checkpoint_interval checkpoint_every every_n_train_steps "},
    Row{"checkpoint.keep", " save_total_limit save_top_k keep_latest_k "},
    Row{"checkpoint.dir", " checkpoint_dir checkpoint_folder ckpt_dir ckpt_path save "},
    Row{"!the command that started a run resumes it; checkpoint.resume_from=STEP goes back to an earlier checkpoint",
        " resume resume_from_checkpoint resume_if_exists auto_resume load_step ckpt_step "},
    Row{"!checkpoint.init_from starts a new run with the weights of a checkpoint, checkpoint.resume_from continues one",
        " load load_path load_dir init_from pretrained_checkpoint initial_load_path finetune no_load_optim "},
    Row{"device.backend", " accelerator platform use_cpu no_cuda "},
    Row{"device.threads", " num_threads omp_num_threads "},
    Row{"device.graphs", " cuda_graph cuda_graphs use_cuda_graphs enable_cuda_graph "},
    Row{"device.deterministic", " deterministic_mode use_deterministic_algorithms "},
    Row{"!nothing is compiled at run time", " compile torch_compile "},
    Row{"!the backend chooses its attention kernel", " flash_attention use_flash_attn flash_attn attn_implementation "},
};

constexpr std::array kSections = {
    Row{"parallel", " distributed distributed_strategy parallelism strategy "},
    Row{"optim", " optimizer lr_scheduler scheduler "},
    Row{"run", " exp_manager experiment logging job "},
    Row{"data", " dataset datasets dataloader "},
    Row{"train", " trainer training training_args training_arguments "},
};

std::string normal(std::string_view name) {
  while (name.starts_with('-')) name.remove_prefix(1);
  std::string out;
  for (const char c : name) out += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view find(std::span<const Row> rows, std::string_view name) {
  const std::string word = " " + normal(name) + " ";
  if (word.find_first_of(' ', 1) != word.size() - 1) return {};
  for (const Row& row : rows)
    if (row.theirs.find(word) != std::string_view::npos) return row.ours;
  return {};
}

// How a card is chosen, for everybody who looks for its name among the backends.
constexpr std::string_view kCards =
    "cuda is any NVIDIA GPU; the environment variable CUDA_VISIBLE_DEVICES says which, and the ranks of a "
    "machine take its GPUs in turn";

std::string backend_value(const std::string& text) {
  constexpr std::string_view nvidia =
      " gpu gpus cuda nvidia a10 a40 a100 h100 h200 h800 b100 b200 gb200 l4 l40 l40s v100 t4 p100 rtx4090 rtx3090 ";
  constexpr std::string_view others = " rocm hip amd mps metal tpu xla xpu neuron trn1 trn2 vulkan npu ";
  const std::string family = text.substr(0, text.find_first_of(":-_ "));
  if (nvidia.find(" " + family + " ") != std::string_view::npos) return fmt::format("did you mean cuda? {}", kCards);
  if (others.find(" " + family + " ") != std::string_view::npos) return "other accelerators are not supported";
  return {};
}

}  // namespace

std::string foreign_key(std::string_view name) {
  for (const std::span<const Row> rows : {std::span<const Row>(kModel), std::span<const Row>(kTrain), std::span<const Row>(kOptim),
                                          std::span<const Row>(kParallel), std::span<const Row>(kData), std::span<const Row>(kRest)}) {
    const std::string_view ours = find(rows, name);
    if (ours.empty()) continue;
    return ours.starts_with('!') ? std::string(ours.substr(1)) : fmt::format("here it is {}", ours);
  }
  return {};
}

std::string_view foreign_section(std::string_view name) { return find(kSections, name); }

std::string foreign_value(std::string_view key, std::string_view given) {
  const std::string text = normal(given);
  if (text.empty() || text.find(' ') != std::string::npos) return {};
  const auto is = [&](std::string_view words) { return words.find(" " + text + " ") != std::string_view::npos; };
  if (key == "device.backend") return backend_value(text);
  if (key == "train.precision") {
    if (is(" float32 float f32 32 tf32 no none ")) return "did you mean fp32?";
    if (is(" bfloat16 bf16_mixed bf16mixed amp autocast auto mixed_precision ")) return "did you mean mixed?";
    if (is(" bf16sr bf16_stochastic ")) return "did you mean bf16_sr?";
    if (is(" mixed_precisionsr mixed_precision_sr ")) return "did you mean mixed_sr?";
    if (is(" float8 f8 e4m3 transformer_engine ")) return "did you mean fp8?";
    if (is(" fp16 float16 half f16 ")) return "the nearest is mixed, which computes in bf16 and needs no loss scaling";
  }
  if (key == "train.recompute") {
    if (is(" true yes on block layer ")) return "did you mean full?";
    if (is(" false no off ")) return "did you mean none?";
  }
  if (key == "loss.on_alarm" && text == "skip")
    return "the update of an alarm's step is done; rollback undoes it and leaves the batches out";
  if (key == "optim.schedule") {
    if (is(" wsd warmup_hold trapezoid trapezoidal ")) return "did you mean warmup_stable_decay?";
    if (is(" none flat constant_with_warmup ")) return "did you mean constant? Its warm-up is optim.warmup";
    if (is(" cosine_with_min_lr cosineannealing cosine_annealing ")) return "did you mean cosine?";
  }
  return {};
}

}  // namespace hlat
