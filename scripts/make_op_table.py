#!/usr/bin/env python3
"""Writes ir/ops/aten.inc and ir/ops/libraries.inc: the rows of the op table from PyTorch's
registry. Also writes two lists for fxopt.save: the operators of the table, and the other operators
whose schemas state all their effects.

Schemas, tags and the partitioner's op sets come from the installed torch. The rules below add facts
that the
registry lacks: compute classes, effects without an annotation, and corrections of schemas. Ops that
    PyTorch does not register are written by hand in ir/ops/extra.inc. Building fxopt never runs
    this script.
"""
import argparse
import importlib
import pathlib
import re

# Modules that register ops on import.
MODULES = """torch.distributed._functional_collectives torch.distributed._symmetric_memory torch.distributed.tensor
torch.distributed.fsdp._fully_shard._fsdp_collectives torch.distributed.fsdp._fully_shard._fsdp_param
torch.nn.attention.varlen torch._inductor.fx_passes.bucketing torch._inductor.inductor_prims torch._prims.rng_prims
torch._functorch._activation_offloading.offload_ops torch._functorch._aot_autograd.streams torch._inductor.compile_fx
torch._dynamo.variables.streams torch._dynamo.variables.memory torch._dynamo.tensor_version_op
torch.ao.quantization.fx._decomposed torch.nn.modules.linear_cross_entropy torch.distributed._ops.device_mesh
torch.distributed.tensor.experimental._context_parallel._cp_custom_ops torch.distributed.pipelining""".split()
LIBRARIES = """_c10d_functional _c10d_functional_autograd c10d_functional c10d _dtensor symm_mem bucketing fsdp ao streams
mempool profiler inductor inductor_prims prims rngprims coor torch_attn cplib pippy""".split()


def rules(text):
    """Parses lines `value: pattern pattern ...` to (value, compiled pattern). An indented line
    continues the one above."""
    lines = re.sub(r"\n\s+", " ", text.strip()).splitlines()
    return [(value, re.compile("|".join(patterns.split()))) for value, patterns in (line.split(": ", 1) for line in lines)]


def first(table, *names):
    return next((value for name in names for value, pattern in table if pattern.fullmatch(name)), None)


