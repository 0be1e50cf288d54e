"""Findings as JUnit XML, which GitLab, Jenkins and others show as tests.

Source: junit-10.xsd of Jenkins' xunit-plugin, to which the files conform; it has no attribute for a line.
"""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from openstack_prep.base.diagnostic import DiagnosticStatus
from openstack_prep.base.style import printable
from openstack_prep.reports.findings import Finding, Findings


def junit(findings: Findings) -> str:
    """Return a document with one test per finding, and one that passed per subject without any."""
    suites = Element("testsuites", name="openstack-prep")
    suite = SubElement(suites, "testsuite", name=findings.title)
    for each in findings.found:
        _add_finding(suite, each, findings)
    for subject in findings.without:
        _add_case(suite, subject, findings.command)
    seconds = (findings.ended - findings.started).total_seconds()
    counts = {tag: str(len(suite.findall(f"./testcase/{tag}"))) for tag in ("failure", "error", "skipped")}
    totals = {"tests": str(len(suite)), "failures": counts["failure"], "errors": counts["error"]}
    for element in (suites, suite):
        element.attrib |= totals | {"time": f"{max(0.0, seconds):.3f}"}
    suite.attrib |= {"skipped": counts["skipped"], "timestamp": findings.started.strftime("%Y-%m-%dT%H:%M:%S")}
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _add_case(suite: Element, subject: str, name: str) -> Element:
    return SubElement(suite, "testcase", classname=printable(subject), name=name, time="0.000")


def _add_finding(suite: Element, finding: Finding, findings: Findings) -> None:
    found, place = finding.diagnostic, finding.place
    named = (each for each in findings.subjects if each == place.field)  # a file that does not exist
    subject = place.file or next(named, next(iter(findings.subjects), findings.command))
    case = _add_case(suite, subject, finding.title or findings.command)
    text = f"{printable(place.file)}:{place.line}: {finding.text}" if place.file else finding.text
    if found.status is DiagnosticStatus.OK:
        return
    if found.status is DiagnosticStatus.WARNING:  # JUnit knows no warnings
        SubElement(case, "system-out").text = f"warning: {text}"
        return
    tag = "skipped" if found.status is DiagnosticStatus.UNKNOWN else "error" if finding.ended_the_run else "failure"
    SubElement(case, tag, type=str(found.code), message=printable(found.what)).text = text
