"""The command ``openstack-prep``: it parses, calls the api and prints.

Exit codes: 0 done; 1 something failed; 2 wrong input or a refused plan; 130 interrupted.  ``plan
--detailed-exitcode`` is Terraform's: 0 nothing to do, 1 error, 2 changes pending.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from openstack_prep.errors import ConfigError, PrepError
from openstack_prep.hooks.post_ipi import add_command as add_post_ipi
from openstack_prep.version import __version__

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    if options.debug:
        # requests that hold a secret are never logged; keystoneauth hides tokens itself
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("keystoneauth").addHandler(logging.NullHandler())  # what it warns of, our errors say
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except PrepError as error:
        if options.debug:
            logging.getLogger("openstack_prep").debug("", exc_info=error)
        print(f"openstack-prep: {error}", file=sys.stderr)
        return 1 if getattr(options, "detailed_exitcode", False) else error.exit_code
    except KeyboardInterrupt:
        print("openstack-prep: interrupted; run it again to go on", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is flushed at the exit
        return 1
    except Exception as error:  # nobody but us can read a traceback
        if options.debug:
            raise
        what = f"{type(error).__name__}: {error}"
        print(f"openstack-prep: internal error: {what}; --debug shows where; please report it", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="openstack-prep", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--version", action="version", version=f"openstack-prep {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    plain = argparse.ArgumentParser(add_help=False)
    plain.add_argument("--debug", action="store_true", help="log every request without a secret, and show tracebacks")
    work = argparse.ArgumentParser(add_help=False, parents=[plain])
    work.add_argument("--os-cloud", metavar="NAME", help="entry of clouds.yaml; stronger than the spec and OS_CLOUD")
    work.add_argument("--format", choices=("text", "json", "yaml"), default="text", help="how to print (text)")
    work.add_argument("--jobs", type=_positive, default=8, metavar="N", help="requests at a time (8)")

    def command(name: str, run: Any, text: str, parent: argparse.ArgumentParser = work) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text, parents=[parent])
        added.set_defaults(run=run)
        return added

    plan = command("plan", _plan, "show what apply would do")
    plan.add_argument("-o", "--out", type=Path, metavar="FILE", help="keep the plan for apply --plan")
    plan.add_argument("--detailed-exitcode", action="store_true", help="0 nothing to do, 1 error, 2 changes pending")
    apply = command("apply", _apply, "make it so")
    apply.add_argument("--plan", type=Path, metavar="FILE", help="apply a kept plan; refused when it is stale")
    destroy = command("destroy", _destroy, "take back what this spec made, and nothing else")
    show = command("show", _show, "show what exists of a spec, with ids and addresses")
    for each in (plan, apply):
        each.add_argument("--allow-replace", action="store_true", help="consent to delete and make again what differs")
    for each in (apply, destroy):
        each.add_argument("--yes", "-y", action="store_true", help="do not ask")
    apply.add_argument("spec", type=Path, nargs="?", metavar="SPEC", help="the spec, a YAML file")
    for each in (plan, destroy, show):
        each.add_argument("spec", type=Path, metavar="SPEC", help="the spec, a YAML file")
    add_post_ipi(command, _carry_out)
    command("schema", _schema, "print the JSON Schema of a spec, for your editor", plain)
    example = command("example", _example, "print a ready-made spec, or list them", plain)
    example.add_argument("name", nargs="?", metavar="NAME")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to 256")
    return int(text)


# --- the commands -------------------------------------------------------------------------


def _open(options: argparse.Namespace, path: Path) -> tuple[Any, Any]:
    with _no_garbage():
        from openstack_prep.cloud import connect
        from openstack_prep.spec import load_spec

        spec = load_spec(path)
        for warning in spec.warnings:
            print(f"openstack-prep: warning: {path}: {warning}", file=sys.stderr)
        return connect(options.os_cloud or spec.clouds.admin), spec


@contextlib.contextmanager
def _no_garbage() -> Iterator[None]:
    """Spare what is made meanwhile from the collector: the libraries stay, and searching them costs a tenth."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _plan(options: argparse.Namespace) -> int:
    from openstack_prep import api, plan_file

    cloud, spec = _open(options, options.spec)
    plan = api.plan(cloud, spec, allow_replace=options.allow_replace, jobs=options.jobs)
    _print(options, plan.table, _plan_data(plan))
    plan.raise_for_refusals()
    if options.out:
        plan_file.save(options.out, plan, options.spec, cloud.name)
    return 2 if options.detailed_exitcode and plan else 0