# Compute classes by packet name.
CLASSES = rules(r"""
kAssertion: _assert.* _functional_assert.* .*sym_constrain.* _linalg_check_errors _async_error
kOptimizer: _foreach.* _fused_(adam|adamw|sgd|adagrad|muon).* _amp_.*
kWait: wait_tensors?
kScalar: item _local_scalar_dense _fused_sdp_choice equal allclose is_same_size _has_same_storage_numel
kAttention: .*attention.* _varlen_attn.*
kContraction: mm bmm addmm baddbmm addbmm addmv addr mv dot vdot inner outer ger matmul(_backward)? linear(_backward)?
  einsum _?bilinear _trilinear tensordot chain_matmul linalg_(matmul|multi_dot|vecdot|matrix_power) matrix_power kron
  .*_mm(_for_cpu|_with_scales_and_zeros)? _mm_plus_mm _(scaled_)?grouped_mm.* _dyn_quant_matmul.* _sparse_semi_structured_.*
  .*rnn.* (lstm|gru)(_cell)?(_backward)? _?lstm_mps.* _scaled_mm.* _addmm_activation _scaled_addmm _mixed_dtypes_linear
kRandom: (feature_|alpha_|feature_alpha_|native_|_fused_)?dropout rrelu(_with_noise)?(_functional)? philox_rand
  inductor_.*(seed|rand|rng).* _philox_.*
kNormalization: .*(batch|layer|group|instance|rms)_norm.* .*softmax.* local_response_norm renorm _?weight_norm.*
kConvolution: .*conv(\d.*|olution.*|_tbc.*|_transpose.*|_depthwise.*|_double_backward.*)
kSort: sort argsort msort topk kthvalue (nan)?median mode histc _?histogram.* bincount nonzero.* argwhere _?unique.*
  searchsorted bucketize (nan)?quantile isin
kDataMovement: cat concat concatenate _?chunk_cat.* [hvd]?stack (row|column)_stack _stack .*_pad\d?d.* constant_pad_nd pad
  _pad_(circular|enum) roll flip fliplr flipud rot90 repeat tile tril triu clone copy _to_copy _copy_from.* copy_to
  copy_strided contiguous to lift_fresh_copy convert_element_type device_put offload reload (?!index).*_copy all_gather_copy_in
  _?pixel_(un)?shuffle channel_shuffle inductor_force_stride_order block_diag _pre_bucket.* _?pin_memory type_as col2im
  im2col _convert_weight_to_int4pack.* _dyn_quant_pack.* _autocast_.* diag_embed collapse reshape resize resize_as_? rev _cast_.* chalf
kGatherScatter: _?embedding.* index.* _unsafe_index.* _unsafe_masked.* _index_put_impl gather.* scatter.* .*_scatter put
  (select|slice|diagonal|unfold|index_select|gather)_backward masked_(scatter.*|select.*) repeat_interleave take.*
  _?upsample.* .*grid_sampler.* one_hot value_selecting_reduction_backward _?segment_reduce.* nll_loss.*_backward
kFactory: _efficientzerotensor full.* empty.* new_.* zeros.* ones.* arange.* range iota scalar_tensor eye linspace logspace tri[lu]_indices
  .*_window
kReduction: sum.* _grad_sum_to_size mean var.* std.* prod cum.* .*logcumsumexp.* norm(_except_dim)? nuclear_norm
  linalg_(vector_|matrix_)?norm frobenius_norm dist _?cdist.* _pdist.* trace all any nansum nanmean (special_)?logsumexp
  _is_(all|any)_true count_nonzero aminmax arg(max|min) (?!_alloc).*pool.* .*_loss(\d?d)?(_forward)? binary_cross_entropy.* kl_div xor_sum
  amax amin
kPointwise: .*_loss.*backward _?fake_quantize.* _?fused_moving_avg_obs.* _thnn_.* (elu|hard\w+|leaky_relu|softplus|softshrink|mish)_backward hardswish fill zero floor_divide
  _?prelu.* glu.* log_sigmoid.* [cs]elu relu6 polar complex _?conj_physical isclose (linalg_)?cross _masked_scale where
  max min fma special_.* rrelu_with_noise_backward bitwise_.* logical_.* frexp hardtanh (clamp|clip).* divide multiply
  subtract greater.* less.* not_equal arc.* absolute negative fix sgn cbrt signbit erf.* lgamma .*bessel.* ndtri zeta
  nextafter shift_.* fmin fmax gcd rsub atan2 igammac? hypot __\w+__ logit.* maximum minimum
""")
# The rules below match a packet ("aten.index_put_") or a whole target.
# Effects that the schema does not declare.
EFFECTS = rules(r"""
kCollective: cplib\..* _?c10d(_functional(_autograd)?)?\.(?!wait|check|.*barrier|_wrap)\w+ _dtensor.shard_dim_alltoall
  symm_mem\.(?!_async_input_mm|get_remote|memset32|stream_write|_rendezvous|_barrier|.*(signal|wait))\w+
kWaits: .*\.wait_tensors? symm_mem\..*wait.*
kBarrier: pippy\..* profiler\..* streams\..* mempool\..* c10d\.(.*barrier|check).* prims\.(_sink_tokens|_tensor_version|_unsafe_set_version.*)
  symm_mem\.(_barrier|_rendezvous|.*(signal|_put|_get|get_remote|write_value|memset).*|memcpy_to_multicast_)
  aten\.(_print|_async_error|record_stream|from_file|get_gradients|_propagate_xla_data|_cufft_\w+)
  fsdp.record_grad_output_stream inductor.resize_storage_bytes_ debugprims.load_tensor debug_mode_ops.annotate
kHostSync: aten\.(is_nonzero|_linalg_check_errors|nonzero_numpy) aten.repeat_interleave.(self_)?Tensor prims.item
  streams\.synchronize.* c10d\..*barrier.*
kAsserts: aten\.(_assert|_functional_assert|.*sym_constrain|_linalg_check_errors|_async_error|_validate_).* c10d.check_for_nan
kOpaque: inductor.accumulate_grad_
kUnknownWrites: aten._backward
kRandom: aten.quantized_(lstm|gru) inductor_prims.inductor_reserve_rng_state prims.inductor_(random|randint)
kNondeterministic: aten.index_(add|put|reduce)_? aten._unsafe_index_put aten._index_put_impl_ aten.put_? aten.histc
  aten.scatter_(add|reduce)_? aten.bincount aten.kthvalue aten.median aten.(logcumsumexp|cumsum|cumprod)\w*
  aten.embedding_dense_backward aten._embedding_bag\w*backward aten.nll_loss2d\w* aten.ctc_loss aten.grid_sampler_\w+_backward
  aten._?adaptive_\w+_backward aten.avg_pool3d_backward aten.fractional_\w+_backward aten.max_(un)?pool\w+_backward
  aten._?upsample_(linear|bilinear|bicubic|trilinear)\w+_backward aten.re(flection|plication)_pad\w+_backward
  aten.\w+attention\w*_backward aten.convolution_backward torch_attn._varlen_attn_backward
""")
# Tagged nondeterministic_seeded, but an argument fixes their random numbers, or they draw none.
DRAWS_NOTHING = re.compile(r"rngprims.philox_rand|aten\.(\w+attention_backward|_fused_sdp_choice|_fill_mem_eff_dropout_mask_|"
                           r"\w+_no_dropout_inplace)")
