"""Node values (fake tensors, symbols, meshes, groups) as messages of the schema, and back."""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import torch
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.immutable_collections import immutable_dict, immutable_list

from fxopt import form
from fxopt.form import FormError, Json
from fxopt.objects import find, type_name
from fxopt.symbols import SymbolReader, SymbolWriter

FAKE_SCRIPT_OBJECT = "torch._library.fake_class_registry.FakeScriptObject"
_PARAMETER = "torch.nn.parameter.Parameter"
_PLAIN_TENSORS = frozenset({"Tensor", "Parameter", "Buffer", "FakeTensor"})
# Attribute of a fake tensor from a file that does not record its storage: it may share one.
_UNKNOWN_STORAGE = "_fxopt_unknown_storage"


def is_plain_tensor(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor is not of a subclass that wraps tensors, such as DTensor."""
    return type(tensor).__module__.startswith("torch") and type(tensor).__name__ in _PLAIN_TENSORS


def is_symbolic(value: int | torch.SymInt) -> bool:
    """Returns whether a size depends on symbols. A SymInt may be a number that a guard has
    fixed."""
    return isinstance(value, torch.SymInt) and not value.node.expr.is_Integer


def tensors_of(value: object) -> Iterator[torch.Tensor]:
    """Yields the tensors of a node's value, including those in lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_of(item)


def mode_of_record(values: Iterable[object]) -> FakeTensorMode | None:
    """Returns the fake mode in which most of these values were recorded. None if no value has a
    mode, or if each of several has a different one.

    Shared storages are known only within one fake mode. make_fx in real mode records each tensor,
    views included, in its own mode on its own storage.
    """
    tensors = (tensor for value in values for tensor in tensors_of(value))
    fake = (tensor for tensor in tensors if isinstance(tensor, FakeTensor) and not has_unknown_storage(tensor))
    modes = collections.Counter(tensor.fake_mode for tensor in fake)
    if not modes:
        return None
    ((mode, count),) = modes.most_common(1)
    return None if count == 1 and len(modes) > 1 else mode


def has_unknown_storage(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor was read from a file that does not record its storage."""
    return getattr(tensor, _UNKNOWN_STORAGE, False)


def was_emptied(tensor: torch.Tensor) -> bool:
    """Returns whether the graph frees the tensor's memory (resize_storage_bytes_, as FSDP does), so
    that tracing did too."""
    storage = tensor.untyped_storage().nbytes()
    return type(storage) is int and storage == 0 and (tensor._has_symbolic_sizes_strides or tensor.numel() > 0)


def find_group(name: str) -> object | None:
    """Returns the process group that collectives find under that name. None if this process has no
    such group or does not know its ranks."""
    dist = torch.distributed
    if not dist.is_available() or not dist.is_initialized():
        return None
    try:
        group = dist.distributed_c10d._resolve_process_group(name)
    except RuntimeError:
        return None
    return group if group in dist.distributed_c10d._world.pg_group_ranks else None


def group_name(value: object) -> str | None:
    """Returns the name of a process group; None for anything else."""
    name = getattr(value, "group_name", None)
    return name if isinstance(name, str) and "ProcessGroup" in type(value).__name__ else None


class ValueWriter:
    """Writes values as messages, and collects the storages, symbols and meshes they refer to."""

    def __init__(self, *, is_lenient: bool = False) -> None:
        self.symbols = SymbolWriter()
        # Storages of its tensors are written; see mode_of_record().
        self.mode: FakeTensorMode | None = None
        self.storages: list[Json] = []
        self.meshes: list[tuple[object, Json]] = []
        # By id. Kept alive, because a new storage could get the address of a freed one.
        self.held: dict[int, torch.UntypedStorage] = {}
        self.next_storage = 0
        self._is_lenient = is_lenient
        self._storage_ids: dict[int, int] = {}
        self._shapes: dict[tuple[Sequence[int], Sequence[int]], Json] = {}

    def _dim(self, value: int | torch.SymInt) -> int | str:
        """Returns a number, or the text of an expression."""
        if not isinstance(value, torch.SymInt):
            return int(value)
        text = self.symbols.of(value)
        return text if is_symbolic(value) else int(value.node.expr)

    def _has_known_storage(self, tensor: torch.Tensor) -> bool:
        if not isinstance(tensor, FakeTensor):
            return True
        return tensor.fake_mode is self.mode and not has_unknown_storage(tensor) and not was_emptied(tensor)

    def _storage(self, tensor: torch.Tensor) -> int:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._storage_ids:
            self._storage_ids[key] = self.next_storage
            self.held[self.next_storage] = storage
            size = self._dim(storage.nbytes())
            self.storages.append({"id": self.next_storage, "bytes": form.number(size), "device": str(tensor.device)})
            self.next_storage += 1
        return self._storage_ids[key]

    def continue_from(self, records: Sequence[Json], held: Mapping[int, torch.UntypedStorage], next_storage: int) -> None:
        """Starts with the storages and ids of the file that the values were read from."""
        self.storages = list(records)
        self.held = dict(held)
        self._storage_ids = {storage._cdata: identity for identity, storage in held.items()}
        self.next_storage = next_storage

    def storage_records(self) -> list[Json]:
        """Returns the table of storages, once everything is written.

        Storages from a file already have their sizes as text. The symbols and spelling of that text
        are recorded here.
        """
        for position, record in enumerate(self.storages):
            identity = int(record.get("id", position))
            if "expr" in record.get("bytes", {}) and identity in self.held:
                self._dim(self.held[identity].nbytes())
        return self.storages

    def tensor(self, tensor: torch.Tensor) -> Json:
        """Returns message Tensor. Raises FormError for a tensor subclass and, unless lenient, for a
        tensor without strides or with quantization."""
        if not is_plain_tensor(tensor):
            raise FormError(f"a tensor of type {type_name(tensor)}: trace the plain tensors inside it")
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            raise FormError("a tensor inside vmap or grad: decompose the operator first (run_decompositions)")
        if tensor.is_nested or (not self._is_lenient and (tensor.layout != torch.strided or tensor.is_quantized)):
            kind = "nested" if tensor.is_nested else "quantized" if tensor.is_quantized else f"layout {tensor.layout}"
            raise FormError(f"a tensor ({kind}) cannot be written: a file can hold only strided, unquantized tensors")
        result: Json = {"dtype": dtype_name(tensor.dtype)}
        layout = tensor.layout
        strides = tensor.stride() if layout == torch.strided else ()
        if tensor._has_symbolic_sizes_strides:
            result.update(self._shape(tensor.shape, strides))
        else:
            result.update(self._fixed_shape(tensor.shape, strides))
        if layout == torch.strided:
            offset = self._dim(tensor.storage_offset())
            if offset != 0:
                result["offset"] = form.number(offset)
            if self._has_known_storage(tensor):
                result["storage"] = self._storage(tensor)
        else:
            result["layout"] = form.layout(str(layout).removeprefix("torch."))
        result["device"] = str(tensor.device)
        if tensor.requires_grad:
            result["requires_grad"] = True
        if tensor.is_conj():
            result["conjugate"] = True
        if tensor.is_neg():
            result["negative"] = True
        if isinstance(tensor, torch.nn.Parameter):
            result["subclass"] = _PARAMETER
        return result

    def _shape(self, sizes: Sequence[int | torch.SymInt], strides: Sequence[int | torch.SymInt]) -> Json:
        """Returns the sizes and strides of a tensor; no strides if it has none."""
        return form.dims("sizes", list(map(self._dim, sizes))) | form.dims("strides", list(map(self._dim, strides)))

    def _fixed_shape(self, sizes: Sequence[int], strides: Sequence[int]) -> Json:
        """Like _shape(), without symbols; cached, because many tensors share it."""
        if (sizes, strides) not in self._shapes:
            self._shapes[sizes, strides] = self._shape(sizes, strides)
        return self._shapes[sizes, strides]

    def value(self, value: object) -> Json:
        """Returns message Value. Raises FormError for an object that no message represents."""
        if value is None:
            return {"none": True}
        if isinstance(value, torch.Tensor):
            try:
                return {"tensor": self.tensor(value)}
            except FormError:
                if self._is_lenient:
                    return {"opaque": {"type": type_name(value)}}
                raise
        for symbolic in (torch.SymInt, torch.SymFloat, torch.SymBool):
            if isinstance(value, symbolic):
                return {"symbolic": {"type": form.SYMBOL_TYPES[symbolic.__name__], "expr": self.symbols.of(value)}}
        if type(value) in (list, tuple, torch.Size, immutable_list):
            items = [self.value(item) for item in value]
            return {"list" if isinstance(value, list) else "tuple": {"items": items} if items else {}}
        if type(value) in (dict, immutable_dict) and all(isinstance(key, str) for key in value):
            items = {"keys": list(value), "values": [self.value(item) for item in value.values()]}
            return {"dict": items if value else {}}
        if type(value) in (bool, int, float, str):
            return {"scalar": form.plain(value)}
        return {"opaque": self.opaque(value)}

    def opaque(self, value: object) -> Json:
        """Returns message OpaqueValue: a mesh, a group or a generator; if lenient, any object by
        its type."""
        wrapped = getattr(value, "real_obj", value)  # unwraps a FakeScriptObject
        kind = {} if wrapped is value else {"type": type_name(value)}
        if (mesh := self.mesh(wrapped)) is not None:
            return {"type": "DeviceMesh", "mesh": mesh} | kind
        if (group := group_name(wrapped)) is not None:
            return {"type": "ProcessGroup", "group": group} | kind
        if isinstance(value, torch.Generator):
            return {"type": "torch.Generator", "text": str(value.device)}
        if self._is_lenient:
            return {"type": type_name(wrapped)}
        raise FormError(f"a value of type {type_name(wrapped)} cannot be written")

    def mesh(self, value: object) -> str | None:
        """Returns the name of a device mesh and adds it to the table; None for anything else."""
        if type(value).__name__ != "DeviceMesh" or not hasattr(value, "mesh_dim_names"):
            return None
        for known, record in self.meshes:
            if known is value or known == value:
                return str(record["name"])
        grid = value.mesh
        groups = getattr(value, "_dim_group_names", None) or [group_name(group) for group in value.get_all_groups()]
        record = {
            "name": f"mesh{len(self.meshes)}",
            "device_type": value.device_type,
            "shape": [int(size) for size in grid.shape],
            "dim_names": list(value.mesh_dim_names or ()),
            "ranks": [int(rank) for rank in grid.flatten().tolist()],
            "coordinate": [int(i) for i in value.get_coordinate() or ()],
            "groups": [str(group) for group in groups],
        }
        self.meshes.append((value, {key: item for key, item in record.items() if item}))
        return str(record["name"])


def process_groups(meshes: Sequence[tuple[object, Json]], used: Mapping[str, object]) -> tuple[list[Json], Json]:
    """Returns this process's groups, each with the mesh dimensions it serves, and the rank.

    used: the groups that the graph uses, by the names that it uses. A group may be registered under
        several names.
    """
    dist = torch.distributed
    if not dist.is_available() or not dist.is_initialized():
        return [], {}
    named = {str(name): group for group, name in dist.distributed_c10d._world.pg_names.items()}
    for _, mesh in meshes:
        named |= {str(uid): group for uid in mesh.get("groups", ()) if (group := find_group(uid)) is not None}
    groups = []
    for name, group in (named | dict(used)).items():
        record = {
            "uid": name,
            "ranks": [int(rank) for rank in dist.get_process_group_ranks(group)],
            "description": group.group_desc,
            "backend": dist.get_backend(group),
        }
        for _, mesh in meshes:
            served = [dim for dim, uid in enumerate(mesh.get("groups", ())) if uid == record["uid"]]
            if served and "mesh" not in record:
                names = mesh.get("dim_names", ())
                record["mesh"] = mesh["name"]
                record["mesh_dims"] = [names[dim] if dim < len(names) else str(dim) for dim in served]
        groups.append({key: value for key, value in record.items() if value})
    return groups, {"rank": dist.get_rank(), "world_size": dist.get_world_size()}


class ValueReader:
    """Reads a file's values as fake tensors of one FakeTensorMode that share storages as
    recorded."""

    def __init__(self, module: Json, symbols: SymbolReader, mode: FakeTensorMode) -> None:
        self.symbols = symbols
        self.mode = mode
        self._rank = int(module.get("rank", {}).get("rank", 0))
        self._meshes: dict[str, object] = {}
        self._mesh_records = {record["name"]: record for record in module.get("meshes", ())}
        self._records = {}
        for position, record in enumerate(module.get("storages", ())):
            self._records[int(record.get("id", position))] = record
        # A caller may enter existing ones first.
        self.storages: dict[int, torch.UntypedStorage] = {}
        self.held: dict[int, torch.UntypedStorage] = {}  # storages of constants, with data

    def _record(self, identity: int) -> Json:
        if identity not in self._records:
            raise FormError(f"no storage {identity}")
        return self._records[identity]

    def _storage(self, identity: int) -> torch.UntypedStorage:
        if identity not in self.storages:
            size = self.symbols.number(self._record(identity).get("bytes", {}))
            if isinstance(size, int):
                self.storages[identity] = torch.UntypedStorage(size, device="meta")
            else:
                self.storages[identity] = torch.empty(size, dtype=torch.uint8, device="meta").untyped_storage()
        return self.storages[identity]

    def _dims(self, message: Json, field: str) -> list[int | torch.SymInt]:
        result: list[int | torch.SymInt] = [int(value) for value in message.get(field, ())]
        for entry in message.get("symbolic_" + field, ()):
            result[entry.get("index", 0)] = self.symbols.size(entry["expr"])
        return result

    def tensor(self, message: Json) -> torch.Tensor:
        """Returns the fake tensor of message Tensor. Raises FormError for layouts without
        strides."""
        result = FakeTensor(self.mode, self._plain(message), torch.device(message["device"]))
        if "storage" not in message:
            setattr(result, _UNKNOWN_STORAGE, True)
        if message.get("requires_grad"):
            result.requires_grad_()
        if message.get("subclass") == _PARAMETER:
            result._is_param = True
        return result

    def _plain(self, message: Json) -> torch.Tensor:
        """Returns message Tensor as a tensor on the meta device."""
        if message.get("layout", "LAYOUT_STRIDED") != "LAYOUT_STRIDED":
            raise FormError(f"a tensor with layout {message['layout']} cannot be read back")
        dtype = dtype_of(message["dtype"])
        sizes = self._dims(message, "sizes")
        strides = self._dims(message, "strides") if "strides" in message else _contiguous(sizes)
        offset = self.symbols.number(message.get("offset", {}))
        is_symbolic = any(isinstance(number, torch.SymInt) for number in (*sizes, *strides, offset))
        with torch.no_grad(), self.symbols.learns_nothing() if is_symbolic else contextlib.nullcontext():
            if "storage" in message:
                plain = torch.empty(0, dtype=dtype, device="meta")
                plain.set_(self._storage(int(message["storage"])), offset, sizes, strides)
            else:
                plain = _on_own_storage(sizes, strides, offset, dtype)
            return _seen_through(plain, message)

    def constant(self, message: Json, data: torch.Tensor | None) -> torch.Tensor:
        """Returns the tensor of message Tensor, on the CPU if its device is missing.

        data: the elements in row-major order. None gives a fake tensor, or one on the meta device.

        Constants that share a storage in the file share one here.
        """
        if data is not None:
            result = self._with_data(message, data)
        elif message["device"] == "meta":
            result = self._plain(message)
        else:
            result = self.tensor(message).detach()
        if message.get("subclass") == _PARAMETER:
            result = torch.nn.Parameter(result, requires_grad=bool(message.get("requires_grad")))
        elif message.get("requires_grad"):
            result.requires_grad_()
        if "storage" not in message:
            setattr(result, _UNKNOWN_STORAGE, True)
        return result

    def _with_data(self, message: Json, data: torch.Tensor) -> torch.Tensor:
        sizes, strides = ([int(size) for size in message.get(field, ())] for field in ("sizes", "strides"))
        plain = torch.empty(0, dtype=dtype_of(message["dtype"]), device=_present(message["device"]))
        identity = int(message["storage"])
        if identity not in self.held:
            count = int(self._record(identity).get("bytes", {}).get("value", 0))
            self.held[identity] = torch.zeros(count, dtype=torch.uint8, device=plain.device).untyped_storage()
        with torch.no_grad():
            plain.set_(self.held[identity], int(message.get("offset", {}).get("value", 0)), sizes, strides)
            result = once = _seen_through(plain, message)
            data = data.view(plain.dtype).reshape(sizes)
            for dim, stride in enumerate(strides):
                if stride == 0 and sizes[dim] > 1:  # its elements are one element
                    once, data = once.narrow(dim, 0, 1), data.narrow(dim, 0, 1)
            once.copy_(data)
        return result

    def value(self, message: Json, graph: Callable[[str], object], scalar: Callable[[Json], object]) -> object:
        """Reads message Value. `graph` finds subgraphs by name, `scalar` reads plain arguments."""

        def inner(item: Json) -> object:
            return self.value(item, graph, scalar)

        match message:
            case {"none": _}:
                return None
            case {"tensor": tensor}:
                return self.tensor(tensor)
            case {"tuple": items}:
                return tuple(inner(item) for item in items.get("items", ()))
            case {"list": items}:
                return [inner(item) for item in items.get("items", ())]
            case {"dict": items}:
                return dict(zip(items.get("keys", ()), map(inner, items.get("values", ()))))
            case {"symbolic": symbolic}:
                return self.symbols.size(symbolic["expr"], symbolic.get("type", "SYMBOL_TYPE_INT"))
            case {"scalar": plain}:
                return scalar(plain)
            case {"graph": name}:
                return graph(name)
            case {"opaque": opaque}:
                return self._opaque(opaque)
        raise FormError(f"a value of unknown kind: {', '.join(message)}")

    def _opaque(self, message: Json) -> object:
        if "mesh" in message:
            result = self.mesh(message["mesh"])
        elif message.get("type") == "torch.Generator":
            return _generator(message.get("text", "cpu"))
        else:
            raise FormError(f"a value of type {message.get('type')} cannot be read back")
        if message.get("type") != FAKE_SCRIPT_OBJECT:
            return result
        from torch._library.opaque_object import get_opaque_type_name

        return find(FAKE_SCRIPT_OBJECT)(result, get_opaque_type_name(type(result)), result)

    def mesh(self, name: str) -> object:
        """Returns the device mesh of that name, without communicators."""
        if name not in self._meshes:
            from torch.distributed.device_mesh import DeviceMesh

            record = self._mesh_records[name]
            grid = torch.tensor([int(rank) for rank in record.get("ranks", ())], dtype=torch.int, device="cpu")
            told: dict[str, object] = {"mesh_dim_names": tuple(record["dim_names"]) if "dim_names" in record else None}
            told |= {"_init_backend": False, "_rank": self._rank}
            known = inspect.signature(DeviceMesh.__init__).parameters
            mesh = DeviceMesh(
                record["device_type"],
                grid.reshape([int(size) for size in record["shape"]]),
                **{key: value for key, value in told.items() if key in known},
            )
            mesh._dim_group_names = list(record.get("groups", ()))
            self._meshes[name] = mesh
        return self._meshes[name]


def _contiguous(sizes: list[int | torch.SymInt]) -> list[int | torch.SymInt]:
    """Returns the strides of a row-major tensor of these sizes."""
    strides: list[int | torch.SymInt] = []
    step: int | torch.SymInt = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step = step * (max(size, 1) if isinstance(size, int) else size)
    return strides


def _on_own_storage(
    sizes: list[int | torch.SymInt], strides: list[int | torch.SymInt], offset: int | torch.SymInt, dtype: torch.dtype
) -> torch.Tensor:
    """Returns a tensor on the meta device that begins at element `offset` of a storage of the
    needed length."""
    plain = torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
    if isinstance(offset, int) and offset == 0:
        return plain
    count = offset * dtype.itemsize + plain.untyped_storage().nbytes()
    storage = torch.empty(count, dtype=torch.uint8, device="meta").untyped_storage()
    return torch.empty(0, dtype=dtype, device="meta").set_(storage, offset, sizes, strides)


def _seen_through(tensor: torch.Tensor, message: Json) -> torch.Tensor:
    """Returns the tensor with the conjugate and negative bits of message Tensor."""
    result = torch._conj(tensor) if message.get("conjugate") else tensor
    return torch._neg_view(result) if message.get("negative") else result


def _present(device: str) -> torch.device:
    """Returns that device, or the CPU for a missing GPU."""
    found = torch.device(device)
    return torch.device("cpu") if found.type == "cuda" and not torch.cuda.is_available() else found


class AbsentGenerator(torch.Generator):
    """Stands in for the generator of a device that this machine lacks. Only its `device` is the
    same."""

    def __new__(cls, device: str | torch.device) -> AbsentGenerator:
        result = super().__new__(cls)
        result._device = torch.device(device)
        return result

    @property
    def device(self) -> torch.device:
        return self._device

    def clone_state(self) -> torch.Generator:
        return AbsentGenerator(self._device)


def _generator(device: str) -> torch.Generator:
    """Returns a generator of that device, or an AbsentGenerator."""
    try:
        return torch.Generator(device)
    except RuntimeError:
        return AbsentGenerator(device)


@functools.cache
def dtype_name(dtype: torch.dtype) -> str:
    """Returns the schema's enumerator. Raises FormError if it has none."""
    return form.dtype(str(dtype).removeprefix("torch."))


def dtype_of(name: str) -> torch.dtype:
    """Returns the dtype of a schema's enumerator. Raises FormError if this version of torch has
    none."""
    found = getattr(torch, name.removeprefix("DTYPE_").lower(), None)
    if not isinstance(found, torch.dtype):
        raise FormError(f"torch {torch.__version__} has no dtype {name}")
    return found
