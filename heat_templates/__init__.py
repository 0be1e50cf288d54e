"""Heat templates of clusters: ``template: shipped:NAME`` in a spec."""