WRONG_WRITES = ["prims.as_strided.default"]  # annotated as a write, though a view
# Views that may copy, which no annotation can express, and views whose alias the schema omits.
VIEWS = rules(r"""
kMaybeView: aten\.(reshape|reshape_as|contiguous|to|flatten|ravel|resolve_conj|resolve_neg|_autocast_to_\w+|pin_memory)
  aten\.(type_as|sum_to_size|_grad_sum_to_size|conj_physical|atleast_[123]d|cartesian_prod|_cast_\w+|chalf)
  aten\.(to_dense|_reshape_from_tensor) aten.dequantize.self
  aten\.(feature_|alpha_|feature_alpha_)?dropout prims.device_put
kView: aten._unsafe_view inductor\.(_reinterpret_tensor|_alloc_from_pool)
kMultiView: aten\.(unsafe_split|unsafe_split_with_sizes|unsafe_chunk|broadcast_tensors|meshgrid|unflatten_dense_tensors)
kIdentity: aten\.(lift|lift_fresh|positive|data) (_?c10d_functional|ao)\.wait_tensors? _c10d_functional._wrap_tensor_autograd
""")
EXTRAS = rules(r"""
writes=running_mean,running_var;training=training: aten.(native_|cudnn_|miopen_)?batch_norm.default aten._batch_norm_impl_index.default
writes=running_mean,running_var;training=use_input_stats: aten.instance_norm.default
writes=running_mean,running_var: aten.(native_|cudnn_)?batch_norm aten.batch_norm_gather_stats(_with_counts)? aten.batch_norm_update_stats
training=training: aten._native_batch_norm_legit.default
writes=all_gather_output;aliases=all_gather_output,all_gather_output: fsdp.all_gather_copy_in
writes=variable: inductor.resize_storage_bytes_
writes=output_tensors;aliases=output_tensors,-: c10d.(allgather_|alltoall_|reduce_scatter_|scatter_)
writes=output_tensor;aliases=output_tensor,-: c10d.(_allgather_base_|_reduce_scatter_base_|gather_into_tensor_)
writes=tensors;aliases=tensors,-: c10d.(allreduce_|broadcast_)
writes=tensors: c10d.(allreduce_coalesced_|recv_|recv_any_source_|reduce_)
writes=output_tensors: c10d.gather_
writes=output_lists: c10d.allgather_coalesced_
writes=weight_arr;aliases=weight_arr: aten._cudnn_rnn_flatten_weight.default
writes=weight_arr: aten._cudnn_rnn_flatten_weight.out
writes=running_mean,running_var: aten.miopen_batch_norm.out
writes=outputs: c10d.\w+_tensor_coalesced_
writes=output: c10d.alltoall_base_
writes=tensor;aliases=tensor: _c10d_functional.irecv
writes=self;aliases=self: c10d_functional.irecv
writes=tensors;aliases=tensors: _?c10d_functional.batch_p2p_ops
shared=tensors: aten.(einsum|flatten_dense_tensors|_to_cpu) aten.dequantize.tensors
shared=self: aten.(_(add|remove)_batch_dim|_nested_get_(lengths|offsets|m(ax|in)_seqlen)|_nested_tensor_(size|strides|storage_offsets))
  quantized.dropout aten.(_foobar|_test_parallel_materialize)
shared=grad: aten.to_(dense|mkldnn)_backward
writes=source: aten.set.source_Tensor(_out)?
writes=dst: aten._copy_from(_and_resize)?(.out)?
shared=values: aten._test_optional_\w+
shared=dummy: aten._test_ambiguous_defaults
writes=weight;aliases=weight: aten._saturate_weight_to_fp16
writes=qx;shared=qx: quantized.(relu6|leaky_relu)
aliases=qaccum: onednn.qconv2d_pointwise.binary(_tensor)?
writes=other;shared=other: onednn.qlinear_pointwise.binary(_tensor)?
aliases=output: aten.fbgemm_linear_fp16_weight(_fp32_activation)?.out
aliases=-,bins: aten.histogramdd.TensorList_bins
shared=input;only_empty: aten.native_dropout.default aten.cummaxmin_backward
shared=grad;only_empty: aten.cumprod_backward
shared=self;only_empty: aten.channel_shuffle.default
""")
# Ops that ATen computes in a clone that preserves strides (at::clone_preserve_strides) and copies
# the whole storage.
CLONES_STORAGE = re.compile(r"aten\.(copy|slice_scatter|select_scatter|diagonal_scatter|as_strided_scatter)\.default")
# In-place changes of sizes, strides or storage without the tag `inplace_view`. addbmm_ grows self
# to the result's sizes.
CHANGES_METADATA = re.compile(r"aten\.(set_|resize_|resize_as_|addbmm_|set_data|shallow_copy_data_|_resize_output_)|prims\.resize|"
                              r"aten\.(resize_as_sparse_|sparse_resize_(and_clear_)?|_mkldnn_transpose_)")
