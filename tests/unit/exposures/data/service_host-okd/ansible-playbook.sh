#!/bin/bash
# Run this in the directory kubeinit of a checkout of KubeInit 1.0.2 or earlier.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
exec ansible-playbook -v --user root -i ./hosts/okd/inventory --become --become-user root -e "@$here/kubeinit.yaml" ./playbooks/okd.yml "$@"
