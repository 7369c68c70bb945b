"""Sends and receives as steps of random programs. Each function takes a tensor, the other rank and
a tag. No step writes a buffer before its send is complete, or reads one before its receive is:
every send and receive is waited for first."""

from __future__ import annotations

import torch
from torch import Tensor

from differential_parts.tape import Tape, has_dims, is_float

GROUP = "0"
PEERS = (1, 1, 1, 2)
TAGS = (0, 0, 0, 1)


def _c10d() -> object:
    return torch.ops._c10d_functional


def begin_send(value: Tensor, peer: int, tag: int = 0) -> Tensor:
    return _c10d().isend(value, peer, tag, GROUP)


def begin_receive(place: Tensor, peer: int, tag: int = 0) -> Tensor:
    return _c10d().irecv(place, peer, tag, GROUP)


def wait(value: Tensor) -> Tensor:
    return _c10d().wait_tensor(value)


def send(value: Tensor, peer: int, tag: int = 0) -> None:
    wait(begin_send(value, peer, tag))


def receive(place: Tensor, peer: int, tag: int = 0) -> Tensor:
    return wait(begin_receive(place, peer, tag))


def exchange(sent: Tensor, place: Tensor, peer: int, tag: int = 0) -> Tensor:
    """A send and a receive in one call."""
    pending = _c10d().batch_p2p_ops(["isend", "irecv"], [peer, peer], [tag, tag], [sent, place], GROUP)
    return _c10d().wait_tensors(pending)[1]


def _sent(a: Tensor, peer: int, tag: int) -> None:
    send(a.contiguous(), peer, tag)


def _part_sent(a: Tensor, peer: int, tag: int) -> None:
    send(a.clone(memory_format=torch.contiguous_format)[1:], peer, tag)


def _sent_twice(a: Tensor, peer: int, tag: int) -> None:
    a = a.contiguous()
    send(a, peer, tag)
    send(a, peer, tag)


def _sent_twice_at_once(a: Tensor, peer: int, tag: int) -> None:
    a = a.contiguous()
    pending = [begin_send(a, peer, tag), begin_send(a, peer, tag)]
    wait(pending[1])
    wait(pending[0])


def _equal_values_sent(a: Tensor, peer: int, tag: int) -> Tensor:
    """Two calls that compute one value, each sent."""
    first, second = a.sin().contiguous(), a.sin().contiguous()
    pending = begin_send(first, peer, tag), begin_send(second, peer, tag)
    for sent in pending:
        wait(sent)
    return first + second


def _equal_views_sent(a: Tensor, peer: int, tag: int) -> None:
    copy = a.clone(memory_format=torch.contiguous_format)
    send(copy.view(-1), peer, tag)
    send(copy.view(-1), peer, tag)


def _alternating(a: Tensor, peer: int, tag: int) -> None:
    """Two values in turn: merging the equal ones would leave an order that was not there."""
    one, other = a * 2.0, a + 1.0
    for value in (one, other, one):
        send(value.contiguous(), peer, tag)


def _to_two(a: Tensor, peer: int, tag: int) -> None:
    a = a.contiguous()
    pending = [begin_send(a, rank, tag) for rank in (1, 2)]
    for sent in pending:
        wait(sent)


def _computed_between(a: Tensor, peer: int, tag: int) -> Tensor:
    sent = begin_send(a.contiguous(), peer, tag)
    other = a.sin()
    wait(sent)
    return other


def _written_when_sent(a: Tensor, peer: int, tag: int) -> Tensor:
    """One buffer for two messages."""
    buffer = a.clone(memory_format=torch.contiguous_format)
    send(buffer, peer, tag)
    buffer.add_(1.0)
    send(buffer, peer, tag)
    return buffer


def _part_written_when_sent(a: Tensor, peer: int, tag: int) -> Tensor:
    buffer = a.clone(memory_format=torch.contiguous_format)
    send(buffer.view(-1), peer, tag)
    buffer[:1].mul_(2.0)
    send(buffer.view(-1), peer, tag)
    return buffer * 2.0