# Views that return the argument itself if there is nothing to do.
MAY_RETURN_ARGUMENT = re.compile(r"aten\.((conj|real|broadcast_tensors)\.default|histogramdd\.TensorList_bins)")
# Their outputs share one storage: they unbind the result of nonzero.
JOINS_OUTPUTS = re.compile(r"aten\.(where\.default|nonzero_numpy\.default)")
# Results on a storage larger than their sizes need; scripts/peers/layouts.py finds them by
# execution. See Holds in ir/ops/op.h.
HOLDS = {"kTerms": re.compile(r"aten\.(mse_loss|smooth_l1_loss|binary_cross_entropy|soft_margin_loss)\.default"),
         "kColumns": re.compile(r"aten\.(col2im|im2col)\.default"), "kRuns": re.compile(r"aten\.unique_(consecutive|dim(_consecutive)?)\.default"),
         "kBags": re.compile(r"aten\._embedding_bag(_forward_only)?\.default")}
# Ops that overwrite all of argument 0 without reading it.
OVERWRITES = re.compile(r"aten\.(copy_|zero_)\.default|aten\.fill_\.(Scalar|Tensor)")
# Results whose layout may differ from the fake tensor's; scripts/peers/layouts.py finds them by
# execution.
CHOOSES_LAYOUT = re.compile(r"aten\.(%s)" % "|".join(r"""copysign\.(Tensor|Scalar) floor_divide\.(default|Scalar) ldexp\.Tensor
div\.(Tensor|Scalar)_mode roll\.default re(flection|plication)_pad[23]d_backward\.default re(flection|plication)_pad3d\.default
addr\.default put\.default _fft_(r2c|c2c|c2r)\.default constant_pad_nd\.default sort\.(default|stable) pow\.Scalar heaviside\.default
xlogy\.(Tensor|Scalar_\w+) logaddexp2?\.default logical_(and|or|xor)\.default [lg]c[md]\.default normal\.Tensor_Tensor
channel_shuffle\.default glu_backward\.default log_sigmoid_forward\.default _log_softmax_backward_data\.default
(huber|mse|smooth_l1)_loss_backward\.default nll_loss2d_forward\.default native_dropout_backward\.default
native_layer_norm_backward\.default _batch_norm_with_update\.default batch_norm_backward\.default
native_batch_norm(_backward)?\.default _native_batch_norm_legit\.(default|no_stats)""".split()))
# Views whose offset depends on data.
READS_INDEX = re.compile(r"aten\.(narrow\.Tensor|tensor_split\.tensor_indices_or_sections)")
FIELDS = {"writes": "hidden_writes", "aliases": "hidden_aliases", "training": "training", "shared": "shared"}
FLAGS = {"only_empty": "shares_only_empty"}
TITAN_MATMUL = {"aten.mm.default", "aten.linear.default"}  # counted by torchtitan's per-op policy
TITAN_SAVE = """aten._scaled_dot_product_cudnn_attention.default aten._scaled_dot_product_attention_math.default
aten._scaled_dot_product_fused_attention_overrideable.default aten.max.default aten.linear.default aten.topk.default
torch_attn._varlen_attn.default _c10d_functional.reduce_scatter_tensor.default
_c10d_functional.all_to_all_single.default""".split()
# Aten ops without a kernel for a device, by flag, from torchgen's list. A build without CUDA
# registers no CUDA kernels.
def kernel_lists():
    import torchgen
    from torchgen.gen import parse_native_yaml
    from torchgen.model import DispatchKey
    folder = pathlib.Path(torchgen.__file__).parent / "packaged/ATen/native"
    parsed = parse_native_yaml(folder / "native_functions.yaml", folder / "tags.yaml")
    functions = {str(f.func.name): f for f in parsed.native_functions}

    def lacks(function, key):
        function = functions[str(function.structured_delegate)] if function.structured_delegate else function
        composite = function.has_composite_kernel or function.has_composite_explicit_autograd_non_functional_kernel
        return not composite and not parsed.backend_indices[key].has_kernel(function)

    keys = {"kNoCpuKernel": DispatchKey.CPU, "kNoCudaKernel": DispatchKey.CUDA}
    return {flag: {name for name, function in functions.items() if lacks(function, key)} for flag, key in keys.items()}


