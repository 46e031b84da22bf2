// Parameters: layers declare what they need, the store places weights, gradients and optimizer state in their regions.
// Initial values are functions of (seed, name, global element) alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "param/precision.h"
#include "tensor/region.h"

namespace hlat {

struct ParamSpec {
  std::string name;
  Shape shape;          // global
  double init_std = 0;  // 0: starts at one (norms)
  bool decay = true;    // weight decay applies
};

using ParamId = int32_t;

class ParamBuilder {
 public:
  ParamId add(ParamSpec spec) {
    specs_.push_back(std::move(spec));
    return static_cast<ParamId>(specs_.size() - 1);
  }
  std::vector<ParamSpec> take() { return std::move(specs_); }

 private:
  std::vector<ParamSpec> specs_;
};

class ParamStore {
 public:
  ParamStore(std::vector<ParamSpec> specs, const Precision& precision, Memory& memory);

  int32_t size() const { return static_cast<int32_t>(specs_.size()); }
  int64_t elements() const;
  const ParamSpec& spec(ParamId id) const { return specs_[static_cast<size_t>(id)]; }
  const Precision& precision() const { return precision_; }
  Tensor weight(ParamId id) const { return weight_[static_cast<size_t>(id)]; }
  Tensor grad(ParamId id) const { return grad_[static_cast<size_t>(id)]; }
  Tensor master(ParamId id) const { return precision_.master ? master_[static_cast<size_t>(id)] : Tensor{}; }
  Tensor moment1(ParamId id) const { return moment1_[static_cast<size_t>(id)]; }
  Tensor moment2(ParamId id) const { return moment2_[static_cast<size_t>(id)]; }

  void init(Ops& ops, uint64_t seed) const;  // weights, masters; moments to zero

 private:
  std::vector<ParamSpec> specs_;
  Precision precision_;
  std::vector<Tensor> weight_, grad_, master_, moment1_, moment2_;
};

}  // namespace hlat
