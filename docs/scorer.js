// How the site's search sorts what it finds (Sphinx: html_search_scorer). A page about a word comes before a section
// about it, a guide before the reference, and all of them before attributes and functions that happen to have the word
// in their name.
const GUIDES = /^(README|docs\/(tutorial|tenant|openshift|kubernetes|load-balancers|external-access|rke|recipes|team|variables|fleet|pipelines|pictures|openstack-client|ansible-terraform|python|extending))$/;
const REFERENCE = /^docs\/(spec|codes|limits|security|support)$/;

var Scorer = {
  score: ([docname, title, anchor, descr, score, filename, kind]) => {
    if (kind === "object") return score - 30;
    return score + (GUIDES.test(docname) ? 20 : REFERENCE.test(docname) ? 10 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