# Aten ops that do not occur in traced training steps: other backends, sparse, nested, quantized,
# autograd's own.
LEFT_OUT = re.compile("|".join(r"""
.*(sparse|nested|mkldnn|mkl_|miopen|_mps|mps_|vulkan|quantize|fbgemm|cslt|_test_|foobar|_coo\b|_cs[rc]\b|_bs[rc]\b|rnn|lstm).*
.*(gru\b|gru_|crow|ccol|zerotensor|dual|_jvp|q_per_|q_scale|q_zero|int_repr|qscheme|qparams|slow_conv|thnn|_nnpack|_spdiags).*
.*(from_file|padded|coalesce|_dim[IV]|xla|lazy|_validate_|lobpcg|_batch_dim|_dyn_quant|int4pack|dense_dim|_to_cpu).*
.*(rowwise_prune|saturate_weight|dense_tensors|linear_prepack|fake_quant|moving_avg|sobol|cpu_fallback|to_dense|packed_seq).*
_?backward set_data retains?_grad requires_grad_ is_leaf output_nr _version data (_|col_|row_)?indices(_copy)? smm _spsolve
_?values(_copy)? _fw_primal.* _has_(?!same_storage_numel).* is_(?!nonzero|same_size).* _is_.* _use_.* _debug_.* can_cast promote_types result_type _nnz hspmm
_propagate_.* _transform_bias.* _transformer_.* _native_multi_head.* _triton_.* _cufft.* sspaddmm cudnn_is_acceptable set
_reshape_from_tensor _shape_as_tensor native_norm shallow_copy_data_ resize_as _resize_output_? get_gradients""".split()))
# Kept although LEFT_OUT matches: recurrent layers, quantization-aware training, int4 and
# semi-structured products, gradients that are zero, and operators whose schemas hide an effect or
# an alias.
KEPT = re.compile("|".join(r"""mkldnn_rnn_layer(_backward)? _cudnn_rnn.* miopen_rnn.* _thnn_.* (lstm|gru|rnn_(tanh|relu))(_cell)?
lstm_mps_backward _lstm_mps _?fake_quantize.* _?fused_moving_avg_obs.* _efficientzerotensor _weight_int4pack_mm.*
_convert_weight_to_int4pack.* _dyn_quant_.* _sparse_semi_structured.* _cslt_sparse_mm.* _is_(all|any)_true
data dequantize to_dense _reshape_from_tensor (un)?flatten_dense_tensors _saturate_weight_to_fp16 miopen_batch_norm _to_cpu
fbgemm_linear_fp16_weight(_fp32_activation)? _(add|remove)_batch_dim _nested_get_(lengths|offsets|m(ax|in)_seqlen)
_nested_tensor_(size|strides|storage_offsets) from_file _cufft_.* get_gradients _propagate_xla_data set_data shallow_copy_data_ _resize_output_ resize_as_sparse_
sparse_resize_(and_clear_)? _mkldnn_transpose_ quantized_(lstm|gru) _test_(optional_.*|ambiguous_defaults|parallel_materialize) _validate_.*
_foobar to_(dense|mkldnn)_backward aten.from_file.out aten._cudnn_rnn_flatten_weight.out aten.miopen_batch_norm.out aten._copy_from(_and_resize)?.out
quantized.(relu6|leaky_relu|dropout) debugprims.load_tensor debug_mode_ops.annotate onednn.q(conv2d|linear)_pointwise""".split()))
# Namespaces of PyTorch outside of aten and of LIBRARIES.
EXACT = """quantized _quantized quantization quantized_decomposed onednn mkldnn mkldnn_prepacked mkl sparse onnx flex_gemm flex_lib
_native _native_aot _test torch_nn device_mesh""".split()
# Operators whose schemas do not state all effects. Their results hold arguments by reference
# (sparse, dual, packed and per-channel quantized tensors), they read or change the identity, the
# version, the layout or the autograd state of a tensor, or they run code that the schema does not
# show. All operators on packed objects belong to them. Their rows state the most that they may do:
# they are barriers, and their results may hold any argument.
HIDES = re.compile("|".join(r"""aten._backward aten._test_string_default aten.sparse_\w+_tensor aten._sparse_\w+_tensor_unsafe
aten._sparse_coo_tensor_with_dims_and_tensors aten._?to_sparse\w* aten.sparse_mask aten._sparse_mask_projection
aten.(_embedding_bag|embedding|_gather)_sparse_backward aten.set aten.requires_grad_ aten.retains?_grad aten._fw_primal
aten._(make|unpack)_dual aten.is_(set_to|leaf|inference|pinned|contiguous|coalesced|conj|neg) aten._is_zerotensor
aten._version aten.output_nr aten._debug_has_internal_overlap aten.quantize_per_channel aten.empty_quantized
aten._(make|empty)_per_channel_\w+ aten.q_per_channel_(scales|zero_points) aten._coalesced_ aten._nested_\w+ aten._mkldnn_reshape
aten._transform_bias_rescale_qkv \w+\.\w*prepack\w* _?quantized\.\w*unpack\w* mkldnn.data_ptr
_native._foreach_mm_native_1 flex_gemm.autograd_not_implemented _inductor_test.realize export.\w+ onnx_symbolic.\w+""".split()))
PACKED = re.compile(r"__torch__\.torch\.classes\.(quantized|mkldnn|rnn|sparse|xnnpack)\.")
# Out-variants that the framework generates are rare in graphs. They are kept for these ops and the
# partitioner's sets.
KEEPS_GENERATED_OUT = re.compile("|".join(r"""(native_|_native_|cudnn_)?(batch|layer|group)_norm.* _?(log_)?softmax.* embedding.*
index.* scatter.* slice_.* select_.* .*_copy native_dropout.* convolution.* max_pool2d.* _adaptive.* repeat _foreach.*
_fused_(adam|sgd).* new_.* full.* empty.* rand.* bernoulli uniform normal.* constant_pad_nd roll flip""".split()))