def _apply(options: argparse.Namespace) -> int:
    from openstack_prep import api
    from openstack_prep.plan_file import SavedPlan

    if (options.spec is None) == (options.plan is None):
        raise ConfigError("apply: give either a SPEC or --plan FILE")
    saved = SavedPlan(options.plan) if options.plan else None
    if saved:
        saved.check_spec()
    cloud, spec = _open(options, saved.spec if saved else options.spec)
    allow = saved.allow_replace if saved else options.allow_replace
    plan = api.plan(cloud, spec, allow_replace=allow, jobs=options.jobs)
    if saved:
        saved.check(plan, cloud.name)
    plan.raise_for_refusals()
    return _run(options, cloud, plan) if saved else _carry_out(options, cloud, plan)


def _carry_out(options: argparse.Namespace, cloud: Any, plan: Any) -> int:
    """Apply a plan that has no refusals, by consent."""
    plan.raise_for_refusals()
    if plan and not options.yes:
        _ask(plan, "Apply this plan? Type yes: ", "yes")
    return _run(options, cloud, plan)


def _destroy(options: argparse.Namespace) -> int:
    from openstack_prep import api

    cloud, spec = _open(options, options.spec)
    plan = api.plan_destroy(cloud, spec, jobs=options.jobs)
    plan.raise_for_refusals()
    if plan and not options.yes:
        name = next((each.name for each in spec.resources if each.kind == "project"), spec.name)
        _ask(plan, f"Destroy this for good? Type the name {name}: ", name)
    return _run(options, cloud, plan)


def _ask(plan: Any, question: str, wanted: str) -> None:
    if not sys.stdin.isatty():
        raise ConfigError("there is no terminal to ask for consent on; give --yes")
    print(plan, file=sys.stderr)
    print(question, end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != wanted:
        raise ConfigError("not confirmed; nothing was changed")


def _run(options: argparse.Namespace, cloud: Any, plan: Any) -> int:
    from openstack_prep import api
    from openstack_prep.progress import display

    people = options.format == "text"
    try:
        with display(plan, sys.stdout if people else sys.stderr) as shown:
            report = api.apply(cloud, plan, jobs=options.jobs, tell=shown.tell, progress=shown.progress)
    except KeyboardInterrupt:  # the second: nobody waits for the running steps, nor may their threads hold us
        print("openstack-prep: left at once; what was under way may be done; run it again to go on", file=sys.stderr)
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    _print(options, report.summary, report.data())
    if report.interrupted:
        print("openstack-prep: interrupted; run it again to go on", file=sys.stderr)
        return INTERRUPTED
    return 1 if report.failed or report.skipped else 0


def _show(options: argparse.Namespace) -> int:
    from openstack_prep import api, text

    cloud, spec = _open(options, options.spec)
    found = api.show(cloud, spec, jobs=options.jobs)
    data = {str(key): text.observed_data(each) for key, each in found.items()}
    _print(options, text.observed_table(found), data)
    return 0


def _schema(options: argparse.Namespace) -> int:
    import json

    from openstack_prep.spec import schema

    print(json.dumps(schema(), indent=2))
    return 0


def _example(options: argparse.Namespace) -> int:
    from importlib import resources

    shipped = resources.files("openstack_prep.install_configs")
    names = sorted(each.name.removesuffix(".yaml") for each in shipped.iterdir() if each.name.endswith(".yaml"))
    if options.name is None:
        print("\n".join(names))
    elif options.name in names:
        print((shipped / f"{options.name}.yaml").read_text(), end="")
    else:
        raise ConfigError(f"no example {options.name!r}; there are {', '.join(names)}")
    return 0


def _print(options: argparse.Namespace, for_people: object, data: Any) -> None:
    if options.format == "json":
        import json

        print(json.dumps(data, indent=2))
    elif options.format == "yaml":
        import yaml

        print(yaml.safe_dump(data, sort_keys=False), end="")
    else:
        print(for_people)


def _plan_data(plan: Any) -> dict[str, Any]:
    return {
        "spec": plan.spec,
        "purpose": plan.purpose,
        "changes_pending": bool(plan),
        "steps": plan.data(),
        "refusals": [str(each) for each in plan.refusals],
    }


if __name__ == "__main__":
    sys.exit(main())
