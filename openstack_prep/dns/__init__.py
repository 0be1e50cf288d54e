"""Files that resolve names, whoever the names belong to: blocks of hosts files, zones and their serials."""