def tag_names(op):
    return {str(tag).split(".")[-1] for tag in op.tags}


def compute_class(names, op, tags, effects, pointwise):
    returns, packet = op._schema.returns, names[0].split(".")[1]
    by_name = first(CLASSES, packet, packet.rstrip("_"))
    is_view = any(r.alias_info and not r.alias_info.is_write for r in returns) or names[1] in WRONG_WRITES
    if "kCollective" in effects:
        return "kCollective"
    if by_name in ("kDataMovement", "kAssertion", "kWait", "kScalar") and not (is_view and packet == "reshape"):
        return by_name
    if "kBarrier" in effects:
        return "kOther"
    if returns and not any("Tensor" in str(r.type) for r in returns):
        return "kScalar"
    if is_view or "inplace_view" in tags or (first(VIEWS, *names) and not by_name):
        return "kView"
    for tag, name in [("pointwise", "kPointwise"), ("reduction", "kReduction"), ("view_copy", "kDataMovement")]:
        if tag in tags and by_name not in ("kGatherScatter", "kRandom"):
            return name
    by_packet = "kPointwise" if pointwise & {packet, packet.rstrip("_")} else None
    return by_name or by_packet or ("kRandom" if "nondeterministic_seeded" in tags else "kOther")


def row(target, op, sets, pointwise, kernels):
    tags, packet = tag_names(op), target.rsplit(".", 1)[0]
    names = (packet, target)
    flags = [name for name, members in sets.items() if packet in members]
    flags += ["kTitanSave"] * (target in TITAN_SAVE or (packet in sets["kComputeIntensive"] and target.endswith(".default")))
    flags += ["kTitanMatmul"] * (target in TITAN_MATMUL)
    flags += [flag for flag, targets in kernels.items() if target in targets]
    flags += ["kPointwiseTag"] * ("pointwise" in tags) + ["kSeeded"] * ("nondeterministic_seeded" in tags)
    effects = {value for value, pattern in EFFECTS if any(map(pattern.fullmatch, names))}
    hides = hides_effects(target, op)
    if hides:
        effects.add("kBarrier")
    compute = compute_class(names, op, tags, effects, pointwise)
    if "nondeterministic_seeded" in tags and not DRAWS_NOTHING.fullmatch(packet):
        effects.add("kRandom")
    # Op::mask_arg handles aten.index.
    if tags & {"data_dependent_output", "dynamic_output_shape"} and packet != "aten.index":
        effects.add("kHostSync")
    schema = str(op._schema)
    schema = schema[schema.index("("):].replace("\\", "\\\\").replace('"', '\\"').replace("!", "" if target in WRONG_WRITES else "!")
    view = None if "out" in tags else first(VIEWS, *names)
    extra = [field.split("=") for field in (first(EXTRAS, target, packet) or "").split(";") if field]
    fields = [f'.{FIELDS[name]} = "{value[0].replace(",", " ")}"' for name, *value in extra if value]
    fields += [f".{FLAGS[name]} = true" for name, *value in extra if not value]
    fields += [".clones_storage = true"] if CLONES_STORAGE.fullmatch(target) else []
    fields += [".changes_metadata = true"] if "inplace_view" in tags or CHANGES_METADATA.fullmatch(packet) else []
    fields += [".moves_storage = true"] if packet in ("aten.set_", "aten.set_data", "aten.shallow_copy_data_") else []
    fields += [".may_return_argument = true"] if MAY_RETURN_ARGUMENT.fullmatch(target) else []
    fields += [".joins_outputs = true"] if JOINS_OUTPUTS.fullmatch(target) else []
    fields += [".overwrites = true"] if OVERWRITES.fullmatch(target) else []
    fields += [".reads_index = true"] if READS_INDEX.fullmatch(target) else []
    fields += [".chooses_layout = true"] if CHOOSES_LAYOUT.fullmatch(target) else []
    fields += [f".holds = Holds::{kind}" for kind, targets in HOLDS.items() if targets.fullmatch(target)]
    fields += [".hands_on = HandsOn::kAnything"] if hides else []
    columns = [f'"{target}"', f'"{schema}"', "C::" + compute,
               " | ".join("S::" + flag for flag in flags or ["kNone"]),
               " | ".join("E::" + effect for effect in sorted(effects) or ["kNone"]), "V::" + (view or "kNone"),
               "{" + ", ".join(fields) + "}"]
    while columns[-1] == "{}" or columns[-1].endswith("::kNone"):
        columns.pop()
    return "{" + ", ".join(columns) + "},\n"


