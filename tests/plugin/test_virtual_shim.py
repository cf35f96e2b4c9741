"""The shim by itself, through its C interface: what it adds to the CPU plugin's PJRT table."""

import ctypes

import pytest
from vllm_torchtpu.virtual import build

POINTER = ctypes.sizeof(ctypes.c_void_p)
ENTRIES = 40
ERROR_DESTROY, ERROR_MESSAGE, ERROR_CODE = 0, 1, 2
TPU_TOPOLOGY, CHIP_COUNT = 16, 10
UNIMPLEMENTED = 12


class ChipCount(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("topology", ctypes.c_void_p), ("count", ctypes.c_int32)]


class ErrorArguments(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("extensions", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("text_or_code", ctypes.c_void_p),
        ("text_size", ctypes.c_size_t),
    ]


@pytest.fixture(scope="module")
def api(build_directory) -> int:
    """The address of the shim's table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHTPU_CACHE_DIR", str(build_directory))
        library = ctypes.CDLL(str(build.build()))
    library.GetPjrtApi.restype = ctypes.c_void_p
    return library.GetPjrtApi()


def call(address: int, arguments: ctypes.Structure) -> int | None:
    """Calls the function whose address lies at `address`; returns the PJRT error, if any."""
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p).from_address(address)
    return function(ctypes.addressof(arguments))


def topology_entry(api: int, slot: int) -> int:
    """The address of a function pointer in the TpuTopology extension."""
    extension = ctypes.c_void_p.from_address(api + POINTER).value
    while extension:
        if ctypes.c_int.from_address(extension + POINTER).value == TPU_TOPOLOGY:
            return extension + POINTER * (3 + slot)
        extension = ctypes.c_void_p.from_address(extension + 2 * POINTER).value
    raise AssertionError("no TpuTopology extension")


def test_the_topology_has_one_chip(api):
    arguments = ChipCount(ctypes.sizeof(ChipCount), None, -1)
    assert call(topology_entry(api, CHIP_COUNT), arguments) is None
    assert arguments.count == 1


def test_every_other_question_about_the_topology_gets_an_error(api):
    for slot in set(range(32)) - {CHIP_COUNT}:
        error = call(topology_entry(api, slot), ChipCount(ctypes.sizeof(ChipCount), None, -1))
        assert error
        arguments = ErrorArguments(ctypes.sizeof(ErrorArguments), None, error, None, 0)
        call(api + ENTRIES + POINTER * ERROR_MESSAGE, arguments)
        text = ctypes.string_at(arguments.text_or_code, arguments.text_size).decode()
        assert text == "virtual TPU: it has no topology beyond its one chip"
        arguments.size = 28
        call(api + ENTRIES + POINTER * ERROR_CODE, arguments)
        assert arguments.text_or_code & 0xFFFFFFFF == UNIMPLEMENTED
        arguments.size = 24
        call(api + ENTRIES + POINTER * ERROR_DESTROY, arguments)
