"""What make_lm refuses: addresses that will not do, and with --local-only every way off this machine."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

from archehr.data.case import DataError


class LMConfigError(DataError):
    """An LM that cannot be made as asked. One line with the remedy; never holds a key."""


def is_loopback(url: str) -> bool:
    """True where `url` can only lead to this machine: localhost, 127.0.0.0/8 or ::1, spelled plainly.

    Spellings on which URL parsers disagree (backslashes, blanks, short forms such as 127.1) count as elsewhere.
    """
    if any(c == "\\" or c.isspace() or not c.isprintable() for c in url):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not host:
        return False
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def local_only_asked(flag: bool | None) -> bool:
    """`flag` where given, else whether ARCHEHR_LOCAL_ONLY is set to anything but 0, false or no."""
    if flag is not None:
        return flag
    return os.environ.get("ARCHEHR_LOCAL_ONLY", "").strip().lower() not in ("", "0", "false", "no")


def refuse_remote(name: str, endpoint: str) -> None:
    """Raise LMConfigError unless `endpoint` is on this machine; "" is one that only the provider knows."""
    if is_loopback(endpoint):
        return
    place = f"the endpoint {without_userinfo(endpoint)}" if endpoint else "a hosted endpoint"
    raise LMConfigError(
        f"--local-only: {name} is reached at {place}; use a server on this machine (--api-base "
        "http://127.0.0.1:PORT/v1), gguf:PATH, or no LM at all"
    )


def check_address(api_base: str) -> None:
    """Raise LMConfigError unless `api_base` is a whole address without user name and password, which no engine
    sends."""
    try:
        parts = urlsplit(api_base)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise LMConfigError("--api-base: give a whole address, such as http://127.0.0.1:8000/v1, without a password")


def keys_in_reach(api_key: str | None) -> list[str]:
    """The key given and those in the environment, which a server may echo and no message may show. Stand-ins of a
    few letters are none: they are in any text."""
    found = (api_key, *(value for name, value in os.environ.items() if name.upper().endswith("_API_KEY")))
    return [key for key in found if key and len(key) >= 8]


def without_userinfo(url: str) -> str:
    """`url` without user name, password, query and fragment, which may be secrets."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(unreadable URL)"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return f"{parts.scheme}://{host}{port}{parts.path}"