def hides_effects(target, op):
    packet, _, overload = target.rpartition(".")
    is_described = overload != "out" and (KEPT.fullmatch(packet.removeprefix("aten.")) or KEPT.fullmatch(packet))
    return bool(PACKED.search(str(op._schema)) or (HIDES.fullmatch(packet) and not is_described))


def is_wanted(namespace, packet, op, dispatched, sets):
    if hides_effects(f"{namespace}.{packet}.{op._overloadname}", op):
        return op.name() in dispatched
    if namespace != "aten":
        return namespace in LIBRARIES and "_jit_fut" not in packet or KEPT.fullmatch(f"{namespace}.{packet}") is not None
    overload = op._overloadname
    if f"aten::{packet}" + ("" if overload == "default" else "." + overload) not in dispatched:
        return overload == "default" and packet in ("sym_size", "sym_stride", "_grad_sum_to_size")
    if any(f"aten.{packet}" in members for members in sets.values()):
        return True
    if KEPT.fullmatch(f"aten.{packet}.{overload}"):
        return True
    if LEFT_OUT.fullmatch(packet) and not KEPT.fullmatch(packet):
        return False
    is_generated_out = "generated" in tag_names(op) and re.fullmatch(r".*out\d?", overload)
    return not is_generated_out or KEEPS_GENERATED_OUT.fullmatch(packet) is not None


