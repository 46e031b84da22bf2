#include "param/param_store.h"

namespace hlat {

ParamStore::ParamStore(std::vector<ParamSpec> specs, const Precision& precision, Memory& memory)
    : specs_(std::move(specs)), precision_(precision) {
  const auto place = [&](std::vector<Tensor>& list, Purpose purpose, DType dtype, const char* what) {
    for (const ParamSpec& s : specs_) list.push_back(memory[purpose].alloc(dtype, s.shape, s.name + what));
  };
  place(weight_, Purpose::weight, precision.weight, "");
  place(grad_, Purpose::grad, precision.grad, " gradient");
  if (precision.master) place(master_, Purpose::optimizer, DType::f32, " master");
  place(moment1_, Purpose::optimizer, precision.moment, " first moment");
  place(moment2_, Purpose::optimizer, precision.moment, " second moment");
}

int64_t ParamStore::elements() const {
  int64_t n = 0;
  for (const ParamSpec& s : specs_) n += s.shape.numel();
  return n;
}

void ParamStore::init(Ops& ops, uint64_t seed) const {
  for (ParamId id = 0; id < size(); ++id) {
    const ParamSpec& s = spec(id);
    const auto start = [&](const Tensor& t) {
      if (s.init_std == 0)
        ops.fill(t, 1.0);
      else
        ops.fill_normal(t, s.init_std, NoiseKey{.seed = seed, .stream = hash_name(s.name), .purpose = Noise::init});
    };
    start(weight(id));  // rounding to the nearest of the same f32 values that a master holds
    if (precision_.master) start(master(id));
    ops.fill(moment1(id), 0);
    ops.fill(moment2(id), 0);
  }
}

}  // namespace hlat