def _input_written_when_sent(a: Tensor, peer: int, tag: int) -> None:
    send(a.contiguous(), peer, tag)
    a.mul_(0.5)


def _received(a: Tensor, peer: int, tag: int) -> Tensor:
    return receive(torch.empty(a.shape), peer, tag)


def _received_into(a: Tensor, peer: int, tag: int) -> None:
    """Receives into the tensor; its new content is read by the tensor's own name."""
    if a.is_contiguous():
        receive(a, peer, tag)


def _received_into_part(a: Tensor, peer: int, tag: int) -> Tensor:
    buffer = torch.zeros(a.shape)
    receive(buffer[1:], peer, tag)
    return buffer + a


def _received_twice(a: Tensor, peer: int, tag: int) -> Tensor:
    """Two receives that differ only in their place, waited for in another order."""
    pending = begin_receive(torch.empty(a.shape), peer, tag), begin_receive(torch.empty(a.shape), peer, tag)
    last, first = wait(pending[1]), wait(pending[0])
    return first * 2.0 - last


def _received_over(a: Tensor, peer: int, tag: int) -> Tensor:
    """One place for two messages."""
    buffer = torch.empty(a.shape)
    first = receive(buffer, peer, tag) * 2.0
    return first - receive(buffer, peer, tag)


def _received_over_and_read_by_name(a: Tensor, peer: int, tag: int) -> Tensor:
    buffer = torch.zeros(a.shape)
    before = buffer + 1.0
    receive(buffer, peer, tag)
    return before - (buffer + 1.0)


def _view_of_received(a: Tensor, peer: int, tag: int) -> Tensor:
    """A view that is made before the wait."""
    pending = begin_receive(torch.empty(a.shape), peer, tag)
    flat = pending.view(-1)
    wait(pending)
    return flat * 2.0


def _sent_on(a: Tensor, peer: int, tag: int) -> Tensor:
    got = receive(torch.empty(a.shape), peer, tag)
    send(got, peer, tag)
    return got.sin()


def _exchanged(a: Tensor, peer: int, tag: int) -> Tensor:
    return exchange(a.contiguous(), torch.empty(a.shape), peer, tag)


def _exchanged_by_name(a: Tensor, peer: int, tag: int) -> Tensor:
    place = torch.zeros(a.shape)
    exchange(a.contiguous(), place, peer, tag)
    return place * 2.0


def _exchanged_in_turn(a: Tensor, peer: int, tag: int) -> Tensor:
    sent = begin_send(a.contiguous(), peer, tag)
    got = receive(torch.empty(a.shape), peer, tag)
    wait(sent)
    return got + a


def _sent_in_one_call(a: Tensor, peer: int, tag: int) -> None:
    a = a.contiguous()
    _c10d().wait_tensors(_c10d().batch_p2p_ops(["isend", "isend"], [peer, peer], [tag, tag], [a, a], GROUP))


STEPS = (
    _sent, _sent, _part_sent, _sent_twice, _sent_twice_at_once, _equal_values_sent, _equal_views_sent, _alternating, _to_two,
    _computed_between, _written_when_sent, _part_written_when_sent, _input_written_when_sent, _received, _received_into,
    _received_into, _received_into_part, _received_twice, _received_over, _received_over_and_read_by_name, _view_of_received,
    _sent_on, _exchanged, _exchanged_by_name, _exchanged_in_turn, _sent_in_one_call,
)  # fmt: skip


def step(tape: Tape) -> None:
    place, first = tape.pick(lambda value: is_float(value) and has_dims(1)(value) and value.numel() > 0), len(tape.pool)
    if place is None:
        return
    dice = tape.dice
    function, peer, tag = dice.choice(STEPS), dice.choice(PEERS), dice.choice(TAGS)
    tape.do(lambda a: function(a, peer, tag), place)
    tape.want(*range(first, len(tape.pool)))
    if function in (_input_written_when_sent, _received_into):
        tape.written.append(place)
