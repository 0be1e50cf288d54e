"""The proxy on the way to an API server: that of the kubeconfig, or else of the environment.

Source: Kubernetes 1.36, staging/src/k8s.io/client-go/tools/clientcmd/client_config.go (ClientConfig: proxy-url is for
every server, whatever NO_PROXY says).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from openstack_prep.base.errors import ConfigError
from openstack_prep.kubernetes.api.kubeconfig import Access


def use_proxy(configuration: Any, access: Access) -> None:
    """Set the proxy in a configuration of the client, with the name and password that urllib3 ignores in the URL."""
    from urllib3.util import make_headers

    if access.proxy:
        configuration.proxy, configuration.no_proxy = access.proxy.reveal(), ""
    if not configuration.proxy:
        return
    try:
        parts = urlsplit(configuration.proxy)
    except ValueError:
        raise wrong(access) from None
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        configuration.proxy_headers = make_headers(proxy_basic_auth=login)


def wrong(access: Access) -> ConfigError:
    """Return the error for the proxy of the environment, which may contain a password."""
    fix = "write one such as http://192.0.2.1:3128, or except the server with NO_PROXY"
    return ConfigError(f"{access.name}: HTTPS_PROXY or HTTP_PROXY is not the URL of a proxy for HTTP; {fix}")
