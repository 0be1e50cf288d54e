from __future__ import annotations

import argparse

from openstack_prep.cli.of_spec import add_spec, fix_options


def test_a_printed_command_repeats_no_value_that_may_be_a_secret_of_the_spec() -> None:
    parser = argparse.ArgumentParser()
    add_spec(parser)
    options = parser.parse_args(["lab.yaml", "--var", "pw=hunter2", "--vars-file", "v.yaml"])
    options.directory, options.os_cloud = [], None
    assert fix_options(options, has_plain_secrets=False) == ["--var", "pw=hunter2", "--vars-file", "v.yaml"]
    assert fix_options(options, has_plain_secrets=True) == ["--var", "pw=...", "--vars-file", "v.yaml"]
