"""Calls that no sample of OpInfo makes: changes of a tensor's own sizes and storage, arguments that
leave nothing to do, indexing by operator.getitem, collectives of one rank."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import torch
import torch._inductor.inductor_prims  # registers its operators
from op_calls import CallBook, gapped, turned

aten = torch.ops.aten


def _numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(1, 1 + torch.Size(shape).numel()).to(dtype).reshape(shape)


def add_by_hand(book: CallBook) -> None:
    for calls in (_metadata(), _nothing_to_do(), _bits(), _dropouts(), _norms(), _indices(), _drawn()):
        for target, args, kwargs in calls:
            book.add(target, args, kwargs)
    _add_collectives(book)


def _call(target: Any, *args: Any, **kwargs: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    return target, args, kwargs


def _metadata() -> list[Any]:
    x, row = _numbers(2, 3), _numbers(1, 3)
    return [
        _call(aten.t_.default, x),
        _call(aten.transpose_.default, x, 0, 1),
        _call(aten.transpose_.default, x, 0, 0),
        _call(aten.swapaxes_.default, x, 0, 1),
        _call(aten.swapdims_.default, x, 0, 1),
        _call(aten.squeeze_.default, row),
        _call(aten.squeeze_.default, x),
        _call(aten.squeeze_.dim, row, 0),
        _call(aten.squeeze_.dims, row, [0]),
        _call(aten.unsqueeze_.default, x, 0),
        _call(aten.as_strided_.default, x, [3, 2], [1, 3]),
        _call(aten.detach_.default, x),
        *[_call(aten.resize_.default, x, size) for size in ([3, 2], [5, 7], [2, 3], [1])],
        _call(aten.resize_.default, _numbers(0), [2, 3]),
        *[_call(aten.resize_as_.default, x, other) for other in (_numbers(4, 5), _numbers(2, 3), _numbers(1))],
        _call(aten.set_.default, x),
        _call(aten.set_.source_Tensor, x, _numbers(5)),
        _call(aten.set_.source_Tensor_storage_offset, x, _numbers(6), 1, [2], [1]),
        _call(torch.ops.prims.resize.default, x, [3, 2]),
        _call(torch.ops.inductor.resize_storage_bytes_.default, x, 0),
        _call(torch.ops.inductor.resize_storage_bytes_.default, x, 48),
        _call(torch.ops.inductor._reinterpret_tensor.default, x, [3], [1], 1),
        _call(torch.ops.inductor._alloc_from_pool.default, _numbers(64, dtype=torch.uint8), 0, torch.float32, [4], [1]),
    ]


def _nothing_to_do() -> list[Any]:
    x, flat, square = _numbers(2, 3), _numbers(6), _numbers(2, 2)
    picture = _numbers(1, 2, 4, 4)
    same = [
        (aten.view.default, [2, 3]), (aten.reshape.default, [2, 3]), (aten._unsafe_view.default, [2, 3]),
        (aten.expand.default, [2, 3]), (aten.broadcast_to.default, [2, 3]), (aten.sum_to_size.default, [2, 3]),
        (aten._grad_sum_to_size.default, [2, 3]), (aten._grad_sum_to_size.default, None), (aten.view.dtype, torch.float32),
        (aten.reshape_as.default, x), (aten.view_as.default, x), (aten.expand_as.default, x), (aten.type_as.default, flat),
        (aten.to.dtype, torch.float32), (aten.to.other, flat), (aten.permute.default, [0, 1]), (aten.pow.Tensor_Scalar, 1),
        (aten.tile.default, [1]), (aten.repeat.default, [1, 1]), (aten.flip.default, []), (aten.roll.default, [0], [0]),
        (aten.constant_pad_nd.default, [0, 0]), (aten.pad.default, [0, 0]), (aten.index.Tensor, [None, None]),
        (aten.slice.Tensor, 0), (aten.narrow.default, 0, 0, 2), (aten.transpose.int, 0, 0), (aten.movedim.int, 0, 0),
        (aten.diff.default, 0), (aten.rot90.default, 0), (aten.split.Tensor, 2), (aten.chunk.default, 1),
        (aten.unsafe_split.Tensor, 2), (aten.unsafe_chunk.default, 1), (aten.tensor_split.sections, 1), (aten.copy.default, x),
        (aten.unflatten.int, 0, [2]), (aten.sum.dim_IntList, [0]), (aten.clamp.default, None, 9), (aten.squeeze.dim, 0),
    ]
    alone = (
        aten.alias, aten.detach, aten.lift, aten.lift_fresh, aten.lift_fresh_copy, aten.positive, aten.contiguous, aten.clone,
        aten._to_copy, aten.squeeze, aten.ravel, aten.atleast_1d, aten.atleast_2d, aten.atleast_3d, aten.view_as_real_copy,
        aten._lazy_clone, aten.numpy_T, aten.square, aten._cast_Float, aten._cast_Double, aten._cast_Int, aten._cast_Byte,
        aten.chalf, aten.pin_memory,
    )
    calls = [_call(target, x, *rest) for target, *rest in same]
    calls += [_call(target.default, given) for target in alone for given in (x, flat, x.t(), picture, x.int())]
    calls += [_call(target, [_numbers(3)]) for target in (aten.cartesian_prod.default, aten.meshgrid.default, aten.cat.default)]
    calls += [_call(target, [_numbers(3), _numbers(n)]) for n in (1, 3) for target in (
        aten.broadcast_tensors.default, aten.meshgrid.default, aten.cartesian_prod.default, aten.atleast_1d.Sequence,
        aten.atleast_2d.Sequence, aten.atleast_3d.Sequence, aten.hstack.default)]
    calls += [_call(aten.atleast_3d.default, _numbers(2, 3, 4)), _call(aten.atleast_1d.default, _numbers()),
              _call(aten.flatten.using_ints, flat), _call(aten.flatten.using_ints, x), _call(aten.flatten.using_ints, x.t()),
              _call(aten.einsum.default, "ij->ij", [x]), _call(aten.einsum.default, "ij->ji", [x]),
              _call(aten.chain_matmul.default, [x]), _call(aten.block_diag.default, [square]),
              _call(aten._reshape_alias.default, x, [3, 2], [2, 1]), _call(aten.contiguous.default, picture, memory_format=torch.channels_last),
              _call(aten._autocast_to_full_precision.default, x, False, False),
              _call(aten._autocast_to_full_precision.default, x.half(), False, True),
              _call(aten._autocast_to_reduced_precision.default, x, False, False, torch.half, torch.bfloat16),
              _call(aten._autocast_to_reduced_precision.default, x, False, True, torch.half, torch.bfloat16)]
    calls += [_call(aten.matrix_power.default, square, n) for n in (0, 1, 2)]
    calls += [_call(aten.linalg_matrix_power.default, square, n) for n in (0, 1, 2)]
    calls += [_call(aten.to.dtype, given, torch.float32, False, copy, memory_format=form)
              for given, copy, form in itertools.product((x, x.t(), x.int(), picture, gapped(x)), (False, True),
                                                         (torch.preserve_format, torch.contiguous_format))]
    calls += [_call(aten.to.dtype_layout, x, dtype=torch.float32, copy=copy) for copy in (False, True)]
    calls += [_call(aten.to.device, x, torch.device("cpu"), torch.float32, False, copy) for copy in (False, True)]
    calls += [_call(torch.ops.prims.device_put.default, x, torch.device("cpu")), _call(aten.is_pinned.default, x)]
    for shape in ([6], [3, 2], [2, 3], [1, 2, 3], [2, 3, 1], [-1]):
        calls += [_call(target, given, shape) for target in (aten.reshape.default, aten.view.default, aten._unsafe_view.default)
                  for given in (x, turned(x), gapped(x), _numbers(4, 3)[1:3], _numbers(2, 1, 3).expand(2, 1, 3).squeeze(1))]
    return calls


def _bits() -> list[Any]:
    number = _numbers(2, 2, dtype=torch.complex64)
    given = [_numbers(2, 2), number, torch._conj(number), torch._neg_view(_numbers(2, 2)), _numbers(2, 2, dtype=torch.int64)]
    targets = (aten.resolve_conj, aten.resolve_neg, aten.conj, aten._conj, aten.conj_physical, aten._conj_physical, aten.real, aten.imag,
               aten._neg_view, aten.view_as_real, aten.adjoint, aten.mH, aten.mT, aten.matrix_H, aten.clone, aten.contiguous,
               aten.alias, aten.neg, aten.conj_physical_, aten.sgn, aten.abs, aten.angle, aten.reshape_as)
    return [_call(target.default, x) for target in targets for x in given]


def _dropouts() -> list[Any]:
    x, picture = _numbers(3, 4), _numbers(2, 3, 4)
    plain = (aten.dropout, aten.dropout_, aten.alpha_dropout, aten.alpha_dropout_, aten.native_dropout)
    features = (aten.feature_dropout, aten.feature_dropout_, aten.feature_alpha_dropout, aten.feature_alpha_dropout_)
    calls = [_call(target.default, given, p, train) for targets, given in ((plain, x), (features, picture)) for target in targets
             for p in (0.0, 0.5, 1.0) for train in (False, True)]
    calls += [_call(aten.native_dropout.default, x, p, None) for p in (0.0, 0.5)]
    calls += [_call(target.default, x, 0.1, 0.3, train) for target in (aten.rrelu, aten.rrelu_) for train in (False, True)]
    query = _numbers(1, 2, 4, 8) / 64
    calls += [_call(aten.scaled_dot_product_attention.default, query, query, query, None, p) for p in (0.0, 0.5)]
    calls += [_call(aten._scaled_dot_product_attention_math.default, query, query, query, None, p) for p in (0.0, 0.5)]
    calls += [_call(aten._scaled_dot_product_flash_attention_for_cpu.default, query, query, query, 0.0)]
    return calls


def _norms() -> list[Any]:
    x, row = _numbers(4, 3), _numbers(3)
    picture = _numbers(2, 3, 2, 2)
    calls = []
    for training in (False, True):
        rest = (x, row, row, row, row, training, 0.1, 1e-5)
        calls += [_call(target.default, *rest) for target in (aten.native_batch_norm, aten._native_batch_norm_legit,
                                                              aten._native_batch_norm_legit_functional, aten._batch_norm_with_update)
                  if training or target is not aten._batch_norm_with_update]
        calls += [_call(aten.batch_norm.default, *rest, False), _call(aten._batch_norm_impl_index.default, *rest, False)]
        calls += [_call(aten.instance_norm.default, picture, row, row, row, row, training, 0.1, 1e-5, False)]
    calls += [_call(aten._batch_norm_with_update.default, x, row, row, row, row, 0.1, 1e-5),
              _call(aten._batch_norm_with_update_functional.default, x, row, row, row, row, 0.1, 1e-5),
              _call(aten._batch_norm_no_update.default, x, row, row, row, row, 0.1, 1e-5),
              _call(aten._native_batch_norm_legit_no_training.default, x, row, row, row, row, 0.1, 1e-5),
              _call(aten._native_batch_norm_legit.no_stats, x, row, row, True, 0.1, 1e-5),
              _call(aten.batch_norm_update_stats.default, x, row, row, 0.1),
              _call(aten.embedding_renorm_.default, _numbers(4, 3), torch.tensor([0, 2]), 0.5, 2.0)]
    return calls


def _indices() -> list[Any]:
    x, pair = _numbers(4, 3), [_numbers(2), _numbers(3)]
    one, two, mask = torch.tensor(1), torch.tensor([0, 2]), torch.tensor([True, False, True, True])
    indices = [0, -1, slice(None), slice(1, 3), slice(None, None, 2), None, ..., True, False, one, two, mask, two.to(torch.uint8) > 0,
               x > 5, [0, 2], [True, False, True, True], (0,), (0, 1), (0, slice(None)), (slice(1, 2), None), (..., 0), (None, 0),
               (..., None), (0, two), (two, two), (slice(None), two), (two, slice(None)), (mask, 0), (mask,), (0, [0, 1]),
               ([0, 1], [1, 2]), ([0, 1],), (), (slice(None), [True, False, True]), (True,), (0, ...), (0, one), (one, one), (one,)]
    calls = [_call(operator.getitem, given, index) for given in (x, turned(x)) for index in indices if not _too_long(given, index)]
    calls += [_call(operator.getitem, kind(pair), index) for kind in (tuple, list) for index in (0, 1, -1, slice(0, 1), slice(None))]
    calls += [_call(operator.getitem, {"a": pair[0], "b": pair[1]}, "b")]
    calls += [_call(aten.index.Tensor, x, [given]) for given in (two, mask, one, None)]
    return calls


def _drawn() -> list[Any]:
    prims, seeds = torch.ops.prims, torch.arange(3)
    return [
        _call(prims.inductor_seed.default, torch.device("cpu")),
        _call(prims.inductor_seeds.default, 3, torch.device("cpu")),
        _call(prims.inductor_lookup_seed.default, seeds, 1),
        *[_call(prims.inductor_random.default, [4], seeds[0], mode) for mode in ("rand", "randn")],
        _call(prims.inductor_randint.default, 0, 9, [4], seeds[0]),
    ]


def _too_long(given: torch.Tensor, index: Any) -> bool:
    try:
        given[index]
    except IndexError:
        return True
    return False


GROUP = "0"  # the name of the only group


def start_group() -> None:
    """Creates the group of one rank, over Gloo. Its threads do not survive a fork: call it in the
    process that runs collectives."""
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    assert dist.group.WORLD.group_name == GROUP, dist.group.WORLD.group_name


def _add_collectives(book: CallBook) -> None:
    funcol, x = torch.ops._c10d_functional, _numbers(4)
    for call in (
        _call(funcol.all_reduce.default, x, "sum", GROUP),
        _call(funcol.all_reduce_.default, x, "sum", GROUP),
        _call(funcol.all_reduce_coalesced.default, [x, x], "sum", GROUP),
        _call(funcol.all_reduce_coalesced_.default, [x, x], "sum", GROUP),
        _call(funcol.all_gather_into_tensor.default, x, 1, GROUP),
        _call(funcol.all_gather_into_tensor_out.default, x, 1, GROUP, out=torch.zeros(4)),
        _call(funcol.all_gather_into_tensor_coalesced.default, [x, x], 1, GROUP),
        _call(funcol.reduce_scatter_tensor.default, x, "sum", 1, GROUP),
        _call(funcol.reduce_scatter_tensor_coalesced.default, [x, x], "sum", 1, GROUP),
        _call(funcol.all_to_all_single.default, x, [4], [4], GROUP),
        _call(funcol.broadcast.default, x, 0, GROUP),
        _call(funcol.broadcast_.default, x, 0, GROUP),
        _call(funcol.wait_tensor.default, x),
    ):
        book.add(*call)
