"""Names and addresses of namespaces: one block a run, and none that the machine uses already."""

from __future__ import annotations

import pytest

from argus_sched.harness.blocks import BLOCKS, RESERVED, SLOTS, Block, block_of, in_order, is_routed

LONGEST_DEVICE_NAME = 15  # IFNAMSIZ without its end


def test_a_block_has_an_address_for_the_machine_and_one_for_each_slot() -> None:
    block = Block(17)
    addresses = [block.host, *(block.slot(place) for place in range(SLOTS))]
    assert addresses[:3] == ["198.18.17.1", "198.18.17.2", "198.18.17.3"]
    assert len(set(addresses)) == SLOTS + 1
    assert addresses[-1] == "198.18.17.254"


def test_no_two_blocks_share_an_address_and_all_are_reserved_for_tests() -> None:
    assert len({block.network_address for block in BLOCKS}) == len(BLOCKS) == 512
    assert all(block.subnet_of(RESERVED) for block in BLOCKS)


def test_every_block_is_tried_once_beginning_where_the_run_says() -> None:
    tried = [block.number for block in in_order("2a1")]
    assert tried[0] == 0x2A1 % 512
    assert sorted(tried) == list(range(512))
    assert next(in_order("2a2")).number != tried[0]


def test_a_name_fits_a_device_and_leads_back_to_its_block() -> None:
    for number in (0, 17, 511):
        name = Block(number).name(f"w{SLOTS}")
        assert len(name) <= LONGEST_DEVICE_NAME
        assert block_of(name) == Block(number)


@pytest.mark.parametrize("name", ["lo", "eth0", "argus-w1", "argus-512-w1", "argus-17-", "my-argus-17-w1"])
def test_what_is_not_ours_belongs_to_no_block(name: str) -> None:
    assert block_of(name) is None


@pytest.mark.parametrize(
    ("destination", "taken"),
    [
        ("default", False),
        ("0.0.0.0/1", False),
        ("10.0.0.0/8", False),
        ("198.18.18.0/24", False),
        ("198.18.17.2", True),
        ("198.18.0.0/16", True),
        ("198.18.17.128/25", True),
    ],
)
def test_a_route_into_a_block_takes_it_unless_it_leads_everywhere(destination: str, taken: bool) -> None:
    assert is_routed(Block(17), ["default", destination]) is taken