def is_exact(target, op, dispatched):
    """Returns whether PyTorch registers a kernel for the operator, and its schema states all its
    effects."""
    if target.split(".")[0] not in (*EXACT, "aten") or op.name() not in dispatched:
        return False
    return bool(op._schema.returns) or op._schema.is_mutable


def listed(targets):
    """One line for each packet, with its overloads."""
    overloads = {}
    for target in sorted(targets):
        overloads.setdefault(target.rsplit(".", 1)[0], []).append(target.rsplit(".", 1)[1])
    return "".join(" ".join((packet, *names)) + "\n" for packet, names in sorted(overloads.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "ir" / "ops",
                        help="folder of the two files (default: %(default)s)")
    parser.add_argument("--lists", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "fxopt",
                        help="folder of the two lists (default: %(default)s)")
    args = parser.parse_args()
    import torch
    for module in MODULES:
        importlib.import_module(module)
    from torch._functorch.partitioners import get_default_op_list
    known = get_default_op_list()
    sets = {"kComputeIntensive": known.compute_intensive_ops, "kRecomputable": known.recomputable_ops,
            "kPartitionerView": known.view_ops, "kPartitionerRandom": known.random_ops}
    sets = {name: {str(packet) for packet in packets} for name, packets in sets.items()}
    dispatched = set(torch._C._dispatch_get_all_op_names())
    found, others = {}, []
    for schema in torch._C._jit_get_all_schemas():
        namespace, packet = schema.name.split("::", 1)
        overload = schema.overload_name or "default"
        op = getattr(getattr(getattr(torch.ops, namespace), packet, None), overload, None)
        target = f"{namespace}.{packet}.{overload}"
        if op is not None and is_wanted(namespace, packet, op, dispatched, sets):
            found[target] = op
        elif op is not None and is_exact(target, op, dispatched):
            others.append(target)
    kernels = {flag: {"aten." + (name if "." in name else name + ".default") for name in names} for flag, names in kernel_lists().items()}
    kernels["kDecomposes"] = {str(op) for op in torch._decomp.core_aten_decompositions()}
    pointwise = {target.split(".")[1] for target, op in found.items() if "pointwise" in tag_names(op)}
    rows = {"aten.inc": [], "libraries.inc": []}
    for target in sorted(found):
        rows["aten.inc" if target.startswith("aten.") else "libraries.inc"].append(row(target, found[target], sets, pointwise, kernels))
    head = f"// Written by scripts/make_op_table.py from PyTorch {torch.__version__.split('+')[0]}; not edited by hand.\n"
    for name, lines in rows.items():
        (args.out / name).write_text(head + "".join(lines))
        print(f"{name}: {len(lines)} rows")
    written = "Written by scripts/make_op_table.py.\n"
    (args.lists / "known_ops.txt").write_text(f"# Operators of the table, with their overloads. {written}" + listed(found))
    (args.lists / "exact_ops.txt").write_text(
        f"# Other operators of PyTorch whose schemas state all their effects. {written}" + listed(others))


if __name__ == "__main__":
    main()
