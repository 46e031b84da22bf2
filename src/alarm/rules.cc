#include "alarm/rules.h"

#include <array>

namespace hlat {

namespace {

constexpr std::array<AlarmRow, kAlarmRules> kRows = {{
    {AlarmRule::grad_growth, look_at_grad_growth,
     "f32 masters, gradient sums and operators (train.precision=mixed), a lower optim.lr or optim.beta2=0.95; hlat study compares them"},
    {AlarmRule::loss_rise, look_at_loss_rise,
     "go back to a checkpoint before it began (hlat train --before STEP) with a lower optim.lr, a longer warm-up or train.precision=mixed; "
     "if the data changed there, look at it (hlat data inspect --step STEP)"},
    {AlarmRule::spike, look_at_spike,
     "look at these documents (hlat data inspect --step STEP); loss.on_spike=skip or rollback leaves such batches out"},
    {AlarmRule::leak, look_at_leak,
     "the attention mask or the targets show the model what it has to predict: hlat check --model tells; else the data is read again and "
     "again: look at it with hlat data inspect"},
    {AlarmRule::dead_layer, look_at_dead_layer,
     "look for a part that is cut off from the loss: gradient sums, a weight that is not loaded, scale of the initial weights; "
     "hlat check --model"},
    {AlarmRule::exploding_layer, look_at_exploding_layer,
     "model.scaled_init=true, a lower optim.lr, optim.clip=1; of one part alone: its gradient sums (hlat check --model)"},
    {AlarmRule::attention_logits, look_at_attention_logits,
     "a lower optim.lr, more optim.weight_decay, precision.softmax=f32: scores that grow without end make attention pick single tokens"},
    {AlarmRule::drift, look_at_drift,
     "go back to a checkpoint that was verified (hlat train --before STEP); precision.keyed_noise=true, f32 masters; hlat check for "
     "hardware"},
    {AlarmRule::lost_updates, look_at_lost_updates,
     "f32 masters (train.precision=mixed) or stochastic rounding (precision.round_weights=stochastic); of f32 weights: a larger optim.lr"},
    {AlarmRule::repetition, look_at_repetition,
     "look at the rows and how often sources are read (hlat data inspect --step STEP): remove duplicates, lower the weight of a "
     "small source"},
    {AlarmRule::moments, look_at_moments,
     "precision.moments=f32, optim.eps well below the gradients, optim.clip=1; moments that do not belong together come from a damaged "
     "checkpoint or a bug"},
    {AlarmRule::probe_gap, look_at_probe_gap,
     "the model learns its data by heart: more data, fewer passes over it, more optim.weight_decay; stop at the lowest loss"},
    {AlarmRule::position_loss, look_at_position_loss,
     "positions or mask are wrong towards the end of a row: model.rope_theta and rope_scaling, train.seq_len, hlat check --model"},
    {AlarmRule::wrong_update, look_at_wrong_update,
     "hlat check --model --only updates; bias correction, learning rate, decay or eps of the optimizer are not those of the config"},
    {AlarmRule::fp8_range, look_at_fp8_range,
     "values grow faster than their scales follow: a lower optim.lr, optim.clip=1; what is lost to 0: precision.fp8_grads=e5m2; "
     "train.precision=mixed has the range of bf16"},
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<size_t>(kRows[i].rule) != i) return false;
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const AlarmRow> alarm_rows() { return kRows; }

}  // namespace hlat
