"""What a Go program prints that reads each text with sigs.k8s.io/yaml 1.6 into a field for texts."""

from __future__ import annotations

import pytest

from openstack_prep.base.formats.yaml_places import go_text, resolve_go

TEXTS = {
    **dict.fromkeys(("yes", "Y", "on", "TRUE"), "true"),
    **dict.fromkeys(("no", "N", "Off", "false"), "false"),
    **{
        each: each
        for each in ("tRue", "1:30", "190:20:30", "2026-01-01", "10.0.0.5", "0o8", "1.2.3", "--1", "_1", "1e")
    },
    **{each: each for each in ("1e", "0b2", "inf", "1e400", "._4", "nUll", "0x")},
    **{"017": "15", "0o17": "15", "08": "8", "0x1F": "31", "-0b11": "-3", "1_000": "1000", "+1": "1", "0x_1": "1"},
    **{"4.20": "4.2", "4.10": "4.1", "1.": "1", ".5": "0.5", ".1_0": "0.1", "1e3": "1000", "1E+3": "1000"},
    **{"123456789.5": "1.2345679e+08", "1e6": "1e+06", "0.0001": "0.0001", "0.00001": "1e-05", "1e39": "+Inf"},
    **{"1e-50": "0", "-0.0": "-0", ".inf": "+Inf", "-.INF": "-Inf", ".NaN": "NaN"},
    **{"18446744073709551615": "18446744073709551615", "18446744073709551616": "1.8446744e+19"},
    "-9223372036854775809": "-9.223372e+18",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text(text: str) -> None:
    assert go_text(resolve_go(text)) == TEXTS[text]


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_no_value(text: str) -> None:
    assert resolve_go(text) is None
