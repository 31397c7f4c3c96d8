import math

import pytest

from tracerelay_jax import InputError, TraceRelayConfig


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"trace_widths": (64, 18, 64)}, r"trace_widths=18: must be divisible by heads=4"),
        ({"trace_widths": (64, 4, 64)}, r"trace_widths=4: position='rope' needs an even width"),
        ({"stride": 7}, r"stride=7: must exceed right_window=7"),
        ({"stride": (8, 8, 7)}, r"stride=7: must exceed right_window=7"),
        ({"left_window": (15, 15)}, r"left_window=\(15, 15\): must be one number or 3"),
        ({"left_window": -1}, r"left_window=-1: must be an integer of at least 0"),
        ({"writer_widths": (64,)}, r"writer_widths=\(64,\): must be empty or hold 3"),
        ({"alpha": math.inf}, r"alpha=inf: must be a positive number"),
        ({"dtype": "float16"}, r"dtype='float16': must be one of 'float32', 'bfloat16'"),
        ({"adapter_init": "zeros"}, r"adapter_init='zeros': must be one of '', 'normal', 'uniform'"),
        ({"product_dtype": "int8"}, r"product_dtype='int8': must be one of '', 'float32', 'bfloat16'"),
        ({"position": "learned"}, r"position='learned': must be one of"),
        ({"heads": 0}, r"heads=0: must be an integer of at least 1"),
        ({"inherit_phase": 1}, r"inherit_phase=1: must be True or False"),
        ({"trace_widths": ()}, r"trace_widths=\(\): must hold one width"),
        ({"trace_widths": 64}, r"trace_widths=64: must hold one width"),
        ({"reader_widths": None}, r"reader_widths=None: must be empty or hold 3"),
        ({"alpha": "pi"}, r"alpha='pi': must be a positive number"),
    ],
)
def test_a_bad_configuration_names_field_value_and_what_is_allowed(fields, message):
    with pytest.raises(InputError, match=message):
        TraceRelayConfig(8, 6, **fields)


def test_the_configuration_is_hashable_and_lists_become_tuples():
    assert hash(TraceRelayConfig(8, 6, trace_widths=[64, 16, 64])) == hash(TraceRelayConfig(8, 6, trace_widths=(64, 16, 64)))
