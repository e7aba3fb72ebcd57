"""Why a public file cannot be had or used. The codes are those of findings; `verify.rules` says how each is mended."""

from enum import StrEnum


class AssetFault(StrEnum):
    """What is wrong with an asset."""

    ADDRESS = "asset-address"
    """The address is no https address of a public host, or not of a host that the settings allow."""
    REDIRECTS = "asset-redirects"
    """It redirects too often, without an aim, or away from https."""
    MISSING = "asset-missing"
    """The server says that there is no such file, or that it is not public."""
    SERVER = "asset-server"
    """The server failed again and again."""
    UNREACHABLE = "asset-unreachable"
    """There is no such host, or it does not answer as a web server."""
    TRUNCATED = "asset-truncated"
    """The file ended too early, again and again."""
    SLOW = "asset-slow"
    """The download took longer than its limit."""
    TOO_LARGE = "asset-too-large"
    """The file, or all of them together, exceed the size limit."""
    WEB_PAGE = "asset-web-page"
    """The server shows a web page about the file instead of the file."""
    OFFLINE = "asset-offline"
    """Downloads are switched off and the file is not in the cache."""
    DIGEST = "asset-digest"
    """The file has another digest than the contract says."""
    DIFFERS = "asset-differs"
    """The author wrote other bytes to the place of the file."""
    LICENCE = "asset-licence"
    """The terms are not stated, not proved by a text beside the file, or not allowed by the policy."""


class NotHad(Exception):
    """An asset that cannot be had; a fact about the asset and never about the surroundings."""

    def __init__(self, fault: AssetFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault
        self.message = message
